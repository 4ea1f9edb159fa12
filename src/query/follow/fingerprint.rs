//! Fingerprints: the records of one height as a few numbers. Cursors contain them, so they are the same in every version.

use serde::{Deserialize, Serialize};

use crate::columns::Columns;
use crate::query::results::{block_keys, content_keys, record_keys};
use crate::query::snapshot::Rows;

/// Facts of a record that following needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowFacts {
    /// None of a record that belongs to no block yet.
    pub height: Option<i64>,
    /// Record key.
    pub key: u64,
    /// Hash of its block's hash; 0 if it has none.
    pub block: u64,
    /// Hash of all its fields.
    pub content: u64,
}

/// The facts of all records of a page.
pub fn facts(columns: &Columns) -> Vec<RowFacts> {
    let keys = record_keys(columns);
    let contents = content_keys(columns);
    let blocks = block_keys(columns);
    let rows = (0..columns.rows()).map(|row| RowFacts {
        height: Rows::height(columns, row),
        key: keys[row],
        block: blocks[row],
        content: contents[row],
    });
    rows.collect()
}

/// A hash of a page: equal for equal pages.
pub fn page_hash(rows: &[RowFacts]) -> u64 {
    rows.iter().fold(rows.len() as u64, |hash, row| {
        let height = row.height.map_or(0, |height| spread(height as u64));
        spread(hash ^ row.content.wrapping_add(height).wrapping_add(spread(row.block)))
    })
}

/// The records of one height, in any order. Numbers that are not known are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, u64, u64, u64)", into = "(i64, u64, u64, u64)")]
pub struct Fingerprint {
    pub height: i64,
    pub keys: u64,
    pub block: u64,
    pub content: u64,
}

impl From<(i64, u64, u64, u64)> for Fingerprint {
    fn from((height, keys, block, content): (i64, u64, u64, u64)) -> Self {
        Self { height, keys, block, content }
    }
}

impl From<Fingerprint> for (i64, u64, u64, u64) {
    fn from(of: Fingerprint) -> Self {
        (of.height, of.keys, of.block, of.content)
    }
}

/// Spreads the bits of a number, so that sums of several do not coincide.
pub(super) fn spread(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Fingerprint {
    pub fn new(height: i64) -> Self {
        Self { height, ..Self::default() }
    }

    /// Fingerprint of records of which only the keys are known.
    pub fn of_keys(height: i64, keys: impl IntoIterator<Item = u64>) -> Self {
        let keys = keys.into_iter().fold(0, |sum: u64, key| sum.wrapping_add(spread(key)));
        Self { height, keys, ..Self::default() }
    }

    pub fn add(&mut self, row: &RowFacts) {
        self.keys = self.keys.wrapping_add(spread(row.key));
        self.content = self.content.wrapping_add(spread(row.content));
        if row.block != 0 {
            self.block = self.block.wrapping_add(spread(row.block));
        }
    }

    /// The `block` of that many records of one block.
    pub fn block_of(block: u64, rows: u64) -> u64 {
        spread(block).wrapping_mul(rows)
    }

    /// True if the records are the same, as far as both fingerprints know.
    pub fn is_same_records(&self, other: &Self) -> bool {
        let is_same_block = self.block == 0 || other.block == 0 || self.block == other.block;
        self.height == other.height && self.keys == other.keys && is_same_block
    }

    /// True if the records are the same with all their fields, as far as both fingerprints know.
    pub fn is_same_content(&self, other: &Self) -> bool {
        let is_same = self.content == 0 || other.content == 0 || self.content == other.content;
        self.is_same_records(other) && is_same
    }
}
