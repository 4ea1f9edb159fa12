//! `Below`: records that were received below others and not returned. A record stays below the one above it, unless the list ends
//! too early, or another list took its place.

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::first_rows::FirstRows;
use crate::message::{Hint, Message};
use crate::query::audit::pages::{page_of_both, records_before};
use crate::query::audit::repeats::count;
use crate::query::audit::returned::Returned;
use crate::query::audit::returned_facts::ReturnedFacts;
use crate::query::snapshot::{PageRequest, Response, Rows};

/// Pairs that are kept: those of the pages that can be in flight together, and as many of returned records.
const KEPT: usize = 1_024;
/// Pairs that a cursor has, about as many as the records of a small page. It stays a few kilobytes long.
pub const PAIRS_IN_CURSOR: usize = 32;
/// Requests for a place that the responses do not show.
const MAX_LOOKS: u32 = 8;
/// Pages of returned records after which others have taken the place: a list that grows has it further down.
const MAX_PASSED: u32 = 3;

/// A record, and the one below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "PairInCursor", from = "PairInCursor")]
pub struct Pair {
    above: u64,
    below: u64,
    /// Offset of the upper one.
    offset: u64,
    /// The greatest offset that the upper one may have; `None` in a reading that was discarded.
    max_offset: Option<u64>,
    /// The offset that the upper one had in a reading that was discarded. A list that grows has it further down by now.
    discarded_offset: Option<u64>,
    /// True if the upper one is below a record that was returned of the same response.
    is_below_returned: bool,
    /// True if a response shows two records equal to the upper one: one of them may be newer than those that were returned.
    is_ambiguous: bool,
    /// Height of the lower one.
    height: Option<i64>,
    /// Height of the lower one, if the chain that has the upper one has it as well: both show their blocks, or none does.
    chain_height: Option<i64>,
    /// True if an earlier run returned the upper one.
    is_of_earlier_run: bool,
}

/// Keys of both records, offset of the upper one, and height of the lower one.
type PairInCursor = (u64, u64, u64, Option<i64>);

impl From<Pair> for PairInCursor {
    fn from(Pair { above, below, offset, height, .. }: Pair) -> Self {
        (above, below, offset, height)
    }
}

impl From<PairInCursor> for Pair {
    fn from((above, below, offset, height): PairInCursor) -> Self {
        let max_offset = Some(offset);
        Self { above, below, offset, max_offset, height, chain_height: height, ..Self::default() }
    }
}

impl Pair {
    /// A received row that is not returned before a cursor, and the row above it, which has this offset.
    pub fn after_cursor(rows: &dyn Rows, row: usize, offset: u64) -> Self {
        Self::from((rows.key(row - 1), rows.key(row), offset, rows.height(row)))
    }

    /// True if the upper record comes before that offset.
    pub fn is_below_one_before(&self, offset: u64) -> bool {
        self.offset < offset
    }

    /// True if the upper record was returned and the one below it was not.
    fn is_open(&self, known: ReturnedFacts<'_>) -> bool {
        // One that is newer than the returned records may be below a record that is equal to one of them.
        let may_be_below_other = self.is_ambiguous || known.has_equal && !self.is_below_returned;
        let may_be_returned = known.contains(self.below) || may_be_below_other && known.may_be_newer(self.height);
        !may_be_returned
            && (self.is_of_earlier_run || known.contains(self.above))
            && known.is_wanted_below(self.max_offset, self.height)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Below {
    pairs: VecDeque<Pair>,
    /// Records with none above them.
    first_rows: FirstRows,
    /// The latest returned records, each with the one above it, for a reading that takes the place of this one.
    returned: VecDeque<Pair>,
    looks: u32,
    /// Pages of returned records at the place of the first open pair.
    passed_pages: u32,
    /// Records of these pages.
    passed_records: u64,
    /// True if some pairs are of a discarded reading, and so their offsets.
    is_continued: bool,
    /// True if records show their blocks.
    has_blocks: bool,
    /// The least distance by which the list had moved: a response may be of a moment before that of one that was taken earlier.
    min_drift: Option<i64>,
    /// The greatest height of a record below a returned one of its chain, where the list does not show it any more.
    lost: Option<i64>,
}

impl Below {
    pub fn new(has_blocks: bool) -> Self {
        Self { has_blocks, ..Self::default() }
    }

    /// Pairs of a reading of the same list that was discarded, with the records that it returned last. A record below another
    /// one stays there: if this reading has the upper one, it has the lower one as well, or the list has lost it.
    pub fn after(discarded: Self, returned: &[u64]) -> Self {
        let has_blocks = discarded.has_blocks;
        let received = discarded.pairs.into_iter().chain(discarded.returned);
        let received = received.map(|pair| Pair { chain_height: pair.chain_height.filter(|_| has_blocks), ..pair });
        let neighbors = returned.windows(2).map(|keys| Pair { above: keys[0], below: keys[1], ..Pair::default() });
        let pairs = received.chain(neighbors).map(|pair| Pair {
            offset: 0,
            max_offset: None,
            discarded_offset: Some(pair.offset),
            is_below_returned: false,
            ..pair
        });
        let first_rows = FirstRows::after(discarded.first_rows);
        Self { pairs: pairs.collect(), first_rows, is_continued: true, ..Self::new(has_blocks) }
    }

    /// Takes pairs that an earlier run did not return whole. It returned `offset` records.
    #[must_use]
    pub fn with_pairs(self, pairs: &[Pair], offset: u64) -> Self {
        let pairs = pairs.iter().map(|pair| Pair { is_of_earlier_run: pair.is_below_one_before(offset), ..*pair });
        Self { pairs: pairs.collect(), ..self }
    }

    /// The pairs of which the upper record was returned and the one below it was not.
    pub fn open(&self, known: ReturnedFacts<'_>) -> Vec<Pair> {
        self.pairs.iter().filter(|pair| pair.is_open(known)).copied().collect()
    }

    /// Takes records that are about to be returned: their rows, and the offset that the first row of the response has.
    pub fn on_returned(&mut self, rows: &dyn Rows, returned: &[usize], first: i64) {
        let offset = |row: usize| u64::try_from(first + row as i64).unwrap_or(0);
        if self.is_continued {
            returned.iter().for_each(|row| self.find_again(rows.key(*row), offset(*row)));
        }
        if self.has_blocks {
            self.returned.truncate(KEPT.saturating_sub(returned.len()));
            for row in returned.iter().filter(|row| **row > 0) {
                self.returned.push_front(self.pair(rows, *row, offset(row - 1)));
            }
        }
    }

    /// Takes the offset of a record, which a discarded reading may have received.
    fn find_again(&mut self, key: u64, offset: u64) {
        self.first_rows.on_returned(key, offset);
        for pair in self.pairs.iter_mut().filter(|pair| pair.above == key) {
            pair.offset = offset;
            // One that is equal may be further down, with others below it.
            pair.max_offset = Some(offset).filter(|offset| pair.discarded_offset <= Some(*offset));
        }
    }

    /// A row and the one above it, which has this offset.
    fn pair(&self, rows: &dyn Rows, row: usize, offset: u64) -> Pair {
        let is_of_chain = !self.has_blocks || (rows.block(row).is_some() && rows.block(row - 1).is_some());
        let height = rows.height(row);
        let chain_height = if is_of_chain { height } else { None };
        Pair { above: rows.key(row - 1), below: rows.key(row), offset, height, chain_height, ..Pair::default() }
    }

    /// Takes the response with this number, of which these rows are about to be returned after others, from a list that has moved
    /// by `drift`.
    pub fn on_response(
        &mut self,
        request: &PageRequest,
        response: &Response<'_>,
        returned: &Range<usize>,
        drift: i64,
        before: &Returned,
        number: u64,
    ) {
        let known = &before.keys;
        let rows = response.rows;
        let position = records_before(request, response.limit);
        let first = position.saturating_add_signed(drift.saturating_neg());
        let min_drift = self.min_drift.map_or(drift, |known| known.min(drift));
        self.min_drift = Some(min_drift);
        let is_below_returned = !returned.is_empty();
        let from = if is_below_returned { returned.end } else { 1 };
        // Above the returned rows are those that were returned before, and newer ones.
        let above = if is_below_returned { 1..returned.start } else { 1..1 };
        let overlap = above.filter(|row| known.contains(rows.key(row - 1)));
        let keys = rows.keys();
        if keys.first().is_some_and(|key| !known.contains(*key)) && (!is_below_returned || returned.start > 0) {
            self.first_rows.on_response(response, first, before.latest.few(), number);
        }
        for row in overlap.chain(from..rows.len()) {
            if !known.contains(keys[row]) {
                let above = row as u64 - 1;
                let estimate = (position + above).saturating_add_signed(min_drift.saturating_neg());
                let max_offset = Some(before.offset_of(keys[row - 1]).unwrap_or(estimate));
                let is_below_returned = is_below_returned && row >= from;
                let is_ambiguous = count(keys[row - 1], &keys) > 1;
                let pair = self.pair(rows, row, first + above);
                self.pairs.push_back(Pair { max_offset, is_below_returned, is_ambiguous, ..pair });
            }
        }
        if self.pairs.len() > KEPT {
            self.pairs.retain(|pair| !known.contains(pair.below));
            let excess = self.pairs.len().saturating_sub(KEPT);
            self.pairs.drain(..excess);
        }
    }

    /// True if a record followed a returned one and was not returned.
    pub fn may_follow(&self, known: ReturnedFacts<'_>) -> bool {
        self.pairs.iter().any(|pair| pair.is_open(known)) || self.first_rows.are_open(known)
    }

    /// The page of such a record and the one above it, in a list that has moved by `drift`.
    pub fn request(&self, drift: i64, max_page_size: u64, known: ReturnedFacts<'_>) -> Option<PageRequest> {
        let Some(pair) = self.pairs.iter().find(|pair| pair.is_open(known)) else {
            return self.first_rows.request(drift, max_page_size, known);
        };
        let first = pair.offset.saturating_add_signed(drift) + self.passed_records;
        // If no page has both records, the page of the lower one shows whether it is there.
        page_of_both(first, first + 1, max_page_size).or_else(|| page_of_both(first + 1, first + 1, max_page_size))
    }

    /// Takes the response to that request. False if a record that was not returned follows a returned one, or if too many
    /// responses in a row show neither of the two.
    pub fn on_look(
        &mut self,
        request: &PageRequest,
        response: &Response<'_>,
        drift: i64,
        known: ReturnedFacts<'_>,
    ) -> bool {
        let keys = response.rows.keys();
        self.pairs.iter_mut().for_each(|pair| pair.is_ambiguous |= count(pair.above, &keys) > 1);
        self.pairs.retain(|pair| pair.is_open(known));
        if self.pairs.is_empty() {
            return self.first_rows.on_look(request, response, known);
        }
        let first = records_before(request, response.limit).saturating_add_signed(drift.saturating_neg());
        if self.shows_unreturned(&keys, first, response, known) {
            return false;
        }
        let is_end = !response.has_next(request) && (keys.len() as u64) < request.limit;
        let shown = if is_end { &keys[..] } else { &keys[..keys.len().saturating_sub(1)] };
        let before = self.pairs.len();
        let removed = self.pairs.iter().filter(|pair| shown.contains(&pair.above));
        self.lost = removed.filter_map(|pair| pair.chain_height).max().max(self.lost);
        self.pairs.retain(|pair| !shown.contains(&pair.above));
        if self.pairs.len() == before && keys.iter().all(|key| known.contains(*key)) {
            self.passed_pages += 1;
            self.passed_records += keys.len() as u64;
            if is_end || self.passed_pages == MAX_PASSED {
                self.pairs.pop_front();
            }
        }
        if self.pairs.len() < before {
            self.looks = 0;
            self.passed_pages = 0;
            self.passed_records = 0;
            return true;
        }
        self.looks += 1;
        self.looks < MAX_LOOKS
    }

    /// Why a list may lack records. Those below this height may have left it.
    pub fn reason(&self, min_height: i64) -> Option<Message> {
        let lost = self.lost.max(self.first_rows.lost());
        let height = lost.filter(|height| *height >= min_height)?;
        let reason = format!(
            "A response showed a record of height {height} below one that was returned, and a later response did not: a part of \
             the service may lack it, or removed it"
        );
        Some(Message::new(reason).hint(Hint::RunAgain))
    }

    /// True if a record that was not returned is in a response. Where some are equal, only both records of a pair show it.
    /// The first row has this offset.
    fn shows_unreturned(&self, keys: &[u64], first: u64, response: &Response<'_>, known: ReturnedFacts<'_>) -> bool {
        let mut neighbors = keys.windows(2);
        if known.has_equal {
            return neighbors.any(|rows| self.pairs.iter().any(|pair| rows == [pair.above, pair.below]));
        }
        let is_wanted = |row: usize| {
            let height = response.rows.height(row + 1);
            let is_newer = count(keys[row], keys) > 1 && known.may_be_newer(height);
            !is_newer && known.is_wanted_below(Some(first + row as u64), height)
        };
        neighbors.enumerate().any(|(row, rows)| known.lacks_below(rows[0], rows[1]) && is_wanted(row))
            || self.pairs.iter().any(|pair| {
                let row = keys.iter().position(|key| *key == pair.below);
                row.is_some_and(|row| pair.discarded_offset.is_none() || row > 0 && is_wanted(row - 1))
            })
    }
}
