//! `Strays`: records that a response showed and that were not returned with the others of their block. A block does not change:
//! a list in descending order of heights has all of its records, once records below it were returned.

use std::collections::VecDeque;

use super::forks::{BlockOfRow, Forks};
use super::known_keys::KnownKeys;
use crate::message::{Hint, Message};
use crate::query::snapshot::Rows;

/// Records that are kept.
const KEPT: usize = 1_024;

/// Records that were not returned when they were received, the latest first.
#[derive(Debug, Default)]
pub struct Strays(VecDeque<Stray>);

#[derive(Clone, Copy, Debug)]
struct Stray {
    key: u64,
    block: BlockOfRow,
    /// True if a reading received it that was discarded, and so before the first record of this one.
    is_earlier: bool,
}

/// The returned records, and the heights of which all were returned: those above `lowest` and below `newest`.
#[derive(Clone, Copy, Debug)]
pub struct ReadHeights<'a> {
    pub known: &'a KnownKeys,
    pub forks: &'a Forks,
    pub newest: i64,
    pub lowest: i64,
}

impl ReadHeights<'_> {
    fn lacks(self, Stray { key, block, is_earlier }: Stray) -> bool {
        // Others of the newest height may have been listed since.
        let is_due = block.height < self.newest || is_earlier && block.height == self.newest;
        self.lowest < block.height && is_due && self.forks.have(block) && !self.known.contains(key)
    }

    /// True if a response shows a record that was not returned with the others of its block.
    pub fn lacks_some(self, rows: &dyn Rows) -> bool {
        (0..rows.len()).filter_map(|row| Stray::of(rows, row, self.forks)).any(|stray| self.lacks(stray))
    }
}

impl Stray {
    fn of(rows: &dyn Rows, row: usize, forks: &Forks) -> Option<Self> {
        Some(Self { key: rows.key(row), block: forks.block_of(rows, row)?, is_earlier: false })
    }
}

impl Strays {
    /// These records in a reading of the same list that takes the place of the one that received them.
    pub fn of_earlier_reading(self) -> Self {
        Self(self.0.into_iter().map(|stray| Stray { is_earlier: true, ..stray }).collect())
    }

    /// Takes rows of a response that are not returned.
    pub fn add(&mut self, rows: &dyn Rows, unreturned: impl Iterator<Item = usize>, forks: &Forks, known: &KnownKeys) {
        for row in unreturned.filter(|row| !known.contains(rows.key(*row))) {
            if let Some(stray) = Stray::of(rows, row, forks) {
                self.0.truncate(KEPT - 1);
                self.0.push_front(stray);
            }
        }
    }

    /// Why records may be missing.
    pub fn reason(&self, read: ReadHeights<'_>) -> Option<Message> {
        let Stray { block, .. } = self.0.iter().find(|stray| read.lacks(**stray))?;
        let reason = format!(
            "A response showed a record of height {} that was not returned with the others of its block: a part of the service \
             may lack it, or removed it",
            block.height
        );
        Some(Message::new(reason).hint(Hint::RunAgain))
    }
}
