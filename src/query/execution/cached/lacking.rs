//! Records of a result that was kept, which the service lacks. A reorganization replaces all blocks from some height on: below a block that
//! is still there, all records still have to be there.

use std::collections::HashSet;

use super::heights;
use crate::columns::Columns;
use crate::query::results::{Records, record_keys};

/// A reason, if a result lacks records that were kept below a block that it shows, or has none of those that were kept.
/// `drops_old` is true if records below the lowest height that is shown may have become too old for the API.
pub(super) fn reason(read: &Records, kept: &Records, drops_old: bool) -> Option<String> {
    let missing = missing(read, kept, drops_old);
    if missing == 0 {
        return None;
    }
    let records = if missing == 1 { "1 record".to_owned() } else { format!("{missing} records") };
    Some(format!(
        "The cache had {records} of this result that the API does not return any more, although it shows no reorganization: a \
         part of the service may lack them. Run the query again."
    ))
}

fn missing(read: &Records, kept: &Records, drops_old: bool) -> usize {
    if read.is_empty() {
        return if drops_old { 0 } else { kept.len() };
    }
    let shown: HashSet<String> = read.chunks().iter().flat_map(blocks).flatten().collect();
    let mut same = None;
    for chunk in kept.chunks() {
        for (height, block) in heights(chunk).zip(blocks(chunk)) {
            if block.is_some_and(|block| shown.contains(&block)) {
                same = same.max(height);
            }
        }
    }
    let Some(same) = same else { return 0 };
    let lowest = read.chunks().iter().flat_map(heights).flatten().min().filter(|_| drops_old).unwrap_or(i64::MIN);
    let records: HashSet<u64> = read.chunks().iter().flat_map(record_keys).collect();
    let mut missing = 0;
    for chunk in kept.chunks() {
        for (height, key) in heights(chunk).zip(record_keys(chunk)) {
            let is_due = height.is_some_and(|height| lowest <= height && height <= same);
            missing += usize::from(is_due && !records.contains(&key));
        }
    }
    missing
}

/// Hashes of the blocks of the rows.
fn blocks(columns: &Columns) -> Vec<Option<String>> {
    let column = columns.record().block();
    let texts = (0..columns.rows()).map(|row| columns.text(column?, row));
    texts.map(|text| text.filter(|text| !text.is_empty()).map(str::to_ascii_lowercase)).collect()
}
