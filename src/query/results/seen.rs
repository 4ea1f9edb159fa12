//! `SeenLog`: records of a set that several of its lists may return, and that one of them has returned.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::process::ForkSafeMutex;

/// A record that a list returned, and another list that may return it as well. Lists are indices, or ranks in a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u32, u32)", into = "(u64, u32, u32)")]
pub struct SeenRecord {
    pub key: u64,
    pub returned_by: u32,
    /// A list, or `ANY_LIST`.
    pub other: u32,
}

impl SeenRecord {
    /// True if the other list may still return the record.
    pub fn is_open(&self, has_ended: impl Fn(usize) -> bool) -> bool {
        self.other == ANY_LIST || !has_ended(self.other as usize)
    }

    /// The entry with other numbers of the lists.
    #[must_use]
    pub fn renumbered(self, number: impl Fn(u32) -> u32) -> Self {
        let other = if self.other == ANY_LIST { ANY_LIST } else { number(self.other) };
        Self { returned_by: number(self.returned_by), other, ..self }
    }
}

impl From<(u64, u32, u32)> for SeenRecord {
    fn from((key, returned_by, other): (u64, u32, u32)) -> Self {
        Self { key, returned_by, other }
    }
}

impl From<SeenRecord> for (u64, u32, u32) {
    fn from(seen: SeenRecord) -> Self {
        (seen.key, seen.returned_by, seen.other)
    }
}

/// In place of a list: any list of the set.
pub const ANY_LIST: u32 = u32::MAX;

/// The log up to a position. Clones share the entries, and what was added later is not part of them.
#[derive(Clone, Default)]
pub struct SeenLog {
    entries: Arc<ForkSafeMutex<Vec<SeenRecord>>>,
    len: usize,
}

impl SeenLog {
    pub fn new(entries: Vec<SeenRecord>) -> Self {
        Self { len: entries.len(), entries: Arc::new(ForkSafeMutex::new(entries)) }
    }

    /// Adds an entry. Only the log with the last position may do so.
    pub fn push(&mut self, seen: SeenRecord) {
        let entries = &mut self.entries.lock();
        debug_assert_eq!(entries.len(), self.len, "an earlier position does not grow");
        entries.push(seen);
        self.len += 1;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn to_vec(&self) -> Vec<SeenRecord> {
        self.entries.lock()[..self.len].to_vec()
    }
}
