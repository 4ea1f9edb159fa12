//! `BlockReader`: reads the records of one block, or of a lookup: a list that does not change. Its pages follow each other,
//! and nothing has to be located.
//!
//! | Phase | Request | Response | Next phase |
//! |---|---|---|---|
//! | `First` | page 1 | the only page | ended |
//! | | | one of several | `Ahead` |
//! | | has arrived, and waits for the slices before | `Announced` |
//! | `Announced` | next pages, several in flight | page 1, as in `First` | `Ahead`, or ended |
//! | `Ahead` | next pages, several in flight | not the last | `Ahead` |
//! | | | the last | ended |
//! | | | begins below the next record, or shows another length | failed: the block was replaced |

use super::checkpoint::{Accepted, ListCheckpoint};
use super::reader::Reader;
use super::snapshot::Length;
use super::spec::{End, ListSpec, PageRequest, Response, View};
use super::state::ListState;
use crate::client::Error;

#[derive(Clone, Debug)]
pub struct BlockReader {
    list: ListState,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    First,
    /// Number of pages of the list.
    Announced(u64),
    Ahead,
}

impl BlockReader {
    pub fn new(spec: ListSpec) -> Self {
        Self { list: ListState::new(spec), phase: Phase::First }
    }

    /// A reader that continues from a checkpoint, after `returned` records.
    pub fn resumed(spec: ListSpec, returned: u64, checkpoint: &ListCheckpoint) -> Self {
        let mut list = ListState::resumed(spec, returned, checkpoint);
        if list.is_read() {
            list.end_with(End::List);
        }
        Self { list, phase: Phase::Ahead }
    }

    /// Allows the pages that follow the first one, before its response is taken.
    pub fn announce(&mut self, pages: u64) {
        if let Phase::First = self.phase {
            self.phase = Phase::Announced(pages);
            self.list.next_page = 2;
        }
    }

    pub fn is_announced(&self, page: u64) -> bool {
        matches!(self.phase, Phase::Announced(pages) if page <= pages)
    }

    /// All pages but the last are full.
    fn on_page(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        let list = &mut self.list;
        let read = list.delivered.end();
        if view.len() == 0 && view.pages.is_none() {
            // The pages are not counted: it is the end of the list. If it has one page, that is all of it.
            if read <= list.snapshot.page_rows() {
                list.snapshot.length = Length::Exact(read);
            }
            return self.finish(view, Accepted::default());
        }
        let from = usize::try_from(read as i64 - view.position).unwrap_or(usize::MAX);
        let lengths = view.lengths();
        let has_other_total = view.total.is_some_and(|total| list.snapshot.length.exact() != Some(total));
        let is_shorter = *lengths.end() < list.snapshot.min_length as i64;
        let is_longer = *lengths.start() > list.snapshot.max_length() as i64;
        if has_other_total || view.pages.is_some() && (is_shorter || is_longer) || from > view.rows.len() {
            return Err(list.drift_error("the list of one block changed while it was read"));
        }
        let accepted = self.accept(view, from..view.rows.len());
        self.finish(view, accepted)
    }
}

impl Reader for BlockReader {
    fn list(&self) -> &ListState {
        &self.list
    }

    fn list_mut(&mut self) -> &mut ListState {
        &mut self.list
    }

    fn is_ahead(&self) -> bool {
        matches!(self.phase, Phase::Ahead | Phase::Announced(_))
    }

    fn allow_ahead(&mut self, page: u64) -> bool {
        match self.phase {
            Phase::Announced(pages) => page <= pages,
            Phase::First | Phase::Ahead => self.list.has_page(page),
        }
    }

    fn request(&self) -> PageRequest {
        self.list.page(self.list.next_page)
    }

    fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<Accepted, Error> {
        if let Phase::First | Phase::Announced(_) = self.phase {
            self.phase = Phase::Ahead;
            let next_page = self.list.next_page;
            let accepted = self.begin(request, response);
            self.list.next_page = self.list.next_page.max(next_page);
            return accepted;
        }
        let view = self.list.view(request, response);
        self.on_page(&view)
    }
}
