//! `ValueRange`: a part of a list by the values of a filter. Parts meet at edges, each between two values that records
//! have. Whether the API includes the ends of a range is not documented: the requests for the parts on either side of an
//! edge overlap a little, and the value of a record says to which part it belongs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::decimal::{Decimal, between, next, previous};
use crate::interface::{Divider, Number};

/// Values of the fewest records that say where to split: of fewer, a few records would decide.
const VALUES_PER_PART: usize = 4;

/// The end of two parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// Lower end of the requests for the part above.
    below: String,
    /// The least value of the part above.
    at: String,
    /// Upper end of the requests for the part below.
    above: String,
}

impl Edge {
    /// An edge between two different values.
    fn between(low: &Decimal, high: &Decimal) -> Self {
        let below = between(low, high, 48).shortened_above(low);
        let at = between(low, high, 50).shortened_above(&below);
        let above = between(low, high, 52).shortened_above(&at);
        Self { below: below.to_string(), at: at.to_string(), above: above.to_string() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueRange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    low: Option<Edge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    high: Option<Edge>,
    /// The value of all records of the range, which cannot be split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    only: Option<String>,
    /// Records of the list that it was split from.
    of: u64,
}

impl ValueRange {
    /// All values of a list.
    pub fn all() -> Self {
        Self::default()
    }

    /// Records of the list that it was split from.
    pub fn of(&self) -> u64 {
        self.of
    }

    /// Name for messages.
    pub fn label(&self) -> String {
        match (&self.only, &self.low, &self.high) {
            (Some(only), ..) => format!("amount {only}"),
            (None, Some(low), Some(high)) => format!("amounts from {} to {}", low.at, high.at),
            (None, Some(low), None) => format!("amounts from {}", low.at),
            (None, None, Some(high)) => format!("amounts up to {}", high.at),
            (None, None, None) => "all amounts".into(),
        }
    }

    /// The range as it is requested, a little larger than it is.
    pub fn params(&self, divider: &Divider) -> Vec<(&'static str, String)> {
        let low = self.low.as_ref().map(|edge| (divider.low, edge.below.clone()));
        let high = self.high.as_ref().map(|edge| (divider.high, edge.above.clone()));
        low.into_iter().chain(high).collect()
    }

    /// True if a value is in the range.
    pub fn contains(&self, value: &str) -> bool {
        let Some(value) = Number::parse(value) else { return false };
        self.low.as_ref().is_none_or(|edge| !is_below(&value, &edge.at))
            && self.high.as_ref().is_none_or(|edge| is_below(&value, &edge.at))
    }

    /// True if a value is outside of what is requested, so that the filter was not applied.
    pub fn is_foreign(&self, value: &str) -> bool {
        let Some(value) = Number::parse(value) else { return false };
        self.low.as_ref().is_some_and(|edge| is_below(&value, &edge.below))
            || self.high.as_ref().is_some_and(|edge| is_above(&value, &edge.above))
    }

    /// Splits the range, which has `records` records with these values among them, into about `parts`; none if it cannot
    /// be split.
    pub fn split<'v>(&self, values: impl Iterator<Item = &'v str>, parts: u64, records: u64) -> Vec<Self> {
        if self.only.is_some() {
            return Vec::new();
        }
        let mut values: Vec<Decimal> = values.filter(|value| self.contains(value)).filter_map(Decimal::parse).collect();
        values.sort();
        let parts = usize::try_from(parts).unwrap_or(usize::MAX).min(values.len() / VALUES_PER_PART).max(2);
        let cuts: BTreeSet<usize> =
            (1..parts).filter_map(|part| nearest_step(&values, part * values.len() / parts)).collect();
        let edges: Vec<Edge> = cuts.into_iter().map(|cut| Edge::between(&values[cut - 1], &values[cut])).collect();
        if !edges.is_empty() {
            return self.cut_at(edges, records);
        }
        values.first().map_or_else(Vec::new, |value| self.around(value, records))
    }

    /// The values below one, this one, and those above it. A step between two amounts is at least 10^-18.
    fn around(&self, value: &Decimal, records: u64) -> Vec<Self> {
        let below = previous(value).map(|previous| Edge::between(&previous, value));
        let above = Edge::between(value, &next(value));
        let edges: Vec<Edge> = below.into_iter().chain([above]).filter(|edge| self.contains(&edge.at)).collect();
        let mut ranges = self.cut_at(edges, records);
        if let Some(range) = ranges.iter_mut().find(|range| range.contains(&value.to_string())) {
            range.only = Some(value.to_string());
        }
        if ranges.len() < 2 { Vec::new() } else { ranges }
    }

    fn cut_at(&self, edges: Vec<Edge>, records: u64) -> Vec<Self> {
        let lows = [self.low.clone()].into_iter().chain(edges.iter().cloned().map(Some));
        let highs = edges.iter().cloned().map(Some).chain([self.high.clone()]);
        lows.zip(highs).map(|(low, high)| Self { low, high, only: None, of: records }).collect()
    }
}

fn is_below(value: &Number<'_>, edge: &str) -> bool {
    Number::parse(edge).is_some_and(|edge| value.is_less_than(&edge))
}

fn is_above(value: &Number<'_>, edge: &str) -> bool {
    Number::parse(edge).is_some_and(|edge| edge.is_less_than(value))
}

/// Index nearest to `index` at which a value follows a smaller one.
fn nearest_step(values: &[Decimal], index: usize) -> Option<usize> {
    let steps = (1..values.len()).filter(|step| values[step - 1] < values[*step]);
    steps.min_by_key(|step| step.abs_diff(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(range: &ValueRange, values: &[&str], parts: u64) -> Vec<ValueRange> {
        range.split(values.iter().copied(), parts, 1_000)
    }

    /// Requests of a range, by whether its ends are included.
    fn serves(range: &ValueRange, value: &str, is_inclusive: bool) -> bool {
        let divider = Divider { low: "low", high: "high", column: "amount" };
        let value = Decimal::parse(value).unwrap();
        range.params(&divider).iter().all(|(name, end)| {
            let end = Decimal::parse(end).unwrap();
            (is_inclusive && value == end) || if *name == "low" { value > end } else { value < end }
        })
    }

    #[test]
    fn every_value_is_in_one_part_which_serves_it_whatever_its_ends_include() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let scale = [1_u64, 10, 1_000, 1_000_000][random.usize(0..4)];
            let mut value = || {
                let (whole, fraction) = (random.u64(0..30), random.u64(0..scale));
                format!("{whole}.{fraction:0>width$}", width = scale.ilog10() as usize)
            };
            let values: Vec<String> = (0..60).map(|_| value()).collect();
            let mut ranges = vec![ValueRange::all()];
            for _ in 0..4 {
                ranges = ranges
                    .iter()
                    .flat_map(|range| {
                        let parts = range.split(values.iter().map(String::as_str), 3, 1_000);
                        if parts.is_empty() { vec![range.clone()] } else { parts }
                    })
                    .collect();
            }
            let edges = ranges.iter().filter_map(|range| range.low.clone());
            let others = (0..60).map(|_| value()).chain(edges.flat_map(|edge| [edge.below, edge.at, edge.above]));
            for value in values.iter().cloned().chain(others.collect::<Vec<_>>()) {
                let within: Vec<_> = ranges.iter().filter(|range| range.contains(&value)).collect();
                assert_eq!(within.len(), 1, "{value} in {ranges:?}");
                assert!(serves(within[0], &value, false), "{value} in {:?}", within[0]);
                assert!(!within[0].is_foreign(&value));
            }
        }
    }

    #[test]
    fn equal_values_are_a_part_that_is_not_split() {
        let parts = split(&ValueRange::all(), &["5"; 50], 3);
        assert_eq!(parts.iter().map(|part| part.only.as_deref()).collect::<Vec<_>>(), [None, Some("5"), None]);
        assert_eq!(parts[1].label(), "amount 5");
        assert_eq!(split(&parts[1], &["5"; 50], 3), []);
        let zeros = split(&ValueRange::all(), &["0.0"; 50], 3);
        assert_eq!(zeros.iter().map(|part| part.only.as_deref()).collect::<Vec<_>>(), [Some("0"), None]);
        assert_eq!(split(&ValueRange::all(), &[], 3), []);
    }

    #[test]
    fn neighbors_in_the_eighteenth_decimal_and_numbers_of_78_digits_are_split() {
        let largest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        for (low, high) in [("0.000000000000000001", "0.000000000000000002"), ("1", largest), ("9.9", "1e1")] {
            let parts = split(&ValueRange::all(), &[low, high], 2);
            assert_eq!(parts.len(), 2);
            assert!(parts[0].contains(low) && !parts[0].contains(high) && parts[1].contains(high));
            assert!(serves(&parts[0], low, false) && serves(&parts[1], high, false), "{parts:?}");
            assert!(!serves(&parts[0], high, true) && !serves(&parts[1], low, true), "{parts:?}");
        }
    }

    #[test]
    fn edges_are_short() {
        let parts = split(&ValueRange::all(), &["12.341700000000000001", "12.993200000000000001"], 2);
        assert_eq!(parts[0].high, Some(Edge { below: "12.6".into(), at: "12.66".into(), above: "12.68".into() }));
    }
}
