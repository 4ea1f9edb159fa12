//! Results as a sequence of rows over a few large chunks, and the cutting of pages into batches of a wanted size.

use std::collections::VecDeque;

use super::cursor::Place;
use super::pages::DeliveredPage;
use crate::columns::Columns;
use crate::interface::RecordType;

/// Rows a chunk is closed at. Large enough for columns to be worth it, small enough to copy pages only once.
const CHUNK: usize = 16_384;
/// Arrow's offsets have 32 bits: a chunk is closed long before its text reaches them.
const CHUNK_BYTES: usize = 512 << 20;

/// Records of one type, in the order they were delivered. Cloning and slicing share the data.
#[derive(Clone, Debug)]
pub struct Records {
    record: &'static RecordType,
    chunks: Vec<Columns>,
    /// The row after each chunk's last.
    ends: Vec<usize>,
}

impl Records {
    pub fn new(record: &'static RecordType, chunks: Vec<Columns>) -> Self {
        let chunks: Vec<Columns> = chunks.into_iter().filter(|chunk| chunk.rows() > 0).collect();
        let ends = chunks
            .iter()
            .scan(0, |end, chunk| {
                *end += chunk.rows();
                Some(*end)
            })
            .collect();
        Self { record, chunks, ends }
    }

    pub fn record(&self) -> &'static RecordType {
        self.record
    }

    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn chunks(&self) -> &[Columns] {
        &self.chunks
    }

    /// The chunk that holds a row, and the row's place in it.
    pub fn locate(&self, row: usize) -> Option<(&Columns, usize)> {
        let chunk = self.ends.partition_point(|end| *end <= row);
        let start = chunk.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.chunks.get(chunk).map(|columns| (columns, row - start))
    }

    pub fn slice(&self, offset: usize, length: usize) -> Self {
        let (mut start, end) = (0, offset + length);
        let mut chunks = Vec::new();
        for columns in &self.chunks {
            let (from, to) = (offset.max(start), end.min(start + columns.rows()));
            if from < to {
                chunks.push(columns.slice(from - start, to - from));
            }
            start += columns.rows();
        }
        Self::new(self.record, chunks)
    }

    /// These rows, in this order.
    pub fn take(&self, rows: &[u32]) -> Self {
        Self::new(self.record, vec![Columns::concat(self.record, &self.chunks).take(rows)])
    }
}

/// Pages on their way to becoming records.
pub struct RecordsBuilder {
    record: &'static RecordType,
    chunks: Vec<Columns>,
    open: Vec<Columns>,
    open_rows: usize,
    open_bytes: usize,
}

impl RecordsBuilder {
    pub fn new(record: &'static RecordType) -> Self {
        Self { record, chunks: Vec::new(), open: Vec::new(), open_rows: 0, open_bytes: 0 }
    }

    pub fn push(&mut self, page: Columns) {
        self.open_rows += page.rows();
        self.open_bytes += page.memory();
        self.open.push(page);
        if self.open_rows >= CHUNK || self.open_bytes >= CHUNK_BYTES {
            self.finish();
        }
    }

    /// No open pages any more, but chunks.
    pub fn finish(&mut self) {
        self.chunks.push(Columns::concat(self.record, &std::mem::take(&mut self.open)));
        (self.open_rows, self.open_bytes) = (0, 0);
    }

    /// What there is so far.
    pub fn snapshot(&self) -> Records {
        let mut chunks = self.chunks.clone();
        chunks.extend(self.open.iter().cloned());
        Records::new(self.record, chunks)
    }
}

/// Records on their way out, and the place in the run after them.
pub struct Batch {
    pub records: Records,
    pub place: Option<Place>,
}

/// Cuts what comes in into batches of exactly `rows` rows, but for the last.
pub struct Batches {
    record: &'static RecordType,
    rows: usize,
    open: VecDeque<Part>,
    open_rows: usize,
}

/// What is left of a page.
struct Part {
    columns: Columns,
    used: usize,
    place: Place,
}

impl Batches {
    pub fn new(record: &'static RecordType, rows: usize) -> Self {
        Self { record, rows, open: VecDeque::new(), open_rows: 0 }
    }

    pub fn push(&mut self, page: DeliveredPage) {
        self.open_rows += page.columns.rows();
        self.open.push_back(Part { columns: page.columns, used: 0, place: page.place });
    }

    /// From now on, cut batches of at least one row and this many.
    pub fn resize(&mut self, rows: usize) {
        self.rows = rows.max(1);
    }

    /// A full batch, if there is one.
    pub fn full(&mut self) -> Option<Batch> {
        (self.open_rows >= self.rows).then(|| self.cut(self.rows))
    }

    /// What is left at the end.
    pub fn rest(&mut self) -> Option<Batch> {
        (self.open_rows > 0).then(|| self.cut(self.open_rows))
    }

    fn cut(&mut self, rows: usize) -> Batch {
        let (mut parts, mut wanted, mut place) = (Vec::new(), rows, None);
        while let Some(part) = self.open.front_mut() {
            let taken = wanted.min(part.columns.rows() - part.used);
            parts.push(part.columns.slice(part.used, taken));
            part.used += taken;
            wanted -= taken;
            place = Some(part.place.back_to(part.used));
            if part.used < part.columns.rows() {
                break;
            }
            self.open.pop_front();
            if wanted == 0 {
                break;
            }
        }
        self.open_rows -= rows;
        Batch { records: Records::new(self.record, vec![Columns::concat(self.record, &parts)]), place }
    }
}
