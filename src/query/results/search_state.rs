//! `SearchState`: what searches for the heights of times have found, so that a run of few requests continues where the one
//! before has ended.

use serde::{Deserialize, Serialize};

/// Position of a time among the blocks of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimePosition {
    /// The last block that is not later, below a later one.
    At(i64),
    /// That block, and the height below the later one: the list has no blocks in between. One without transactions is not
    /// listed, and other lists may have records of one that a part of the service lacks.
    BelowAbsent {
        height: i64,
        end: i64,
    },
    /// The newest block, which is not later: the chain may have others that are not.
    Newest(i64),
    /// The time is before the first block, which has this height.
    Before(i64),
    /// The time is before the lowest block that samples found, at this height. Lower blocks may exist.
    BeforeSampled(i64),
    NoBlock,
}

impl TimePosition {
    /// Highest height of the position.
    fn height(self) -> Option<i64> {
        match self {
            Self::At(height)
            | Self::BelowAbsent { end: height, .. }
            | Self::Newest(height)
            | Self::Before(height)
            | Self::BeforeSampled(height) => Some(height),
            Self::NoBlock => None,
        }
    }
}

/// Lowest height that may have a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Floor {
    #[default]
    Unknown,
    /// Height of the oldest block.
    Oldest(i64),
    /// The list does not reach back to the oldest block. No block was found just below this height, nor at the samples
    /// so far, whose distances from it double.
    Assumed { height: i64, distance: i64 },
}

/// A block that a response showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownBlock {
    pub height: i64,
    /// Unix milliseconds.
    pub time: i64,
    /// Hash of its hash; 0 if it has none.
    pub block: u64,
    /// Number of the run that read it.
    pub run: u32,
}

/// A search that has not ended. Each run after the first compares one block before it uses what earlier ones have found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchState {
    /// Number of the run.
    pub run: u32,
    /// Times that were found, by blocks that were compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<(i64, TimePosition)>,
    /// Time that is searched, and what was left of the search at its last requests.
    pub time: i64,
    pub remaining: [i64; 3],
    /// The newest block, those on both sides of the time, and one that tells whether these are still there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<ShownBlock>,
    /// Heights without a block, and the number of the run that requested them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty: Vec<(i64, u32)>,
    pub floor: Floor,
    /// Pages of the list that shows the blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// True if a block was earlier than one below it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_falling_times: bool,
    /// Times of blocks that tell whether a list reaches back to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ages: Vec<(i64, i64)>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Greatest height, and time in milliseconds, of a state.
const MAX: i64 = 1 << 53;

impl SearchState {
    pub fn found(&self, time: i64) -> Option<TimePosition> {
        self.found.iter().find(|(other, _)| *other == time).map(|(_, position)| *position)
    }

    /// True if it may be the state of a search.
    pub fn is_plausible(&self) -> bool {
        let floor = match self.floor {
            Floor::Unknown => true,
            Floor::Oldest(height) => is_height(height),
            Floor::Assumed { height, distance } => is_height(height) && (1..=MAX).contains(&distance),
        };
        floor
            && self.time.unsigned_abs() <= MAX as u64
            && self.blocks.iter().all(|block| is_height(block.height) && block.time.unsigned_abs() <= MAX as u64)
            && self.empty.iter().all(|(height, _)| is_height(*height))
            && self.found.iter().all(|(_, position)| position.height().is_none_or(is_height))
            && self.run < u32::MAX
    }
}

fn is_height(height: i64) -> bool {
    (0..=MAX).contains(&height)
}
