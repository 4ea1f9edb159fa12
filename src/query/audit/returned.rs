//! `Returned`: the records of a list that were returned, by this run or by an earlier one that it continues.

use std::collections::VecDeque;
use std::ops::Range;

use super::known_keys::KnownKeys;
use super::latest::Latest;
use super::returned_facts::{Last, ReturnedFacts};
use super::subject::Extent;
use crate::query::hashed::HashedSet;
use crate::query::snapshot::Rows;

/// Latest returned keys whose offsets are known: further apart than any two records that one response can show.
const RECENT: usize = 256;

#[derive(Clone, Debug, Default)]
pub struct Returned {
    pub keys: KnownKeys,
    /// True if no two records of the list can be equal.
    pub has_unique_keys: bool,
    pub has_equal: bool,
    /// True if an earlier run returned records, of which the latest are known.
    pub is_continued: bool,
    /// True if the list is continued after another record than the one that an earlier run returned last.
    pub is_misplaced: bool,
    /// Some records of the first page that an earlier run returned.
    pub of_first_page: Vec<u64>,
    /// True if records of it are not known that are equal to others, or may be received again among others of their height.
    pub lacks_keys: bool,
    /// Number of records that the reader accepted, and so the offset of the next one.
    pub next: u64,
    /// The latest of these records.
    pub latest: Latest,
    /// Number of those that meet the arguments: only these are returned.
    pub count: u64,
    /// Keys of the latest of those.
    pub recent: VecDeque<u64>,
    /// The last record that is wanted, as far as the list was read.
    pub last: Option<Last>,
    /// Key of a record below the height of the last one that an earlier run returned, where a response shows another block.
    pub below_replaced: Option<u64>,
    /// Key and block of the first record.
    pub top: Option<(u64, Option<u64>)>,
    /// Keys and blocks of the first records of readings that were discarded.
    pub earlier_tops: Vec<(u64, u64)>,
    /// In descending order of heights: that from which on a record may be newer than those that were returned.
    pub newest: Option<i64>,
    /// Records that a response showed above returned ones: newer ones, and those that were returned if their keys are not kept.
    pub newer: HashedSet,
    /// Number of responses that were received before the first records were requested; 0 if an earlier run returned them.
    pub began_after: u64,
}

impl Returned {
    /// The records before `offset`, of which these are the latest.
    pub fn before(offset: u64, latest: &[u64], has_unique_keys: bool) -> Self {
        let mut keys = KnownKeys::default();
        let has_equal = latest.iter().filter(|key| !keys.insert(**key)).count() > 0;
        let earlier = Latest::of_earlier_run(latest);
        Self {
            keys,
            has_unique_keys,
            has_equal,
            is_continued: offset > 0,
            lacks_keys: offset > 0 && !earlier.has_all_of_height(offset),
            next: offset,
            latest: earlier,
            count: offset,
            recent: latest.iter().copied().collect(),
            last: offset.checked_sub(1).map(|offset| Last { offset, height: None }),
            ..Self::default()
        }
    }

    /// Fails if the list is continued elsewhere than after the last of these records.
    pub fn check_position(&self) -> Result<(), String> {
        if self.is_misplaced {
            return Err(
                "the list is continued after another record than the one that was returned last; run the query without \
                 the cursor"
                    .into(),
            );
        }
        Ok(())
    }

    /// Offset of one of the latest records, if no other one is equal.
    pub fn offset_of(&self, key: u64) -> Option<u64> {
        let latest = if self.has_unique_keys { self.latest.keys() } else { &[] };
        let row = latest.iter().rposition(|latest| *latest == key)?;
        self.next.checked_sub((latest.len() - row) as u64)
    }

    /// Facts about these records for a search of others, once this part of the list was read.
    pub fn known(&self, extent: Extent) -> ReturnedFacts<'_> {
        // A row above the first record may contradict the arguments.
        let is_top_known = self.has_unique_keys && !self.is_continued && self.next == self.count;
        let last = self.last.filter(|_| extent != Extent::Whole);
        ReturnedFacts {
            keys: &self.keys,
            has_equal: self.has_equal || self.lacks_keys,
            last,
            newest: self.newest,
            top: self.top.map(|(key, _)| key).filter(|_| is_top_known),
            began_after: self.began_after,
        }
    }

    /// Takes a response and the rows of it that are about to be returned. False if this response, or an earlier one, shows one of
    /// them above a returned record.
    pub fn follows(&mut self, rows: &dyn Rows, returning: &Range<usize>) -> bool {
        let lowest = (returning.end..rows.len()).rfind(|row| self.keys.contains(rows.key(*row)));
        let above = if returning.is_empty() { lowest.unwrap_or(0) } else { returning.start };
        let are_newer = returning.clone().any(|row| self.newer.contains(&rows.key(row)));
        if are_newer || lowest.is_some() && !returning.is_empty() {
            return false;
        }
        if self.newer.len() > RECENT {
            self.newer.clear();
        }
        self.newer.extend((0..above).map(|row| rows.key(row)).filter(|key| !self.keys.contains(*key)));
        true
    }

    /// Takes what a reading that was discarded began with.
    pub fn take_tops(&mut self, discarded: &Self) {
        let top = discarded.top.and_then(|(key, block)| Some((key, block?)));
        self.earlier_tops = discarded.earlier_tops.iter().copied().chain(top).collect();
    }

    /// True if a record is missing that such a reading began with, although others of its block were returned.
    pub fn lacks_top_of_earlier_reading(&self, is_returned: impl Fn(u64) -> bool) -> bool {
        self.earlier_tops.iter().any(|(key, block)| is_returned(*block) && !self.keys.contains(*key))
    }

    pub fn push(&mut self, key: u64) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(key);
        self.count += 1;
    }
}
