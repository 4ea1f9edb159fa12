//! `CountedReader`: reads a list that grows and whose responses report the number of its records. Counted from its end, the
//! list does not change while it grows: the count of a response gives the offset of its rows. Keys of records are not kept.
//!
//! | Phase | Request | Response | Next phase |
//! |---|---|---|---|
//! | `First` | page 1 | the only page | ended |
//! | | | one of several | `Ahead` |
//! | `Ahead` | next pages, several in flight | new rows | `Ahead`; `Around` if the drift made most rows known |
//! | | | no new rows, or no count | as in `Around` |
//! | `Around` | page around the next record | new rows | `Around`; `Ahead` once the list is stable |
//! | | | no new rows, drift | `Around` |
//! | | | no new rows, no drift; or no count | `Measure`, then `Single`; `Around` if the pages have a fixed size |
//! | `Measure` | the next record alone, for the drift | has a count, or none | `Around`, then `Single` or `Measure` |
//! | `Single` | the next record alone | at its offset | `Single` |
//! | | | at another offset | `Single` |
//! | | | no count | `Around` |
//!
//! A list of which more than one response was used ends with a final look: a record of the first page at its offset shows that
//! no record below it was deleted, and so that all offsets in between were right.

use super::checkpoint::{Accepted, Cut, ListCheckpoint};
use super::delivered::Delivered;
use super::reader::Reader;
use super::snapshot::Proof;
use super::spec::{End, ListSpec, PageRequest, Purpose, Response, View};
use super::state::{Attempt, ListState};
use crate::client::Error;

#[derive(Clone, Debug)]
pub struct CountedReader {
    list: ListState,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    First,
    Ahead,
    Around(Attempt),
    Measure,
    Single,
}

impl CountedReader {
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

    fn go_ahead(&mut self) {
        self.phase = Phase::Ahead;
        self.list.set_next_page();
    }

    /// Takes the rows of a page from the next record on. A page without it leads to another request for that record.
    fn on_page(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        if view.total.is_some_and(|total| view.len() > 0 && view.position as u64 + view.len() > total) {
            return Err(self.list.drift_error("a page ends below the last record of the list by its count"));
        }
        let attempt = if let Phase::Around(attempt) = self.phase { attempt } else { Attempt::Expected };
        let Some(offset) = self.list.snapshot.offset_by_count(view) else {
            self.phase = self.after_miss(attempt);
            return self.list.miss(view);
        };
        let has_drifted = self.list.observe(view.position - offset);
        let rows = self.list.new_rows(view, offset);
        if rows.is_empty() {
            // Without drift, such a page will not show the next record.
            let next = self.after_miss(attempt.max(Attempt::Observed));
            self.phase = if has_drifted { Phase::Around(Attempt::Expected) } else { next };
            return self.list.miss(view);
        }
        // The rows continue the delivered records without a gap, if the counts are right.
        debug_assert_eq!(offset + rows.start as i64, self.list.delivered.end() as i64);
        let are_mostly_known = rows.start * 2 > view.rows.len();
        // A response may have more rows than a page. Without the last of them, it does not show the end.
        let is_within = rows.end < view.rows.len();
        // A second response is used, whose offset is right only if no record below it was deleted.
        self.list.proof = Proof::FinalLook;
        let accepted = self.accept(view, rows);
        match self.phase {
            // Pages requested ahead are of use unless most of their records were returned.
            Phase::Ahead if !(has_drifted && are_mostly_known) => {}
            Phase::Around(_) if self.list.is_stable() => self.go_ahead(),
            _ => self.phase = Phase::Around(Attempt::Expected),
        }
        if is_within && !self.list.is_read() { Ok(accepted) } else { self.finish(view, accepted) }
    }

    /// The next request for the next record, after a response that did not show it.
    fn after_miss(&self, attempt: Attempt) -> Phase {
        let has_single = !self.list.snapshot.has_fixed_pages();
        match attempt {
            Attempt::Measured => Phase::Single,
            Attempt::Expected | Attempt::Observed if has_single => Phase::Measure,
            Attempt::Expected | Attempt::Observed => Phase::Around(Attempt::Observed),
        }
    }

    /// Takes the drift from one record alone, whose number of pages is a count as well. Its row is not used.
    fn on_measure(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        let offset = self.list.snapshot.offset_of_one(view);
        if let Some(offset) = offset {
            self.list.observe(view.position - offset);
        }
        self.phase = Phase::Around(if offset.is_some() { Attempt::Measured } else { Attempt::Observed });
        self.list.miss(view)
    }

    /// Takes the next record alone.
    fn on_single(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        let Some(offset) = self.list.snapshot.offset_of_one(view) else {
            self.phase = Phase::Around(Attempt::Observed);
            return self.list.miss(view);
        };
        self.list.observe(view.position - offset);
        if view.len() == 0 || offset != self.list.delivered.end() as i64 {
            return self.list.miss(view);
        }
        self.list.proof = Proof::FinalLook;
        let accepted = self.accept(view, 0..1);
        self.finish(view, accepted)
    }

    /// A later page as it lies in the snapshot: the offset of its first row.
    fn located<'a>(&self, request: &PageRequest, response: &Response<'a>) -> Option<(View<'a>, i64)> {
        let snapshot = &self.list.snapshot;
        let view = snapshot.view(request, response, self.list.spec.window());
        let offset = snapshot.offset_by_count(&view)?;
        Some((view, offset))
    }

    /// The cut that is nearest to an offset in a page.
    pub fn cut_near(&self, offset: u64, request: &PageRequest, response: &Response<'_>) -> Option<Cut> {
        let (view, first) = self.located(request, response)?;
        let row = (offset as i64 - first).clamp(1, (view.len() as i64 - 1).max(1)) as usize;
        if row >= view.rows.len() {
            return None;
        }
        let offset = u64::try_from(first + row as i64).ok()?;
        let rows = view.rows;
        let height = rows.height(row - 1).filter(|above| rows.height(row).is_some_and(|below| below <= *above));
        Some(Cut { offset, above: rows.key(row - 1), below: rows.key(row), height, drift: view.position - first })
    }

    /// The end of a page: its offset, and the position there.
    pub fn checkpoint_after(&self, request: &PageRequest, response: &Response<'_>) -> Option<(u64, ListCheckpoint)> {
        let (view, first) = self.located(request, response)?;
        let offset = u64::try_from(first + view.len() as i64).ok()?;
        let delivered = Delivered::at(offset);
        Some((offset, ListCheckpoint { delivered, drift: view.position - first, ..self.checkpoint() }))
    }
}

impl Reader for CountedReader {
    fn list(&self) -> &ListState {
        &self.list
    }

    fn list_mut(&mut self) -> &mut ListState {
        &mut self.list
    }

    fn is_ahead(&self) -> bool {
        matches!(self.phase, Phase::Ahead)
    }

    fn request(&self) -> PageRequest {
        let list = &self.list;
        match self.phase {
            Phase::First | Phase::Ahead => list.page(list.next_page),
            Phase::Around(attempt) => list.page_around_next(attempt, 0),
            Phase::Measure | Phase::Single => list.one_record(list.delivered.end(), Purpose::Probe),
        }
    }

    fn final_look(&self, group: usize) -> PageRequest {
        let position = self.list.position(self.list.reachable_anchor(group));
        let expected = position + self.list.drift.growth.expected();
        let position = if expected < self.list.spec.window() { expected } else { position };
        let page = position / self.list.snapshot.page_rows() + 1;
        PageRequest::new(Purpose::FinalLook, page, self.list.spec.page_size)
    }

    fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<Accepted, Error> {
        if let Phase::First = self.phase {
            self.phase = Phase::Ahead;
            let accepted = self.begin(request, response);
            // The count of the first response decided that this reader is used.
            debug_assert!(self.list.snapshot.length.exact().is_some());
            return accepted;
        }
        let view = self.list.view(request, response);
        match self.phase {
            Phase::First | Phase::Ahead | Phase::Around(_) => self.on_page(&view),
            Phase::Measure => self.on_measure(&view),
            Phase::Single => self.on_single(&view),
        }
    }
}
