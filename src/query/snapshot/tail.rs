//! `Tail`: the last height that was returned, from which a list is continued below its result window.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::spec::Rows;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tail {
    #[default]
    Empty,
    /// The last `records` records have this height, those before them greater ones.
    At { height: i64, records: u64 },
    /// The records are not ordered by height.
    Unordered,
}

impl Tail {
    #[must_use]
    pub fn after(self, rows: &dyn Rows, range: std::ops::Range<usize>) -> Self {
        range.fold(self, |tail, row| match (tail, rows.height(row)) {
            (Self::Unordered, _) | (_, None) => Self::Unordered,
            (Self::Empty, Some(height)) => Self::At { height, records: 1 },
            (Self::At { height, records }, Some(next)) => match next.cmp(&height) {
                Ordering::Less => Self::At { height: next, records: 1 },
                Ordering::Equal => Self::At { height, records: records + 1 },
                Ordering::Greater => Self::Unordered,
            },
        })
    }
}
