//! Records of a result that was kept, which the service lacks. A reorganization replaces all blocks from some height on:
//! below a block that is still there, all records still have to be there.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use super::is_provisional;
use crate::message::{Hint, Message, counted};
use crate::query::request::{ShownRecord, ShownRecords};
use crate::query::results::{Records, record_keys};
use crate::query::snapshot::Rows;

/// Records that were kept of a result, and not served.
pub(super) struct Contradicted {
    pub records: Records,
    /// The highest height that was settled when they were kept.
    pub settled: Option<i64>,
}

impl Contradicted {
    /// Number of records that were settled.
    pub fn num_settled(&self) -> usize {
        let Some(settled) = self.settled else { return 0 };
        let rows = self.records.with_heights();
        let settled = rows.filter(|(_, _, height)| height.is_some_and(|height| height <= settled));
        settled.filter(|(chunk, row, _)| !is_provisional(chunk, *row)).count()
    }

    /// Number of records that a result lacks below a block that it shows.
    /// `drops_old` is true if records below the lowest height that is shown may have become too old for the API.
    pub fn num_missing(&self, read: &Records, drops_old: bool) -> usize {
        let mut shown = HashSet::new();
        for chunk in read.chunks() {
            shown.extend((0..chunk.rows()).filter_map(|row| Rows::block(chunk, row)));
        }
        let is_shown = |chunk, row| Rows::block(chunk, row).is_some_and(|block| shown.contains(&block));
        let same = self.records.with_heights().filter(|(chunk, row, _)| is_shown(*chunk, *row));
        let Some(same) = same.filter_map(|(_, _, height)| height).max() else { return 0 };
        let lowest = read.heights().flatten().min().filter(|_| drops_old).unwrap_or(i64::MIN);
        let records: HashSet<u64> = read.chunks().iter().flat_map(record_keys).collect();
        let keys = self.records.chunks().iter().flat_map(record_keys);
        let missing = self.records.with_heights().zip(keys).filter(|((chunk, row, height), key)| {
            let is_due = height.is_some_and(|height| lowest <= height && height <= same);
            is_due && !is_provisional(chunk, *row) && !records.contains(key)
        });
        missing.count()
    }
}

/// True if records lack one that was shown of these heights, of which they are all. Another block of the height may have
/// replaced the one that was shown.
pub(super) fn lacks_shown(records: &Records, shown: &ShownRecords, range: RangeInclusive<i64>) -> bool {
    let shown: Vec<(i64, ShownRecord)> = shown.between(range).collect();
    let has = at_heights(records, &shown);
    shown.iter().any(|(height, record)| {
        let of_height = &has[height];
        let is_same_block = of_height.is_empty() || of_height.iter().any(|other| other.block == record.block);
        is_same_block && of_height.iter().all(|other| other.key != record.key)
    })
}

/// True if a record of another block was shown of one of these heights.
pub(super) fn has_other_block(records: &Records, shown: &ShownRecords, range: RangeInclusive<i64>) -> bool {
    let shown: Vec<(i64, ShownRecord)> = shown.between(range).filter(|(_, record)| record.block.is_some()).collect();
    let has = at_heights(records, &shown);
    shown.iter().any(|(height, record)| {
        let mut blocks = has[height].iter().filter_map(|other| other.block).peekable();
        blocks.peek().is_some() && blocks.all(|block| Some(block) != record.block)
    })
}

/// The records of the heights that were shown.
fn at_heights(records: &Records, shown: &[(i64, ShownRecord)]) -> HashMap<i64, Vec<ShownRecord>> {
    let mut has: HashMap<i64, Vec<ShownRecord>> = shown.iter().map(|(height, _)| (*height, Vec::new())).collect();
    for (chunk, row, height) in records.with_heights() {
        if let Some(of_height) = height.and_then(|height| has.get_mut(&height)) {
            of_height.push(ShownRecord { key: chunk.key(row), block: Rows::block(chunk, row) });
        }
    }
    has
}

/// The reason of a result that lacks records.
pub(super) fn reason(missing: usize) -> Message {
    let records = counted(missing as u64, "record");
    let reason = format!(
        "The cache had {records} of this result that the API does not return any more, although it shows no reorganization: a \
         part of the service may lack them"
    );
    Message::new(reason).hint(Hint::RunAgain)
}
