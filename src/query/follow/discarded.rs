//! `Discarded`: the records of rounds that were discarded. A part of the service that lacks some of them may answer the next
//! round, so that this round agrees with itself.

use std::collections::{HashSet, VecDeque};
use std::ops::RangeInclusive;

use super::fingerprint::RowFacts;

/// Latest rounds that are kept.
const KEPT: usize = 3;

/// A record, by its height, key and block.
type Id = (i64, u64, u64);

#[derive(Clone, Debug, Default)]
pub struct Discarded {
    rounds: VecDeque<HashSet<Id>>,
}

/// The records of blocks.
fn ids(rows: &[RowFacts]) -> HashSet<Id> {
    let rows = rows.iter().filter(|row| row.block != 0);
    rows.filter_map(|row| Some((row.height?, row.key, row.block))).collect()
}

impl Discarded {
    /// Takes the records of a round that is discarded.
    pub fn add(&mut self, rows: &[RowFacts]) {
        if !rows.is_empty() {
            self.rounds.push_back(ids(rows));
        }
        if self.rounds.len() > KEPT {
            self.rounds.pop_front();
        }
    }

    /// The first and the last one of these heights of which a round lacks records that another one had. Both have a record of
    /// a block above them, so that they are of one chain up to there.
    pub fn lacking(&self, rows: &[RowFacts], heights: &RangeInclusive<i64>) -> Option<(i64, i64)> {
        if self.rounds.is_empty() {
            return None;
        }
        let round = ids(rows);
        self.rounds.iter().find_map(|discarded| {
            let joint = discarded.intersection(&round).map(|record| record.0).max()?;
            let missing = discarded.difference(&round).map(|record| record.0);
            let missing: Vec<i64> = missing.filter(|height| *height < joint && heights.contains(height)).collect();
            Some((*missing.iter().min()?, *missing.iter().max()?))
        })
    }
}
