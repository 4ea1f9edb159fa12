//! The end of a list: whether everything was read, and whether it is the snapshot.

use super::checkpoint::Accepted;
use super::evidence::by_count;
use super::reader::{Attempt, Drift, Phase, SnapshotReader};
use super::snapshot::{Length, Proof, shows_one};
use super::spec::{End, ListKind, View};
use crate::client::Error;
use crate::message::Message;
use crate::planted::Bug;

impl SnapshotReader {
    /// A response without a new record.
    pub(super) fn miss(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        self.drift.misses += 1;
        if self.drift.misses <= self.spec.tuning.max_misses {
            return Ok(Accepted::default());
        }
        Err(self.drift_error(format!(
            "gave up after too many responses without new records: page {} contains none that follows those returned, or \
             the list changes faster than it can be read",
            view.page
        )))
    }

    pub(super) fn on_final_look(&mut self, view: &View<'_>, mut group: usize, end: End) -> Result<Accepted, Error> {
        let Some(offset) = by_count(view, &self.snapshot) else { return self.miss(view) };
        while let Some(records) = self.snapshot.anchors.get(group) {
            match shows_one(records, view, offset) {
                Some(true) => {
                    group += 1;
                    self.drift.misses = 0;
                }
                Some(false) => return Err(self.changed_error()),
                None => {
                    self.phase = Phase::FinalLook(group, end);
                    self.observe(view.position - offset);
                    return self.miss(view);
                }
            }
        }
        self.phase = Phase::Done(end);
        Ok(Accepted::default())
    }

    pub(super) fn is_read(&self) -> bool {
        self.snapshot.length.exact().is_some_and(|length| self.delivered.end() >= length)
    }

    /// Ends the list if its last record was read. Rows of the response are returned before an error.
    pub(super) fn finish(&mut self, view: &View<'_>, accepted: Accepted) -> Result<Accepted, Error> {
        match self.end_after(view) {
            Err(error) if accepted.rows.is_empty() => return Err(error),
            Err(error) => self.fail(error),
            Ok(()) => {}
        }
        Ok(accepted)
    }

    fn end_after(&mut self, view: &View<'_>) -> Result<(), Error> {
        if self.has_lost_first_page() {
            return Err(self.first_page_error());
        }
        let is_enough = match self.snapshot.length.exact() {
            Some(length) => self.delivered.end() >= length,
            None => view.is_last() && self.delivered.end() >= self.snapshot.min_length,
        };
        if is_enough {
            return self.conclude(view);
        }
        if view.is_last() { self.end_early(view) } else { Ok(()) }
    }

    /// True if the returned records are not where they would have to be in the snapshot.
    fn has_lost_first_page(&self) -> bool {
        let Some(earlier) = &self.earlier else { return false };
        self.delivered.end() >= self.most_newer().saturating_add(earlier.end())
    }

    pub(super) fn first_page_error(&self) -> Error {
        self.drift_error("the first page changed before the length of the list was known")
    }

    /// The last page was read, and yet fewer records than the snapshot has.
    fn end_early(&mut self, view: &View<'_>) -> Result<(), Error> {
        let is_unchanged = self.drift.offset == 0 && view.total.is_some() && view.total == self.snapshot.length.exact();
        if is_unchanged || self.is_at_window(view) {
            return self.conclude(view);
        }
        let length = self.snapshot.length.exact().unwrap_or(self.snapshot.min_length);
        let read = self.delivered.end();
        let problem = format!("the list had {length} records, of which {read} could be read: it changed meanwhile");
        Err(self.drift_error(problem))
    }

    /// Ends the list, or this part of it.
    pub(super) fn conclude(&mut self, view: &View<'_>) -> Result<(), Error> {
        if self.earlier.is_some() {
            return Err(self.first_page_error());
        }
        let is_proven = self.snapshot.length.exact().is_some_and(|length| length < view.window);
        if self.is_at_window(view) && !(is_proven && self.is_read()) {
            if !self.continue_below(view) {
                self.end_with(End::ResultWindow);
            }
            return Ok(());
        }
        let may_continue = self.spec.kind == ListKind::Growing || view.pages.is_none();
        let is_overlapping = self.is_overlapping() && self.proof != Proof::Length;
        let is_unknown = self.snapshot.length == Length::Unknown && may_continue && !is_overlapping;
        let end = if is_unknown { End::UnknownLength } else { End::List };
        // The length may have been that of an earlier moment. A page that is not full shows the end of the list.
        let may_have_more = self.drift.has_changed && !self.snapshot.is_counted() && view.len() >= view.page_size;
        if may_have_more && self.is_read() {
            self.phase = Phase::TailLook(end);
        } else {
            self.end_with(end);
        }
        Ok(())
    }

    /// The position after the last record has none, or a returned one, if the list has grown meanwhile.
    pub(super) fn on_tail_look(&mut self, view: &View<'_>, end: End) -> Result<Accepted, Error> {
        if view.keys(0..view.rows.len()).iter().all(|key| self.delivered.keys().contains(key)) {
            self.end_with(end);
            return Ok(Accepted::default());
        }
        Err(self.drift_error("records follow the last one that the reported number of records leaves room for"))
    }

    /// Ends the list at its beginning, and proves that none of its records was skipped.
    pub(super) fn end_beginning(&mut self) {
        if self.proof == Proof::Overlap || self.snapshot.is_counted() {
            return self.end_with(End::List);
        }
        if self.snapshot.length.exact().is_none() {
            return self.end_with(End::UnknownLength);
        }
        self.proof = Proof::FinalLook;
        // A record at its offset has lost none before it.
        self.snapshot.anchors.truncate(2);
        self.snapshot.anchors.extend(self.delivered.boundary_record().map(|record| vec![record]));
        self.end_with(End::List);
    }

    /// Ends the list, after a final look where that is the proof.
    pub fn end_with(&mut self, end: End) {
        let needs_look = self.proof == Proof::FinalLook && !Bug::FinalLookSkipped.is_planted();
        self.phase = if needs_look { Phase::FinalLook(0, end) } else { Phase::Done(end) };
    }

    /// True if a response ends where the API returns no more of the list.
    fn is_at_window(&self, view: &View<'_>) -> bool {
        let end = view.position as u64 + view.len();
        let Some(window) = self.spec.result_window else { return false };
        let is_near = (view.window..=window.saturating_add(window / 20)).contains(&end);
        let has_more = view.total.is_none_or(|total| total > end);
        let is_cut = view.total.zip(view.pages).is_some_and(|(total, pages)| pages * view.page_size < total);
        has_more && (is_near || is_cut)
    }

    /// Continues with the list of all records up to the last height, unless that is the list being read: the same list at
    /// another position.
    fn continue_below(&mut self, view: &View<'_>) -> bool {
        let heights: Option<Vec<i64>> = (0..view.rows.len()).map(|row| view.rows.height(row)).collect();
        let heights = heights.filter(|heights| heights.is_sorted_by(|above, below| above >= below)).unwrap_or_default();
        let Some(height) = heights.last().copied().filter(|height| self.bound != Some(*height)) else { return false };
        if self.spec.height_bound.is_none() || self.snapshot.is_counted() {
            return false;
        }
        self.bound = Some(height);
        self.snapshot.length = Length::Unknown;
        self.proof = Proof::Length;
        // Page 1 begins with returned records.
        self.drift = Drift { offset: -(self.delivered.end() as i64), ..Drift::default() };
        self.phase = Phase::Overlap(Attempt::First);
        true
    }

    pub(super) fn changed_error(&self) -> Error {
        self.drift_error("records that were being read were deleted or replaced")
    }

    pub(super) fn drift_error(&self, problem: impl Into<String>) -> Error {
        let hints = self.spec.hints.clone();
        Error::Drift { endpoint: self.spec.endpoint, problem: Message::new(problem).hints(hints) }
    }
}
