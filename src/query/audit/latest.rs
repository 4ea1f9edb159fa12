//! `Latest`: the keys of the latest records of a list. A cursor has them: a run that continues there knows by them which
//! records were returned.

use std::ops::Range;

use crate::query::snapshot::Rows;

/// Keys that are always kept, if there are as many.
const MIN: usize = 8;
/// Most keys that are kept. A cursor stays a few kilobytes long.
const MAX: usize = 256;

/// Records that are equal, or in another order in another response, are of one height: all keys of the last height are
/// kept, as far as there is room.
#[derive(Clone, Debug, Default)]
pub struct Latest {
    keys: Vec<u64>,
    height: Option<i64>,
    /// Number of the latest records that are of this height.
    of_height: usize,
}

impl Latest {
    /// The latest keys of an earlier run. All of them may be of the height of the record that follows.
    pub fn of_earlier_run(keys: &[u64]) -> Self {
        Self { keys: keys.to_vec(), height: None, of_height: keys.len() }
    }

    pub fn push(&mut self, rows: &dyn Rows, range: Range<usize>) {
        for row in range {
            let height = rows.height(row);
            let is_of_height = height.is_some() && (self.height.is_none() || self.height == height);
            self.height = height;
            self.of_height = if is_of_height { self.of_height + 1 } else { 1 };
            self.keys.push(rows.key(row));
        }
        let kept = self.of_height.clamp(MIN, MAX);
        self.keys.drain(..self.keys.len().saturating_sub(kept));
    }

    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Height of the latest record, if this run received it.
    pub fn height(&self) -> Option<i64> {
        self.height
    }

    /// A few of the latest keys.
    pub fn few(&self) -> &[u64] {
        &self.keys[self.keys.len().saturating_sub(MIN)..]
    }

    /// The keys of one of several lists whose position is one cursor. Fewer than `MIN` keys say that others of the last height
    /// were returned.
    pub fn of_one_list(mut keys: Vec<u64>, lists: usize) -> Vec<u64> {
        let room = (MAX / lists).max(MIN);
        if keys.len() > room {
            keys.drain(..keys.len() - (MIN - 1));
        }
        keys
    }

    /// True if the keys of an earlier run, which ended before `offset`, have all records of the last height.
    pub fn has_all_of_height(&self, offset: u64) -> bool {
        self.keys.len() as u64 == offset || (MIN..MAX).contains(&self.keys.len())
    }
}
