//! `KnownKeys`: the keys of returned records, in bounded memory.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Keys that are kept at least: many times as many as a list with a result window has. Two equal records that lie further
/// apart are not noticed.
const KEPT: usize = 1 << 20;

/// Record keys are hashes already.
#[derive(Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, key: u64) {
        // The table uses the highest bits as well as the lowest.
        self.0 = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

pub type KeySet = HashSet<u64, BuildHasherDefault<KeyHasher>>;

/// Two generations of keys. When the newer one is full, the older one is forgotten.
#[derive(Debug, Default)]
pub struct KnownKeys {
    newer: KeySet,
    older: KeySet,
}

impl KnownKeys {
    pub fn contains(&self, key: u64) -> bool {
        self.newer.contains(&key) || self.older.contains(&key)
    }

    /// Adds a key. False if it was known.
    pub fn insert(&mut self, key: u64) -> bool {
        if self.newer.len() == KEPT {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key) && !self.older.contains(&key)
    }
}
