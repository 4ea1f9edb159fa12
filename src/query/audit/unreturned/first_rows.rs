//! `FirstRows`: records that were the first of their responses, so that no record above shows where they belong. One of the
//! same block as the record below it is of the same chain. So is one that was received between two responses that show the same
//! block above: what vanished does not come back.

use std::collections::VecDeque;

use crate::query::audit::pages::page_of_both;
use crate::query::audit::returned_facts::ReturnedFacts;
use crate::query::snapshot::{PageRequest, Response};

/// Records that are kept.
const KEPT: usize = 256;
/// Requests for a place that the responses do not show.
const MAX_LOOKS: u32 = 8;

#[derive(Clone, Debug)]
struct FirstRow {
    key: u64,
    /// The record below it, and the offset of that.
    below: u64,
    offset: u64,
    height: i64,
    /// True if both are of one block.
    has_block_below: bool,
    /// Records that were returned before it was received.
    before: Vec<u64>,
    /// Number of the response that began with it; 0 for those of a reading that was discarded.
    received: u64,
}

#[derive(Clone, Debug, Default)]
pub struct FirstRows {
    rows: VecDeque<FirstRow>,
    looks: u32,
    /// The greatest height of a record that the list does not show any more.
    lost: Option<i64>,
}

impl FirstRow {
    /// True if a response is of the chain that had this record.
    fn is_of_chain_of(&self, response: &Response<'_>, keys: &[u64]) -> bool {
        let is_above = |row: usize| response.rows.height(row) > Some(self.height) && response.rows.block(row).is_some();
        self.has_block_below || (0..keys.len()).any(|row| self.before.contains(&keys[row]) && is_above(row))
    }
}

impl FirstRows {
    /// Records that a discarded reading of the same list received.
    pub fn after(discarded: Self) -> Self {
        let rows = discarded.rows.into_iter().map(|row| FirstRow { received: 0, ..row });
        Self { rows: rows.collect(), ..Self::default() }
    }

    /// Takes the response with this number, whose first record has this offset and is not returned now, with the records
    /// returned latest.
    pub fn on_response(&mut self, response: &Response<'_>, offset: u64, latest: &[u64], number: u64) {
        let rows = response.rows;
        if rows.len() < 2 || rows.block(0).is_none() {
            return;
        }
        let Some(height) = rows.height(0) else { return };
        self.rows.truncate(KEPT - 1);
        self.rows.push_front(FirstRow {
            key: rows.key(0),
            below: rows.key(1),
            offset: offset + 1,
            height,
            has_block_below: rows.block(0) == rows.block(1),
            before: latest.to_vec(),
            received: number,
        });
    }

    /// Takes a record that is about to be returned, and its offset.
    pub fn on_returned(&mut self, key: u64, offset: u64) {
        self.rows.iter_mut().filter(|row| row.below == key).for_each(|row| row.offset = offset);
    }

    /// True if the record below was returned and this one was not, although it is not newer than those that were.
    fn is_open(row: &FirstRow, known: ReturnedFacts<'_>) -> bool {
        // A newer one is above the first record of the list.
        let is_between = known.top.is_some_and(|top| top != row.below);
        let is_earlier = is_between || row.received <= known.began_after;
        known.keys.contains(row.below)
            && !known.keys.contains(row.key)
            && (is_earlier && row.has_block_below || !known.may_be_newer(Some(row.height)))
            && known.is_wanted_below(None, Some(row.height))
    }

    pub fn are_open(&self, known: ReturnedFacts<'_>) -> bool {
        self.rows.iter().any(|row| Self::is_open(row, known))
    }

    /// The page of such a record and the one below it, in a list that has moved by `drift`.
    pub fn request(&self, drift: i64, max_page_size: u64, known: ReturnedFacts<'_>) -> Option<PageRequest> {
        let row = self.rows.iter().find(|row| Self::is_open(row, known))?;
        let below = row.offset.saturating_add_signed(drift);
        let first = below.saturating_sub(1);
        page_of_both(first, below, max_page_size).or_else(|| page_of_both(first, first, max_page_size))
    }

    /// Takes the response to that request. False if it shows such a record, or if too many responses in a row do not show the
    /// place.
    pub fn on_look(&mut self, request: &PageRequest, response: &Response<'_>, known: ReturnedFacts<'_>) -> bool {
        self.rows.retain(|row| Self::is_open(row, known));
        let keys = response.rows.keys();
        let of_chain = || self.rows.iter().filter(|row| row.is_of_chain_of(response, &keys));
        if of_chain().any(|row| keys.contains(&row.key)) {
            return false;
        }
        // No record is above the first one of the list.
        let shown = keys.get(usize::from(request.page > 1)..).unwrap_or_default();
        let gone = of_chain().filter(|row| shown.contains(&row.below));
        self.lost = gone.map(|row| Some(row.height)).max().flatten().max(self.lost);
        let before = self.rows.len();
        self.rows.retain(|row| !shown.contains(&row.below) && !keys.contains(&row.key));
        self.looks = if self.rows.len() < before { 0 } else { self.looks + 1 };
        self.looks < MAX_LOOKS
    }

    pub fn lost(&self) -> Option<i64> {
        self.lost
    }
}
