//! `EndedLists`: the lists of a set that need not be read any more.

#[derive(Clone, Default)]
pub(super) struct EndedLists {
    /// Bit i % 64 of number i / 64: list i has ended.
    bits: Vec<u64>,
    pub count: u64,
    /// Number of those that had ended before this run.
    pub skipped: u64,
}

impl EndedLists {
    pub fn of(num_lists: usize) -> Self {
        Self { bits: vec![0; num_lists.div_ceil(64)], ..Self::default() }
    }

    pub fn contains(&self, list: usize) -> bool {
        self.bits[list / 64] & 1 << (list % 64) != 0
    }

    pub fn insert(&mut self, list: usize) {
        self.bits[list / 64] |= 1 << (list % 64);
        self.count += 1;
    }

    pub fn remove(&mut self, list: usize) {
        self.bits[list / 64] &= !(1 << (list % 64));
        self.count -= 1;
    }
}
