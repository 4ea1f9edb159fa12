//! Which rows of a located response are returned.

use std::ops::Range;

use super::reader::{Earlier, SnapshotReader};
use super::spec::{Accepted, ListKind, View};

impl SnapshotReader {
    /// Reads rows as the next records of the snapshot, and returns those that were not returned before.
    pub(super) fn deliver(&mut self, view: &View<'_>, rows: Range<usize>) -> Accepted {
        if self.spec.kind == ListKind::Growing && self.delivered.end() == 0 && self.snapshot.anchors.is_empty() {
            self.snapshot.set_anchors(&view.keys(rows.clone()), self.spec.tuning.max_anchors);
        }
        let first = rows.start + self.rows_to_skip(view, &rows);
        self.read(view, rows.start..first);
        let before = self.checkpoint();
        self.read(view, first..rows.end);
        if self.spec.continues_by_height() {
            self.tail = self.tail.after(view.rows, first..rows.end);
        }
        self.returned += (rows.end - first) as u64;
        self.drift.misses = 0;
        Accepted { rows: first..rows.end, before }
    }

    /// Number of leading rows that were returned before the snapshot began, or that are newer.
    fn rows_to_skip(&mut self, view: &View<'_>, rows: &Range<usize>) -> usize {
        let Some(Earlier { keys, records }) = &self.earlier else { return 0 };
        // The keys are those of the last of the returned records.
        let unknown = records.saturating_sub(keys.len() as u64);
        let read: Vec<u64> = self.delivered.keys().chain(view.keys(rows.clone())).collect();
        let found = read.windows(keys.len()).position(|window| window == keys);
        let found = found.map(|at| self.delivered.base() + at as u64);
        let is_possible = |at: &u64| at.checked_sub(unknown).is_some_and(|newer| newer <= self.most_newer());
        let Some(found) = found.filter(is_possible) else { return rows.len() };
        let returned = (*records).min(keys.len() as u64);
        let skipped = (found + returned - self.delivered.end()) as usize;
        self.earlier = None;
        skipped
    }

    /// Most records that can have been added before the length was known.
    pub(super) fn most_newer(&self) -> u64 {
        let least = self.snapshot.min_length;
        self.snapshot.length.exact().map_or(u64::MAX, |length| length.saturating_sub(least))
    }

    fn read(&mut self, view: &View<'_>, rows: Range<usize>) {
        self.snapshot.add_first_difference(self.delivered.end(), rows.clone().map(|row| view.rows.key(row)));
        self.delivered.push(rows.map(|row| view.rows.key(row)));
    }
}
