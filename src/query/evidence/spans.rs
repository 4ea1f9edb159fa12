//! `Spans`: a set of integers that mostly follow each other, as the ranges that they form.

use std::collections::BTreeMap;

/// Most ranges that are kept: a list with more gaps has another numbering.
const MAX_SPANS: usize = 4_096;

#[derive(Clone, Debug, Default)]
pub struct Spans {
    /// First and last number of each range. Neighbors are joined.
    spans: BTreeMap<i64, i64>,
    /// True if there were too many ranges.
    is_full: bool,
}

impl Spans {
    pub fn insert(&mut self, number: i64) {
        let below = self.spans.range_mut(..=number).next_back();
        let mut start = number;
        if let Some((first, last)) = below {
            if *last >= number {
                return;
            }
            if last.checked_add(1) == Some(number) {
                *last = number;
                start = *first;
            }
        }
        let end = match number.checked_add(1).and_then(|next| self.spans.remove(&next)) {
            Some(last) => last,
            None => number,
        };
        if self.spans.len() < MAX_SPANS || start != number {
            self.spans.insert(start, end);
        } else {
            self.is_full = true;
        }
    }

    pub fn contains(&self, number: i64) -> bool {
        self.spans.range(..=number).next_back().is_some_and(|(_, last)| *last >= number)
    }

    pub fn first(&self) -> Option<i64> {
        self.spans.keys().next().copied()
    }

    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The gaps between the ranges, the highest first.
    pub fn gaps(&self) -> impl Iterator<Item = (i64, i64)> {
        let above = self.spans.keys().rev();
        let below = self.spans.values().rev().skip(1);
        above.zip(below).map(|(next, last)| (last + 1, next - 1))
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
            assert_eq!(spans.gaps().collect::<Vec<_>>(), [(5, 6), (2, 2)], "{numbers:?}");
            assert_eq!(spans.first(), Some(1));
            assert!(spans.contains(4) && !spans.contains(5) && !spans.contains(0));
        }
    }

    #[test]
    fn repeated_numbers_and_extremes_are_no_gap() {
        assert_eq!(spans(&[5, 5, 4, 6, 5]).gaps().count(), 0);
        assert_eq!(spans(&[i64::MAX, i64::MAX - 1, i64::MAX]).gaps().count(), 0);
    }

    #[test]
    fn ranges_are_bounded() {
        let numbers: Vec<i64> = (0..10_000).map(|number| number * 2).collect();
        let spans = spans(&numbers);
        assert!(spans.is_full() && spans.gaps().count() < MAX_SPANS);
    }
}
