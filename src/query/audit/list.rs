//! `ListAudit`: the audit of one list.

mod conclusion;
mod earlier;
mod end_requests;

use std::collections::VecDeque;
use std::ops::Range;

use end_requests::{RECORD_BETWEEN, Sought};

use super::forks::Forks;
use super::growth::Growth;
use super::heights::Heights;
use super::known::Last;
use super::known_keys::KnownKeys;
use super::latest::Latest;
use super::lengths::Lengths;
use super::numbers::{check_echo, check_numbers};
use super::one_block::OneBlock;
use super::places::Places;
use super::repeats::{Repeat, Repeats, count};
use super::short_pages::ShortPages;
use super::small_pages::SmallPages;
use super::strays::Strays;
use super::subject::{AcceptedRows, Extent, Subject};
use super::unreturned::Unreturned;
use crate::interface::Order;
use crate::query::snapshot::{ListKind, PageRequest, Purpose, Response};

/// Latest returned keys whose offsets are known: further apart than any two records that one response can show.
const RECENT: usize = 256;

/// The first record of the result.
#[derive(Clone, Copy, Debug)]
struct Top {
    key: u64,
    block: Option<u64>,
}

#[derive(Debug)]
pub struct ListAudit {
    subject: Subject,
    known: KnownKeys,
    /// Some records of the first page that an earlier run returned.
    earlier: Vec<u64>,
    /// True if an earlier run returned records, of which the latest are known.
    is_continued: bool,
    /// True if records of it are not known that are equal to others, or may be received again among others of their height.
    lacks_keys: bool,
    /// Number of records that the reader accepted, and so the offset of the next one.
    next: u64,
    /// The latest of these records.
    latest: Latest,
    /// The last record that is wanted, as far as the list was read.
    last: Option<Last>,
    /// The first record that was returned.
    top: Option<Top>,
    /// In descending order of heights: that from which on a record may be newer than those that were returned.
    newest: Option<i64>,
    /// Records that have to be at their offsets.
    ends: Vec<(u64, u64)>,
    /// Latest returned keys, and the number of all of them.
    recent: VecDeque<u64>,
    returned: u64,
    has_equal_records: bool,
    repeats: Repeats,
    unreturned: Unreturned,
    strays: Strays,
    growth: Growth,
    /// True if a response had records.
    has_records: bool,
    /// True if a reading of the list that was discarded has received records.
    had_records: bool,
    /// Part of the list that the reader had read when it ended.
    extent: Extent,
    /// Subject of the request of the audit that is in flight.
    sought: Sought,
    places: Places,
    lengths: Lengths,
    one_block: OneBlock,
    small_pages: SmallPages,
    short_pages: ShortPages,
    heights: Heights,
    forks: Forks,
    /// Responses of which rows were returned.
    responses: u32,
}

impl ListAudit {
    /// The audit of a list from the record at `offset` on, before which these were returned.
    pub fn new(subject: Subject, offset: u64, latest: &[u64]) -> Self {
        let mut known = KnownKeys::default();
        let has_equal_records = latest.iter().filter(|key| !known.insert(**key)).count() > 0;
        let earlier = Latest::of_earlier_run(latest);
        Self {
            subject,
            known,
            earlier: Vec::new(),
            is_continued: offset > 0,
            lacks_keys: offset > 0 && !earlier.has_all_of_height(offset),
            next: offset,
            latest: earlier,
            last: offset.checked_sub(1).map(|offset| Last { offset, height: None }),
            top: None,
            newest: None,
            ends: Vec::new(),
            recent: latest.iter().copied().collect(),
            returned: offset,
            has_equal_records,
            repeats: Repeats::default(),
            unreturned: Unreturned::new(subject.has_blocks),
            strays: Strays::default(),
            growth: Growth::default(),
            has_records: false,
            had_records: false,
            extent: Extent::default(),
            sought: Sought::default(),
            places: if offset > 0 { Places::continued() } else { Places::default() },
            lengths: if offset > 0 { Lengths::continued() } else { Lengths::default() },
            one_block: OneBlock::continued(offset, latest),
            small_pages: SmallPages::default(),
            short_pages: ShortPages::default(),
            heights: if offset > 0 { Heights::continued(latest.last().copied()) } else { Heights::default() },
            forks: Forks::new(subject.has_blocks),
            // The records before a cursor came with another response.
            responses: u32::from(offset > 0),
        }
    }

    /// True if the next records are not above the height of the latest one.
    pub fn has_falling_heights(&self) -> bool {
        self.heights.are_falling()
    }

    /// The latest records that the reader accepted.
    pub fn latest(&self) -> &Latest {
        &self.latest
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
                self.unreturned.on_response(request, response, &(0..0), 0, &self.known, self.latest.few());
                self.strays.add(response.rows, 0..response.rows.len(), &self.forks, &self.known);
            }
            ListKind::Growing | ListKind::Ranked | ListKind::Lookup => {}
        }
    }

    /// Takes a response, of which rows are about to be returned. Fails with what contradicts them.
    pub fn on_response(
        &mut self,
        request: &PageRequest,
        response: &Response<'_>,
        returned: &AcceptedRows<'_>,
    ) -> Result<(), String> {
        if self.subject.kind == ListKind::Lookup {
            return Ok(());
        }
        check_echo(request, response)?;
        self.lengths.on_rows(request, response, returned.seen.drift);
        if request.purpose != Purpose::Audit {
            check_numbers(request, response)?;
        }
        // A record that is equal to one of the first ones would be taken for it.
        if self.subject.compares_growth && request.height_bound.is_none() && !self.has_equal_records {
            self.growth.on_response(request, response, returned.seen);
        }
        if self.subject.kind == ListKind::Growing && returned.rows.len() < response.rows.len() {
            let heights = heights_of(response, 0..response.rows.len());
            self.heights.on_response(self.subject.order, heights.as_deref(), || response.rows.keys())?;
        }
        let has_other_head = !self.subject.has_blocks && self.growth.shows_other_head(request, response);
        if has_other_head || self.has_lost_top(request, response, returned.seen.drift) {
            return Err("the first records are not in the list any more, although others of their block are".into());
        }
        if request.purpose == Purpose::Audit {
            return self.on_look(request, response, returned.seen.drift);
        }
        self.on_page(request, response, returned)?;
        let kept = self.kept(response, returned);
        self.note_last(response, returned, &kept);
        if !kept.is_empty() {
            self.on_kept(request, response, returned, &kept)?;
        }
        // Without equal records, such a record is requested again in the end: only one part of the service may have had it.
        let has_others = returned.rows.len() < response.rows.len();
        if has_others && self.has_equal_records && self.has_record_between(response) {
            return Err(RECORD_BETWEEN.into());
        }
        Ok(())
    }

    /// Takes the rows that are returned, by their indices.
    fn on_kept(
        &mut self,
        request: &PageRequest,
        response: &Response<'_>,
        returned: &AcceptedRows<'_>,
        kept: &[usize],
    ) -> Result<(), String> {
        self.responses += 1;
        if self.subject.kind == ListKind::Fixed {
            self.one_block.on_response(request, response, kept, self.returned == 0)?;
        }
        self.forks.on_page(response, kept);
        self.check_order(response, returned, kept)?;
        let rows = response.rows;
        self.top.get_or_insert_with(|| Top { key: rows.key(kept[0]), block: rows.block(kept[0]) });
        if self.subject.order == Order::NewestFirst {
            self.newest = self.newest.or_else(|| rows.height(kept[0]));
        }
        for row in kept {
            let offset = self.next - (returned.rows.end - row) as u64;
            self.unreturned.on_returned(response.rows, *row, offset);
        }
        self.check_keys(response, kept)
    }

    /// True if the list begins with a returned record of the block of the first one, and does not have that any more. A
    /// reorganization replaces all records of a block.
    fn has_lost_top(&self, request: &PageRequest, response: &Response<'_>, drift: i64) -> bool {
        let rows = response.rows;
        let Some(Top { key, block: Some(block), .. }) = self.top else { return false };
        let begins_below = request.page == 1 && request.height_bound.is_none() && drift < 0 && rows.len() > 0;
        begins_below
            && self.subject.kind == ListKind::Growing
            && !self.has_equal_records
            && rows.block(0) == Some(block)
            && self.known.contains(rows.key(0))
            && (0..rows.len()).all(|row| rows.key(row) != key)
    }

    /// Takes the rows of an accepted page, including those that a filter drops.
    fn on_page(
        &mut self,
        request: &PageRequest,
        response: &Response<'_>,
        returned: &AcceptedRows<'_>,
    ) -> Result<(), String> {
        if self.next == 0 {
            self.growth.begin((0..).zip(returned.rows.clone().map(|row| response.rows.key(row))));
            self.growth.begin_at(returned.rows.clone().filter_map(|row| response.rows.height(row)).max());
            self.growth.forget_repeated(response);
        }
        if self.subject.kind == ListKind::Fixed {
            self.one_block.on_accepted(response, returned.rows.clone(), self.next);
        }
        self.check_ends(response, &returned.rows)?;
        self.latest.push(response.rows, returned.rows.clone());
        self.lengths.on_response(request, response);
        self.small_pages.on_response(response);
        self.short_pages.on_response(request, response);
        let is_snapshot = self.subject.kind == ListKind::Growing && request.height_bound.is_none();
        if is_snapshot && !self.places.on_response(request, response, &returned.rows) {
            return Err("records do not follow each other by the number of records that the API reports".into());
        }
        // The heights of blocks show what follows; their keys are not kept.
        if is_snapshot && self.subject.order != Order::Consecutive {
            let drift = returned.seen.drift;
            self.unreturned.on_response(request, response, &returned.rows, drift, &self.known, self.latest.few());
            let others = (0..returned.rows.start).chain(returned.rows.end..response.rows.len());
            self.strays.add(response.rows, others, &self.forks, &self.known);
        }
        Ok(())
    }

    /// Rows that are returned. One that contradicts the arguments is there, although it is not returned.
    fn kept(&mut self, response: &Response<'_>, returned: &AcceptedRows<'_>) -> Vec<usize> {
        let Some(kept) = returned.kept else { return returned.rows.clone().collect() };
        let kept: Vec<usize> = kept.iter().map(|row| returned.rows.start + *row as usize).collect();
        let dropped = returned.rows.clone().filter(|row| !kept.contains(row));
        dropped.for_each(|row| _ = self.known.insert(response.rows.key(row)));
        kept
    }

    /// Takes the last record that is wanted. Rows after it, and those that contradict the arguments, are no reason to look for
    /// what follows them.
    fn note_last(&mut self, response: &Response<'_>, returned: &AcceptedRows<'_>, kept: &[usize]) {
        let wanted = self.subject.wanted.unwrap_or(u64::MAX).saturating_sub(self.returned);
        let wanted = &kept[..kept.len().min(usize::try_from(wanted).unwrap_or(usize::MAX))];
        let Some(row) = wanted.last() else { return };
        let height = response.rows.height(*row).filter(|_| self.subject.order == Order::NewestFirst);
        self.last = Some(Last { offset: self.next - (returned.rows.end - row) as u64, height });
    }

    /// A partition has the records at its ends that the partitions next to it do not have.
    fn check_ends(&mut self, response: &Response<'_>, rows: &Range<usize>) -> Result<(), String> {
        let offsets = self.next..self.next + rows.len() as u64;
        self.next = offsets.end;
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
        returned: &AcceptedRows<'_>,
        kept: &[usize],
    ) -> Result<(), String> {
        let heights = heights_of(response, kept.iter().copied());
        let surplus = self.next.saturating_sub(self.subject.wanted.unwrap_or(u64::MAX)) as usize;
        let wanted = kept.iter().filter(|row| returned.rows.end - **row > surplus).count();
        self.heights.on_page(self.subject.order, heights.as_deref(), wanted, || {
            kept.iter().map(|row| response.rows.key(*row)).collect()
        })
    }

    fn check_keys(&mut self, response: &Response<'_>, kept: &[usize]) -> Result<(), String> {
        if self.subject.order == Order::Consecutive && self.heights.are_in_order() {
            self.returned += kept.len() as u64;
            return Ok(());
        }
        let mut keys = Vec::new();
        let max_page_size = self.subject.page_size.max(self.subject.max_page_size);
        // All look-ups first: the table is larger than the processor's caches, and several accesses are waited for at once.
        let is_new: Vec<bool> = kept.iter().map(|row| self.known.insert(response.rows.key(*row))).collect();
        for (row, is_new) in kept.iter().zip(is_new) {
            let key = response.rows.key(*row);
            if !is_new || self.earlier.contains(&key) {
                self.has_equal_records = true;
                if keys.is_empty() {
                    keys = response.rows.keys();
                }
                // Records without a key may be equal: a response that shows both has two.
                if self.subject.has_unique_keys && count(key, &keys) < 2 {
                    return Err("a record was received again".into());
                }
                let before = (1..).zip(self.recent.iter().rev()).filter(|(_, recent)| **recent == key);
                let earlier = before.map(|(distance, _)| self.returned - distance);
                self.repeats.add(key, earlier, self.returned, &keys, max_page_size);
            }
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(key);
            self.returned += 1;
        }
        Ok(())
    }

    /// True if a response has nothing but records that were returned already, or is another page than the requested one.
    pub fn is_repetition(&self, request: &PageRequest, response: &Response<'_>) -> bool {
        check_echo(request, response).is_err() || response.rows.keys().iter().all(|key| self.recent.contains(key))
    }
}

/// Heights of some rows of a response, if each has one.
fn heights_of(response: &Response<'_>, rows: impl Iterator<Item = usize>) -> Option<Vec<i64>> {
    rows.map(|row| response.rows.height(row)).collect()
}
