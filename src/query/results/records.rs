//! Records as a sequence of rows over a few large chunks.

use std::collections::HashMap;

use crate::columns::{Columns, ColumnsBuilder, StringLayout};
use crate::interface::{QUERIED, RecordType};

/// Maximum rows of a chunk: large enough for columns to be worth it, small enough that converting one chunk takes
/// little memory beside all of them.
const CHUNK_ROWS: usize = 65_536;
/// Maximum bytes of strings in a chunk: Arrow's string offsets have 32 bits.
const CHUNK_BYTES: usize = if cfg!(test) { 1 << 20 } else { 512 << 20 };

/// Records of one type, in order. Clones and slices share the data.
#[derive(Clone, Debug)]
pub struct Records {
    record: &'static RecordType,
    chunks: Vec<Columns>,
    /// Index of the row after each chunk's last.
    ends: Vec<usize>,
}

/// Equal records in the same order, however they are divided into chunks.
impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.record, other.record)
            && self.len() == other.len()
            && (0..self.len()).all(|row| match (self.locate(row), other.locate(row)) {
                (Some((ours, row)), Some((theirs, other))) => {
                    (0..self.record.fields.len()).all(|column| ours.value(column, row) == theirs.value(column, other))
                }
                _ => false,
            })
    }
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

    /// Heights of the records; none if they have no height, or it was not decoded.
    pub fn heights(&self) -> impl Iterator<Item = Option<i64>> + Clone + '_ {
        self.chunks.iter().flat_map(Columns::heights)
    }

    /// The records that `heights` has: the chunk of each, its index there and its height.
    pub fn with_heights(&self) -> impl Iterator<Item = (&Columns, usize, Option<i64>)> {
        self.chunks.iter().flat_map(|chunk| chunk.heights().enumerate().map(move |(row, height)| (chunk, row, height)))
    }

    /// Returns the chunk that holds a row, and the row's index in it.
    pub fn locate(&self, row: usize) -> Option<(&Columns, usize)> {
        let (chunk, row) = self.chunk_of(row);
        self.chunks.get(chunk).map(|columns| (columns, row))
    }

    /// Index of the chunk that holds a row, and the row's index in it.
    pub fn chunk_of(&self, row: usize) -> (usize, usize) {
        let chunk = self.ends.partition_point(|end| *end <= row);
        let start = chunk.checked_sub(1).map_or(0, |before| self.ends[before]);
        (chunk, row - start)
    }

    pub fn slice(&self, offset: usize, length: usize) -> Self {
        let (first, mut from) = self.chunk_of(offset);
        let mut left = length;
        let mut chunks = Vec::new();
        for columns in self.chunks.iter().skip(first) {
            if left == 0 {
                break;
            }
            let rows = left.min(columns.rows() - from);
            chunks.push(columns.slice(from, rows));
            from = 0;
            left -= rows;
        }
        Self::new(self.record, chunks)
    }

    /// Number of records that the list of each value of a set returned; nothing of other queries.
    pub fn counts_by_queried(&self) -> HashMap<&str, u64> {
        let mut counts = HashMap::new();
        let column = self.record.position(QUERIED.name);
        for values in self.chunks.iter().filter_map(|chunk| chunk.list_values(column?)).flatten().flatten() {
            *counts.entry(values).or_default() += 1;
        }
        counts
    }

    /// Returns these rows, in this order.
    pub fn take(&self, rows: impl IntoIterator<Item = usize>) -> Self {
        let mut parts: Vec<(usize, Vec<u32>)> = Vec::new();
        for row in rows {
            let (chunk, row) = self.chunk_of(row);
            match parts.last_mut() {
                Some((last, rows)) if *last == chunk => rows.push(row as u32),
                _ => parts.push((chunk, vec![row as u32])),
            }
        }
        Self::new(self.record, parts.iter().map(|(chunk, rows)| self.chunks[*chunk].take(rows)).collect())
    }
}

/// Collects pages into records. Rows are copied as they are pushed, so that pages do not accumulate.
pub struct RecordsBuilder {
    record: &'static RecordType,
    layout: StringLayout,
    chunks: Vec<Columns>,
    current_chunk: ColumnsBuilder,
    current_bytes: usize,
    /// True if the last of `chunks` was closed by a snapshot and has room for more.
    is_cut: bool,
    chunk_rows: usize,
    rows: usize,
}

impl RecordsBuilder {
    pub fn new(record: &'static RecordType, layout: StringLayout) -> Self {
        Self::with_chunk_rows(record, layout, CHUNK_ROWS)
    }

    /// Returns a builder whose chunks have up to `chunk_rows` rows.
    pub fn with_chunk_rows(record: &'static RecordType, layout: StringLayout, chunk_rows: usize) -> Self {
        let current_chunk = ColumnsBuilder::new(record, 0);
        Self { record, layout, chunks: Vec::new(), current_chunk, current_bytes: 0, is_cut: false, chunk_rows, rows: 0 }
    }

    /// Number of rows pushed since the last `finish`.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends a page, after which `expected` more rows are expected.
    pub fn push(&mut self, page: &Columns, expected: usize) {
        if std::mem::take(&mut self.is_cut)
            && let Some(chunk) = self.chunks.pop()
        {
            self.append(&chunk, expected.saturating_add(page.rows()));
        }
        self.append(page, expected);
        self.rows += page.rows();
    }

    fn append(&mut self, page: &Columns, expected: usize) {
        let bytes = page.text_size();
        if self.current_bytes + bytes > CHUNK_BYTES {
            self.close_chunk();
        }
        if self.current_chunk.rows() == 0 {
            let rows = page.rows().saturating_add(expected).min(self.chunk_rows).min(CHUNK_ROWS);
            self.current_chunk = ColumnsBuilder::with_capacity_from(page, rows, self.layout);
        }
        self.current_chunk.append(page);
        self.current_bytes += bytes;
        if self.current_chunk.rows() >= self.chunk_rows {
            self.close_chunk();
        }
    }

    fn close_chunk(&mut self) {
        if self.current_chunk.rows() > 0 {
            let mut chunk = self.current_chunk.finish();
            chunk.shrink_to_fit();
            self.chunks.push(chunk);
        }
        self.current_bytes = 0;
    }

    /// Returns the rows pushed so far and keeps them.
    pub fn snapshot(&mut self) -> Records {
        self.is_cut |= self.current_chunk.rows() > 0;
        self.close_chunk();
        Records::new(self.record, self.chunks.clone())
    }

    /// Discards all rows but the first `rows`.
    pub fn truncate(&mut self, rows: usize) {
        self.chunks = self.snapshot().slice(0, rows).chunks;
        self.is_cut = !self.chunks.is_empty();
        self.rows = rows;
    }

    /// Returns the rows pushed so far and starts over.
    pub fn finish(&mut self) -> Records {
        self.close_chunk();
        self.rows = 0;
        self.is_cut = false;
        Records::new(self.record, std::mem::take(&mut self.chunks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Value;
    use crate::interface::record;

    /// Blocks of these heights, each with a hash of `length` characters.
    fn page(heights: std::ops::Range<usize>, length: usize) -> Columns {
        let block = record("Block").unwrap();
        let mut page = ColumnsBuilder::new(block, 0);
        for height in heights {
            page.append_str(block.position("height").unwrap(), &height.to_string()).unwrap();
            page.append_str(block.position("hash").unwrap(), &"x".repeat(length)).unwrap();
            page.finish_row();
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
    fn strings_exceeding_one_chunk_start_another_and_rows_are_located_in_all() {
        let mut builder = RecordsBuilder::new(record("Block").unwrap(), StringLayout::Utf8);
        for start in (0..40).step_by(4) {
            builder.push(&page(start..start + 4, CHUNK_BYTES / 10), 0);
        }
        let records = builder.snapshot();
        assert_eq!(records.chunks().len(), 5);
        assert_eq!(heights(&records), (0..40).collect::<Vec<_>>());
        for (offset, length) in [(0, 40), (0, 0), (7, 1), (7, 2), (8, 8), (15, 25), (39, 1), (40, 0)] {
            let rows: Vec<usize> = (offset..offset + length).collect();
            assert_eq!(heights(&records.slice(offset, length)), rows);
        }
        for step in [1, 2, 7, 39] {
            let rows: Vec<usize> = (0..40).step_by(step).collect();
            assert_eq!(heights(&records.take(rows.iter().copied())), rows);
            assert_eq!(heights(&records.take(rows.iter().rev().copied())), rows.into_iter().rev().collect::<Vec<_>>());
        }
    }

    #[test]
    fn finished_chunk_has_no_unused_memory() {
        let mut builder = RecordsBuilder::new(record("Block").unwrap(), StringLayout::Utf8);
        builder.push(&page(0..3, 10), 0);
        builder.push(&page(3..9, 1_000), 0);
        let records = builder.finish();
        let chunk = &records.chunks()[0];
        let crate::columns::Column::Utf8(hashes) = chunk.column(records.record().position("hash").unwrap()) else {
            panic!("hashes are no strings")
        };
        assert_eq!((hashes.values().len(), hashes.values().capacity()), (6_030, 6_030));
    }

    #[test]
    fn snapshot_keeps_rows_and_later_rows_follow() {
        let mut builder = RecordsBuilder::new(record("Block").unwrap(), StringLayout::Utf8);
        builder.push(&page(0..3, 0), 9);
        assert_eq!(heights(&builder.snapshot()), [0, 1, 2]);
        builder.push(&page(3..5, 1), 0);
        assert_eq!(heights(&builder.snapshot()), [0, 1, 2, 3, 4]);
        assert_eq!(heights(&builder.snapshot()), [0, 1, 2, 3, 4]);
        builder.push(&page(5..6, 1), 0);
        let records = builder.snapshot();
        assert_eq!((records.chunks().len(), records.len()), (1, 6));
        builder.push(&page(6..7, 1), 0);
        assert_eq!(heights(&builder.snapshot()), [0, 1, 2, 3, 4, 5, 6]);
        builder.truncate(4);
        assert_eq!((builder.rows(), heights(&builder.snapshot())), (4, vec![0, 1, 2, 3]));
        builder.push(&page(8..9, 1), 0);
        assert_eq!(heights(&builder.snapshot()), [0, 1, 2, 3, 8]);
        builder.truncate(0);
        builder.push(&page(0..7, 0), 0);
        assert_eq!(builder.finish().len(), 7);
        assert!(builder.snapshot().is_empty());
    }
}
