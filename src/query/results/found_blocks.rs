//! `FoundBlocks`: blocks that a run has found in search of the heights of its times, for a run that continues it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Lowest height that may have a block, as a search knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Floor {
    #[default]
    Unknown,
    /// Height of the oldest block.
    Oldest(i64),
    /// The list does not reach back to the oldest block. No block was found just below this height, nor at the samples
    /// so far, whose distances from it double.
    Assumed { height: i64, distance: i64 },
}

impl Floor {
    pub fn height(self) -> i64 {
        match self {
            Self::Unknown => 0,
            Self::Oldest(height) | Self::Assumed { height, .. } => height,
        }
    }
}

/// Blocks of one chain up to one whose hash is known: while the chain has that one, the others are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundBlocks {
    /// Height of the highest of them.
    pub height: i64,
    pub block_hash: String,
    /// Times in Unix milliseconds, by height.
    pub times: BTreeMap<i64, i64>,
    /// Heights without a block, or with one without transactions.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub empty: BTreeSet<i64>,
    #[serde(default)]
    pub floor: Floor,
}

impl FoundBlocks {
    /// Returns those of two runs that know more.
    pub fn larger(self: Arc<Self>, other: Arc<Self>) -> Arc<Self> {
        if other.size() > self.size() { other } else { self }
    }

    fn size(&self) -> usize {
        self.times.len() + self.empty.len()
    }
}
