//! `RankedReader`: reads a list whose records change their positions at any time, such as tokens by market capitalization.
//!
//! No position says which records were read, so records are told apart by their keys alone. The pages are read in turn, and
//! each record is returned when it is received first. A record that moves to a page that was read already is missed: the
//! pages are read again until as many different records were received as the list has. A record that is removed moves others
//! to such a page, and leaves as many: so the length is known before a pass and after it, and a look at the first page shows
//! what moved there before the length was known.
//!
//! | Phase | Request | Response | Next phase |
//! |---|---|---|---|
//! | `Pass` | page 1 | the only page of the list | ended |
//! | | | another page follows | `Length`; `Pass`, if the full pages have all that is wanted |
//! | | the next pages, several in flight, and the last one alone | another page follows | `Pass` |
//! | | | the last of several pages | `Look`; `Recount`, if the pages have more records than the length; ended at the result window, or if the length is unknown |
//! | `Length` | a page of one record: its number of pages is the length | | `Pass` |
//! | `Recount` | a page of one record | the length, which includes the last page or does not | `Look` |
//! | `Look` | page 1 | the pass missed nothing | ended |
//! | | | it may have missed some, such as the record of a one-record page | `Length`, a few times, and then ended |
//! | | | the length did not include the last page, for the third time | ended |

use std::cmp::Ordering;
use std::collections::HashSet;

use super::checkpoint::{Accepted, ListCheckpoint};
use super::reader::Reader;
use super::snapshot::{Length, Snapshot};
use super::spec::{End, ListSpec, PageRequest, Purpose, Response};
use super::state::ListState;
use crate::client::Error;

/// Most times that the pages are read. Records move a few positions at a time, so that the second pass finds nearly all
/// that the first one missed.
const MAX_PASSES: u32 = 8;
/// Most pages of a pass, as a multiple of those that its list had at first, and some more: the list may grow as fast as it
/// is read.
const MAX_GROWTH: u64 = 3;
const SOME_PAGES: u64 = 8;
/// Passes in which a record that a one-record page showed is looked for: it may have been removed since.
const PASSES_FOR_SHOWN: u32 = 3;
/// Most passes at whose end the length was too low: a record may be removed right after one was added.
const MAX_MISCOUNTS: u32 = 2;

#[derive(Clone, Copy, Debug)]
enum Phase {
    Pass,
    Length,
    /// The length again, after a pass at whose end the list had this one, which is greater: the list has grown, or the number
    /// of one-record pages is wrong.
    Recount {
        end_length: u64,
    },
    /// The first page, after a pass at whose end the list had this length.
    Look {
        end_length: u64,
    },
}

#[derive(Clone, Debug)]
pub struct RankedReader {
    list: ListState,
    phase: Phase,
    known: HashSet<u64>,
    length: Length,
    /// Number of pages by the first response, and by the latest.
    first_pages: Option<u64>,
    pages: Option<u64>,
    /// Page whose response was taken last, or 0. Without a number of pages, one without a new record ends the list.
    page: u64,
    pass: u32,
    /// Records of the one-record pages.
    shown: HashSet<u64>,
    /// Number of records that the list has at least, by any response of this pass.
    min_length: u64,
    /// Keys of the first page of this pass, which was received before the length.
    keys_of_first_page: HashSet<u64>,
    /// Records that an earlier run returned.
    earlier: u64,
    /// Records that were received again in the first pass, or late.
    moved: u64,
    /// Passes at whose end the list had more records than its length counted, before and after.
    miscounts: u32,
    /// True if the length includes the last page of the latest pass.
    is_counted: bool,
}

impl RankedReader {
    pub fn new(spec: ListSpec) -> Self {
        Self::resumed(spec, &ListCheckpoint::default())
    }

    pub fn resumed(spec: ListSpec, checkpoint: &ListCheckpoint) -> Self {
        let mut list = ListState::resumed(spec, checkpoint.end(), checkpoint);
        list.next_page = checkpoint.ranked_page.unwrap_or(0).max(1);
        Self {
            known: checkpoint.delivered.keys().iter().copied().collect(),
            list,
            phase: Phase::Pass,
            length: checkpoint.snapshot.length,
            first_pages: None,
            pages: None,
            page: 0,
            pass: 1,
            shown: HashSet::new(),
            min_length: 0,
            keys_of_first_page: HashSet::new(),
            earlier: checkpoint.end(),
            moved: 0,
            miscounts: 0,
            is_counted: true,
        }
    }

    pub fn moved(&self) -> u64 {
        self.moved
    }

    fn on_page(&mut self, request: &PageRequest, response: &Response<'_>) -> Accepted {
        if self.page == 0 {
            self.list.snapshot = Snapshot::new(request, response);
            self.first_pages = response.total_pages;
        }
        let before = self.checkpoint();
        let fresh = self.take_fresh(request, response);
        // Records that were there before the length was requested, and are there after it, are counted by it.
        if self.length.exact().is_some_and(|length| length < self.num_still_listed(response)) {
            self.length = Length::Unknown;
        }
        if request.page == 1 {
            self.keys_of_first_page = (0..response.rows.len()).map(|row| response.rows.key(row)).collect();
        }
        self.page = request.page;
        self.pages = response.total_pages.or(self.pages);
        let full_pages = self.pages.unwrap_or(0).saturating_sub(1);
        let on_last_page = if request.page > full_pages { response.rows.len() as u64 } else { 0 };
        self.min_length = self.min_length.max(full_pages.saturating_mul(self.list.snapshot.page_rows()) + on_last_page);
        let is_without_news = fresh.is_empty();
        if let Phase::Look { end_length } = self.phase {
            match self.end_of_pass(end_length, is_without_news && response.rows.len() > 0) {
                Some(end) => self.list.end_with(end),
                None => self.begin_pass(),
            }
            // Without news, it is no page of the result.
            let rows = if is_without_news { 0..0 } else { 0..response.rows.len() };
            return Accepted { rows, fresh: Some(fresh), before };
        }
        if is_without_news && response.total_pages.is_none() || self.is_last(request, response) {
            self.after_last(request, response);
        } else if self.first_pages.is_some_and(|pages| request.page > MAX_GROWTH * pages + SOME_PAGES) {
            self.list.end_with(End::Unsettled);
        } else if self.length == Length::Pending && !self.has_rest_on(full_pages) {
            self.phase = Phase::Length;
        }
        Accepted { rows: 0..response.rows.len(), fresh: Some(fresh), before }
    }

    /// Takes the records of a response that are new, and returns their rows.
    fn take_fresh(&mut self, request: &PageRequest, response: &Response<'_>) -> Vec<u32> {
        let keys = response.rows.keys();
        let fresh: Vec<u32> =
            (0..).zip(&keys).filter(|(_, key)| self.known.insert(**key)).map(|(row, _)| row).collect();
        // A pass after the first one finds again what the earlier ones found, and so do the pages before a cursor.
        let moved = if self.pass > 1 {
            fresh.len() as u64
        } else {
            let before = request.position_by(self.list.snapshot.page_rows());
            let of_earlier_run = self.earlier.saturating_sub(before).min(keys.len() as u64);
            (keys.len() as u64 - fresh.len() as u64).abs_diff(of_earlier_run)
        };
        self.moved += moved;
        self.list.delivered.push(fresh.iter().map(|row| keys[*row as usize]), usize::MAX);
        self.list.returned = self.list.delivered.end();
        fresh
    }

    /// Number of records of the first page of this pass that a response has too.
    fn num_still_listed(&self, response: &Response<'_>) -> u64 {
        (0..response.rows.len()).filter(|row| self.keys_of_first_page.contains(&response.rows.key(*row))).count() as u64
    }

    /// True if these full pages have all that is wanted.
    fn has_rest_on(&self, full_pages: u64) -> bool {
        let records = full_pages.saturating_mul(self.list.snapshot.page_rows());
        self.list.spec.wanted.is_some_and(|wanted| wanted <= records)
    }

    fn is_last(&self, request: &PageRequest, response: &Response<'_>) -> bool {
        response.rows.len() == 0 || response.total_pages.is_some_and(|pages| request.page >= pages)
    }

    fn after_last(&mut self, request: &PageRequest, response: &Response<'_>) {
        let is_only = request.page == 1 && response.total_pages.is_some_and(|pages| pages <= 1);
        let is_empty = response.rows.len() == 0 && self.list.returned == 0 && self.pages.is_none();
        let read = request.position_by(self.list.snapshot.page_rows()) + response.rows.len() as u64;
        if read >= self.list.spec.window() {
            self.list.end_with(End::ResultWindow);
        } else if is_only || is_empty {
            self.list.end_with(match self.list.returned.cmp(&(response.rows.len() as u64)) {
                // A page that shows a record twice may lack another.
                Ordering::Less => End::Unsettled,
                Ordering::Equal => End::List,
                // An earlier run returned records that are not there any more.
                Ordering::Greater => End::Shrunk,
            });
        } else if self.length == Length::Unknown || self.pages.is_none() {
            self.list.end_with(End::UnknownLength);
        } else {
            // A page without records shows no length.
            let end_length = if response.rows.len() > 0 { read } else { 0 };
            self.is_counted = self.length.exact().is_none_or(|length| length >= end_length);
            self.phase = if self.is_counted { Phase::Look { end_length } } else { Phase::Recount { end_length } };
            self.pass += 1;
        }
    }

    fn begin_pass(&mut self) {
        self.min_length = 0;
        self.length = Length::Pending;
        self.phase = Phase::Length;
        self.list.next_page = 2;
    }

    /// The end of the list, if another pass would find nothing, or was made often enough.
    fn end_of_pass(&self, end_length: u64, is_confirmed: bool) -> Option<End> {
        if self.length == Length::Unknown || self.miscounts > MAX_MISCOUNTS {
            return Some(End::UnknownLength);
        }
        let returned = self.list.returned;
        // A part of the service that lacks records may have answered.
        let is_not_shorter = self.length.exact().is_some_and(|length| length <= end_length);
        if is_confirmed && is_not_shorter && self.is_counted && returned >= end_length.max(self.min_length) {
            if self.shown.is_subset(&self.known) {
                return Some(if returned > end_length { End::Shrunk } else { End::List });
            }
            if self.pass > PASSES_FOR_SHOWN {
                return Some(End::Lacking);
            }
        }
        if self.pass > MAX_PASSES { Some(End::Unsettled) } else { None }
    }

    /// Notes the record of a one-record page, which is returned once a page of the list has it.
    fn note_shown(&mut self, response: &Response<'_>) {
        self.shown.extend((0..response.rows.len()).map(|row| response.rows.key(row)));
    }

    /// A list that has grown is counted with its last page, unless a record was removed since.
    fn on_recount(&mut self, response: &Response<'_>, end_length: u64) {
        let length = response.total_pages.filter(|_| response.rows.len() == 1);
        self.is_counted = length.is_some_and(|length| length >= end_length);
        self.miscounts += u32::from(!self.is_counted);
        self.phase = Phase::Look { end_length };
    }

    fn on_length(&mut self, response: &Response<'_>) {
        let rows = self.list.snapshot.page_rows();
        let pages = self.pages.unwrap_or(0);
        // Records may be added or removed between the first page and this response, but not a page of them.
        let of_pages = pages.saturating_sub(2) * rows + 1..=(pages + 1) * rows;
        let length = response.total_pages.filter(|length| response.rows.len() == 1 && of_pages.contains(length));
        self.length = length.map_or(Length::Unknown, Length::Exact);
        self.phase = Phase::Pass;
    }
}

impl Reader for RankedReader {
    fn list(&self) -> &ListState {
        &self.list
    }

    fn list_mut(&mut self) -> &mut ListState {
        &mut self.list
    }

    fn is_ahead(&self) -> bool {
        matches!(self.phase, Phase::Pass)
    }

    fn allow_ahead(&mut self, page: u64) -> bool {
        // The last page is requested after all others, since a record may be removed between two responses.
        self.pages.is_some_and(|pages| page < pages)
    }

    fn request(&self) -> PageRequest {
        match self.phase {
            Phase::Pass => self.list.page(self.list.next_page),
            Phase::Look { .. } => self.list.page(1),
            Phase::Length => PageRequest::new(Purpose::Probe, 1, 1),
            // A cache may have the page that was requested for the length.
            Phase::Recount { .. } => PageRequest::new(Purpose::Probe, u64::from(self.miscounts) + 2, 1),
        }
    }

    fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<Accepted, Error> {
        match self.phase {
            Phase::Pass | Phase::Look { .. } => Ok(self.on_page(request, response)),
            Phase::Length => {
                self.note_shown(response);
                self.on_length(response);
                Ok(Accepted::default())
            }
            Phase::Recount { end_length } => {
                self.note_shown(response);
                self.on_recount(response, end_length);
                Ok(Accepted::default())
            }
        }
    }

    /// Ends the beginning of a list. One that was received again has moved down, and another may have moved up unseen.
    fn stop(&mut self) -> bool {
        self.list.end_with(if self.moved > 0 { End::Unsettled } else { End::List });
        true
    }

    fn checkpoint(&self) -> ListCheckpoint {
        let delivered = self.list.delivered.clone();
        let snapshot = Snapshot { length: self.length, ..Snapshot::default() };
        ListCheckpoint { snapshot, delivered, ranked_page: Some(self.page.max(1)), ..ListCheckpoint::default() }
    }

    fn to_come(&self) -> u64 {
        self.pages.unwrap_or(0).saturating_mul(self.list.spec.page_size).saturating_sub(self.list.returned)
    }
}
