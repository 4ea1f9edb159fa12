//! Which rows of a located response are returned.

use std::ops::Range;

use super::reader::{Head, Skip, SnapshotReader};
use super::spec::{Accepted, ListKind, View};

impl SnapshotReader {
    /// Reads rows as the next records of the snapshot, and returns those that are not skipped.
    pub(super) fn deliver(&mut self, view: &View<'_>, rows: Range<usize>) -> Accepted {
        let first = self.first_to_return(view, &rows);
        self.read(view, rows.start..first.max(rows.start));
        let before = self.checkpoint();
        // The first record is read with the length, and returned with its page.
        let before = if first < rows.start { before.before_first() } else { before };
        self.read(view, first.max(rows.start)..rows.end);
        if self.spec.continues_by_height() {
            self.tail = self.tail.after(view.rows, first..rows.end);
        }
        self.returned += (rows.end - first) as u64;
        self.drift.misses = 0;
        Accepted { rows: first..rows.end, before, ..Accepted::default() }
    }

    /// Offset of the next record to locate: the first one again, which was read with the length, before anything is
    /// returned.
    pub(super) fn next_offset(&self) -> u64 {
        if matches!(self.skip, Skip::Newer { head: Head::Read, .. }) { 0 } else { self.delivered.end() }
    }

    /// Offset at which the records read so far, and then these, agree with the first page.
    pub(super) fn offset_of_first_page(&self, keys: &[u64]) -> Option<u64> {
        let Skip::Newer { page, .. } = &self.skip else { return None };
        let read: Vec<u64> = self.delivered.keys().chain(keys.iter().copied()).collect();
        let agrees = |at: &usize| read[*at..].iter().zip(page).all(|(key, expected)| key == expected);
        let offset = self.delivered.base() + (0..read.len()).find(agrees)? as u64;
        (offset <= self.most_newer()).then_some(offset)
    }

    /// The first row to return, which may be that of a record read before.
    fn first_to_return(&mut self, view: &View<'_>, rows: &Range<usize>) -> usize {
        let Skip::Newer { head, .. } = &mut self.skip else { return rows.start + self.rows_to_skip(view, rows) };
        *head = Head::Confirmed;
        let (row, next) = (rows.start as u64, self.delivered.end());
        if let Some(head) = row.checked_sub(next) {
            // The page is of one instant, and contains the first record: the others are as good for the final look.
            self.snapshot.set_anchors(&view.keys(head as usize..rows.end), self.spec.tuning.max_anchors);
        }
        let Some(offset) = self.offset_of_first_page(&view.keys(rows.clone())) else { return rows.end };
        self.skip = Skip::Nothing;
        (row + offset - next) as usize
    }

    /// Number of leading rows that were returned before the snapshot began, or that are newer.
    fn rows_to_skip(&mut self, view: &View<'_>, rows: &Range<usize>) -> usize {
        let Skip::Until { keys, records } = &self.skip else { return 0 };
        // The keys are those of the last of the returned records.
        let unknown = records.saturating_sub(keys.len() as u64);
        let read: Vec<u64> = self.delivered.keys().chain(view.keys(rows.clone())).collect();
        let found = read.windows(keys.len()).position(|window| window == keys);
        let found = found.map(|at| self.delivered.base() + at as u64);
        let is_possible = |at: &u64| at.checked_sub(unknown).is_some_and(|newer| newer <= self.most_newer());
        let Some(found) = found.filter(is_possible) else { return rows.len() };
        let skipped = (found + keys.len() as u64 - self.delivered.end()) as usize;
        self.skip = Skip::Nothing;
        skipped
    }

    /// Most records that can have been added before the length was known.
    pub(super) fn most_newer(&self) -> u64 {
        let least = self.snapshot.min_length;
        self.snapshot.length.exact().map_or(u64::MAX, |length| length.saturating_sub(least))
    }

    pub(super) fn read(&mut self, view: &View<'_>, rows: Range<usize>) {
        let (offset, records) = (self.delivered.end(), rows.len() as u64);
        let needs_check = self.spec.kind == ListKind::Growing && self.snapshot.is_run();
        let keys = if needs_check || self.delivered.keeps_keys() { view.keys(rows) } else { Vec::new() };
        if needs_check {
            self.snapshot.add_first_difference(offset, &keys);
        }
        if self.delivered.keeps_keys() {
            self.delivered.push(&keys);
        } else {
            self.delivered.advance(records);
        }
    }
}
