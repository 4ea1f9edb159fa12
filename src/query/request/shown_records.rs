//! `ShownRecords`: records that responses of a run showed beside those of the lists that it reads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownRecord {
    pub key: u64,
    pub block: Option<u64>,
}

/// Records by height.
#[derive(Clone, Debug, Default)]
pub struct ShownRecords(BTreeMap<i64, Vec<ShownRecord>>);

impl ShownRecords {
    pub fn add(&mut self, height: i64, record: ShownRecord) {
        let known = self.0.entry(height).or_default();
        if !known.contains(&record) {
            known.push(record);
        }
    }

    pub fn extend(&mut self, other: &Self) {
        for (height, record) in other.between(i64::MIN..=i64::MAX) {
            self.add(height, record);
        }
    }

    /// The records of some heights.
    pub fn of(&self, heights: &BTreeSet<i64>) -> Self {
        let known = self.0.iter().filter(|(height, _)| heights.contains(height));
        Self(known.map(|(height, records)| (*height, records.clone())).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records of one height.
    pub fn at(&self, height: i64) -> &[ShownRecord] {
        self.0.get(&height).map_or(&[], Vec::as_slice)
    }

    /// Records of a range of heights.
    pub fn between(&self, heights: RangeInclusive<i64>) -> impl Iterator<Item = (i64, ShownRecord)> + '_ {
        let known = if heights.is_empty() { None } else { Some(self.0.range(heights)) };
        known.into_iter().flatten().flat_map(|(height, records)| records.iter().map(|record| (*height, *record)))
    }
}
