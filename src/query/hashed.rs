//! `HashedMap` and `HashedSet`: tables whose keys are hashes already, such as record keys, or numbers.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

pub type HashedMap<T> = HashMap<u64, T, BuildHasherDefault<OfHash>>;
pub type HashedSet = HashSet<u64, BuildHasherDefault<OfHash>>;

/// Takes a value, and returns the first one of its key. All are forgotten when there are more than `kept`.
pub fn first_value<T: Copy>(values: &mut HashedMap<T>, kept: usize, key: u64, value: T) -> T {
    if values.len() == kept && !values.contains_key(&key) {
        values.clear();
    }
    *values.entry(key).or_insert(value)
}

/// Hasher of hashes.
#[derive(Default)]
pub struct OfHash(u64);

impl Hasher for OfHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        // The table uses the highest bits as well as the lowest.
        self.0 = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
