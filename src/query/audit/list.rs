//! `ListAudit`: the audit of one list.

mod conclusion;
mod earlier;
mod end_requests;

use std::ops::Range;

use end_requests::{RECORD_BETWEEN, Sought};

use super::counted_places::CountedPlaces;
use super::distances::Distances;
use super::forks::Forks;
use super::growth::Growth;
use super::heights::Heights;
use super::latest::Latest;
use super::lengths::Lengths;
use super::numbers::{check_echo, check_numbers};
use super::one_block::OneBlock;
use super::repeats::{Repeat, Repeats, count};
use super::returned::Returned;
use super::returned_facts::Last;
use super::short_pages::ShortPages;
use super::small_pages::SmallPages;
use super::subject::{AcceptedRows, Extent, Subject};
use super::unreturned::{OtherRows, Unreturned};
use crate::interface::Order;
use crate::query::snapshot::{ListKind, PageRequest, Purpose, Response};

#[derive(Clone, Debug)]
pub struct ListAudit {
    subject: Subject,
    returned: Returned,
    /// Records that have to be at their offsets.
    ends: Vec<(u64, u64)>,
    repeats: Repeats,
    unreturned: Unreturned,
    distances: Distances,
    growth: Growth,
    /// True if a response had records.
    has_records: bool,
    /// True if a reading of the list that was discarded has received records.
    had_records: bool,
    /// Part of the list that the reader had read when it ended.
    extent: Extent,
    /// The proof for which the request of the audit in flight was sent.
    sought: Sought,
    places: CountedPlaces,
    lengths: Lengths,
    one_block: OneBlock,
    small_pages: SmallPages,
    short_pages: ShortPages,
    heights: Heights,
    forks: Forks,
    /// Responses of which rows were returned.
    responses: u32,
    /// Responses that were taken.
    taken: u64,
}

impl ListAudit {
    /// The audit of a list from the record at `offset` on, before which these were returned.
    pub fn new(subject: Subject, offset: u64, latest: &[u64]) -> Self {
        let is_continued = offset > 0;
        Self {
            subject,
            returned: Returned::before(offset, latest, subject.has_unique_keys),
            ends: Vec::new(),
            repeats: Repeats::default(),
            unreturned: Unreturned::new(subject.has_blocks, latest),
            distances: Distances::default(),
            growth: Growth::default(),
            has_records: false,
            had_records: false,
            extent: Extent::default(),
            sought: Sought::default(),
            places: if is_continued { CountedPlaces::continued() } else { CountedPlaces::default() },
            lengths: if is_continued { Lengths::continued() } else { Lengths::default() },
            one_block: OneBlock::continued(offset, latest),
            small_pages: SmallPages::default(),
            short_pages: ShortPages::default(),
            heights: if is_continued { Heights::continued(latest.last().copied()) } else { Heights::default() },
            forks: Forks::new(subject.has_blocks),
            // The records before a cursor came with another response.
            responses: u32::from(is_continued),
            taken: 0,
        }
    }

    /// True if the next records are not above the height of the latest one.
    pub fn has_falling_heights(&self) -> bool {
        self.heights.are_falling()
    }

    /// Number of responses that were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The latest records that the reader accepted.
    pub fn latest(&self) -> &Latest {
        &self.returned.latest
    }

    /// Records that were returned twice and are not proven to be two.
    pub fn open_repeats(&self) -> &[Repeat] {
        self.repeats.open()
    }

    /// True if the list is one of several that were cut at offsets.
    pub fn is_of_partition(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Takes note that the list has records, also if none of the response is taken.
    pub fn note_records(&mut self, response: &Response<'_>) {
        self.has_records |= self.subject.kind != ListKind::Lookup && response.rows.len() > 0;
    }

    /// Takes a response that contradicts others, for a reading of the list that takes the place of this one. These rows of it
    /// meet the arguments, or all do.
    pub fn on_rejected(&mut self, request: &PageRequest, response: &Response<'_>, kept: Option<&[u32]>) {
        if self.subject.kind == ListKind::Growing {
            self.lengths.on_rows(request, response, 0);
        }
        match self.subject.kind {
            ListKind::Fixed => self.one_block.on_rejected(response, kept),
            ListKind::Growing if self.subject.order == Order::Consecutive => {
                let heights = heights_of(response, 0..response.rows.len());
                self.heights.note_chain(&heights.unwrap_or_default(), &response.rows.keys());
            }
            ListKind::Growing if request.height_bound.is_none() => {
                self.note_unreturned(request, response, &(0..0), 0);
            }
            ListKind::Growing | ListKind::Ranked | ListKind::Lookup => {}
        }
    }

    /// Takes a response, of which rows are about to be returned. Fails with what contradicts them.
    pub fn on_response(
        &mut self,
        request: &PageRequest,
        response: &Response<'_>,
        accepted: &AcceptedRows<'_>,
    ) -> Result<(), String> {
        if self.subject.kind == ListKind::Lookup {
            return Ok(());
        }
        self.taken += 1;
        self.check_response(request, response, accepted)?;
        if request.purpose == Purpose::Audit {
            return self.on_look(request, response, accepted.seen.drift);
        }
        self.on_page(request, response, accepted)?;
        let kept = accepted.kept();
        if kept.len() < accepted.rows.len() {
            // A row that contradicts the arguments is in the list, although it is not returned.
            let dropped = accepted.rows.clone().filter(|row| !kept.contains(row));
            for row in dropped {
                let key = response.rows.key(row);
                let is_new = self.returned.keys.insert(key);
                self.unreturned.copies.on_returned(key, is_new);
            }
        }
        self.note_last(response, accepted, &kept);
        if !kept.is_empty() {
            self.on_kept(request, response, accepted, &kept)?;
        }
        // Without equal records, such a record is requested again in the end: only one part of the service may have had it.
        let has_others = accepted.rows.len() < response.rows.len();
        if has_others && self.returned.has_equal && self.has_record_between(response) {
            return Err(RECORD_BETWEEN.into());
        }
        Ok(())
    }

    /// Compares any response with those before it: also one of which no rows are returned.
    fn check_response(
        &mut self,
        request: &PageRequest,
        response: &Response<'_>,
        accepted: &AcceptedRows<'_>,
    ) -> Result<(), String> {
        check_echo(request, response)?;
        self.returned.check_position()?;
        self.lengths.on_rows(request, response, accepted.seen.drift);
        if request.purpose != Purpose::Audit {
            check_numbers(request, response)?;
        }
        if request.height_bound.is_none() && !self.returned.has_equal {
            self.distances.on_response(response.rows);
        }
        // A record that is equal to one of the first ones would be taken for it.
        if self.subject.compares_growth && request.height_bound.is_none() && !self.returned.has_equal {
            self.growth.on_response(request, response, accepted.seen);
        }
        if self.subject.kind == ListKind::Growing && accepted.rows.len() < response.rows.len() {
            let heights = heights_of(response, 0..response.rows.len());
            self.heights.on_response(self.subject.order, heights.as_deref(), || response.rows.keys())?;
        }
        if let Some(key) = self.forks.below_replaced(response.rows) {
            self.returned.below_replaced = Some(key);
            self.check_replaced()?;
        }
        let has_other_head = !self.subject.has_blocks && self.growth.shows_other_head(request, response);
        if has_other_head || self.has_lost_top(request, response, accepted.seen.drift) {
            return Err("the first records are not in the list any more, although others of their block are".into());
        }
        Ok(())
    }

    /// Takes the rows that are returned, by their indices.
    fn on_kept(
        &mut self,
        request: &PageRequest,
        response: &Response<'_>,
        accepted: &AcceptedRows<'_>,
        kept: &[usize],
    ) -> Result<(), String> {
        self.responses += 1;
        if self.subject.kind == ListKind::Fixed {
            self.one_block.on_response(request, response, kept, self.returned.count == 0)?;
        }
        self.forks.on_page(response, kept);
        self.forks.check_transactions(response.rows, kept)?;
        self.check_order(response, accepted, kept)?;
        let rows = response.rows;
        if self.returned.count == 0 {
            self.returned.began_after = accepted.seen.taken_before;
        }
        self.returned.top.get_or_insert_with(|| (rows.key(kept[0]), rows.block(kept[0])));
        if self.subject.order == Order::NewestFirst {
            let highest = rows.height(kept[0]).map(|height| self.forks.highest(height));
            self.returned.newest = self.returned.newest.or(highest);
        }
        let first = self.returned.next as i64 - accepted.rows.end as i64;
        self.unreturned.on_returned(rows, kept, first, &self.forks);
        self.check_keys(response, kept)
    }

    /// True if the list begins with a returned record of the block of the first one, and does not have that any more. A
    /// reorganization replaces all records of a block.
    fn has_lost_top(&self, request: &PageRequest, response: &Response<'_>, drift: i64) -> bool {
        let rows = response.rows;
        let Some((key, Some(block))) = self.returned.top else { return false };
        let begins_below = request.page == 1 && request.height_bound.is_none() && drift < 0 && rows.len() > 0;
        begins_below
            && self.subject.kind == ListKind::Growing
            && !self.returned.has_equal
            && rows.block(0) == Some(block)
            && self.returned.keys.contains(rows.key(0))
            && (0..rows.len()).all(|row| rows.key(row) != key)
    }

    /// Takes the rows of an accepted page, including those that a filter drops.
    fn on_page(
        &mut self,
        request: &PageRequest,
        response: &Response<'_>,
        accepted: &AcceptedRows<'_>,
    ) -> Result<(), String> {
        if self.returned.next == 0 {
            self.growth.begin((0..).zip(accepted.rows.clone().map(|row| response.rows.key(row))));
            self.growth.begin_at(accepted.rows.clone().filter_map(|row| response.rows.height(row)).max());
            self.growth.forget_repeated(response);
        }
        if self.subject.kind == ListKind::Fixed {
            self.one_block.on_accepted(response, accepted.rows.clone(), self.returned.next);
        }
        if self.subject.has_unique_keys
            && self.subject.kind == ListKind::Growing
            && !self.returned.follows(response.rows, &accepted.rows)
        {
            return Err("a record was received below one that was above it before".into());
        }
        self.check_ends(response, &accepted.rows)?;
        self.returned.latest.push(response.rows, accepted.rows.clone());
        self.lengths.on_response(request, response);
        self.small_pages.on_response(response);
        self.short_pages.on_response(request, response);
        let is_snapshot = self.is_of_snapshot(request);
        if is_snapshot && !self.places.on_response(request, response, &accepted.rows) {
            return Err("records do not follow each other by the number of records that the API reports".into());
        }
        if self.keeps_neighbors(request) {
            self.note_unreturned(request, response, &accepted.rows, accepted.seen.drift);
        }
        Ok(())
    }

    fn is_of_snapshot(&self, request: &PageRequest) -> bool {
        self.subject.kind == ListKind::Growing && request.height_bound.is_none()
    }

    /// True if a record stays below the one above it. The heights of blocks show what follows; their keys are not kept.
    pub(super) fn keeps_neighbors(&self, request: &PageRequest) -> bool {
        self.is_of_snapshot(request) && self.subject.order != Order::Consecutive
    }

    /// Takes the rows of a response other than these, which are about to be returned.
    fn note_unreturned(&mut self, request: &PageRequest, response: &Response<'_>, rows: &Range<usize>, drift: i64) {
        // Without their blocks, a reorganization may have moved or removed records.
        let has_blocks = self.subject.has_blocks;
        let number = if has_blocks { self.taken } else { u64::MAX };
        self.unreturned.below.on_response(request, response, rows, drift, &self.returned, number);
        let Self { unreturned, forks, returned, .. } = self;
        let others = OtherRows { rows: response.rows, returning: rows, forks, known: &returned.keys, number };
        unreturned.in_blocks.add(others);
        if has_blocks {
            unreturned.copies.add(others);
        }
    }

    /// Takes the last record that is wanted. Rows after it, and those that contradict the arguments, are no reason to look for
    /// what follows them.
    fn note_last(&mut self, response: &Response<'_>, accepted: &AcceptedRows<'_>, kept: &[usize]) {
        let wanted = self.subject.wanted.unwrap_or(u64::MAX).saturating_sub(self.returned.count);
        let wanted = &kept[..kept.len().min(usize::try_from(wanted).unwrap_or(usize::MAX))];
        let Some(row) = wanted.last() else { return };
        let height = response.rows.height(*row).filter(|_| self.subject.order == Order::NewestFirst);
        self.returned.last = Some(Last { offset: self.returned.next - (accepted.rows.end - row) as u64, height });
    }

    /// A partition has the records at its ends that the partitions next to it do not have.
    fn check_ends(&mut self, response: &Response<'_>, rows: &Range<usize>) -> Result<(), String> {
        let offsets = self.returned.next..self.returned.next + rows.len() as u64;
        self.returned.next = offsets.end;
        for (offset, key) in self.ends.iter().filter(|(offset, _)| offsets.contains(offset)) {
            if response.rows.key(rows.start + (offset - offsets.start) as usize) != *key {
                return Err(
                    "a partition does not begin or end with the records at its cuts; make the partitions again".into(),
                );
            }
        }
        Ok(())
    }

    fn check_order(
        &mut self,
        response: &Response<'_>,
        accepted: &AcceptedRows<'_>,
        kept: &[usize],
    ) -> Result<(), String> {
        let heights = heights_of(response, kept.iter().copied());
        let surplus = self.returned.next.saturating_sub(self.subject.wanted.unwrap_or(u64::MAX)) as usize;
        let wanted = kept.iter().filter(|row| accepted.rows.end - **row > surplus).count();
        self.heights.on_page(self.subject.order, heights.as_deref(), wanted, || {
            kept.iter().map(|row| response.rows.key(*row)).collect()
        })
    }

    /// Fails if a returned record is of the chain that has another block than the last record of the earlier run.
    fn check_replaced(&self) -> Result<(), String> {
        if self.returned.below_replaced.is_some_and(|key| self.returned.keys.contains(key)) {
            return Err("the block of the last record of the earlier run was replaced".into());
        }
        Ok(())
    }

    fn check_keys(&mut self, response: &Response<'_>, kept: &[usize]) -> Result<(), String> {
        if self.subject.order == Order::Consecutive && self.heights.are_in_order() {
            self.returned.count += kept.len() as u64;
            return Ok(());
        }
        let mut keys = Vec::new();
        let max_page_size = self.subject.page_size.max(self.subject.max_page_size);
        let returned: Vec<u64> = kept.iter().map(|row| response.rows.key(*row)).collect();
        let is_new = self.returned.keys.insert_all(&returned);
        for (key, is_new) in returned.into_iter().zip(is_new) {
            self.unreturned.copies.on_returned(key, is_new);
            if !is_new || self.returned.of_first_page.contains(&key) {
                self.returned.has_equal = true;
                if keys.is_empty() {
                    keys = response.rows.keys();
                }
                // Records without a key may be equal: a response that shows both has two.
                if self.subject.has_unique_keys && count(key, &keys) < 2 {
                    return Err("a record was received again".into());
                }
                let before = (1..).zip(self.returned.recent.iter().rev()).filter(|(_, recent)| **recent == key);
                let earlier = before.map(|(distance, _)| self.returned.count - distance);
                self.repeats.add(key, earlier, self.returned.count, &keys, max_page_size);
            }
            self.returned.push(key);
        }
        self.check_replaced()
    }

    /// True if a response has nothing but records that were returned already, or is another page than the requested one.
    pub fn is_repetition(&self, request: &PageRequest, response: &Response<'_>) -> bool {
        check_echo(request, response).is_err()
            || response.rows.keys().iter().all(|key| self.returned.recent.contains(key))
    }
}

/// Heights of some rows of a response, if each has one.
fn heights_of(response: &Response<'_>, rows: impl ExactSizeIterator<Item = usize>) -> Option<Vec<i64>> {
    let mut heights = Vec::with_capacity(rows.len());
    for row in rows {
        heights.push(response.rows.height(row)?);
    }
    Some(heights)
}
