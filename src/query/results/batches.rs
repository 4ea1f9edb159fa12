//! Batches: pages regrouped into a requested number of rows.

use std::collections::VecDeque;

use super::page::{Checkpoint, Page};
use super::records::{Records, RecordsBuilder};
use crate::columns::StringLayout;
use crate::interface::RecordType;

/// Consecutive records and the position of the run after them.
pub struct Batch {
    pub records: Records,
    pub checkpoint: Option<Checkpoint>,
}

/// Regroups pages into batches of exactly `rows` rows; the last may be smaller. A batch is one chunk unless its strings
/// exceed what one chunk holds.
pub struct Batches {
    rows: usize,
    pending: RecordsBuilder,
    /// Rows left over by the last cut.
    remainder: Records,
    /// Pages of all rows in `remainder` and `pending`.
    groups: VecDeque<PageGroup>,
}

/// Consecutive pages with rows that are not delivered yet. A batch ends within the last page of a group, or not within
/// the group at all, so that only that page's checkpoint is kept.
struct PageGroup {
    rows: usize,
    delivered: usize,
    /// Rows before the last page.
    before: usize,
    checkpoint: Checkpoint,
}

impl Batches {
    pub fn new(record: &'static RecordType, rows: usize) -> Self {
        Self::with_chunk_rows(record, rows, usize::MAX)
    }

    /// Returns batches of chunks of up to `chunk_rows` rows, which take less memory while they grow.
    pub fn with_chunk_rows(record: &'static RecordType, rows: usize, chunk_rows: usize) -> Self {
        let pending = RecordsBuilder::with_chunk_rows(record, StringLayout::Utf8, chunk_rows);
        Self { rows, pending, remainder: Records::new(record, Vec::new()), groups: VecDeque::new() }
    }

    pub fn push(&mut self, page: Page) {
        for chunk in self.remainder.chunks() {
            self.pending.push(chunk, self.rows.saturating_sub(chunk.rows()));
        }
        self.remainder = self.remainder.slice(0, 0);
        let rows = page.columns.rows();
        let is_full = self.pending.rows() >= self.rows;
        self.pending.push(&page.columns, self.rows.saturating_sub(rows));
        match self.groups.back_mut() {
            Some(group) if !is_full => {
                group.before = group.rows;
                group.rows += rows;
                group.checkpoint = page.checkpoint;
            }
            Some(_) | None => {
                self.groups.push_back(PageGroup { rows, delivered: 0, before: 0, checkpoint: page.checkpoint });
            }
        }
    }

    /// Sets the size of the following batches, at least one row.
    pub fn resize(&mut self, rows: usize) {
        self.rows = rows.max(1);
    }

    /// Returns a full batch, if there is one.
    pub fn full(&mut self) -> Option<Batch> {
        if self.pending.rows() >= self.rows {
            self.remainder = self.pending.finish();
        }
        (self.remainder.len() >= self.rows).then(|| self.cut(self.rows))
    }

    /// Returns the rows left at the end.
    pub fn finish(&mut self) -> Option<Batch> {
        if self.pending.rows() > 0 {
            self.remainder = self.pending.finish();
        }
        (!self.remainder.is_empty()).then(|| self.cut(self.remainder.len()))
    }

    fn cut(&mut self, rows: usize) -> Batch {
        let records = self.remainder.slice(0, rows);
        self.remainder = self.remainder.slice(rows, self.remainder.len() - rows);
        let mut wanted = rows;
        let mut checkpoint = None;
        while let Some(group) = self.groups.front_mut() {
            let taken = wanted.min(group.rows - group.delivered);
            group.delivered += taken;
            wanted -= taken;
            checkpoint = Some(group.checkpoint.at_row(group.delivered - group.before));
            if group.delivered < group.rows {
                break;
            }
            self.groups.pop_front();
            if wanted == 0 {
                break;
            }
        }
        Batch { records, checkpoint }
    }
}
