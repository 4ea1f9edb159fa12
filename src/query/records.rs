//! Results as a sequence of rows over a few large chunks, and the cutting of pages into batches of a wanted size.

use std::collections::VecDeque;

use super::cursor::Place;
use super::pages::DeliveredPage;
use crate::columns::{Columns, ColumnsBuilder, Layout};
use crate::interface::RecordType;

/// Rows a chunk is closed at. Large enough for columns to be worth it, small enough for work on one to take little
/// memory beside all of them.
const CHUNK: usize = 65_536;
/// Arrow's offsets have 32 bits: a chunk is closed long before its text reaches them.
const CHUNK_TEXT: usize = if cfg!(test) { 1 << 20 } else { 512 << 20 };

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
        let (chunk, row) = self.place(row);
        self.chunks.get(chunk).map(|columns| (columns, row))
    }

    fn place(&self, row: usize) -> (usize, usize) {
        let chunk = self.ends.partition_point(|end| *end <= row);
        let start = chunk.checked_sub(1).map_or(0, |before| self.ends[before]);
        (chunk, row - start)
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
    pub fn take(&self, rows: impl IntoIterator<Item = usize>) -> Self {
        let mut parts: Vec<(usize, Vec<u32>)> = Vec::new();
        for row in rows {
            let (chunk, row) = self.place(row);
            match parts.last_mut() {
                Some((last, rows)) if *last == chunk => rows.push(row as u32),
                _ => parts.push((chunk, vec![row as u32])),
            }
        }
        Self::new(self.record, parts.iter().map(|(chunk, rows)| self.chunks[*chunk].take(rows)).collect())
    }
}

/// Pages on their way to becoming records. What is pushed is copied at once, so that pages do not pile up.
pub struct RecordsBuilder {
    record: &'static RecordType,
    layout: Layout,
    chunks: Vec<Columns>,
    open: ColumnsBuilder,
    open_text: usize,
    /// Rows a chunk is closed at.
    most: usize,
    rows: usize,
}

impl RecordsBuilder {
    pub fn new(record: &'static RecordType, layout: Layout) -> Self {
        Self::in_chunks_of(record, layout, CHUNK)
    }

    fn in_chunks_of(record: &'static RecordType, layout: Layout, most: usize) -> Self {
        Self { record, layout, chunks: Vec::new(), open: ColumnsBuilder::new(record, 0), open_text: 0, most, rows: 0 }
    }

    /// Appends a page, after which so many rows are expected.
    pub fn push(&mut self, page: &Columns, ahead: usize) {
        let text = page.text_size();
        if self.open_text + text > CHUNK_TEXT {
            self.close();
        }
        if self.open.rows() == 0 {
            let rows = page.rows().saturating_add(ahead).min(self.most).min(CHUNK);
            self.open = ColumnsBuilder::beginning_with(page, rows, self.layout);
        }
        self.open.append(page);
        self.open_text += text;
        self.rows += page.rows();
        if self.open.rows() >= self.most {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.open.rows() > 0 {
            self.chunks.push(self.open.finish());
        }
        self.open_text = 0;
    }

    /// What there is so far.
    pub fn snapshot(&mut self) -> Records {
        self.close();
        Records::new(self.record, self.chunks.clone())
    }

    /// The same, which is no longer here.
    fn take(&mut self) -> Records {
        self.close();
        self.rows = 0;
        Records::new(self.record, std::mem::take(&mut self.chunks))
    }
}

/// Records on their way out, and the place in the run after them.
pub struct Batch {
    pub records: Records,
    pub place: Option<Place>,
}

/// Cuts what comes in into batches of exactly `rows` rows, but for the last. A batch is one chunk unless its text is
/// too long for one.
pub struct Batches {
    rows: usize,
    open: RecordsBuilder,
    /// What the last cut left.
    left: Records,
    /// The pages of all rows here.
    parts: VecDeque<Part>,
}

/// Pages, of which some rows are no longer here. A batch never ends within any but the last of them.
struct Part {
    rows: usize,
    used: usize,
    /// Rows before the last page.
    before: usize,
    place: Place,
}

impl Batches {
    pub fn new(record: &'static RecordType, rows: usize) -> Self {
        let open = RecordsBuilder::in_chunks_of(record, Layout::Offsets, usize::MAX);
        Self { rows, open, left: Records::new(record, Vec::new()), parts: VecDeque::new() }
    }

    pub fn push(&mut self, page: DeliveredPage) {
        for chunk in self.left.chunks() {
            self.open.push(chunk, self.rows.saturating_sub(chunk.rows()));
        }
        self.left = self.left.slice(0, 0);
        let (pending, rows) = (self.open.rows, page.columns.rows());
        self.open.push(&page.columns, self.rows.saturating_sub(rows));
        match self.parts.back_mut().filter(|_| pending < self.rows) {
            // A place holds its page: those that no batch ends in are let go.
            Some(part) => {
                *part = Part { rows: part.rows + rows, used: part.used, before: part.rows, place: page.place };
            }
            None => self.parts.push_back(Part { rows, used: 0, before: 0, place: page.place }),
        }
    }

    /// From now on, cut batches of at least one row and this many.
    pub fn resize(&mut self, rows: usize) {
        self.rows = rows.max(1);
    }

    /// A full batch, if there is one.
    pub fn full(&mut self) -> Option<Batch> {
        if self.open.rows >= self.rows {
            self.left = self.open.take();
        }
        (self.left.len() >= self.rows).then(|| self.cut(self.rows))
    }

    /// What is left at the end.
    pub fn rest(&mut self) -> Option<Batch> {
        if self.open.rows > 0 {
            self.left = self.open.take();
        }
        (!self.left.is_empty()).then(|| self.cut(self.left.len()))
    }

    fn cut(&mut self, rows: usize) -> Batch {
        let records = self.left.slice(0, rows);
        self.left = self.left.slice(rows, self.left.len() - rows);
        let (mut wanted, mut place) = (rows, None);
        while let Some(part) = self.parts.front_mut() {
            let taken = wanted.min(part.rows - part.used);
            part.used += taken;
            wanted -= taken;
            place = Some(part.place.back_to(part.used - part.before));
            if part.used < part.rows {
                break;
            }
            self.parts.pop_front();
            if wanted == 0 {
                break;
            }
        }
        Batch { records, place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Value;
    use crate::interface::record;

    /// Blocks of these heights, with so long a text each.
    fn page(heights: std::ops::Range<usize>, text: usize) -> Columns {
        let block = record("Block").unwrap();
        let mut page = ColumnsBuilder::new(block, 0);
        for height in heights {
            page.put_text(block.position("height").unwrap(), &height.to_string()).unwrap();
            page.put_text(block.position("hash").unwrap(), &"x".repeat(text)).unwrap();
            page.end_row();
        }
        page.finish()
    }

    fn heights(records: &Records) -> Vec<usize> {
        let column = records.record().position("height").unwrap();
        let height = |row| match records.locate(row).map(|(columns, row)| columns.value(column, row)) {
            Some(Value::Integer(height)) => height as usize,
            other => panic!("no height: {other:?}"),
        };
        (0..records.len()).map(height).collect()
    }

    #[test]
    fn text_that_is_too_long_for_one_chunk_makes_several_and_rows_are_found_in_all() {
        let mut builder = RecordsBuilder::new(record("Block").unwrap(), Layout::Offsets);
        for start in (0..40).step_by(4) {
            builder.push(&page(start..start + 4, CHUNK_TEXT / 10), 0);
        }
        let records = builder.snapshot();
        assert_eq!(records.chunks().len(), 5);
        assert_eq!(heights(&records), (0..40).collect::<Vec<_>>());
        for step in [1, 2, 7, 39] {
            let rows: Vec<usize> = (0..40).step_by(step).collect();
            assert_eq!(heights(&records.take(rows.iter().copied())), rows);
            assert_eq!(heights(&records.take(rows.iter().rev().copied())), rows.into_iter().rev().collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_was_shown_stays_and_what_comes_follows() {
        let mut builder = RecordsBuilder::new(record("Block").unwrap(), Layout::Offsets);
        builder.push(&page(0..3, 0), 9);
        assert_eq!(heights(&builder.snapshot()), [0, 1, 2]);
        builder.push(&page(3..5, 1), 0);
        assert_eq!(heights(&builder.snapshot()), [0, 1, 2, 3, 4]);
        assert_eq!(builder.take().len(), 5);
        assert!(builder.snapshot().is_empty());
    }
}
