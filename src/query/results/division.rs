//! `Division`: a list beyond the result window, of which the older records are read by ranges of a filter's values.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::query::request::ValueRange;
use crate::query::snapshot::ListCheckpoint;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Division {
    /// Greatest height of the records that are read by ranges: the list itself returned those above it.
    pub top: i64,
    /// Records of the list when its first page was served.
    pub total: u64,
    /// Number of them that are still to be returned.
    pub remaining: u64,
    pub ranges: Arc<[ValueRange]>,
    /// The end of the list, with records that the final look finds again.
    pub list: ListCheckpoint,
}

impl Division {
    /// The division when `rows` more records were returned, with the ranges from a slice on.
    #[must_use]
    pub fn after(&self, rows: u64, slice: u64) -> Self {
        let ended = usize::try_from(slice.saturating_sub(1)).unwrap_or(usize::MAX).min(self.ranges.len());
        let ranges = self.ranges[ended..].into();
        Self { remaining: self.remaining.saturating_sub(rows), ranges, ..self.clone() }
    }

    /// True if these numbers can be those of a list.
    pub fn is_plausible(&self) -> bool {
        self.list.is_plausible() && self.remaining <= self.total && self.total == self.list.end()
    }
}
