//! `UncountedReader`: reads a list that grows and whose responses do not report the number of its records. Its *snapshot*
//! begins with the response of one record alone, whose number of pages is the length: without records newer than the first
//! page, and with the records that were returned before, if there are any. Until a record of it was returned, `Length` may
//! begin another one.
//!
//! | Phase | Request | Response | Next phase |
//! |---|---|---|---|
//! | `First` | page 1 | the only page | ended |
//! | | | one of several | `Length`; the page is read again, and rows that were returned are skipped |
//! | | | reaches the result window | `Ahead`; the result is incomplete |
//! | | | a few pages are wanted, or pages are compared | `Overlap`; `Ahead` only after `Length` |
//! | | | more pages are wanted, but not all | `Mark` |
//! | `Mark` | the last page that is wanted | has a record that is not on the first page and occurs once: the mark | `Ahead`, from page 1 again |
//! | | | has none | `Overlap` |
//! | `Length` | page 1 with one record | one record | `Ahead`, from page 1 again |
//! | | | fewer records than the pages have | `First`, and then as without a length |
//! | | | no length | `First`, and then `Ahead` with an incomplete result; `Overlap`, if only the beginning is wanted |
//! | `Ahead` | next pages, several in flight | located, no drift | `Ahead` |
//! | | | located, drift | `Overlap` |
//! | | | ambiguous, lost, or no new rows | as in `Overlap` |
//! | | | page 1 after `Mark`, the same as before | `Ahead` |
//! | | | page 1 after `Mark`, not the same | `Overlap`, without the mark |
//! | | | the mark at another offset | failed |
//! | `Overlap` | page that begins before the next record | located, new rows | `Overlap`; `Ahead` once the list is stable |
//! | | | located, no new rows, drift | `Overlap` |
//! | | | located, no new rows, no drift | `Locate`, then `Single` |
//! | | | located, the end of a list of unknown length | ended; `Ahead`, if its pages are not counted: an empty one shows the end |
//! | | | ambiguous | as if lost; `Length` instead of `Single` before a record of a growing list was returned |
//! | | | lost | `Locate`, then `Single` |
//! | | | lost, without a length | `Overlap` once more; then `Length` once, if only the beginning is wanted |
//! | `Locate` | the latest delivered record that differs from the one before it: also the length, and so the drift | it is there, or none is known | `Overlap`, then `Single` |
//! | | | it is not shown | `Overlap`, then `Locate` again |
//! | | | another one is there | failed |
//! | `Single` | one record where the next one should be | at its offset by the length | `Overlap`; `Single` in a run of duplicates |
//! | | | at another offset | `Single` |
//! | `TailLook` | the record after the last one | none, or a returned one | ended |
//! | | | another record | failed |
//! | any | | the result window, and the list can be bounded by height | `Overlap`; ended if the bounded list begins with unknown records |
//! | | | an error before a record of the snapshot was returned | `Length`, a few times |
//! | | | too many responses without new records, or the end before the length is reached | failed |
//!
//! The beginning of a list may be read by adjacent pages once its mark is known: a record at its end, received before all
//! records but those of page 1, which is received again. All records before the mark were in the list when the mark was
//! received, so that they are all of them if they are as many as there were then: if the mark is at its offset.
//!
//! A list of which records were delivered in `Single`, or of which several pages were in flight, ends with `FinalLook`. So does
//! one of which pages were located by adjacency, if only the beginning was read, or before its returned records were found. A
//! list that has grown and ends with a full page ends with `TailLook`.

mod ending;
pub(super) mod locator;
mod opening;
mod records;
mod requests;
mod rows;
#[cfg(test)]
mod tests;

use super::checkpoint::{Accepted, FIRST_PAGE_KEYS, ListCheckpoint};
use super::delivered::Delivered;
use super::reader::Reader;
use super::snapshot::{Length, Proof, Snapshot};
use super::spec::{End, FirstPage, ListSpec, PageRequest, Response, View};
use super::state::{Attempt, ListState};
use crate::client::Error;

/// Most times that another snapshot begins.
const MAX_RESTARTS: u32 = 3;

#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    First,
    Length,
    /// The last page of the beginning that is wanted.
    Mark,
    Ahead {
        /// The mark, until the first page was received again.
        new_mark: Option<Mark>,
    },
    Overlap(Attempt),
    Locate,
    Single,
    TailLook {
        /// The end that follows, if no record does.
        end: End,
    },
}

/// A record by its offset and key.
type Mark = (u64, u64);

#[derive(Clone, Debug)]
pub struct UncountedReader {
    pub(super) list: ListState,
    pub(super) phase: Phase,
    /// Greatest height of the part that is being read, below a result window.
    pub(super) height_bound: Option<i64>,
    /// Records that were read before the snapshot began, and which it must contain. Newer ones are skipped, and these, if
    /// they were returned.
    earlier: Option<Delivered>,
    history: History,
}

/// Events of the snapshot so far.
#[derive(Clone, Debug, Default)]
struct History {
    /// True if the list has changed since the first response, or may have before a run that continues another.
    has_changed: bool,
    /// Snapshots that were begun after the first one.
    restarts: u32,
    /// Pages in a row whose number contradicts the number of records.
    contradictions: u32,
    /// True if the length is unknown since it contradicts the first page, which was returned.
    is_length_contradicted: bool,
}

impl UncountedReader {
    pub fn new(spec: ListSpec) -> Self {
        let max_keys = spec.tuning.max_keys;
        let list = ListState { max_keys, ..ListState::new(spec) };
        Self { list, phase: Phase::First, height_bound: None, earlier: None, history: History::default() }
    }

    /// A reader that continues from a checkpoint, after `returned` records.
    pub fn resumed(spec: ListSpec, returned: u64, checkpoint: &ListCheckpoint) -> Self {
        let max_keys = spec.tuning.max_keys;
        let mut list = ListState { max_keys, ..ListState::resumed(spec, returned, checkpoint) };
        let is_pending = list.snapshot.length == Length::Pending;
        let earlier = is_pending.then(|| std::mem::take(&mut list.delivered));
        let phase = if is_pending {
            Phase::Length
        } else if list.is_read() {
            Phase::TailLook { end: End::List }
        } else {
            Phase::Overlap(Attempt::Expected)
        };
        let history = History { has_changed: true, ..History::default() };
        Self { list, phase, height_bound: checkpoint.height_bound, earlier, history }
    }

    /// True if the next response is the first one of the list, for all that was returned.
    pub fn may_be_counted(&self) -> bool {
        matches!(self.phase, Phase::First) && self.list.returned == 0
    }

    /// Begins another snapshot, unless records were returned and some of this one were read.
    fn restart(&mut self, error: Error) -> Result<Accepted, Error> {
        let is_final = self.list.returned > 0 && self.list.delivered.end() > 0;
        // A first page that was not returned is not looked for any more.
        let has_length = self.list.snapshot.length.exact().is_some();
        let is_looking = self.list.returned == 0 && self.earlier.is_some() && has_length;
        if is_final || !(self.may_begin_again() || is_looking) {
            return Err(error);
        }
        self.forget_unreturned();
        self.phase = self.begin_again();
        Ok(Accepted::default())
    }

    /// Does not look for a first page that was not returned: the snapshot may contain newer records.
    fn forget_unreturned(&mut self) {
        if self.list.returned == 0 {
            self.earlier = None;
        }
    }

    fn may_begin_again(&self) -> bool {
        self.history.restarts < MAX_RESTARTS && self.list.snapshot.length.exact().is_some()
    }

    /// Requests the length, with which another snapshot begins.
    fn begin_again(&mut self) -> Phase {
        self.list.delivered = Delivered::default();
        self.list.snapshot.mark = None;
        self.list.proof = Proof::Overlap;
        self.history.restarts += 1;
        self.history.has_changed = true;
        Phase::Length
    }

    /// Records the drift of a response. True if it is another one than before.
    fn observe(&mut self, drift: i64) -> bool {
        let has_drifted = self.list.observe(drift);
        self.history.has_changed |= has_drifted;
        has_drifted
    }
}

impl Reader for UncountedReader {
    fn list(&self) -> &ListState {
        &self.list
    }

    fn list_mut(&mut self) -> &mut ListState {
        &mut self.list
    }

    fn is_ahead(&self) -> bool {
        matches!(self.phase, Phase::Ahead { .. })
    }

    fn request(&self) -> PageRequest {
        self.page_of_phase()
    }

    fn height_bound(&self) -> Option<i64> {
        self.height_bound
    }

    fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<Accepted, Error> {
        if let Phase::First = self.phase {
            let length = self.list.snapshot.length;
            self.list.snapshot = Snapshot { length, total: None, ..Snapshot::new(request, response) };
        }
        let view = self.list.view(request, response);
        let accepted = match self.phase {
            Phase::First => self.on_first(&view),
            Phase::Length => self.on_length(&view),
            Phase::Mark => Ok(self.on_mark(&view)),
            Phase::Ahead { new_mark: Some(mark) } => self.on_first_page_again(&view, mark),
            Phase::Ahead { new_mark: None } | Phase::Overlap(_) => self.on_records(&view),
            Phase::Locate => self.on_locate(&view),
            Phase::Single => self.on_single(&view),
            Phase::TailLook { end } => self.on_tail_look(&view, end),
        };
        accepted.or_else(|error| self.restart(error))
    }

    fn stop(&mut self) -> bool {
        let is_reading = !matches!(self.phase, Phase::TailLook { .. });
        if is_reading {
            self.end_beginning();
        }
        is_reading
    }

    fn end_after(&mut self, view: &View<'_>) -> Result<(), Error> {
        if self.has_lost_first_page() {
            return Err(self.first_page_error());
        }
        let is_at_window = view.is_at_window(self.list.spec.result_window);
        if self.list.has_all(view) || view.is_last() && is_at_window {
            return self.conclude(view);
        }
        if view.is_last() { Err(self.list.too_short()) } else { Ok(()) }
    }

    fn checkpoint(&self) -> ListCheckpoint {
        let checkpoint = ListCheckpoint { height_bound: self.height_bound, ..self.list.checkpoint() };
        // The length of a list that is compared is not requested before the caller reads on.
        let is_compared =
            self.list.spec.first_page == FirstPage::Compared && self.list.snapshot.length == Length::Unknown;
        let earlier = self.earlier.as_ref().or(if is_compared { Some(&self.list.delivered) } else { None });
        let Some(earlier) = earlier else { return checkpoint };
        // The list is read again from its first record, which needs nothing but the returned ones.
        let delivered = if self.list.returned > 0 { earlier.latest(FIRST_PAGE_KEYS) } else { Delivered::default() };
        let snapshot = Snapshot { length: Length::Pending, ..checkpoint.snapshot };
        ListCheckpoint { snapshot, delivered, drift: 0, ..checkpoint }
    }
}
