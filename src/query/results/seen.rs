//! `SeenLog`: records of a set that several of its lists may return, and that one of them has returned.

use std::sync::Arc;

use crate::process::ForkSafeMutex;

/// Key of a record, the list that returned it, and another one that may return it as well. Lists are indices, or ranks
/// in a cursor.
pub type Seen = (u64, u32, u32);

/// In place of a list: any list of the set.
pub const ANY_LIST: u32 = u32::MAX;

/// The log up to a position. Clones share the entries, and what was added later is not part of them.
#[derive(Clone, Default)]
pub struct SeenLog {
    entries: Arc<ForkSafeMutex<Vec<Seen>>>,
    len: usize,
}

impl SeenLog {
    pub fn new(entries: Vec<Seen>) -> Self {
        Self { len: entries.len(), entries: Arc::new(ForkSafeMutex::new(entries)) }
    }

    /// Adds an entry. Only the log with the last position may do so.
    pub fn push(&mut self, seen: Seen) {
        let entries = &mut self.entries.lock();
        debug_assert_eq!(entries.len(), self.len, "an earlier position does not grow");
        entries.push(seen);
        self.len += 1;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn to_vec(&self) -> Vec<Seen> {
        self.entries.lock()[..self.len].to_vec()
    }
}
