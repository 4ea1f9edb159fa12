//! `Blocks`: the blocks of records that come from several lists or look-ups, and so in responses of several moments. A
//! height has one block, a block has one height, and a transaction is in one block: otherwise the records are not of one chain.

use std::collections::VecDeque;

use super::forks::{KEPT_BLOCKS, moved_transaction, two_heights};
use crate::message::{Hint, Message};
use crate::query::hashed::{HashedMap, first_value};
use crate::query::snapshot::Rows;

/// Transactions that are kept for comparison. They take about a megabyte.
const KEPT_TRANSACTIONS: usize = 7 << 12;
/// Blocks that a cursor has.
const LATEST: usize = 8;

/// The origin of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Lookup,
    /// A list by its index. Its own audit compares its records with each other.
    List(u64),
    /// A run that this one continues.
    EarlierRun,
}

#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// Block and source of each height.
    at_heights: HashedMap<(u64, Source)>,
    /// Height and source of each block.
    heights: HashedMap<(i64, Source)>,
    /// Height and source of each transaction.
    transactions: HashedMap<(i64, Source)>,
    /// The latest heights and their blocks, for a run that continues this one.
    latest: VecDeque<(i64, u64)>,
    /// The lowest and the highest height.
    ends: Option<(i64, i64)>,
    /// A height with two blocks, and the source of the second one.
    mixed: Option<(i64, Source)>,
    /// Two heights of one block, and the source of the second one.
    contradictory: Option<(i64, i64, Source)>,
    /// Two heights of one transaction, and the source of the second one.
    moved: Option<(i64, i64, Source)>,
}

impl Blocks {
    /// Takes returned records, by the first of those that follow each other in one block.
    pub fn add(&mut self, source: Source, rows: &dyn Rows) {
        let mut latest = None;
        for row in 0..rows.len() {
            let Some(height) = rows.height(row) else { continue };
            let (lowest, highest) = self.ends.unwrap_or((height, height));
            self.ends = Some((lowest.min(height), highest.max(height)));
            if let Some(transaction) = rows.transaction(row) {
                self.add_transaction(source, transaction, height);
            }
            let Some(block) = rows.block(row) else { continue };
            if latest.replace((height, block)) != Some((height, block)) {
                self.add_block(source, height, block);
            }
        }
    }

    fn add_transaction(&mut self, source: Source, transaction: u64, height: i64) {
        let (known, by) = first_value(&mut self.transactions, KEPT_TRANSACTIONS, transaction, (height, source));
        if known != height && are_compared(by, source) {
            self.moved.get_or_insert((known, height, source));
        }
    }

    pub fn add_block(&mut self, source: Source, height: i64, block: u64) {
        if !self.latest.contains(&(height, block)) {
            self.latest.truncate(LATEST - 1);
            self.latest.push_front((height, block));
        }
        let (known, by) = first_value(&mut self.at_heights, KEPT_BLOCKS, height.cast_unsigned(), (block, source));
        if known != block && are_compared(by, source) {
            self.mixed.get_or_insert((height, source));
        }
        let (known, by) = first_value(&mut self.heights, KEPT_BLOCKS, block, (height, source));
        if known != height && are_compared(by, source) {
            self.contradictory.get_or_insert((known, height, source));
        }
    }

    /// Forgets the records of a list that is read again.
    pub fn forget(&mut self, source: Source) {
        self.at_heights.retain(|_, (_, by)| *by != source);
        self.heights.retain(|_, (_, by)| *by != source);
        self.transactions.retain(|_, (_, by)| *by != source);
        self.mixed = self.mixed.filter(|(_, by)| *by != source);
        self.contradictory = self.contradictory.filter(|(_, _, by)| *by != source);
        self.moved = self.moved.filter(|(_, _, by)| *by != source);
    }

    /// The latest heights and their blocks.
    pub fn latest(&self) -> Vec<(i64, u64)> {
        self.latest.iter().copied().collect()
    }

    /// The lowest and the highest height.
    pub fn ends(&self) -> Option<(i64, i64)> {
        self.ends
    }

    /// Takes the lowest and the highest height of an earlier run.
    pub fn set_ends(&mut self, ends: Option<(i64, i64)>) {
        self.ends = ends;
    }

    /// True if there are records of heights below and above.
    pub fn have_both_sides_of(&self, height: i64) -> bool {
        self.ends.is_some_and(|(lowest, highest)| lowest < height && height < highest)
    }

    /// Why the records are not of one chain.
    pub fn reasons(&self) -> Vec<Message> {
        let mut reasons = Vec::new();
        if let Some((height, _)) = self.mixed {
            let reason = format!(
                "Records of height {height} are of two blocks: the chain was reorganized between two responses, or a part of \
                 the service has another block"
            );
            reasons.push(Message::new(reason).hint(Hint::RunAgain));
        }
        // A hash that all records have identifies no block.
        if let Some((height, other, _)) = self.contradictory.filter(|_| self.heights.len() > 1) {
            reasons.push(two_heights(height, other));
        }
        // Nor does one that all records have identify a transaction.
        if let Some((height, other, _)) = self.moved.filter(|_| self.transactions.len() > 1) {
            reasons.push(moved_transaction(height, other));
        }
        reasons
    }
}

/// False of two records of one list.
fn are_compared(source: Source, other: Source) -> bool {
    source != other || source == Source::Lookup
}
