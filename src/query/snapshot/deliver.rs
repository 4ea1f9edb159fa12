//! Rows of a located response: which of them are returned, and what they prove.

use std::ops::Range;

use super::checkpoint::Accepted;
use super::delivered::{Delivered, has_duplicates};
use super::reader::{Attempt, Phase, SnapshotReader};
use super::spec::{ListKind, View};
use crate::client::Error;

impl SnapshotReader {
    /// Reads rows as the next records of the snapshot, and returns those that were not returned before.
    pub(super) fn deliver(&mut self, view: &View<'_>, rows: Range<usize>) -> Result<Accepted, Error> {
        // The first of several partitions begins with the anchors of the snapshot.
        let is_changing = matches!(self.spec.kind, ListKind::Growing | ListKind::Fixed);
        if is_changing && self.delivered.end() == 0 && self.snapshot.anchors.is_empty() {
            self.snapshot.set_anchors(&view.keys(rows.clone()), self.spec.tuning.max_anchors);
        }
        let first = rows.start + self.rows_to_skip(view, &rows)?;
        // Records to skip are on this page, or were read before it.
        debug_assert!(first <= rows.end);
        self.read(view, rows.start..first);
        self.check_mark(view, first..rows.end)?;
        let before = self.checkpoint();
        self.read(view, first..rows.end);
        self.snapshot.pass_mark(self.delivered.end(), &mut self.proof);
        self.returned += (rows.end - first) as u64;
        self.drift.misses = 0;
        Ok(Accepted { rows: first..rows.end, fresh: None, before })
    }

    /// Compares the first page with what was returned of it. True if it is the same, so that the mark will show whether a
    /// record before it was skipped.
    pub(super) fn on_first_page_again(&mut self, view: &View<'_>, mark: (u64, u64)) -> Result<bool, Error> {
        let first = self.delivered.keys();
        let keys = view.keys(0..view.rows.len());
        if first == keys {
            self.snapshot.mark = Some(mark);
            return Ok(true);
        }
        // Newer records may be above it. One that is gone was in the list before the mark was, or after it.
        let newer = keys.iter().position(|key| first.contains(key)).unwrap_or(keys.len());
        if !first.starts_with(&keys[newer..]) {
            return Err(self.changed_error());
        }
        self.phase = Phase::Overlap(Attempt::First);
        Ok(false)
    }

    /// Fails if the mark is not at its offset among the next records.
    fn check_mark(&mut self, view: &View<'_>, rows: Range<usize>) -> Result<(), Error> {
        let Some((offset, mark)) = self.snapshot.mark else { return Ok(()) };
        let next = self.delivered.end();
        let keys = view.keys(rows);
        let found = keys.iter().zip(next..).find(|(key, _)| **key == mark).map(|(_, found)| found);
        match found {
            Some(found) if found == offset => Ok(()),
            // An equal record, which may be at the offset of the mark as well.
            Some(found) if found + self.snapshot.page_rows() < offset => {
                self.snapshot.mark = None;
                Ok(())
            }
            None if next + (keys.len() as u64) <= offset => Ok(()),
            _ => Err(self.changed_error()),
        }
    }

    /// Number of leading rows that were returned before the snapshot began, or that are newer.
    fn rows_to_skip(&mut self, view: &View<'_>, rows: &Range<usize>) -> Result<usize, Error> {
        let Some(earlier) = &self.earlier else { return Ok(0) };
        let read = [self.delivered.keys(), &view.keys(rows.clone())].concat();
        let found = self.find_earlier(earlier, &read);
        // A record that was below the first one is above it now: it is equal to another, or the order has changed.
        // Then the first page does not show which are newer.
        let is_reordered = !has_duplicates(&read)
            && found.is_some_and(|index| read[..index].iter().any(|key| earlier.keys().contains(key)));
        if self.returned == 0 && is_reordered {
            if self.delivered.end() > 0 {
                // Records were skipped as newer.
                return Err(self.first_page_error());
            }
            self.earlier = None;
            return Ok(0);
        }
        let newer = found.and_then(|index| (self.delivered.base() + index as u64).checked_sub(earlier.base()));
        let Some(newer) = newer.filter(|newer| *newer <= self.most_newer()) else { return Ok(rows.len()) };
        let returned = if self.returned > 0 { earlier.end() } else { 0 };
        self.drift.has_changed |= newer > 0;
        self.earlier = None;
        Ok((newer + returned).saturating_sub(self.delivered.end()) as usize)
    }

    /// Index of the first record that was read before the snapshot began. All records that were returned must follow; of
    /// others, the first shows which are newer.
    fn find_earlier(&self, earlier: &Delivered, read: &[u64]) -> Option<usize> {
        let keys = earlier.keys();
        (0..read.len()).find(|index| {
            let count = keys.len().min(read.len() - index);
            (self.returned == 0 || count == keys.len()) && read[*index..].starts_with(&keys[..count])
        })
    }

    /// Most records that can have been added before the length was known.
    pub(super) fn most_newer(&self) -> u64 {
        let least = self.snapshot.min_length;
        self.snapshot.length.exact().map_or(u64::MAX, |length| length.saturating_sub(least))
    }

    fn read(&mut self, view: &View<'_>, rows: Range<usize>) {
        self.snapshot.add_first_difference(self.delivered.end(), rows.clone().map(|row| view.rows.key(row)));
        let has_keys = self.spec.kind == ListKind::Growing && !self.snapshot.is_counted();
        let most = if has_keys { self.spec.tuning.max_keys } else { 0 };
        self.delivered.push(rows.map(|row| view.rows.key(row)), most);
    }
}
