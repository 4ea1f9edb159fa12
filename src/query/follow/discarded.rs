//! `Responses` of a round, and of the rounds that were discarded before it. A part of the service that lacks records may answer all
//! requests of the next round, so that this round agrees with itself.
//!
//! Each response is of one moment. If a round has the block of one of its records, both are of one chain from there down, and
//! the round has all records below it, unless the list has lost some. A reorganization replaces the blocks above as well, but
//! none that was settled when the response came. A round that lacks a record of its own responses is of several moments.

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

/// A response and the height up to which its blocks were settled.
#[derive(Clone, Debug)]
struct Response {
    shown: Shown,
    settled: i64,
}

/// Records that a round lacks and a response had.
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
    latest: VecDeque<Response>,
    /// Number of their records.
    rows: usize,
}

/// A record of a block, by height and key.
type RecordId = (i64, u64);
/// A block, by height and hash.
type BlockId = (i64, u64);

fn id(row: &RowFacts) -> Option<RecordId> {
    Some((row.height?, row.key))
}

fn block(row: &RowFacts) -> Option<BlockId> {
    row.height.filter(|_| row.chain != 0).map(|height| (height, row.chain))
}

/// Records of a round.
struct RoundRecords {
    ids: HashSet<RecordId>,
    blocks: HashSet<BlockId>,
}

impl Shown {
    /// Blocks whose first record is shown, each with the number of records from that one on.
    fn counts(&self) -> Vec<(BlockId, RangeInclusive<u64>)> {
        let Some(count) = &self.count else { return Vec::new() };
        let counts = self.rows.iter().enumerate().filter_map(|(at, row)| {
            let above = at.checked_sub(1).map(|above| self.rows[above].height);
            let begins = above.map_or(self.is_first, |above| above > row.height);
            let before = at as u64;
            begins.then_some((block(row)?, count.start().saturating_sub(before)..=count.end().saturating_sub(before)))
        });
        counts.collect()
    }

    fn heights(&self) -> impl Iterator<Item = i64> {
        self.rows.iter().filter_map(|row| row.height)
    }

    /// The greatest height up to `high` of a record that a round lacks.
    fn missing(&self, round: &RoundRecords, complete: &RangeInclusive<i64>, high: i64) -> Option<i64> {
        let ids = self.rows.iter().filter_map(id).filter(|(height, _)| *height <= high && complete.contains(height));
        ids.filter(|id| !round.ids.contains(id)).map(|(height, _)| height).max()
    }
}

impl Response {
    /// The greatest height of a record that a later round lacks, although no reorganization removed it.
    fn missing(&self, round: &RoundRecords, complete: &RangeInclusive<i64>) -> Option<i64> {
        let blocks = self.shown.rows.iter().filter_map(block);
        let joint = blocks.filter(|block| round.blocks.contains(block)).map(|(height, _)| height).max();
        let joint = joint.unwrap_or(i64::MIN);
        let of_chain = self.shown.missing(round, complete, joint);
        of_chain.or_else(|| {
            self.shown.missing(round, complete, self.settled)?;
            self.shown.missing(round, complete, self.settled_to(round, joint))
        })
    }

    /// The settled height, or the one below a block that was replaced above `joint` all the same.
    fn settled_to(&self, round: &RoundRecords, joint: i64) -> i64 {
        let own: HashSet<BlockId> = self.shown.rows.iter().filter_map(block).collect();
        let above = self.shown.heights().min().unwrap_or(i64::MAX).max(joint.saturating_add(1));
        let others = round.blocks.iter().filter(|block| block.0 >= above && !own.contains(block));
        others.map(|(height, _)| height - 1).fold(self.settled, i64::min)
    }
}

impl Responses {
    /// Adds responses of a time when the chain had at least the height `head`.
    pub fn add(&mut self, responses: Vec<Shown>, head: i64, settle: i64) {
        for shown in responses {
            let settled = shown.heights().fold(head, i64::max).saturating_sub(settle.max(1));
            self.push(Response { shown, settled });
        }
    }

    /// Takes the responses of another round.
    pub fn append(&mut self, other: &mut Self) {
        std::mem::take(other).latest.into_iter().for_each(|response| self.push(response));
    }

    fn push(&mut self, response: Response) {
        match self.latest.iter_mut().find(|known| known.shown == response.shown) {
            Some(known) => known.settled = known.settled.max(response.settled),
            None => {
                self.rows += response.shown.rows.len();
                self.latest.push_back(response);
            }
        }
        while self.rows > KEPT
            && let Some(oldest) = self.latest.pop_front()
        {
            self.rows -= oldest.shown.rows.len();
        }
    }

    /// Returns the greatest height of a record, of a settled one unless `unsettled` is true.
    pub fn highest(&self, unsettled: bool) -> Option<i64> {
        let heights = self.latest.iter().flat_map(|response| {
            response.shown.heights().filter(move |height| unsettled || *height <= response.settled)
        });
        heights.max()
    }

    /// Returns what a round lacks of these responses, or of its own: `rows` are all its records of the heights `complete`,
    /// from the responses `round`.
    pub fn lacking(&self, rows: &[RowFacts], complete: &RangeInclusive<i64>, round: &Self) -> Option<Lacking> {
        let records =
            RoundRecords { ids: rows.iter().filter_map(id).collect(), blocks: rows.iter().filter_map(block).collect() };
        let own = round.latest.iter().find_map(|of| of.shown.missing(&records, complete, i64::MAX));
        let missing = own.or_else(|| self.latest.iter().find_map(|earlier| earlier.missing(&records, complete)));
        missing.map(Lacking::Record).or_else(|| self.fewer_than_counted(round).map(Lacking::Count))
    }

    /// The height of a block from which on a response of a round counts fewer records than a discarded one.
    fn fewer_than_counted(&self, round: &Self) -> Option<i64> {
        let mut min_counts: HashMap<BlockId, u64> = HashMap::new();
        for (block, count) in self.latest.iter().flat_map(|response| response.shown.counts()) {
            let known = min_counts.entry(block).or_default();
            *known = (*known).max(*count.start());
        }
        let mut counts = round.latest.iter().flat_map(|response| response.shown.counts());
        let fewer =
            counts.find(|(block, count)| min_counts.get(block).is_some_and(|min_count| min_count > count.end()));
        fewer.map(|((height, _), _)| height)
    }
}
