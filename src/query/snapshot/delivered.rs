//! `Delivered`: the records of the snapshot that were read, by their keys.

use std::collections::{HashMap, VecDeque};

/// Offset of the next record, and the keys of the latest records where they are needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivered {
    end: u64,
    /// The latest keys, oldest first.
    keys: VecDeque<u64>,
    /// Occurrences of each of them.
    counts: HashMap<u64, u32>,
    /// Most keys kept; 0 for lists with a count, where keys are not needed.
    max_keys: usize,
}

/// Evidence of the rows that a page shares with delivered records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shared {
    /// At least two different keys.
    Distinct,
    /// One key, which occurs once on either side.
    Unique,
    /// One key that occurs several times.
    Repeated,
}

impl Delivered {
    pub fn new(max_keys: usize) -> Self {
        Self { max_keys, ..Self::default() }
    }

    /// The first `end` records, of which the latest keys are known: each with how often it occurs in a row.
    pub fn resumed(end: u64, latest: &[(u64, u64)], max_keys: usize) -> Self {
        let mut delivered = Self::new(max_keys);
        // More records than were delivered cannot be known, and more than are kept need not be.
        let newest_first = latest.iter().rev().flat_map(|(key, times)| (0..*times).map(|_| *key));
        let mut keys: Vec<u64> = newest_first.take(max_keys.min(end as usize)).collect();
        delivered.end = end - keys.len() as u64;
        keys.reverse();
        delivered.push(keys.into_iter());
        delivered
    }

    /// Offset of the next record.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Offset of the first record whose key is known.
    pub fn base(&self) -> u64 {
        self.end - self.keys.len() as u64
    }

    pub fn push(&mut self, keys: impl ExactSizeIterator<Item = u64>) {
        self.end += keys.len() as u64;
        if self.max_keys == 0 {
            return;
        }
        for key in keys {
            self.keys.push_back(key);
            *self.counts.entry(key).or_default() += 1;
        }
        while self.keys.len() > self.max_keys {
            let Some(key) = self.keys.pop_front() else { break };
            if let Some(count) = self.counts.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&key);
                }
            }
        }
    }

    pub fn contains(&self, key: u64) -> bool {
        self.counts.contains_key(&key)
    }

    /// True if some of the records whose keys are known are equal.
    pub fn has_duplicates(&self) -> bool {
        self.counts.len() < self.keys.len()
    }

    pub fn last(&self) -> Option<u64> {
        self.keys.back().copied()
    }

    /// Keys, oldest first.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.keys.iter().copied()
    }

    /// Number of the latest records that include two different ones, if any do.
    pub fn boundary(&self) -> Option<u64> {
        let last = self.last()?;
        let different = self.keys.iter().rev().position(|key| *key != last)?;
        Some(different as u64 + 1)
    }

    /// The latest record that differs from the one before it.
    pub fn boundary_record(&self) -> Option<(u64, u64)> {
        let run = self.boundary()? - 1;
        Some((self.end - run, self.last()?))
    }

    /// Every offset at which all rows that a page shares with the delivered records are equal to them, as far as both are
    /// known.
    pub fn overlaps(&self, page: &[u64]) -> impl Iterator<Item = (i64, Shared)> {
        let first = self.base() as i64 + 1 - page.len() as i64;
        (first..self.end as i64).filter_map(|offset| Some((offset, self.shared(page, offset)?)))
    }

    fn shared(&self, page: &[u64], offset: i64) -> Option<Shared> {
        let base = self.base() as i64;
        let from = offset.max(base);
        let to = (offset + page.len() as i64).min(self.end as i64);
        let known = |at: i64| self.keys[(at - base) as usize];
        let first = known((from..to).next()?);
        if (from..to).any(|at| known(at) != page[(at - offset) as usize]) {
            return None;
        }
        let is_unique = || self.counts.get(&first) == Some(&1) && page.iter().filter(|key| **key == first).count() == 1;
        Some(match (from..to).any(|at| known(at) != first) {
            true => Shared::Distinct,
            false if is_unique() => Shared::Unique,
            false => Shared::Repeated,
        })
    }
}

/// The latest of these keys, which come newest first with how often each occurs in a row: at least `least` records and
/// two different ones, as far as there are. Oldest first.
pub(super) fn latest_runs(keys: impl Iterator<Item = (u64, u64)>, least: u64) -> Vec<(u64, u64)> {
    let (mut runs, mut count): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
    for (key, times) in keys {
        let is_enough = count >= least && runs.len() > 1;
        match runs.last_mut() {
            Some((last, in_a_row)) if *last == key => *in_a_row += times,
            _ if is_enough => break,
            _ => runs.push((key, times)),
        }
        count += times;
    }
    runs.reverse();
    runs
}
