//! `Spans`: a set of integers that mostly follow each other, as the ranges that they form.

use std::collections::BTreeMap;

/// Most ranges that are kept: a list with more gaps has another numbering.
const MAX_SPANS: usize = 4_096;

#[derive(Clone, Debug, Default)]
pub struct Spans {
    /// First and last number of each range. Neighbors are joined.
    spans: BTreeMap<i64, i64>,
    /// The range that the latest numbers form, which is not among the others yet.
    latest: Option<(i64, i64)>,
    /// True if there were too many ranges.
    is_full: bool,
}

impl Spans {
    pub fn insert(&mut self, number: i64) {
        if let Some((first, last)) = &mut self.latest {
            if (*first..=*last).contains(&number) {
                return;
            }
            if first.checked_sub(1) == Some(number) {
                *first = number;
                return;
            }
            if last.checked_add(1) == Some(number) {
                *last = number;
                return;
            }
        }
        self.join();
        self.latest = Some((number, number));
    }

    /// Adds the latest range to the others.
    fn join(&mut self) {
        let Some((mut first, mut last)) = self.latest.take() else { return };
        // The ranges that the latest one touches, the highest first.
        while let Some((&low, &high)) = self.spans.range(..=last.saturating_add(1)).next_back()
            && high >= first.saturating_sub(1)
        {
            first = first.min(low);
            last = last.max(high);
            self.spans.remove(&low);
        }
        if self.spans.len() < MAX_SPANS {
            self.spans.insert(first, last);
        } else {
            self.is_full = true;
        }
    }

    /// Moves all numbers of another set here.
    pub fn append(&mut self, other: &mut Self) {
        self.is_full |= other.is_full;
        other.join();
        for range in std::mem::take(&mut other.spans) {
            self.join();
            self.latest = Some(range);
        }
    }

    pub fn contains(&self, number: i64) -> bool {
        let below = self.spans.range(..=number).next_back().map(|(first, last)| (*first, *last));
        self.latest.into_iter().chain(below).any(|(first, last)| (first..=last).contains(&number))
    }

    pub fn first(&self) -> Option<i64> {
        self.latest.map(|(first, _)| first).into_iter().chain(self.spans.keys().next().copied()).min()
    }

    pub fn is_full(&self) -> bool {
        self.is_full || self.spans.len() >= MAX_SPANS
    }

    /// The gaps between the ranges, the highest first.
    pub fn gaps(&self) -> Vec<(i64, i64)> {
        let mut whole = self.clone();
        whole.join();
        let above = whole.spans.keys().rev();
        let below = whole.spans.values().rev().skip(1);
        above.zip(below).map(|(next, last)| (last + 1, next - 1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(numbers: &[i64]) -> Spans {
        let mut spans = Spans::default();
        numbers.iter().for_each(|number| spans.insert(*number));
        spans
    }

    #[test]
    fn gaps_are_those_between_numbers_in_any_order() {
        for numbers in [[9, 8, 7, 4, 3, 1], [1, 3, 4, 7, 8, 9], [3, 9, 1, 7, 4, 8]] {
            let spans = spans(&numbers);
            assert_eq!(spans.gaps(), [(5, 6), (2, 2)], "{numbers:?}");
            assert_eq!(spans.first(), Some(1));
            assert!(spans.contains(4) && !spans.contains(5) && !spans.contains(0));
        }
    }

    #[test]
    fn repeated_numbers_and_extremes_are_no_gap() {
        assert_eq!(spans(&[5, 5, 4, 6, 5]).gaps().len(), 0);
        assert_eq!(spans(&[i64::MAX, i64::MAX - 1, i64::MAX]).gaps().len(), 0);
    }

    #[test]
    fn ranges_are_bounded() {
        let numbers: Vec<i64> = (0..10_000).map(|number| number * 2).collect();
        let spans = spans(&numbers);
        assert!(spans.is_full() && spans.gaps().len() < MAX_SPANS);
    }
}
