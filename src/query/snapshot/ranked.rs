//! `RankedReader`: reads a list whose records change their positions at any time, such as tokens by market capitalization.
//!
//! No position says which records were read, so records are told apart by their keys alone. The pages are read in turn, and
//! each record is returned when it is received first. A record that moves to a page that was read already is missed: the
//! pages are read again until as many different records were received as the list has.
//!
//! | Phase | Request | Response | Next phase |
//! |---|---|---|---|
//! | `Pass` | the next pages, several in flight | another page follows | `Pass` |
//! | | | the only page of the list | `Done` |
//! | | | the last of several pages | `Length`; `Done` at the result window |
//! | `Length` | a page of one record: its number of pages is the length | as many records were received | `Done` |
//! | | | more records are listed | `Pass` from page 1 on, a few times, and then `Done` |
//! | | | no length, or one that contradicts the pages | `Done`: the length is unknown |

use std::collections::HashSet;

use super::checkpoint::{Accepted, ListCheckpoint, RankedCheckpoint};
use super::snapshot::Snapshot;
use super::spec::{End, ListSpec, PageRequest, Purpose, Response};
use crate::client::Error;

/// Most times that the pages are read. Records move a few positions at a time, so that the second pass finds nearly all
/// that the first one missed.
const MAX_PASSES: u32 = 8;
/// Most pages of a pass, as a multiple of those that its list had at first, and some more: the list may grow as fast as it
/// is read.
const MAX_GROWTH: u64 = 3;
const SOME_PAGES: u64 = 8;

#[derive(Debug)]
enum Phase {
    Pass { next_page: u64 },
    Length,
    Done(End),
    Failed(Error),
}

#[derive(Debug)]
pub struct RankedReader {
    spec: ListSpec,
    phase: Phase,
    snapshot: Snapshot,
    keys: Vec<u64>,
    known: HashSet<u64>,
    /// Number of pages by the first response, and by the latest.
    first_pages: Option<u64>,
    pages: Option<u64>,
    /// Page whose response was taken last, or 0. Without a number of pages, one without a new record ends the list.
    page: u64,
    pass: u32,
    /// Least length of the list by any response of this pass.
    least: u64,
    /// Records that were received again in the first pass, or late.
    moved: u64,
}

impl RankedReader {
    pub fn new(spec: ListSpec) -> Self {
        Self::resumed(spec, &RankedCheckpoint { keys: Vec::new(), page: 1 })
    }

    pub fn resumed(spec: ListSpec, checkpoint: &RankedCheckpoint) -> Self {
        let RankedCheckpoint { keys, page } = checkpoint.clone();
        Self {
            spec,
            phase: Phase::Pass { next_page: page.max(1) },
            snapshot: Snapshot::default(),
            known: keys.iter().copied().collect(),
            keys,
            first_pages: None,
            pages: None,
            page: 0,
            pass: 1,
            least: 0,
            moved: 0,
        }
    }

    pub fn returned(&self) -> u64 {
        self.keys.len() as u64
    }

    pub fn moved(&self) -> u64 {
        self.moved
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    pub fn end(&self) -> Option<End> {
        if let Phase::Done(end) = self.phase { Some(end) } else { None }
    }

    pub fn error(&self) -> Option<&Error> {
        if let Phase::Failed(error) = &self.phase { Some(error) } else { None }
    }

    pub fn fail(&mut self, error: Error) {
        self.phase = Phase::Failed(error);
    }

    pub fn end_with(&mut self, end: End) {
        self.phase = Phase::Done(end);
    }

    pub fn spec(&self) -> &ListSpec {
        &self.spec
    }

    pub fn to_come(&self) -> u64 {
        self.pages.unwrap_or(0).saturating_mul(self.spec.page_size).saturating_sub(self.returned())
    }

    /// True if it was reading.
    pub fn stop(&mut self) -> bool {
        let is_reading = matches!(self.phase, Phase::Pass { .. } | Phase::Length);
        if is_reading {
            self.phase = Phase::Done(End::List);
        }
        is_reading
    }

    pub fn is_ahead(&self) -> bool {
        matches!(self.phase, Phase::Pass { .. })
    }

    pub fn next_request(&mut self, in_flight: usize) -> Option<PageRequest> {
        match self.phase {
            Phase::Pass { next_page } if in_flight == 0 || self.pages.is_some_and(|pages| next_page <= pages) => {
                self.phase = Phase::Pass { next_page: next_page + 1 };
                Some(PageRequest { page: next_page, ..PageRequest::first(self.spec.page_size) })
            }
            Phase::Length if in_flight == 0 => {
                Some(PageRequest { purpose: Purpose::CountProbe, ..PageRequest::first(1) })
            }
            _ => None,
        }
    }

    /// Takes back a request that was cancelled.
    pub fn cancel(&mut self, request: &PageRequest) {
        if let Phase::Pass { next_page } = &mut self.phase {
            *next_page = request.page.min(*next_page);
        }
    }

    pub fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) -> Accepted {
        match self.phase {
            Phase::Pass { .. } => self.on_page(request, response),
            Phase::Length => {
                let end = self.end_of_pass(response);
                self.phase = end.map_or(Phase::Pass { next_page: 1 }, Phase::Done);
                self.pass += 1;
                self.least = 0;
                Accepted::default()
            }
            Phase::Done(_) | Phase::Failed(_) => Accepted::default(),
        }
    }

    fn on_page(&mut self, request: &PageRequest, response: &Response<'_>) -> Accepted {
        if self.page == 0 {
            self.snapshot = Snapshot::new(request, response);
            self.first_pages = response.total_pages;
        }
        let before = self.checkpoint();
        let is_resumed = self.page == 0 && !self.keys.is_empty();
        let mut fresh = Vec::new();
        for row in 0..response.rows.len() {
            let key = response.rows.key(row);
            let is_fresh = self.known.insert(key);
            if is_fresh {
                self.keys.push(key);
                fresh.push(row as u32);
            }
            // A pass after the first one finds again what the earlier ones found, and so does the page of a cursor.
            let is_moved = if self.pass > 1 { is_fresh } else { !is_fresh && !is_resumed };
            self.moved += u64::from(is_moved);
        }
        self.page = request.page;
        self.pages = response.total_pages.or(self.pages);
        let full_pages = self.pages.unwrap_or(0).saturating_sub(1);
        let on_last_page = if request.page > full_pages { response.rows.len() as u64 } else { 0 };
        self.least = self.least.max(full_pages.saturating_mul(self.snapshot.page_rows()) + on_last_page);
        let is_last = fresh.is_empty() && response.total_pages.is_none() || self.is_last(request, response);
        if is_last {
            self.phase = self.after_last(request, response);
        } else if self.first_pages.is_some_and(|pages| request.page > MAX_GROWTH * pages + SOME_PAGES) {
            self.phase = Phase::Done(End::Unsettled);
        }
        Accepted { rows: 0..response.rows.len(), fresh: Some(fresh), before }
    }

    fn is_last(&self, request: &PageRequest, response: &Response<'_>) -> bool {
        let is_wanted = self.spec.wanted.is_none_or(|wanted| self.returned() < wanted);
        !is_wanted || response.rows.len() == 0 || response.total_pages.is_some_and(|pages| request.page >= pages)
    }

    fn after_last(&self, request: &PageRequest, response: &Response<'_>) -> Phase {
        let is_only = request.page == 1 && response.total_pages.is_some_and(|pages| pages <= 1);
        let is_empty = response.rows.len() == 0 && request.page <= 2 && self.pages.is_none();
        let read = (request.page - 1) * self.snapshot.page_rows() + response.rows.len() as u64;
        if self.spec.wanted.is_some_and(|wanted| self.returned() >= wanted) {
            Phase::Done(End::List)
        } else if read >= self.spec.window() {
            Phase::Done(End::ResultWindow)
        } else if is_only || is_empty {
            Phase::Done(End::List)
        } else {
            Phase::Length
        }
    }

    /// The end of the list, if another pass would find nothing, or was made often enough.
    fn end_of_pass(&self, response: &Response<'_>) -> Option<End> {
        let rows = self.snapshot.page_rows();
        let pages = self.pages.unwrap_or(0);
        // Records may be added or removed between the last page and this response, but not a page of them.
        let of_pages = pages.saturating_sub(2) * rows + 1..=(pages + 1) * rows;
        match response.total_pages {
            // A part of the service that lacks records may have answered last.
            Some(length) if response.rows.len() == 1 && of_pages.contains(&length) => {
                if self.returned() >= length.max(self.least) {
                    Some(End::List)
                } else if self.pass >= MAX_PASSES {
                    Some(End::Unsettled)
                } else {
                    None
                }
            }
            Some(_) | None => Some(End::UnknownLength),
        }
    }

    /// The position after the records returned so far.
    pub fn checkpoint(&self) -> ListCheckpoint {
        ListCheckpoint::of_ranked(RankedCheckpoint { keys: self.keys.clone(), page: self.page.max(1) })
    }
}
