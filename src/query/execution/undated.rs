//! `Undated`: records without a time, in the slices of a range of times. A service may list such a record in any of them, in
//! several, or in all.

use std::collections::HashMap;

use arrow_array::{Array as _, TimestampMillisecondArray};

use crate::columns::{Column, Columns};
use crate::interface::Kind;
use crate::query::request::Query;
use crate::query::snapshot::Rows as _;

#[derive(Clone, Debug)]
pub(super) struct Undated {
    /// The slice that returned each of them, by the key of the record.
    returned_in: HashMap<u64, u64>,
    /// The first slice that may list those which an earlier run or another partition has returned.
    in_doubt_from: Option<u64>,
}

/// Slice that a record without a time belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Here,
    OtherSlice,
    /// To this slice, or to what an earlier run or another partition has returned.
    InDoubt,
}

impl Undated {
    pub fn new(query: &Query, is_continued: bool) -> Self {
        let is_later_partition = query.options().exclude_undated;
        let in_doubt_from = if is_later_partition { Some(0) } else { is_continued.then_some(1) };
        Self { returned_in: HashMap::new(), in_doubt_from }
    }

    pub fn place(&self, slice: u64, columns: &Columns, row: usize) -> Place {
        match self.returned_in.get(&columns.key(row)) {
            Some(returned_in) if *returned_in != slice => Place::OtherSlice,
            None if self.in_doubt_from.is_some_and(|first| slice >= first) => Place::InDoubt,
            _ => Place::Here,
        }
    }

    /// Takes the records without a time among those that a slice returned.
    pub fn add(&mut self, slice: u64, columns: &Columns) {
        let Some(times) = slice_times(columns) else { return };
        let undated = (0..columns.rows()).filter(|row| !times.is_valid(*row));
        self.returned_in.extend(undated.map(|row| (columns.key(row), slice)));
    }
}

/// The times by which records are in a slice. Tokens have one that is not that of a block.
pub(super) fn slice_times(columns: &Columns) -> Option<&TimestampMillisecondArray> {
    let time = (0..columns.record().fields.len()).find(|index| columns.kind(*index) == Kind::Time)?;
    match columns.column(time) {
        Column::Time(times) => Some(times),
        _ => None,
    }
}
