//! `Lookups`: the records of look-ups of one hash each that a run has received, also those that it has not returned yet. Another
//! run that continues it compares its own responses with them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::keys::key_of_all;
use crate::columns::Columns;
use crate::query::snapshot::Rows;

/// Look-ups that are kept, and those of a cursor: more than are in flight together.
const KEPT: u64 = 64;

/// The records of one look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// Slice of the look-up.
    slice: u64,
    /// Common key of its records.
    key: u64,
    /// Block of the first of them.
    block: Option<u64>,
}

impl Lookup {
    fn of(slice: u64, rows: &Columns) -> Self {
        Self { slice, key: key_of_all(rows), block: Rows::block(rows, 0) }
    }

    /// True if a later response lacks some of these records, or has others. A transaction of another block was moved by a
    /// reorganization.
    fn contradicts(&self, rows: &Columns) -> bool {
        rows.rows() == 0 || Rows::block(rows, 0) == self.block && key_of_all(rows) != self.key
    }
}

#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Those that the run before this one had received, by slice.
    earlier: BTreeMap<u64, Lookup>,
    received: BTreeMap<u64, Lookup>,
}

impl Lookups {
    pub fn continued(earlier: &[Lookup]) -> Self {
        Self { earlier: earlier.iter().map(|lookup| (lookup.slice, *lookup)).collect(), ..Self::default() }
    }

    pub fn add(&mut self, slice: u64, rows: &Columns) {
        if rows.rows() > 0 {
            self.received = self.received.split_off(&slice.saturating_sub(KEPT));
            self.received.insert(slice, Lookup::of(slice, rows));
        }
    }

    pub fn contradict(&self, slice: u64, rows: &Columns) -> bool {
        self.earlier.get(&slice).is_some_and(|earlier| earlier.contradicts(rows))
    }

    /// Those after a slice, for a run that begins with slice `first`.
    pub fn after(&self, slice: u64, first: u64) -> Vec<Lookup> {
        let mut known = self.received.clone();
        known.extend(&self.earlier);
        let after = known.range(slice + 1..=slice.saturating_add(KEPT));
        after.map(|(slice, lookup)| Lookup { slice: slice - first, ..*lookup }).collect()
    }
}
