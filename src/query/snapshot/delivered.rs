//! `Delivered`: records that were read, of which the latest are known by their keys.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Delivered {
    /// Number of records, and so the offset of the next one.
    end: u64,
    /// Keys of the latest of them, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keys: Vec<u64>,
}

/// Evidence of the rows that a page shares with delivered records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedRows {
    /// At least two different keys.
    Distinct,
    /// One key, which occurs once on either side.
    Unique,
    /// One key that occurs several times.
    Repeated,
}

impl Delivered {
    pub fn of(keys: Vec<u64>) -> Self {
        Self { end: keys.len() as u64, keys }
    }

    /// Records whose keys are not needed.
    pub fn at(end: u64) -> Self {
        Self { end, keys: Vec::new() }
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// Offset of the first record whose key is known.
    pub fn base(&self) -> u64 {
        self.end.saturating_sub(self.keys.len() as u64)
    }

    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    pub fn last(&self) -> Option<u64> {
        self.keys.last().copied()
    }

    /// Adds records; keeps `max_keys` keys.
    pub fn push(&mut self, keys: impl ExactSizeIterator<Item = u64>, max_keys: usize) {
        self.end += keys.len() as u64;
        if max_keys > 0 {
            self.keys.extend(keys);
            self.keys.drain(..self.keys.len().saturating_sub(max_keys));
        }
        // Each key is that of a record.
        debug_assert!(self.keys.len() as u64 <= self.end);
    }

    /// Returns the records with the latest `count` keys, and with up to eight times as many until two of them differ.
    #[must_use]
    pub fn latest(&self, count: usize) -> Self {
        let different = self.boundary().map_or(usize::MAX, |records| records as usize);
        let kept = different.clamp(count, 8 * count).min(self.keys.len());
        Self { end: self.end, keys: self.keys[self.keys.len() - kept..].to_vec() }
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
        Some((self.end.checked_sub(run)?, self.last()?))
    }

    /// Every offset at which the rows that a page shares with the delivered records are equal to them, as far as both are
    /// known: all of them, or at least the last `min_equal`.
    pub fn overlaps(&self, page: &[u64], min_equal: usize) -> impl Iterator<Item = (i64, SharedRows)> {
        let first = self.base() as i64 - page.len() as i64;
        (first..self.end as i64).filter_map(move |offset| Some((offset, self.shared(page, offset, min_equal)?)))
    }

    fn shared(&self, page: &[u64], offset: i64, min_equal: usize) -> Option<SharedRows> {
        let base = self.base() as i64;
        let from = offset.max(base);
        let to = (offset + page.len() as i64).min(self.end as i64);
        let known = &self.keys[(from - base) as usize..(to - base) as usize];
        let rows = &page[(from - offset) as usize..(to - offset) as usize];
        let equal = known.iter().rev().zip(rows.iter().rev()).take_while(|(key, row)| key == row).count();
        if equal < known.len().min(min_equal) {
            return None;
        }
        let first = *known.last()?;
        if known[known.len() - equal..].iter().any(|key| *key != first) {
            return Some(SharedRows::Distinct);
        }
        let is_unique = occurs_once(first, &self.keys) && occurs_once(first, page);
        Some(if is_unique { SharedRows::Unique } else { SharedRows::Repeated })
    }
}

/// One key of a record and the one above it. Equal records rarely have equal ones above them.
pub(super) fn key_of_both(above: u64, key: u64) -> u64 {
    above.rotate_left(32) ^ key
}

pub(super) fn occurs_once(key: u64, keys: &[u64]) -> bool {
    keys.iter().filter(|other| **other == key).count() == 1
}

/// True if some of these are equal.
pub(super) fn has_duplicates(keys: &[u64]) -> bool {
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}
