//! Rows of a located response: which of them are returned, and what they prove.

use std::ops::Range;

use super::super::checkpoint::Accepted;
use super::super::delivered::{Delivered, has_duplicates, key_of_both};
use super::super::reader::Reader;
use super::super::spec::View;
use super::UncountedReader;
use crate::client::Error;

impl UncountedReader {
    /// Reads rows as the next records of the snapshot, and returns those that were not returned before.
    pub(super) fn deliver(&mut self, view: &View<'_>, rows: Range<usize>) -> Result<Accepted, Error> {
        self.list.set_anchors(view, rows.clone());
        let first = rows.start + self.rows_to_skip(view, &rows)?;
        // Records to skip are on this page, or were read before it.
        debug_assert!(first <= rows.end);
        self.list.read(view, rows.start..first);
        let next = first..rows.end;
        self.check_mark(view, next.clone())?;
        if !next.is_empty() && self.list.delivered.end() < self.list.returned {
            // Records are returned after those that were read: the position was lost.
            return Err(self.list.changed_error());
        }
        let accepted = self.accept(view, next);
        self.list.snapshot.pass_mark(self.list.delivered.end(), &mut self.list.proof);
        Ok(accepted)
    }

    /// Fails if the mark is not at its offset among the next records.
    fn check_mark(&mut self, view: &View<'_>, rows: Range<usize>) -> Result<(), Error> {
        let Some((offset, mark)) = self.list.snapshot.mark else { return Ok(()) };
        let delivered = &self.list.delivered;
        let end = delivered.end() + rows.len() as u64;
        let keys: Vec<u64> = delivered.last().into_iter().chain(view.keys(rows)).collect();
        let first = end - keys.len() as u64 + 1;
        let found = keys.windows(2).zip(first..).find(|(keys, _)| key_of_both(keys[0], keys[1]) == mark);
        let found = found.map(|(_, found)| found);
        match found {
            Some(found) if found == offset => Ok(()),
            // An equal record, which may be at the offset of the mark as well.
            Some(found) if found + self.list.snapshot.page_rows() < offset => {
                self.list.snapshot.mark = None;
                Ok(())
            }
            None if end <= offset => Ok(()),
            _ => Err(self.list.changed_error()),
        }
    }

    /// Number of leading rows that were returned before the snapshot began, or that are newer.
    fn rows_to_skip(&mut self, view: &View<'_>, rows: &Range<usize>) -> Result<usize, Error> {
        let Some(earlier) = &self.earlier else { return Ok(0) };
        let read = [self.list.delivered.keys(), &view.keys(rows.clone())].concat();
        let found = self.find_earlier(earlier, &read);
        // A record that was below the first one is above it now: it is equal to another, or the order has changed.
        // Then the first page does not show which are newer.
        let is_reordered = !has_duplicates(&read)
            && found.is_some_and(|index| read[..index].iter().any(|key| earlier.keys().contains(key)));
        if self.list.returned == 0 && is_reordered {
            if self.list.delivered.end() > 0 {
                // Records were skipped as newer.
                return Err(self.first_page_error());
            }
            self.earlier = None;
            return Ok(0);
        }
        let newer = found.and_then(|index| (self.list.delivered.base() + index as u64).checked_sub(earlier.base()));
        let Some(newer) = newer.filter(|newer| *newer <= self.max_newer()) else { return Ok(rows.len()) };
        let returned = if self.list.returned > 0 { earlier.end() } else { 0 };
        self.history.has_changed |= newer > 0;
        self.earlier = None;
        Ok((newer + returned).saturating_sub(self.list.delivered.end()) as usize)
    }

    /// Index of the first record that was read before the snapshot began. All records that were returned must follow; of
    /// others, the first shows which are newer.
    fn find_earlier(&self, earlier: &Delivered, read: &[u64]) -> Option<usize> {
        let keys = earlier.keys();
        (0..read.len()).find(|index| {
            let count = keys.len().min(read.len() - index);
            (self.list.returned == 0 || count == keys.len()) && read[*index..].starts_with(&keys[..count])
        })
    }

    /// Most records that can have been added before the length was known.
    pub(super) fn max_newer(&self) -> u64 {
        let snapshot = &self.list.snapshot;
        snapshot.length.exact().map_or(u64::MAX, |length| length.saturating_sub(snapshot.min_length))
    }
}
