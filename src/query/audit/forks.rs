//! `Forks`: the records of one height at the end of a page and at the beginning of the next one. They are of one block, unless
//! the chain was reorganized between the two responses. A block has one height, wherever its records are.

use crate::message::{Hint, Message};
use crate::query::hashed::HashedMap;
use crate::query::snapshot::Response;

/// Blocks that are kept for comparison, less than a megabyte; all are forgotten when there are more.
pub(super) const KEPT: usize = 1 << 14;

#[derive(Debug, Default)]
pub struct Forks {
    /// Heights of the blocks, by their hashes.
    heights: HashedMap<i64>,
    /// Two heights of one block.
    contradictory: Option<(i64, i64)>,
    /// Block of the latest returned record.
    latest: Option<Block>,
    /// A height of which two pages have one block each.
    mixed: Option<i64>,
}

/// The block of a record.
#[derive(Clone, Copy, Debug)]
struct Block {
    height: i64,
    hash: u64,
}

impl Block {
    fn of(response: &Response<'_>, row: usize) -> Option<Self> {
        Some(Self { height: response.rows.height(row)?, hash: response.rows.block(row)? })
    }

    fn is_fork_of(self, other: Self) -> bool {
        self.height == other.height && self.hash != other.hash
    }
}

impl Forks {
    /// Takes the rows of a page that are returned.
    pub fn on_page(&mut self, response: &Response<'_>, rows: &[usize]) {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return };
        if let Some(latest) = self.latest
            && let Some(block) = Block::of(response, *first)
            && block.is_fork_of(latest)
            && !has_both_sides(response)
        {
            self.mixed.get_or_insert(block.height);
        }
        self.latest = Block::of(response, *last);
        self.check_heights(response, rows);
    }

    /// Notes the height of each block, by the first row of those that follow each other with one height.
    fn check_heights(&mut self, response: &Response<'_>, rows: &[usize]) {
        let mut latest = None;
        let mut blocks = Vec::new();
        for row in rows {
            let height = response.rows.height(*row);
            if height.is_some() && height != latest {
                latest = height;
                blocks.extend(Block::of(response, *row));
            }
        }
        // With nothing between the look-ups, the processor waits for several of them at once.
        for block in blocks {
            if self.heights.len() == KEPT {
                self.heights.clear();
            }
            let known = *self.heights.entry(block.hash).or_insert(block.height);
            if known != block.height {
                self.contradictory.get_or_insert((known, block.height));
            }
        }
    }

    /// Why the height of a record is not certain. A hash that all records have identifies no block.
    pub fn doubtful_height(&self) -> Option<Message> {
        let (height, other) = self.contradictory.filter(|_| self.heights.len() > 1)?;
        Some(two_heights(height, other))
    }

    pub fn reason(&self) -> Option<Message> {
        let height = self.mixed?;
        let reason =
            format!("Records of height {height} are of two blocks: the chain was reorganized between two pages");
        Some(Message::new(reason).hint(Hint::RunAgain))
    }
}

/// The reason of a block with two heights.
pub(super) fn two_heights(height: i64, other: i64) -> Message {
    format!("Records of one block hash have two heights, {height} and {other}: the API returned a wrong one.").into()
}

/// True if the service lists the records of both sides of a fork: a response is of one moment.
fn has_both_sides(response: &Response<'_>) -> bool {
    (1..response.rows.len()).any(|row| {
        Block::of(response, row - 1)
            .zip(Block::of(response, row))
            .is_some_and(|(before, block)| block.is_fork_of(before))
    })
}
