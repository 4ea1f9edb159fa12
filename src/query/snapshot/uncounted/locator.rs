//! `Locator`: the offset of a response in the snapshot, by one of three strategies: by count, by overlap, by adjacency.

use super::super::delivered::{Delivered, SharedRows, has_duplicates};
use super::super::snapshot::Snapshot;
use super::super::spec::View;

/// Offset of a response's first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    At(i64),
    /// Several offsets are possible.
    Ambiguous,
    /// The response shares nothing with the delivered records.
    Lost,
}

/// A response, and what is known of its list.
pub struct Locator<'a> {
    pub view: &'a View<'a>,
    pub snapshot: &'a Snapshot,
    pub delivered: &'a Delivered,
    /// Drift at the latest response.
    pub drift: i64,
    /// Offset of the next record, if the page was requested to begin with it.
    pub next: Option<i64>,
}

impl Locator<'_> {
    pub fn locate(&self) -> Location {
        if let Some(offset) = self.snapshot.offset_by_count(self.view) {
            return Location::At(offset);
        }
        let keys = self.view.keys(0..self.view.rows.len());
        let adjacent = self.by_adjacency(&keys);
        if self.is_new(&keys) {
            return adjacent.map_or(Location::Lost, Location::At);
        }
        match self.by_overlap(&keys) {
            // The shared rows may be duplicates that follow the delivered records. In pages of a fixed size, nothing could
            // tell them apart.
            Location::At(offset)
                if !self.snapshot.has_fixed_pages()
                    && (adjacent.is_some() || self.may_lie_below(&keys))
                    && !self.descends(offset) =>
            {
                Location::Ambiguous
            }
            overlap => overlap,
        }
    }

    /// True if the page has no delivered record.
    fn is_new(&self, keys: &[u64]) -> bool {
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        !self.delivered.keys().iter().any(|key| sorted.binary_search(key).is_ok())
    }

    /// The offset at which the page begins with delivered records.
    fn by_overlap(&self, keys: &[u64]) -> Location {
        // Records above the latest may have been replaced or deleted: then the length shows whether an unread one was, too.
        let is_known = self.snapshot.length.exact().is_some() && !self.has_duplicates(keys);
        let min_equal = if is_known { 1 } else { usize::MAX };
        let mut fitting = self.delivered.overlaps(keys, min_equal).filter(|(offset, _)| self.fits(*offset));
        match (fitting.next(), fitting.next()) {
            (None, _) => Location::Lost,
            (Some((offset, shared)), None) if self.is_certain(offset, shared) => Location::At(offset),
            _ => Location::Ambiguous,
        }
    }

    /// The offset of the next record, if the page was requested to begin with it.
    fn by_adjacency(&self, keys: &[u64]) -> Option<i64> {
        // In a list of known length, a page after which any number may follow does not show its position.
        let shows_length = *self.view.lengths().end() < i64::MAX || self.snapshot.length.exact().is_none();
        self.next.filter(|next| shows_length && !keys.is_empty() && self.fits(*next))
    }

    /// True if the page may begin below the delivered records, since the list has grown by less than was expected: the rows
    /// that it seems to share with them are then duplicates of theirs. A list in which none were seen is taken to have none.
    fn may_lie_below(&self, keys: &[u64]) -> bool {
        let is_possible = self.drift <= self.view.position - self.delivered.end() as i64;
        is_possible && self.has_duplicates(keys)
    }

    fn has_duplicates(&self, keys: &[u64]) -> bool {
        has_duplicates(self.delivered.keys()) || has_duplicates(keys)
    }

    /// True if the rows that a page at this offset shares with delivered records cannot be a second run of equal records: the
    /// heights of the page do not rise, and the shared rows have several.
    fn descends(&self, offset: i64) -> bool {
        let rows = self.view.rows;
        let shared = self.delivered.end() as i64 - offset;
        let heights: Option<Vec<i64>> = (0..rows.len()).map(|row| rows.height(row)).collect();
        let last = (shared.min(rows.len() as i64) - 1).max(0) as usize;
        heights.is_some_and(|heights| heights.is_sorted_by(|above, below| above >= below) && heights[0] > heights[last])
    }

    /// One shared record is not enough as the first row: that may be a duplicate that follows the last returned record. No
    /// record precedes the first row of the list.
    fn is_certain(&self, offset: i64, shared: SharedRows) -> bool {
        let is_first_row = offset + 1 == self.delivered.end() as i64 && self.view.position > 0;
        shared == SharedRows::Distinct || shared == SharedRows::Unique && !is_first_row
    }

    /// True if the list can be as long as it would be if the page begins at `offset`: longer than the snapshot by the drift.
    fn fits(&self, offset: i64) -> bool {
        let drift = self.view.position - offset;
        self.snapshot.length.exact().is_none_or(|length| self.view.lengths().contains(&(length as i64 + drift)))
    }
}
