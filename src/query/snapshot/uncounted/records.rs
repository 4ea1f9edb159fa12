//! Pages of records: where they are in the snapshot, which of their rows are new, and which phase follows.

use super::super::checkpoint::Accepted;
use super::super::delivered::{Delivered, has_duplicates};
use super::super::reader::Reader;
use super::super::snapshot::{Length, Proof};
use super::super::spec::{End, View};
use super::super::state::Attempt;
use super::locator::{Location, Locator};
use super::{Phase, UncountedReader};
use crate::client::Error;

/// Pages in a row whose number may contradict the number of records.
const MAX_CONTRADICTIONS: u32 = 4;

impl UncountedReader {
    pub(super) fn on_records(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        if view.len() == 0 && self.is_uncounted(view) && self.is_ahead() {
            return self.on_empty_page(view);
        }
        let delivered = match self.list.snapshot.first {
            // The first record was read with the length.
            Some(first) if self.list.delivered.end() == 0 => &Delivered::of(vec![first]),
            _ => &self.list.delivered,
        };
        let drift = self.list.drift.offset;
        let may_follow = self.is_ahead() || self.list.snapshot.has_fixed_pages();
        let next = Some(delivered.end() as i64).filter(|next| may_follow && view.position - drift == *next);
        let location = Locator { view, snapshot: &self.list.snapshot, delivered, drift, next }.locate();
        if let Location::At(offset) = location {
            return self.on_page(view, offset);
        }
        // The list up to a height begins with more records of this height than are known.
        if self.height_bound.is_some() && self.list.position(self.list.delivered.end()) == 0 {
            self.list.end_with(End::ResultWindow);
            return Ok(Accepted::default());
        }
        self.check_length(view)?;
        self.phase = self.next_attempt(self.attempt(), location);
        self.list.miss(view)
    }

    /// True if nothing but an empty page shows where the list ends.
    fn is_uncounted(&self, view: &View<'_>) -> bool {
        view.pages.is_none() && self.list.snapshot.length == Length::Unknown
    }

    /// Ends a list whose pages are not counted. If this run has read one page, that is all of it.
    pub(super) fn on_empty_page(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        if !self.history.has_changed && self.list.delivered.end() <= self.list.snapshot.page_rows() {
            self.list.snapshot.length = Length::Exact(self.list.delivered.end());
        }
        self.finish(view, Accepted::default())
    }

    /// Fails if the pages of a stable list do not have as many records as pages of one record show, again and again.
    fn check_length(&mut self, view: &View<'_>) -> Result<(), Error> {
        let length = self.list.snapshot.length.exact().map(|length| length as i64 + self.list.drift.offset);
        let is_measured = self.attempt() == Attempt::Measured && self.list.drift.growth.is_stable(1);
        if is_measured && length.is_some_and(|length| !view.lengths().contains(&length)) {
            self.history.contradictions += 1;
        }
        if self.history.contradictions <= MAX_CONTRADICTIONS {
            return Ok(());
        }
        Err(self.list.drift_error("the numbers of pages that the API reports contradict each other"))
    }

    /// Next request for the next record, after a page that did not show its offset.
    pub(super) fn next_attempt(&mut self, attempt: Attempt, location: Location) -> Phase {
        let is_unread = self.list.delivered.end() == 0 && !self.list.drift.growth.is_stable(1);
        // The list is read again and compared with what was returned, as far as its keys are known.
        let is_comparable = self.list.proof == Proof::Overlap || self.list.delivered.base() == 0;
        let is_beginning = self.is_overlapping() && self.history.restarts == 0 && is_comparable;
        let may_locate = self.list.snapshot.length.exact().is_some() && !self.list.snapshot.has_fixed_pages();
        match (attempt, location) {
            // Another snapshot may begin with a record that occurs once.
            (Attempt::Observed | Attempt::Measured, Location::Ambiguous) if is_unread && self.may_begin_again() => {
                self.begin_again()
            }
            (Attempt::Measured, _) => Phase::Single,
            (Attempt::Observed, _) if is_beginning => {
                self.earlier.get_or_insert(self.list.delivered.clone());
                self.begin_again()
            }
            // One record shows the length, and so the drift.
            (Attempt::Expected | Attempt::Observed, _) if may_locate => Phase::Locate,
            (Attempt::Expected | Attempt::Observed, _) => Phase::Overlap(Attempt::Observed),
        }
    }

    fn attempt(&self) -> Attempt {
        if let Phase::Overlap(attempt) = self.phase { attempt } else { Attempt::Expected }
    }

    /// Takes a page whose first row has this offset.
    fn on_page(&mut self, view: &View<'_>, offset: i64) -> Result<Accepted, Error> {
        self.history.contradictions = 0;
        let has_drifted = self.observe(view.position - offset);
        let rows = self.list.new_rows(view, offset);
        let is_first = self.list.delivered.end() == 0;
        let is_by_count = self.list.snapshot.offset_by_count(view).is_some();
        // The first record alone may be replaced before the next page.
        let min_rows = if is_first && !is_by_count { 2 } else { 1 };
        if rows.start.saturating_add(min_rows) > view.rows.len() {
            return self.on_known_page(view, rows.start == view.rows.len(), has_drifted);
        }
        let is_adjacent = rows.start == 0 && !is_first;
        self.list.proof = self.list.proof.max(self.proof_of_page(is_by_count, is_adjacent));
        let is_within = rows.end < view.rows.len();
        let accepted = self.deliver(view, rows)?;
        match self.phase {
            Phase::Overlap(_) if self.list.is_stable() => self.go_ahead(),
            // Behind the mark, pages overlap.
            Phase::Ahead { .. } if !has_drifted && !self.needs_overlap() => {}
            _ => self.phase = Phase::Overlap(Attempt::Expected),
        }
        if is_within && !self.list.is_read() { Ok(accepted) } else { self.finish(view, accepted) }
    }

    /// Evidence that the list needs in the end, since this page was returned.
    fn proof_of_page(&self, is_by_count: bool, is_adjacent: bool) -> Proof {
        // Next to a first page that was read before the snapshot, all newer records may have been replaced, and a record of
        // that page skipped.
        if is_by_count || is_adjacent && self.earlier.is_some() {
            Proof::FinalLook
        } else if is_adjacent {
            Proof::Length
        } else {
            Proof::Overlap
        }
    }

    /// Takes a located page without new rows, which may end with the last record of a list of unknown length.
    fn on_known_page(&mut self, view: &View<'_>, is_end: bool, has_drifted: bool) -> Result<Accepted, Error> {
        if is_end && view.is_last() && self.list.snapshot.length == Length::Unknown {
            return self.finish(view, Accepted::default());
        }
        // Without drift, no page begins with delivered records and reaches the next one.
        self.phase = if has_drifted {
            Phase::Overlap(Attempt::Expected)
        } else if is_end && self.is_uncounted(view) && !self.is_overlapping() {
            // A page of the usual size: some services do not serve all sizes.
            self.list.next_page =
                self.list.position(self.list.delivered.end()).div_ceil(self.list.snapshot.page_rows()) + 1;
            Phase::Ahead { new_mark: None }
        } else {
            self.next_attempt(self.attempt().max(Attempt::Observed), Location::Lost)
        };
        self.list.miss(view)
    }

    /// Takes the drift, and a returned record as evidence that none before it was skipped.
    pub(super) fn on_locate(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        let mut attempt = Attempt::Observed;
        if let Some(offset) = self.list.snapshot.offset_of_one(view) {
            self.observe(view.position - offset);
            match self.list.delivered.boundary_record().map_or(Some(true), |record| view.shows_one(&[record], offset)) {
                Some(true) => attempt = Attempt::Measured,
                Some(false) => return Err(self.list.changed_error()),
                None => {}
            }
        }
        self.phase = Phase::Overlap(attempt);
        self.list.miss(view)
    }

    /// Takes one record by its count.
    pub(super) fn on_single(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        let Some(offset) = self.list.snapshot.offset_of_one(view) else {
            self.phase = Phase::Overlap(Attempt::Observed);
            return self.list.miss(view);
        };
        self.observe(view.position - offset);
        if view.len() == 0 || offset != self.list.delivered.end() as i64 {
            return self.list.miss(view);
        }
        let key = view.rows.key(0);
        if offset == 0 && self.list.snapshot.first != Some(key) {
            return Err(self.first_page_error());
        }
        if offset == 0 && self.earlier.as_ref().is_some_and(|earlier| has_duplicates(earlier.keys())) {
            // One record does not show which are newer than the first page.
            self.forget_unreturned();
        }
        self.list.proof = Proof::FinalLook;
        let repeats = self.list.delivered.last().is_none_or(|last| last == key);
        self.phase = if repeats { Phase::Single } else { Phase::Overlap(Attempt::Expected) };
        let accepted = self.deliver(view, 0..1)?;
        self.finish(view, accepted)
    }
}
