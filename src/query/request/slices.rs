//! Slices: the lists that a query is read from, one after the other, where one list of the API cannot hold its result.

use std::sync::Arc;

use super::ranges::ValueRange;
use crate::interface::{Divider, RangeEnd};

#[derive(Clone, Debug)]
pub enum Slices {
    One,
    /// One list for each height.
    Heights {
        wire: &'static str,
        low: i64,
        high: i64,
    },
    /// One list for each range of at most a year, both ends included.
    Times(Vec<TimeRange>),
    /// A list that is longer than the result window: itself, then parts of it by the values of a filter, and at last a final look
    /// at itself.
    Divided {
        divider: Divider,
        ranges: Arc<[ValueRange]>,
    },
    /// One request for each batch of hashes.
    Hashes {
        wire: &'static str,
        batches: Vec<Vec<String>>,
    },
}

/// Unix milliseconds, both ends included where given.
pub type TimeRange = (Option<i64>, Option<i64>);

/// A year in every calendar, less the millisecond that is added at either end.
const YEAR: i64 = 365 * 86_400_000 - 2;

/// An end of a range of times as it is sent: the API excludes both ends.
pub(super) fn sent_time(time: i64, end: RangeEnd) -> String {
    match end {
        RangeEnd::Lower => time.saturating_sub(1),
        RangeEnd::Upper => time.saturating_add(1),
    }
    .to_string()
}

/// Ranges of at most a year: the API rejects longer ones.
pub(super) fn split_by_year(low: Option<i64>, high: Option<i64>) -> Vec<TimeRange> {
    let Some((start, end)) = low.zip(high) else { return vec![(low, high)] };
    let mut ranges = Vec::new();
    let mut from = start;
    loop {
        let to = end.min(from.saturating_add(YEAR));
        ranges.push((Some(from), Some(to)));
        if to == end {
            return ranges;
        }
        from = to + 1;
    }
}

impl Slices {
    pub fn count(&self) -> u64 {
        match self {
            Self::One => 1,
            Self::Heights { low, high, .. } => (high - low) as u64 + 1,
            Self::Times(ranges) => ranges.len() as u64,
            Self::Divided { ranges, .. } => ranges.len() as u64 + 2,
            Self::Hashes { batches, .. } => batches.len() as u64,
        }
    }

    /// Unit in which several slices are counted for display.
    pub fn unit(&self) -> Option<&'static str> {
        if self.count() == 1 {
            return None;
        }
        match self {
            Self::One | Self::Divided { .. } => None,
            Self::Heights { .. } => Some("blocks"),
            Self::Times(_) => Some("years"),
            Self::Hashes { .. } => Some("requests"),
        }
    }

    /// Name of a slice for messages, where it has one.
    pub fn label(&self, slice: u64) -> Option<String> {
        match self {
            Self::One | Self::Times(_) => None,
            Self::Divided { .. } => self.value_range(slice).map(ValueRange::label),
            Self::Heights { low, .. } => Some(format!("block {}", low + slice as i64)),
            Self::Hashes { batches, .. } => match batches[slice as usize].as_slice() {
                [hash] => Some(format!("transaction {hash}")),
                _ => None,
            },
        }
    }

    /// Hashes that a slice requests.
    pub fn hashes(&self, slice: u64) -> &[String] {
        match self {
            Self::Hashes { batches, .. } => &batches[slice as usize],
            _ => &[],
        }
    }

    /// Height that a slice requests, in a range of heights.
    pub fn height(&self, slice: u64) -> Option<i64> {
        match self {
            Self::Heights { low, .. } => Some(low + slice as i64),
            _ => None,
        }
    }

    /// Lowest and highest height of a range of heights.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        match self {
            Self::Heights { low, high, .. } => Some((*low, *high)),
            _ => None,
        }
    }

    /// Unix milliseconds that a slice covers, both ends included, in a range of times.
    pub fn time_range(&self, slice: u64) -> Option<(i64, i64)> {
        match self {
            Self::Times(ranges) => {
                let (low, high) = ranges[slice as usize];
                Some((low.unwrap_or(i64::MIN), high.unwrap_or(i64::MAX)))
            }
            _ => None,
        }
    }

    /// Values that a slice of a divided list covers.
    pub fn value_range(&self, slice: u64) -> Option<&ValueRange> {
        match self {
            Self::Divided { ranges, .. } => ranges.get(usize::try_from(slice.checked_sub(1)?).ok()?),
            _ => None,
        }
    }

    /// True for the last slice of a divided list.
    pub fn is_final_look(&self, slice: u64) -> bool {
        matches!(self, Self::Divided { .. }) && slice + 1 == self.count()
    }

    /// Wire parameters of a slice.
    pub fn params(&self, slice: u64) -> Vec<(&'static str, String)> {
        match self {
            Self::One => Vec::new(),
            Self::Divided { divider, .. } => {
                self.value_range(slice).map(|range| range.params(divider)).unwrap_or_default()
            }
            Self::Heights { wire, low, .. } => vec![(wire, (low + slice as i64).to_string())],
            Self::Times(ranges) => {
                let (low, high) = ranges[slice as usize];
                let low = low.map(|low| ("startTime", sent_time(low, RangeEnd::Lower)));
                let high = high.map(|high| ("endTime", sent_time(high, RangeEnd::Upper)));
                low.into_iter().chain(high).collect()
            }
            Self::Hashes { wire, batches } => vec![(wire, batches[slice as usize].join(","))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_over_a_year_are_split_without_gap_or_overlap() {
        let end = 4 * 365 * 86_400_000;
        let ranges = split_by_year(Some(0), Some(end));
        assert_eq!(ranges.len(), 5);
        assert_eq!((ranges[0].0, ranges[4].1), (Some(0), Some(end)));
        for pair in ranges.windows(2) {
            assert_eq!(pair[0].1.unwrap() + 1, pair[1].0.unwrap());
        }
        assert_eq!(split_by_year(None, Some(5)), [(None, Some(5))]);
    }
}
