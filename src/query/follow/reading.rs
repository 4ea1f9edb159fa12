//! `Reading`: the heights that a round has read so far.

use std::collections::BTreeMap;

use super::fingerprint::{Fingerprint, RowFacts};

#[derive(Clone, Debug)]
pub struct Reading {
    heights: BTreeMap<i64, Fingerprint>,
    /// The latest block of each height, after the number of its records.
    blocks: BTreeMap<i64, (u64, u64)>,
    /// Keys of the records of one height, which are compared one by one.
    overlap: Option<(i64, Vec<u64>)>,
    rows: u64,
    /// Heights from here on were read with all their records.
    complete_from: i64,
    complete_to: i64,
}

impl Reading {
    /// A reading from the head down. `overlap` is a height of which single records are known.
    pub fn down(overlap: Option<i64>) -> Self {
        let overlap = overlap.map(|height| (height, Vec::new()));
        Self {
            heights: BTreeMap::new(),
            blocks: BTreeMap::new(),
            overlap,
            rows: 0,
            complete_from: i64::MAX,
            complete_to: i64::MAX,
        }
    }

    /// A reading of all records of a range of heights.
    pub fn range(low: i64, high: i64, rows: &[RowFacts], overlap: Option<i64>) -> Self {
        let mut reading = Self { complete_from: low, complete_to: high, ..Self::down(overlap) };
        rows.iter().for_each(|row| reading.add(row));
        reading
    }

    fn add(&mut self, row: &RowFacts) {
        let Some(height) = row.height else { return };
        self.heights.entry(height).or_insert_with(|| Fingerprint::new(height)).add(row);
        if row.block != 0 {
            let (rows, block) = self.blocks.entry(height).or_default();
            *rows = if *block == row.block { *rows + 1 } else { 1 };
            *block = row.block;
        }
        if let Some((_, keys)) = self.overlap.as_mut().filter(|(overlap, _)| *overlap == height) {
            keys.push(row.key);
        }
    }

    /// Takes the next page of a reading down.
    pub fn push(&mut self, rows: &[RowFacts]) {
        rows.iter().for_each(|row| self.add(row));
        self.rows += rows.len() as u64;
        // More records of the last row's height may follow. A record out of order below it is not complete either.
        if let Some(last) = rows.iter().rev().find_map(|row| row.height) {
            self.complete_from = last.saturating_add(1);
        }
    }

    /// The reading has reached the end of the list.
    pub fn end(&mut self) {
        self.complete_from = i64::MIN;
    }

    /// The list begins with the lowest height that was read: what was below `young` may have left it.
    pub fn end_forgetful(&mut self, young: i64) {
        self.complete_from = self.lowest().map_or(young, |lowest| young.min(lowest));
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn lowest(&self) -> Option<i64> {
        self.heights.keys().next().copied()
    }

    pub fn top(&self) -> Option<i64> {
        self.heights.keys().next_back().copied()
    }

    pub fn num_heights(&self) -> usize {
        self.heights.len()
    }

    pub fn complete_from(&self) -> i64 {
        self.complete_from
    }

    pub fn complete_to(&self) -> i64 {
        self.complete_to
    }

    pub fn is_complete(&self, height: i64) -> bool {
        (self.complete_from..=self.complete_to).contains(&height)
    }

    pub fn get(&self, height: i64) -> Option<&Fingerprint> {
        self.heights.get(&height)
    }

    /// True if a height lacks records that it had, or has another block. A record that was listed late is no contradiction.
    pub fn contradicts(&self, known: &Fingerprint) -> bool {
        let Some(now) = self.heights.get(&known.height) else { return true };
        let (rows, block) = self.blocks.get(&known.height).copied().unwrap_or_default();
        let has_block = known.block != 0 && now.block != 0;
        has_block && !(1..=rows).any(|rows| Fingerprint::block_of(block, rows) == known.block)
    }

    /// Fingerprints of the heights in a range, both ends included, the lowest first.
    pub fn heights(&self, low: i64, high: i64) -> impl Iterator<Item = &Fingerprint> {
        let range = (low <= high).then(|| self.heights.range(low..=high));
        range.into_iter().flatten().map(|(_, fingerprint)| fingerprint)
    }

    /// The lowest height above `above` of a record that is out of order, and so below all that is complete.
    pub fn lowest_late(&self, above: i64) -> Option<i64> {
        let last = self.complete_from.checked_sub(1)?;
        self.heights(above.checked_add(1)?, last.checked_sub(1)?).next().map(|late| late.height)
    }

    /// True if some of these keys are not among the records of a height.
    pub fn lacks(&self, height: i64, keys: &[u64]) -> bool {
        let read = self.overlap.as_ref().filter(|(overlap, _)| *overlap == height).map_or(&[][..], |(_, keys)| keys);
        keys.iter().any(|key| count(*key, read) < count(*key, keys))
    }
}

fn count(key: u64, keys: &[u64]) -> usize {
    keys.iter().filter(|other| **other == key).count()
}
