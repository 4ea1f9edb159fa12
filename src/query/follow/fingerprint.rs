//! Fingerprints: the records of one height as a few numbers. Cursors contain them, so they are the same in every version.

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
    /// Hash of the record's block, or of the record itself if it is a block; 0 if it has none.
    pub chain: u64,
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
        chain: Rows::block(columns, row).unwrap_or(0),
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    pub height: i64,
    pub keys: u64,
    pub block: u64,
    pub content: u64,
}

/// Fingerprints in a cursor: their bytes as one string. A set of lists has many, and JSON has twice the characters for them.
pub(super) mod packed {
    use std::collections::VecDeque;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::Fingerprint;

    const NUMBER: usize = size_of::<u64>();

    pub fn serialize<S: Serializer>(known: &VecDeque<Fingerprint>, serializer: S) -> Result<S::Ok, S::Error> {
        let numbers = known.iter().flat_map(|of| [of.height as u64, of.keys, of.block, of.content]);
        let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VecDeque<Fingerprint>, D::Error> {
        let bytes = STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)?;
        let (numbers, rest) = bytes.as_chunks::<NUMBER>();
        let (fingerprints, more) = numbers.as_chunks::<4>();
        if !rest.is_empty() || !more.is_empty() {
            return Err(D::Error::custom("a fingerprint is cut"));
        }
        let known = fingerprints.iter().map(|numbers| {
            let [height, keys, block, content] = numbers.map(u64::from_le_bytes);
            Fingerprint { height: height as i64, keys, block, content }
        });
        Ok(known.collect())
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use serde::{Deserialize, Serialize};

    use super::{Fingerprint, packed};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Known(#[serde(with = "packed")] VecDeque<Fingerprint>);

    #[test]
    fn packed_fingerprints_are_the_same_when_they_are_read() {
        let known = (0..40).map(|height| Fingerprint { height, keys: u64::MAX - 1, block: 2, content: u64::MAX / 3 });
        let known = Known(known.collect());
        let json = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::from_str::<Known>(&json).unwrap(), known);
        assert_eq!(serde_json::to_string(&Known([Fingerprint::new(1)].into())).unwrap().len(), 46);
    }

    #[test]
    fn packed_fingerprints_that_are_cut_are_refused() {
        for json in ["\"AQAAAAAAAAA=\"", "\"AQAAAAAAAA==\"", "\"AQ\"", "\"é\"", "[[1,2,3,4]]", "null"] {
            serde_json::from_str::<Known>(json).unwrap_err();
        }
        assert_eq!(serde_json::from_str::<Known>("\"\"").unwrap().0, []);
    }
}
