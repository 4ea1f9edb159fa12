//! `Unique`: which records of a set another of its lists has returned. Only the keys of records that a list may still
//! return again are kept: a record shows the values whose lists have it.

use std::collections::HashMap;

use crate::columns::Columns;
use crate::query::results::{KeyedRows, SeenLog, SeenRecord};
use crate::query::snapshot::Rows as _;

/// Entries that are kept before those of ended lists are removed for the first time.
const PRUNED_AT: usize = 4_096;

pub(super) struct Unique {
    /// List that returned a record, by the record's key.
    returned_by: HashMap<u64, u32>,
    log: SeenLog,
    prune_at: usize,
}

impl Unique {
    pub fn new(earlier: Vec<SeenRecord>) -> Self {
        Self {
            returned_by: earlier.iter().map(|seen| (seen.key, seen.returned_by)).collect(),
            log: SeenLog::new(earlier),
            prune_at: PRUNED_AT,
        }
    }

    /// Records so far that another list may return.
    pub fn log(&self) -> SeenLog {
        self.log.clone()
    }

    /// Rows of a page of the list `index` that no other list has returned; `None` if these are all rows. Rows with equal
    /// keys in one list are several records. `others` are the other lists that may have the record of each row.
    pub fn fresh(
        &mut self,
        index: usize,
        page: &Columns,
        others: &[Vec<u32>],
        has_ended: impl Fn(usize) -> bool,
    ) -> Option<Vec<u32>> {
        let this = index as u32;
        let keyed = KeyedRows::new(page);
        let mut kept = Vec::new();
        for (row, others) in others.iter().enumerate() {
            if others.is_empty() {
                kept.push(row as u32);
                continue;
            }
            let key = keyed.key(row);
            let by = self.returned_by.get(&key).copied();
            if by.is_some_and(|by| by != this) {
                continue;
            }
            kept.push(row as u32);
            let seen = others.iter().map(|other| SeenRecord { key, returned_by: this, other: *other });
            let open: Vec<SeenRecord> = seen.filter(|seen| seen.is_open(&has_ended)).collect();
            if by.is_none() && !open.is_empty() {
                self.returned_by.insert(key, this);
                open.into_iter().for_each(|seen| self.log.push(seen));
            }
        }
        self.prune(has_ended);
        (kept.len() < page.rows()).then_some(kept)
    }

    /// Removes the entries of lists that have ended, once there are twice as many entries as were left the last time.
    fn prune(&mut self, has_ended: impl Fn(usize) -> bool) {
        if self.log.len() < self.prune_at {
            return;
        }
        let mut left = self.log.to_vec();
        left.retain(|seen| seen.is_open(&has_ended));
        self.returned_by = left.iter().map(|seen| (seen.key, seen.returned_by)).collect();
        self.prune_at = PRUNED_AT.max(2 * left.len());
        self.log = SeenLog::new(left);
    }
}
