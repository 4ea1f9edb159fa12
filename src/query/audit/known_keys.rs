//! `KnownKeys`: the keys of returned records, in bounded memory.

use std::collections::VecDeque;

use crate::query::hashed::HashedSet;

/// Keys of a set: as many as a table of 2^17 slots takes before it grows.
const PER_SET: usize = 7 << 14;
/// Full sets that are kept, together a million keys at least: many times as many as a list with a result window has. Two
/// equal records that lie further apart are not noticed.
const FULL_SETS: usize = 9;

/// Sets of keys. When the newest is full, the oldest is forgotten: the smaller they are, the fewer keys too many are kept.
#[derive(Clone, Debug, Default)]
pub struct KnownKeys {
    newest: HashedSet,
    full: VecDeque<HashedSet>,
}

impl KnownKeys {
    pub fn contains(&self, key: u64) -> bool {
        self.newest.contains(&key) || self.is_in_full(key)
    }

    /// Adds a key. False if it was known.
    pub fn insert(&mut self, key: u64) -> bool {
        if self.newest.len() == PER_SET {
            self.full.push_front(std::mem::take(&mut self.newest));
            self.full.truncate(FULL_SETS);
        }
        self.newest.insert(key) && !self.is_in_full(key)
    }

    /// Adds the keys of a page. False for each that was known.
    pub fn insert_all(&mut self, keys: &[u64]) -> Vec<bool> {
        // The tables are larger than the processor's caches. With nothing between the look-ups, it waits for several at once.
        let known = keys.iter().filter(|key| self.newest.contains(key)).count();
        self.newest.reserve((keys.len() - known).min(PER_SET - self.newest.len()));
        keys.iter().map(|key| self.insert(*key)).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.full.iter().chain([&self.newest]).flatten().copied()
    }

    fn is_in_full(&self, key: u64) -> bool {
        self.full.iter().any(|keys| keys.contains(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys_after_many_insertions_have_the_latest_million() {
        let mut known = KnownKeys::default();
        // A set has just become full: no more keys are forgotten at any other moment.
        let count = (3 * FULL_SETS * PER_SET) as u64 + 1;
        assert!((0..count).all(|key| known.insert(key)), "each is new");
        assert!((count - 1_000_000..count).all(|key| known.contains(key)));
        assert!(!known.insert(count - 1_000_000), "a key of a full set is known");
        assert_eq!(known.insert_all(&[count, count - 1, count]), [true, false, false]);
        assert!(!known.contains(0), "memory is bounded");
        assert!(known.iter().count() >= 1_000_000 && known.iter().all(|key| known.contains(key)));
    }
}
