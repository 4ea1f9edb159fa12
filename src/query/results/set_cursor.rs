//! `SetCursor`: the part of a cursor that is of a set. Lists are named by the ranks of their values, so that it is small
//! and does not depend on the order of the values.

use serde::{Deserialize, Serialize};

use super::seen::{ANY_LIST, SeenRecord};
use crate::message::Message;
use crate::query::request::Members;

/// Values up to which a cursor has them: about 45 characters each.
const MAX_VALUES: u32 = 1_000;

/// `P` is the position of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::query) struct SetCursor<P> {
    /// Number of values, and a hash of them.
    pub count: u32,
    pub digest: String,
    /// Lists that have ended: bit i of byte i / 8, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ended: String,
    /// Lists of heights that have ended without a block, in the form of `ended`, and the lowest and the highest height with one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub empty: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<(i64, i64)>,
    /// Positions of the lists that are being read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<(u32, P)>,
    /// Lists that ended with an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<(u32, Message)>,
    /// Records that were returned and that another list may return.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenRecord>,
}

impl<P> SetCursor<P> {
    /// Beginning of a set.
    pub fn start(members: &Members) -> Self {
        let count = members.values.len() as u32;
        Self {
            count,
            digest: members.digest.to_string(),
            open: Vec::new(),
            ended: String::new(),
            empty: String::new(),
            ends: None,
            refused: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// True if the arguments of the cursor lack the values.
    pub fn is_large(&self) -> bool {
        self.count > MAX_VALUES
    }

    /// True if the cursor is of a set of these values, and can be one.
    pub fn is_of(&self, members: &Members) -> bool {
        let ranks = 0..self.count;
        self.count as usize == members.values.len()
            && *self.digest == *members.digest
            && self.open.iter().all(|(rank, _)| ranks.contains(rank))
            && self.refused.iter().all(|(rank, _)| ranks.contains(rank))
            && self.seen.iter().all(|seen| {
                ranks.contains(&seen.returned_by) && (ranks.contains(&seen.other) || seen.other == ANY_LIST)
            })
    }

    /// True if the list of a rank has ended.
    pub fn has_ended(&self, rank: u32) -> bool {
        is_in(&self.ended, rank)
    }

    /// True if the list of a rank has ended without a block.
    pub fn is_empty(&self, rank: u32) -> bool {
        is_in(&self.empty, rank)
    }
}

fn is_in(bits: &str, rank: u32) -> bool {
    let digits = bits.get(rank as usize / 8 * 2..rank as usize / 8 * 2 + 2);
    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0);
    byte & 1 << (rank % 8) != 0
}

/// Ranks below `count` as `is_in` reads them.
pub(in crate::query) fn bits_of(ranks: impl Iterator<Item = u32>, count: usize) -> String {
    let mut bytes = vec![0u8; count.div_ceil(8)];
    for rank in ranks {
        bytes[rank as usize / 8] |= 1 << (rank % 8);
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_without_empty_lists_is_of_an_earlier_version() {
        let earlier = r#"{"count":9,"digest":"d","ended":"0300","open":[[2,5]]}"#;
        let set: SetCursor<u32> = serde_json::from_str(earlier).unwrap();
        assert_eq!((set.has_ended(1), set.has_ended(2), set.is_empty(1), set.ends), (true, false, false, None));
        assert_eq!(serde_json::to_string(&set).unwrap(), earlier);
    }
}
