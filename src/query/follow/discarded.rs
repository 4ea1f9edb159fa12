//! `Responses` of a round, and of the rounds that were discarded before it. A part of the service that lacks records may answer all
//! requests of the next round, so that this round agrees with itself.
//!
//! Each response is of one moment. If a round has the block of one of its records, both are of one chain from there down, and
//! the round has all records below it, unless the list has lost some. A reorganization replaces the blocks above as well.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::RangeInclusive;

use super::fingerprint::RowFacts;

/// The latest records of responses are kept: those of several rounds of as many as one may hold by default.
const KEPT: usize = 1 << 16;

/// One response to a request for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub rows: Vec<RowFacts>,
    /// True if the list begins with these rows.
    pub is_first: bool,
    /// Number of records of the list from the first row on, as far as the response says.
    pub count: Option<RangeInclusive<u64>>,
}

/// Records that a round lacks and a discarded one had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// A record of this height.
    Record(i64),
    /// Some of the records up to this height.
    Count(i64),
}

/// The latest responses of one round or of several.
#[derive(Clone, Debug, Default)]
pub struct Responses {
    latest: VecDeque<Shown>,
    /// Number of their records.
    rows: usize,
}

/// A record of a block, by height and key.
type Id = (i64, u64);
/// A block, by height and hash.
type Block = (i64, u64);

fn id(row: &RowFacts) -> Option<Id> {
    Some((row.height?, row.key))
}

fn block(row: &RowFacts) -> Option<Block> {
    row.height.filter(|_| row.chain != 0).map(|height| (height, row.chain))
}

/// Records of a round.
struct Records {
    ids: HashSet<Id>,
    blocks: HashSet<Block>,
}

impl Shown {
    /// Blocks whose first record is shown, each with the number of records from that one on.
    fn counts(&self) -> Vec<(Block, RangeInclusive<u64>)> {
        let Some(count) = &self.count else { return Vec::new() };
        let counts = self.rows.iter().enumerate().filter_map(|(at, row)| {
            let above = at.checked_sub(1).map(|above| self.rows[above].height);
            let begins = above.map_or(self.is_first, |above| above > row.height);
            let before = at as u64;
            begins.then_some((block(row)?, count.start().saturating_sub(before)..=count.end().saturating_sub(before)))
        });
        counts.collect()
    }

    /// The greatest height of a record that a round lacks, in a block of its chain. Where records do not show their blocks, those
    /// of one round are compared by themselves: the round is repeated if the chain was reorganized meanwhile.
    fn missing(&self, round: &Records, complete: &RangeInclusive<i64>, is_of_round: bool) -> Option<i64> {
        let is_of_chain = |row: &&RowFacts| match block(row) {
            Some(block) => round.blocks.contains(&block),
            None => is_of_round && id(row).is_some_and(|id| round.ids.contains(&id)),
        };
        let joint = self.rows.iter().filter(is_of_chain).filter_map(|row| row.height).max()?;
        let of_chain = self.rows.iter().filter_map(id).filter(|(height, _)| *height <= joint);
        let missing = of_chain.filter(|id| complete.contains(&id.0) && !round.ids.contains(id));
        missing.map(|(height, _)| height).max()
    }
}

impl Responses {
    pub fn add(&mut self, responses: Vec<Shown>) {
        for shown in responses {
            if !self.latest.contains(&shown) {
                self.rows += shown.rows.len();
                self.latest.push_back(shown);
            }
        }
        while self.rows > KEPT
            && let Some(oldest) = self.latest.pop_front()
        {
            self.rows -= oldest.rows.len();
        }
    }

    pub fn take(&mut self) -> Vec<Shown> {
        std::mem::take(self).latest.into()
    }

    /// Returns what a round lacks of these responses, or of its own: `rows` are all its records of the heights `complete`,
    /// from the responses `round`.
    pub fn lacking(&self, rows: &[RowFacts], complete: &RangeInclusive<i64>, round: &Self) -> Option<Lacking> {
        let records =
            Records { ids: rows.iter().filter_map(id).collect(), blocks: rows.iter().filter_map(block).collect() };
        let own = round.latest.iter().find_map(|shown| shown.missing(&records, complete, true));
        let missing = own.or_else(|| self.latest.iter().find_map(|shown| shown.missing(&records, complete, false)));
        missing.map(Lacking::Record).or_else(|| self.fewer_than_counted(round).map(Lacking::Count))
    }

    /// The height of a block from which on a response of a round counts fewer records than a discarded one.
    fn fewer_than_counted(&self, round: &Self) -> Option<i64> {
        let mut least: HashMap<Block, u64> = HashMap::new();
        for (block, count) in self.latest.iter().flat_map(Shown::counts) {
            let known = least.entry(block).or_default();
            *known = (*known).max(*count.start());
        }
        let mut counts = round.latest.iter().flat_map(Shown::counts);
        let fewer = counts.find(|(block, count)| least.get(block).is_some_and(|least| least > count.end()));
        fewer.map(|((height, _), _)| height)
    }
}
