//! `ListCheckpoint`: a position within a list, from which another reader continues.

use std::collections::HashSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::delivered::Delivered;
use super::snapshot::{Length, Proof, Snapshot};
use super::spec::Rows;

/// Greatest offset that is accepted.
const MAX_OFFSET: u64 = 1 << 50;
/// Keys of returned records in a checkpoint; more if the latest are equal. A page that begins with a few of them is found.
pub(super) const CHECKPOINT_KEYS: usize = 8;
/// Keys of a first page that was returned before the length was known, in a checkpoint: the list must have all of them, and no
/// others in between. No page has more.
pub(super) const FIRST_PAGE_KEYS: usize = 128;

/// Everything a reader needs to continue, apart from what the query says. Hashes are not made before they are needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListCheckpoint {
    pub(super) snapshot: Snapshot,
    /// Records of the snapshot that were returned.
    pub(super) delivered: Delivered,
    /// Drift at the latest response, under the name that cursors have for it.
    #[serde(rename = "shift")]
    pub(super) drift: i64,
    pub(super) proof: Proof,
    /// Greatest height of the part of the list that is being read, if that is not the query's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) height_bound: Option<i64>,
    /// Page of a ranked list that was requested last. The position in such a list is this and all keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ranked_page: Option<u64>,
}

/// Rows of a response to return next.
#[derive(Clone, Debug, Default)]
pub struct Accepted {
    pub rows: Range<usize>,
    /// Indices of the rows that were not returned before; all rows if `None`.
    pub fresh: Option<Vec<u32>>,
    /// Position of the list before those rows.
    pub before: ListCheckpoint,
}

impl ListCheckpoint {
    /// True if nothing of the list has been returned, and any snapshot will do.
    pub fn is_start(&self) -> bool {
        self.delivered.end() == 0 && self.proof == Proof::Overlap && self.ranked_page.is_none()
    }

    /// Some records of the first page, by offset and key.
    pub fn first_page(&self) -> Vec<(u64, u64)> {
        if self.snapshot.length == Length::Pending {
            // The snapshot is still to begin.
            return (self.delivered.base()..).zip(self.delivered.keys().iter().copied()).collect();
        }
        let first = self.snapshot.first.map(|key| (0, key));
        first.into_iter().chain(self.snapshot.anchors.iter().flatten().copied()).collect()
    }

    /// Some records of the first page of a list with a count, each with its place, counted from the end of the list.
    pub fn places(&self) -> Vec<(u64, i64)> {
        let Snapshot { length: Length::Exact(length), total: Some(_), first, ref anchors, .. } = self.snapshot else {
            return Vec::new();
        };
        let first = first.map(|key| (0, key));
        let records = first.iter().chain(anchors.first().into_iter().flatten());
        records.map(|(offset, key)| (*key, length as i64 - 1 - *offset as i64)).collect()
    }

    /// Key of the record after which the list is continued, if the reader keeps keys.
    pub fn last_key(&self) -> Option<u64> {
        self.delivered.last()
    }

    /// True if a final look is still to come.
    pub fn needs_final_look(&self) -> bool {
        self.proof == Proof::FinalLook
    }

    /// Rows of a full page of this limit.
    pub fn page_rows(&self, limit: u64) -> u64 {
        self.snapshot.page_sizes.served(limit)
    }

    /// Records of the snapshot that are newer than the first of those that were returned: that of a list without a count may begin
    /// after its first page was returned.
    pub fn newer(&self, returned: u64) -> u64 {
        self.delivered.end().saturating_sub(returned)
    }

    /// Limit and rows of a full page, if it has fewer rows than were requested.
    pub fn short_page(&self) -> Option<(u64, u64)> {
        let Snapshot { page_limit, page_sizes, .. } = self.snapshot;
        (page_sizes.max < page_limit).then_some((page_limit, page_sizes.max))
    }

    /// True if these numbers can be those of a list. A string from elsewhere may have others, with which offsets overflow.
    pub fn is_plausible(&self) -> bool {
        let Snapshot { total, min_length, page_limit, page_sizes, length, .. } = self.snapshot;
        let lengths = [total.unwrap_or(0), length.exact().unwrap_or(0), min_length, page_limit, page_sizes.min];
        let offsets = self.snapshot.anchors.iter().flatten().map(|(offset, _)| *offset);
        let mark = self.snapshot.mark.map_or(0, |(offset, _)| offset);
        let positions = [self.delivered.end(), self.drift.unsigned_abs(), mark];
        let are_small = lengths.into_iter().chain(positions).chain(offsets).all(|number| number <= MAX_OFFSET);
        let has_keys = self.delivered.keys().len() as u64 <= self.delivered.end();
        are_small && has_keys && (1..=page_sizes.max).contains(&page_sizes.min)
    }

    /// The position for one of several partitions of the snapshot, between two cuts.
    #[must_use]
    pub fn between(mut self, start: Option<&Cut>, end: Option<&Cut>) -> Self {
        if let Some(start) = start {
            self.delivered = Delivered::at(start.offset);
            self.drift = start.drift;
            self.snapshot.ends.push((start.offset, start.below));
        }
        self.snapshot.ends.extend(end.map(|end| (end.offset - 1, end.above)));
        Self { proof: Proof::FinalLook, ..self }
    }

    /// The end of a list with a count, where nothing but a final look is left: it finds one of these records, or one of the
    /// first page.
    #[must_use]
    pub fn at_end(mut self, later: &[(u64, u64)]) -> Self {
        let first = self.snapshot.anchors.concat();
        self.snapshot.anchors = vec![[latest_half(&first), latest_half(later)].concat()];
        self.delivered = Delivered::at(self.snapshot.length.exact().unwrap_or(0));
        Self { proof: Proof::FinalLook, ..self }
    }

    /// Number of records that were read.
    pub fn end(&self) -> u64 {
        self.delivered.end()
    }

    /// Records at the ends of a partition, by offset and key.
    pub fn ends(&self) -> &[(u64, u64)] {
        &self.snapshot.ends
    }

    /// The position after the first `rows` of these rows, which come next.
    #[must_use]
    pub fn advanced(mut self, rows: &dyn Rows, count: usize) -> Self {
        if self.ranked_page.is_some() {
            let known: HashSet<u64> = self.delivered.keys().iter().copied().collect();
            let keys: Vec<u64> = (0..count).map(|row| rows.key(row)).filter(|key| !known.contains(key)).collect();
            self.delivered.push(keys.into_iter(), usize::MAX);
            return self;
        }
        let max_keys = if self.snapshot.total.is_some() { 0 } else { usize::MAX };
        self.snapshot.add_first_difference(self.delivered.end(), (0..count).map(|row| rows.key(row)));
        self.delivered.push((0..count).map(|row| rows.key(row)), max_keys);
        let is_first_page = self.snapshot.length == Length::Pending;
        self.delivered = self.delivered.latest(if is_first_page { FIRST_PAGE_KEYS } else { CHECKPOINT_KEYS });
        self.snapshot.pass_mark(self.delivered.end(), &mut self.proof);
        self
    }
}

/// The latest records, half as many as a checkpoint has.
fn latest_half(records: &[(u64, u64)]) -> &[(u64, u64)] {
    &records[records.len().saturating_sub(CHECKPOINT_KEYS / 2)..]
}

/// A cut between two records that one response shows next to each other.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Offset of the record below.
    pub offset: u64,
    /// Keys of both.
    pub above: u64,
    pub(super) below: u64,
    /// Height of the upper one, if the lower one is not above it.
    pub height: Option<i64>,
    /// Drift at the response.
    pub(super) drift: i64,
}
