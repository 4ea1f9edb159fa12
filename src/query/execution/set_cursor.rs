//! `SetCursor`: the part of a cursor that is of a set. Lists are named by the ranks of their values, so that it is small
//! and does not depend on the order of the values.

use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::query::request::{Members, Query};
use crate::query::results::{ANY_LIST, Seen, SetPosition};

/// Values up to which a cursor has them: about 45 characters each.
const MAX_VALUES: u32 = 1_000;

/// `P` is the position of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetCursor<P> {
    /// Number of values, and a hash of them.
    pub count: u32,
    pub digest: String,
    /// Lists that have ended: bit i of byte i / 8, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    ended: String,
    /// Positions of the lists that are being read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<(u32, P)>,
    /// Lists that ended with an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<(u32, Message)>,
    /// Records that were returned and that another list may return.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
}

impl<P> SetCursor<P> {
    /// Beginning of a set.
    pub fn start(members: &Members<Query>) -> Self {
        let count = members.values.len() as u32;
        Self {
            count,
            digest: members.digest(),
            open: Vec::new(),
            ended: String::new(),
            refused: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Position of a set, with those of its open lists.
    pub fn of(set: &SetPosition, members: &Members<Query>, open: Vec<(usize, P)>) -> Self {
        let ranks = members.ranks();
        let has_ended = |index: usize| index != set.member && set.ended[index / 64] & 1 << (index % 64) != 0;
        let mut ended = vec![0u8; ranks.len().div_ceil(8)];
        for (index, rank) in ranks.iter().enumerate() {
            if has_ended(index) {
                ended[*rank as usize / 8] |= 1 << (rank % 8);
            }
        }
        let rank_of = |list: u32| if list == ANY_LIST { ANY_LIST } else { ranks[list as usize] };
        let seen = set.seen.to_vec().into_iter();
        let seen = seen.filter(|(.., also)| *also == ANY_LIST || !has_ended(*also as usize));
        Self {
            ended: ended.iter().map(|byte| format!("{byte:02x}")).collect(),
            open: open.into_iter().map(|(index, at)| (ranks[index], at)).collect(),
            refused: set.refused.iter().map(|(index, error)| (ranks[*index], error.clone())).collect(),
            seen: seen.map(|(key, by, also)| (key, rank_of(by), rank_of(also))).collect(),
            ..Self::start(members)
        }
    }

    /// True if the arguments of the cursor lack the values.
    pub fn is_large(&self) -> bool {
        self.count > MAX_VALUES
    }

    /// True if the cursor is of a set of these values, and can be one.
    pub fn is_of(&self, members: &Members<Query>) -> bool {
        let is_rank = |rank: u32| rank < self.count;
        self.count as usize == members.values.len()
            && self.digest == members.digest()
            && self.open.iter().all(|(rank, _)| is_rank(*rank))
            && self.refused.iter().all(|(rank, _)| is_rank(*rank))
            && self.seen.iter().all(|(_, by, also)| is_rank(*by) && (is_rank(*also) || *also == ANY_LIST))
    }

    /// True if the list of a rank has ended.
    pub fn has_ended(&self, rank: u32) -> bool {
        let digits = self.ended.get(rank as usize / 8 * 2..rank as usize / 8 * 2 + 2);
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0);
        byte & 1 << (rank % 8) != 0
    }
}
