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

/// The records of one height, in any order. Numbers that are not known are 0. They have 32 bits: a set has many fingerprints, and
/// other records of a height differ in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    pub height: i64,
    pub keys: u32,
    pub block: u32,
    pub content: u32,
}

/// Fingerprints in a cursor: their bytes as one string. A set of lists has many, and JSON has four times the characters for them.
pub(super) mod packed {
    use std::collections::VecDeque;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::Fingerprint;

    const NUMBER: usize = size_of::<u32>();
    /// A byte of a distance has seven bits; this one says that others follow.
    const MORE: u8 = 0x80;

    pub fn serialize<S: Serializer>(known: &VecDeque<Fingerprint>, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(known.len() * 4 * NUMBER);
        let mut before = 0;
        for fingerprint in known {
            put_distance(&mut bytes, fingerprint.height.wrapping_sub(before) as u64);
            before = fingerprint.height;
            for number in [fingerprint.keys, fingerprint.block, fingerprint.content] {
                bytes.extend(number.to_le_bytes());
            }
        }
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VecDeque<Fingerprint>, D::Error> {
        let bytes = STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)?;
        let mut known: VecDeque<Fingerprint> = VecDeque::new();
        let mut bytes = bytes.as_slice();
        while !bytes.is_empty() {
            let before = known.back().map_or(0, |last| last.height);
            known.push_back(take(&mut bytes, before).ok_or_else(|| D::Error::custom("a fingerprint is cut"))?);
        }
        Ok(known)
    }

    fn take(bytes: &mut &[u8], before: i64) -> Option<Fingerprint> {
        let height = before.wrapping_add(take_distance(bytes)? as i64);
        let (numbers, rest) = bytes.split_first_chunk::<{ 3 * NUMBER }>()?;
        *bytes = rest;
        let (numbers, _) = numbers.as_chunks::<NUMBER>();
        let &[keys, block, content] = numbers else { return None };
        let [keys, block, content] = [keys, block, content].map(u32::from_le_bytes);
        Some(Fingerprint { height, keys, block, content })
    }

    fn put_distance(bytes: &mut Vec<u8>, mut distance: u64) {
        while distance >= u64::from(MORE) {
            bytes.push(distance as u8 | MORE);
            distance >>= 7;
        }
        bytes.push(distance as u8);
    }

    fn take_distance(bytes: &mut &[u8]) -> Option<u64> {
        let mut distance = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = bytes.split_first()?;
            *bytes = rest;
            distance |= u64::from(byte & !MORE) << shift;
            if byte & MORE == 0 {
                return Some(distance);
            }
        }
        None
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
        let keys = keys.into_iter().fold(0, |sum: u32, key| sum.wrapping_add(spread(key) as u32));
        Self { height, keys, ..Self::default() }
    }

    pub fn add(&mut self, row: &RowFacts) {
        self.keys = self.keys.wrapping_add(spread(row.key) as u32);
        self.content = self.content.wrapping_add(spread(row.content) as u32);
        if row.block != 0 {
            self.block = self.block.wrapping_add(spread(row.block) as u32);
        }
    }

    /// The `block` of that many records of one block.
    pub fn block_of(block: u64, rows: u64) -> u32 {
        spread(block).wrapping_mul(rows) as u32
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
        let heights = [i64::MIN, -1, 0, 1, 127, 128, 20_000_000, i64::MAX];
        let known = heights.map(|height| Fingerprint { height, keys: u32::MAX - 1, block: 2, content: u32::MAX / 3 });
        let known = Known(known.into());
        let json = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::from_str::<Known>(&json).unwrap(), known);
    }

    /// The cursor of a set of 10,000 lists has 400,000 of them.
    #[test]
    fn packed_fingerprint_takes_twenty_characters() {
        let known = (0..40).map(|index| Fingerprint::new(20_000_000 + 5_000 * index));
        let json = serde_json::to_string(&Known(known.collect())).unwrap();
        assert_eq!(json.len(), 2 + (40_usize * 14 + 2).div_ceil(3) * 4);
    }

    #[test]
    fn packed_fingerprints_that_are_cut_are_refused() {
        let whole = serde_json::to_string(&Known([Fingerprint::new(300)].into())).unwrap();
        serde_json::from_str::<Known>(&whole).unwrap();
        let cut = ["\"AQAAAAAAAAA=\"", "\"rAI=\"", "\"////////////////\"", "\"AQ\"", "\"é\"", "[[1,2,3,4]]", "null"];
        for json in cut {
            serde_json::from_str::<Known>(json).unwrap_err();
        }
        assert_eq!(serde_json::from_str::<Known>("\"\"").unwrap().0, []);
    }
}
