//! `Strays`: records that a response showed and that were not returned with the others of their block. A block does not change:
//! a list in descending order of heights has all of its records, once records below it were returned.

use std::collections::VecDeque;

use super::forks::{BlockOfRow, Forks};
use super::known_keys::KnownKeys;
use crate::message::{Hint, Message};
use crate::query::snapshot::Rows;

/// Records that are kept.
const KEPT: usize = 1_024;

/// Records that were not returned when they were received, the latest first, by key and block.
#[derive(Debug, Default)]
pub struct Strays(VecDeque<(u64, BlockOfRow)>);

/// The returned records, and the heights of which all were returned: those above `lowest` and below `newest`.
#[derive(Clone, Copy, Debug)]
pub struct ReadHeights<'a> {
    pub known: &'a KnownKeys,
    pub forks: &'a Forks,
    pub newest: i64,
    pub lowest: i64,
}

impl ReadHeights<'_> {
    fn lacks(self, key: u64, block: BlockOfRow) -> bool {
        let is_read = self.lowest < block.height && block.height < self.newest;
        is_read && self.forks.have(block) && !self.known.contains(key)
    }

    /// True if a response shows a record that was not returned with the others of its block.
    pub fn lacks_some(self, rows: &dyn Rows) -> bool {
        (0..rows.len()).any(|row| self.forks.block_of(rows, row).is_some_and(|block| self.lacks(rows.key(row), block)))
    }
}

impl Strays {
    /// Takes rows of a response that are not returned.
    pub fn add(&mut self, rows: &dyn Rows, unreturned: impl Iterator<Item = usize>, forks: &Forks, known: &KnownKeys) {
        for row in unreturned.filter(|row| !known.contains(rows.key(*row))) {
            if let Some(block) = forks.block_of(rows, row) {
                self.0.truncate(KEPT - 1);
                self.0.push_front((rows.key(row), block));
            }
        }
    }

    /// Why records may be missing.
    pub fn reason(&self, read: ReadHeights<'_>) -> Option<Message> {
        let (_, block) = self.0.iter().find(|(key, block)| read.lacks(*key, *block))?;
        let reason = format!(
            "A response showed a record of height {} that was not returned with the others of its block: a part of the service \
             may lack it, or removed it",
            block.height
        );
        Some(Message::new(reason).hint(Hint::RunAgain))
    }
}
