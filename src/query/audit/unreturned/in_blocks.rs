//! `InBlocks`: records that a response showed and that were not returned with the others of their block. A block does not change:
//! a list in descending order of heights has all of its records, once records below it were returned.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::OtherRows;
use crate::message::{Hint, Message};
use crate::query::audit::forks::{BlockOfRow, Forks};
use crate::query::audit::known_keys::KnownKeys;
use crate::query::hashed::HashedSet;
use crate::query::snapshot::Rows;

/// Records that are kept.
pub(super) const KEPT_RECORDS: usize = 1_024;
/// Records of them that a cursor has: it stays a few kilobytes long.
pub const UNRETURNED_IN_CURSOR: usize = 32;

/// A record in a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sighting {
    pub block: BlockOfRow,
    /// Number of the response; 0 for those of a reading that was discarded, and of an earlier run.
    pub received: u64,
}

impl Sighting {
    /// It for a reading that takes the place of the one that received the response.
    pub fn of_earlier_reading(self) -> Self {
        Self { received: 0, ..self }
    }
}

/// Records that a result has to have if it has others of their blocks, the latest first.
#[derive(Clone, Debug, Default)]
pub struct InBlocks(VecDeque<UnreturnedRecord>);

/// One of these records.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "RecordInCursor", from = "RecordInCursor")]
pub struct UnreturnedRecord {
    key: u64,
    seen: Sighting,
}

/// Key, height and block of a record.
type RecordInCursor = (u64, i64, u64);

impl From<UnreturnedRecord> for RecordInCursor {
    fn from(UnreturnedRecord { key, seen }: UnreturnedRecord) -> Self {
        (key, seen.block.height, seen.block.hash)
    }
}

impl From<RecordInCursor> for UnreturnedRecord {
    fn from((key, height, hash): RecordInCursor) -> Self {
        Self { key, seen: Sighting { block: BlockOfRow { height, hash }, received: 0 } }
    }
}

/// The returned records, and the heights of which all were returned: those above `lowest` and below `newest`.
#[derive(Clone, Copy, Debug)]
pub struct ReadHeights<'a> {
    pub known: &'a KnownKeys,
    pub forks: &'a Forks,
    pub newest: i64,
    pub lowest: i64,
    /// Number of responses that were received before the first records of the list were requested.
    pub began_after: u64,
}

impl ReadHeights<'_> {
    /// True if the list has to have a record that was seen in a response, since it has others of the block.
    pub fn must_have(self, seen: Sighting) -> bool {
        self.lowest < seen.block.height && self.is_of_list(seen) && self.forks.have(seen.block)
    }

    /// False if the record may have been added to the newest height since the list began.
    fn is_of_list(self, Sighting { block, received }: Sighting) -> bool {
        block.height < self.newest || received <= self.began_after && block.height == self.newest
    }

    fn lacks(self, UnreturnedRecord { key, seen }: UnreturnedRecord) -> bool {
        self.must_have(seen) && !self.known.contains(key)
    }

    /// True if a response shows a record that was not returned with the others of its block.
    pub fn lacks_some(self, rows: &dyn Rows) -> bool {
        (0..rows.len())
            .filter_map(|row| UnreturnedRecord::of(rows, row, self.forks, u64::MAX))
            .any(|record| self.lacks(record))
    }
}

impl UnreturnedRecord {
    fn of_earlier_reading(self) -> Self {
        Self { seen: self.seen.of_earlier_reading(), ..self }
    }

    /// A row that is returned after a cursor.
    pub fn after_cursor(rows: &dyn Rows, row: usize) -> Option<Self> {
        Some(Self::from((rows.key(row), rows.height(row)?, rows.block(row)?)))
    }

    fn of(rows: &dyn Rows, row: usize, forks: &Forks, received: u64) -> Option<Self> {
        Some(Self { key: rows.key(row), seen: Sighting { block: forks.block_of(rows, row)?, received } })
    }
}

impl InBlocks {
    /// These records in a reading of the same list that takes the place of the one that received them.
    pub fn of_earlier_reading(self) -> Self {
        Self(self.0.iter().map(|record| record.of_earlier_reading()).collect())
    }

    /// Those that an earlier run received and did not return.
    pub fn of_earlier_run(records: &[UnreturnedRecord]) -> Self {
        Self(records.iter().copied().collect())
    }

    /// Records for a cursor: the next run has to return them if it returns others of their blocks.
    pub fn open(&self, read: ReadHeights<'_>) -> Vec<UnreturnedRecord> {
        let mut keys = HashedSet::default();
        let open = self.0.iter().filter(|record| read.is_of_list(record.seen) && !read.known.contains(record.key));
        let open = open.filter(|record| keys.insert(record.key));
        open.take(UNRETURNED_IN_CURSOR).map(|record| record.of_earlier_reading()).collect()
    }

    /// Takes rows that are not returned, before the others of their response are.
    pub fn add(&mut self, others: OtherRows<'_>) {
        let OtherRows { rows, forks, known, number, .. } = others;
        self.add_rows(rows, others.iter().filter(|row| !known.contains(rows.key(*row))), forks, number);
    }

    /// Takes rows of the response with this number.
    pub fn add_rows(&mut self, of: &dyn Rows, rows: impl Iterator<Item = usize>, forks: &Forks, number: u64) {
        for record in rows.filter_map(|row| UnreturnedRecord::of(of, row, forks, number)) {
            self.0.truncate(KEPT_RECORDS - 1);
            self.0.push_front(record);
        }
    }

    /// These records and others.
    pub fn and(self, others: Self) -> Self {
        Self(self.0.into_iter().chain(others.0).collect())
    }

    /// Why records may be missing.
    pub fn reason(&self, read: ReadHeights<'_>) -> Option<Message> {
        let record = self.0.iter().find(|record| read.lacks(**record))?;
        let reason = format!(
            "A response showed a record of height {} that was not returned with the others of its block: a part of the service \
             may lack it, or removed it",
            record.seen.block.height
        );
        Some(Message::new(reason).hint(Hint::RunAgain))
    }
}
