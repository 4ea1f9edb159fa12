//! `Forks`: the records of one height, on one page or at the end of a page and at the beginning of the next one. They are of one
//! block, unless the chain was reorganized between the two responses, or the service lists a block that was replaced as well.
//! A block has one height, wherever its records are, and so has a transaction. In a list whose records do not show their blocks,
//! a height takes the place of its block.

use crate::message::{Hint, Message};
use crate::query::hashed::{HashedMap, first_value};
use crate::query::snapshot::{Response, Rows};

/// Blocks, or transactions, that are kept for comparison. A table of 2^14 slots, a quarter of a megabyte, takes as many before
/// it doubles.
pub(super) const KEPT_BLOCKS: usize = 7 << 11;

#[derive(Clone, Debug, Default)]
pub struct Forks {
    /// True if records show their blocks.
    has_blocks: bool,
    /// Heights of the blocks, by their hashes.
    heights: HashedMap<i64>,
    /// Heights of the transactions, by their hashes.
    transactions: HashedMap<i64>,
    /// Two heights of one block.
    contradictory: Option<(i64, i64)>,
    /// Two heights of one transaction.
    moved: Option<(i64, i64)>,
    /// Block of the latest returned record.
    latest: Option<BlockOfRow>,
    /// Block of the record that an earlier run returned last.
    earlier: Option<BlockOfRow>,
    mixed: Option<Mixed>,
}

/// A height of which records of two blocks were returned.
#[derive(Clone, Copy, Debug)]
enum Mixed {
    /// Each of two pages has one of the blocks.
    Pages(i64),
    /// One page has both.
    OnePage(i64),
}

/// The block of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BlockOfRow {
    pub height: i64,
    pub hash: u64,
}

impl BlockOfRow {
    fn is_fork_of(self, other: Self) -> bool {
        self.height == other.height && self.hash != other.hash
    }
}

impl Forks {
    pub fn new(has_blocks: bool) -> Self {
        Self { has_blocks, ..Self::default() }
    }

    /// Takes the block of the record that an earlier run returned last.
    pub fn set_latest(&mut self, height: i64, hash: u64) {
        self.latest = Some(BlockOfRow { height, hash });
        self.earlier = self.latest;
        self.heights.insert(hash, height);
    }

    /// Key of the record below those of the height of the last record of an earlier run, in a response that shows another block
    /// there.
    pub fn below_replaced(&self, rows: &dyn Rows) -> Option<u64> {
        let earlier = self.earlier.filter(|_| self.has_blocks)?;
        let at = |row: &usize| rows.height(*row) == Some(earlier.height);
        let last = (0..rows.len()).rfind(at)?;
        let is_replaced = (0..=last).filter(at).all(|row| rows.block(row).is_some_and(|hash| hash != earlier.hash));
        (is_replaced && last + 1 < rows.len()).then(|| rows.key(last + 1))
    }

    /// The greatest height that is known of this record and those above it: an earlier run may have returned some.
    pub fn highest(&self, height: i64) -> i64 {
        self.earlier.map_or(height, |earlier| earlier.height.max(height))
    }

    pub fn block_of(&self, rows: &dyn Rows, row: usize) -> Option<BlockOfRow> {
        let height = rows.height(row)?;
        let hash = if self.has_blocks { rows.block(row)? } else { height.cast_unsigned() };
        Some(BlockOfRow { height, hash })
    }

    /// True if returned records are of this block.
    pub fn have(&self, block: BlockOfRow) -> bool {
        self.have_hash(block.hash)
    }

    pub fn have_hash(&self, hash: u64) -> bool {
        self.heights.contains_key(&hash)
    }

    /// Takes the rows of a page that are returned.
    pub fn on_page(&mut self, response: &Response<'_>, rows: &[usize]) {
        let blocks: Vec<Option<BlockOfRow>> = rows.iter().map(|row| self.block_of(response.rows, *row)).collect();
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return };
        if let Some(fork) = fork_in(&blocks) {
            self.mixed.get_or_insert(Mixed::OnePage(fork.height));
        } else if let Some(fork) = fork_in(&[self.latest, *first]) {
            self.mixed.get_or_insert(Mixed::Pages(fork.height));
        }
        self.latest = *last;
        self.check_heights(&blocks);
    }

    /// Takes the transactions of returned rows. Fails if one has two heights and records do not show their blocks: nothing else
    /// tells then that the chain was reorganized while the list was read.
    pub fn check_transactions(&mut self, rows: &dyn Rows, returned: &[usize]) -> Result<(), String> {
        let mut latest = None;
        for row in returned {
            let Some(transaction) = rows.transaction(*row).zip(rows.height(*row)) else { continue };
            if latest.replace(transaction) != Some(transaction) {
                self.check_transaction(transaction)?;
            }
        }
        Ok(())
    }

    fn check_transaction(&mut self, (transaction, height): (u64, i64)) -> Result<(), String> {
        let known = first_value(&mut self.transactions, KEPT_BLOCKS, transaction, height);
        if known == height {
            return Ok(());
        }
        if !self.has_blocks {
            return Err("a transaction was received at two heights".into());
        }
        self.moved.get_or_insert((known, height));
        Ok(())
    }

    /// Notes the height of each block, by the first row of those that follow each other with one height.
    fn check_heights(&mut self, blocks: &[Option<BlockOfRow>]) {
        let blocks: Vec<BlockOfRow> = blocks.iter().flatten().copied().collect();
        for of_height in blocks.chunk_by(|before, block| before.height == block.height) {
            let BlockOfRow { height, hash } = of_height[0];
            let known = first_value(&mut self.heights, KEPT_BLOCKS, hash, height);
            if known != height {
                self.contradictory.get_or_insert((known, height));
            }
        }
    }

    /// Why the height of a record is not certain. A hash that all records have identifies no block.
    pub fn doubtful_height(&self) -> Option<Message> {
        let (height, other) = self.contradictory.filter(|_| self.heights.len() > 1)?;
        Some(two_heights(height, other))
    }

    /// The reason of a transaction with two heights. A hash that all records have identifies none.
    pub fn moved_transaction(&self) -> Option<Message> {
        let (height, other) = self.moved.filter(|_| self.transactions.len() > 1)?;
        Some(moved_transaction(height, other))
    }

    pub fn reason(&self) -> Option<Message> {
        let reason = match self.mixed? {
            Mixed::Pages(height) => {
                format!("Records of height {height} are of two blocks: the chain was reorganized between two pages")
            }
            Mixed::OnePage(height) => format!(
                "Records of height {height} are of two blocks: a response lists a block that was replaced as well, or \
                 a wrong block hash"
            ),
        };
        Some(Message::new(reason).hint(Hint::RunAgain))
    }
}

/// The first block after another one of its height.
fn fork_in(blocks: &[Option<BlockOfRow>]) -> Option<BlockOfRow> {
    let mut pairs = blocks.windows(2).filter_map(|pair| pair[0].zip(pair[1]));
    pairs.find(|(before, block)| block.is_fork_of(*before)).map(|(_, block)| block)
}

/// The reason of a block with two heights.
pub(super) fn two_heights(height: i64, other: i64) -> Message {
    format!("Records of one block hash have two heights, {height} and {other}: the API returned a wrong one").into()
}

/// The reason of a transaction with two heights.
pub(super) fn moved_transaction(height: i64, other: i64) -> Message {
    let (lower, higher) = (height.min(other), height.max(other));
    let reason = format!(
        "A transaction is in two blocks, of the heights {lower} and {higher}: the chain was reorganized between two \
         responses, or a part of the service has another block"
    );
    Message::new(reason).hint(Hint::RunAgain)
}
