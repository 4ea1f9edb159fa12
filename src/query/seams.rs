//! Seams between pages: what was delivered last, and where another page's records stand beside it. Records are compared
//! by what identifies them, so that a state that changes meanwhile is no other record.

use std::collections::VecDeque;
use std::hash::{Hash as _, Hasher};

use crate::columns::{Column, Columns};

/// Delivered records that are remembered: more than any capped list has.
const REMEMBERED: usize = 16_384;
/// Records whose comparison is put off, since a list that is counted and holds still needs none.
const PUT_OFF: usize = 256;

/// The same in every process, for cursors.
struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0 ^ u64::from_le_bytes(word) ^ chunk.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 ^= self.0 >> 29;
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What a record is told by. One without any of the identifying members is told by all it has.
pub fn identity(columns: &Columns, row: usize) -> u64 {
    let mut fold = Fold(0x5851_f42d_4c95_7f2d);
    let record = columns.record();
    let mut told = false;
    for column in record.identity.iter().filter_map(|name| record.position(name)) {
        if let Some(text) = columns.text(column, row) {
            told |= !text.is_empty();
            fold.write(text.as_bytes());
        } else if let Column::Integer(numbers) = columns.column(column) {
            numbers.iter().nth(row).flatten().hash(&mut fold);
        }
        fold.write_u8(0xff);
    }
    if !told {
        for column in 0..record.fields.len() {
            columns.value(column, row).hash(&mut fold);
        }
    }
    fold.finish()
}

pub fn identities(columns: &Columns) -> Vec<u64> {
    (0..columns.rows()).map(|row| identity(columns, row)).collect()
}

/// Where a page may stand in the list: the place of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    pub place: i64,
    /// Whether at least two different records agree, so that identical ones cannot be mistaken for each other.
    pub firm: bool,
    /// How many records agree.
    pub overlap: usize,
}

/// The latest records that were delivered, by their places in the list as its first page had it.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    /// Place of the first that is remembered.
    base: u64,
    known: VecDeque<u64>,
    put_off: VecDeque<Columns>,
    put_off_rows: usize,
    /// The list's first record.
    head: Option<u64>,
    /// Whether comparing is never put off.
    keeps: bool,
}

impl Trail {
    /// Of a run that goes on: the records before that place, each with how often it comes in a row, and the list's first.
    pub fn resumed(end: u64, latest: &[(u64, u64)], head: Option<u64>) -> Self {
        // More records than come before the place cannot have been remembered.
        let most = end.min(REMEMBERED as u64) as usize;
        let newest_first = latest.iter().rev().flat_map(|(record, times)| (0..*times).map(|_| *record));
        let mut known: VecDeque<u64> = newest_first.take(most).collect();
        known.make_contiguous().reverse();
        Self { base: end - known.len() as u64, known, head, ..Self::default() }
    }

    pub fn end(&self) -> u64 {
        self.base + (self.known.len() + self.put_off_rows) as u64
    }

    pub fn base(&self) -> u64 {
        self.base
    }

    pub fn head(&self) -> Option<u64> {
        self.head
    }

    /// More was delivered.
    pub fn push(&mut self, columns: Columns) {
        if columns.rows() == 0 {
            return;
        }
        if self.head.is_none() && self.end() == 0 {
            self.head = Some(identity(&columns, 0));
        }
        self.put_off_rows += columns.rows();
        self.put_off.push_back(columns);
        if self.keeps {
            self.absorb();
        }
        while self.put_off.front().is_some_and(|first| self.put_off_rows - first.rows() >= PUT_OFF) {
            let rows = self.put_off.pop_front().map_or(0, |first| first.rows());
            self.base += (self.known.len() + rows) as u64;
            self.known.clear();
            self.put_off_rows -= rows;
        }
    }

    /// From now on all is remembered, for a list of which nothing but its records tells how it moved.
    pub fn keep(&mut self) {
        self.keeps = true;
        self.absorb();
    }

    /// Makes comparable what was put off.
    fn absorb(&mut self) {
        for columns in std::mem::take(&mut self.put_off) {
            self.known.extend(identities(&columns));
        }
        self.put_off_rows = 0;
        while self.known.len() > REMEMBERED {
            self.known.pop_front();
            self.base += 1;
        }
    }

    /// The records that are compared already, newest first, and the pages after them.
    pub fn parts(&self) -> (impl Iterator<Item = u64> + '_, Vec<Columns>) {
        (self.known.iter().rev().copied(), self.put_off.iter().cloned().collect())
    }

    /// The records that are remembered, newest first.
    pub fn backwards(&self) -> impl Iterator<Item = u64> + '_ {
        let put_off = self.put_off.iter().rev();
        let latest = put_off.flat_map(|columns| (0..columns.rows()).rev().map(|row| identity(columns, row)));
        latest.chain(self.known.iter().rev().copied())
    }

    /// A quick look at whether a page that should come next may hold what was delivered already.
    pub fn may_repeat(&self, page: &Columns) -> bool {
        if page.rows() == 0 {
            return false;
        }
        if self.keeps {
            let page = identities(page);
            // Of a run that goes on, only the latest records are known.
            let (ends, latest) = ([page.first(), page.last()], [self.known.back().copied(), self.head]);
            return ends.into_iter().flatten().any(|end| self.known.contains(end))
                || page.iter().any(|record| latest.contains(&Some(*record)));
        }
        let Some(latest) = self.put_off.back() else { return true };
        let record = page.record();
        let Some(column) = record.identity.first().and_then(|name| record.position(name)) else { return true };
        let Some(first) = page.text(column, 0).filter(|text| !text.is_empty()) else { return true };
        (0..latest.rows()).any(|row| latest.text(column, row) == Some(first))
    }

    /// How many of the latest records it takes to have two different ones, if there are.
    pub fn margin(&mut self) -> Option<u64> {
        self.absorb();
        let last = self.known.back()?;
        let different = self.known.iter().rev().position(|other| other != last)?;
        Some(different as u64 + 1)
    }

    /// The place of a record that has no double.
    pub fn place_of(&mut self, record: u64) -> Option<u64> {
        self.absorb();
        let mut places = (self.base..).zip(&self.known).filter(|(_, known)| **known == record);
        let (place, _) = places.next()?;
        places.next().is_none().then_some(place)
    }

    /// Every place at which a page's records agree with those delivered, as far as both are known. None of them if
    /// nothing is known of what the page holds.
    pub fn alignments(&mut self, page: &[u64]) -> Vec<Alignment> {
        self.absorb();
        let end = self.end() as i64;
        let (Some(last), Some(page_last)) = (self.known.back(), page.last()) else { return Vec::new() };
        // Either the latest record is in the page, or the page's last is among the earlier ones.
        let over = page.iter().enumerate().filter(|(_, other)| *other == last).map(|(row, _)| end - 1 - row as i64);
        let earlier = self.known.iter().enumerate().take(self.known.len() - 1);
        let behind = earlier
            .filter(|(_, other)| *other == page_last)
            .map(|(index, _)| self.base as i64 + index as i64 - (page.len() as i64 - 1));
        // A page that begins before a long memory would have nothing to say, and among identical records take long.
        let long = self.known.len() > REMEMBERED / 2;
        let near = over.chain(behind).filter(|place| !long || *place >= self.base as i64);
        near.filter_map(|place| self.agreement(page, place)).collect()
    }

    fn agreement(&self, page: &[u64], place: i64) -> Option<Alignment> {
        let from = place.max(self.base as i64);
        let to = (place + page.len() as i64).min(self.end() as i64);
        let mut firm = false;
        let first = self.known[(from - self.base as i64) as usize];
        for at in from..to {
            let known = self.known[(at - self.base as i64) as usize];
            if known != page[(at - place) as usize] {
                return None;
            }
            firm |= known != first;
        }
        // Identical records alone say nothing of a page that begins before all that is remembered.
        (firm || place >= self.base as i64).then_some(Alignment { place, firm, overlap: (to - from) as usize })
    }

    /// Where a page goes on whose latest delivered records have vanished from the list: after the last of its records
    /// that is known, if the known ones are in order.
    pub fn after_loss(&mut self, page: &[u64]) -> Option<usize> {
        self.absorb();
        let places: Vec<Option<usize>> =
            page.iter().map(|record| self.known.iter().rposition(|known| known == record)).collect();
        let last = places.iter().rposition(Option::is_some)?;
        let known: Vec<usize> = places.into_iter().flatten().collect();
        (known.len() > 1 && known.is_sorted() && known[0] != known[known.len() - 1]).then_some(last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(records: &[u64]) -> Trail {
        let latest: Vec<(u64, u64)> = records.iter().map(|record| (*record, 1)).collect();
        Trail::resumed(records.len() as u64, &latest, records.first().copied())
    }

    fn places(trail: &[u64], page: &[u64]) -> Vec<(i64, bool)> {
        self::trail(trail).alignments(page).iter().map(|found| (found.place, found.firm)).collect()
    }

    #[test]
    fn a_page_is_placed_by_what_it_shares() {
        assert_eq!(places(&[1, 2, 3, 4], &[3, 4, 5]), [(2, true)]);
        assert_eq!(places(&[1, 2, 3, 4], &[8, 9, 1, 2]), [(-2, true)]);
        assert_eq!(places(&[1, 2, 3, 4], &[9, 1, 2, 3, 4, 5]), [(-1, true)]);
        assert_eq!(places(&[1, 2, 3, 4], &[5, 6]), []);
        assert_eq!(places(&[1, 2, 3, 4], &[2, 4, 5]), []);
    }

    #[test]
    fn identical_records_are_told_by_what_precedes_them() {
        assert_eq!(places(&[1, 7, 7], &[7, 7, 2]), [(2, false), (1, false)]);
        assert_eq!(places(&[1, 7, 7], &[1, 7, 7, 7, 2]), [(0, true)]);
        assert_eq!(trail(&[1, 7, 7]).margin(), Some(3));
        assert_eq!(trail(&[7, 7, 7]).margin(), None);
    }

    #[test]
    fn what_vanished_is_passed_over() {
        assert_eq!(trail(&[1, 2, 3, 4]).after_loss(&[2, 3, 5, 6]), Some(2));
        assert_eq!(trail(&[1, 2, 3, 4]).after_loss(&[3, 2, 5]), None);
        assert_eq!(trail(&[1, 2, 3, 4]).after_loss(&[5, 6]), None);
    }
}
