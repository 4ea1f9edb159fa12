//! The end of a list: whether everything was read, and whether it is the snapshot.

use super::super::checkpoint::Accepted;
use super::super::snapshot::{Length, Proof};
use super::super::spec::{End, View};
use super::super::state::{Attempt, Drift};
use super::{History, Phase, UncountedReader};
use crate::client::Error;

impl UncountedReader {
    /// True if the returned records are not where they would have to be in the snapshot.
    pub(super) fn has_lost_first_page(&self) -> bool {
        let Some(earlier) = &self.earlier else { return false };
        self.list.delivered.end() >= self.max_newer().saturating_add(earlier.end())
    }

    pub(super) fn first_page_error(&self) -> Error {
        self.list.drift_error("the first page changed before the length of the list was known")
    }

    /// Ends the list, or this part of it.
    pub(super) fn conclude(&mut self, view: &View<'_>) -> Result<(), Error> {
        if self.earlier.is_some() {
            return Err(self.first_page_error());
        }
        if self.list.is_at_window_end(view) {
            if !self.continue_below(view) {
                self.list.end_with(End::ResultWindow);
            }
            return Ok(());
        }
        let is_overlapping = self.is_overlapping() && self.list.proof != Proof::Length;
        let is_unknown = self.list.snapshot.length == Length::Unknown && !is_overlapping;
        let end = if is_unknown { End::UnknownLength } else { End::List };
        // The length may have been that of an earlier moment. A page that is not full shows the end of the list.
        if self.history.has_changed && view.len() >= view.page_size && self.list.is_read() {
            self.phase = Phase::TailLook { end };
        } else {
            self.list.end_with(end);
        }
        Ok(())
    }

    /// The position after the last record has none, or a returned one, if the list has grown meanwhile. If it has grown by more
    /// records than are known, a newer one is there, and the position is requested where it is by now.
    pub(super) fn on_tail_look(&mut self, view: &View<'_>, end: End) -> Result<Accepted, Error> {
        if view.keys(0..view.rows.len()).iter().all(|key| self.list.delivered.keys().contains(key)) {
            self.list.end_with(end);
            return Ok(Accepted::default());
        }
        let offset = self.list.snapshot.offset_of_one(view);
        if let Some(offset) = offset.filter(|offset| *offset < self.list.delivered.base() as i64) {
            self.observe(view.position - offset);
            return self.list.miss(view);
        }
        Err(self.list.drift_error("records follow the last one that the reported number of records leaves room for"))
    }

    /// Ends the list at its beginning, and proves that none of its records was skipped.
    pub(super) fn end_beginning(&mut self) {
        if self.list.proof == Proof::Overlap {
            return self.list.end_with(End::List);
        }
        if self.list.snapshot.length.exact().is_none() {
            if self.history.is_length_contradicted {
                // The pages may be of two parts of the service, one of which lacks the newest records.
                let problem = "the numbers of pages that the API reports contradict each other";
                return self.list.fail(self.list.drift_error(problem));
            }
            return self.list.end_with(End::UnknownLength);
        }
        self.list.proof = Proof::FinalLook;
        // A record at its offset has lost none before it.
        self.list.snapshot.anchors.truncate(2);
        self.list.snapshot.anchors.extend(self.list.delivered.boundary_record().map(|record| vec![record]));
        self.list.end_with(End::List);
    }

    /// Continues with the list of all records up to the last height, unless that is the list being read: the same list at
    /// another position.
    fn continue_below(&mut self, view: &View<'_>) -> bool {
        let heights: Option<Vec<i64>> = (0..view.rows.len()).map(|row| view.rows.height(row)).collect();
        let heights = heights.filter(|heights| heights.is_sorted_by(|above, below| above >= below)).unwrap_or_default();
        let Some(height) = heights.last().copied().filter(|height| self.height_bound != Some(*height)) else {
            return false;
        };
        if self.list.spec.height_bound.is_none() {
            return false;
        }
        self.height_bound = Some(height);
        self.list.snapshot.length = Length::Unknown;
        self.list.proof = Proof::Length;
        // Page 1 begins with returned records.
        self.list.drift = Drift::new(-(self.list.delivered.end() as i64));
        self.history = History::default();
        self.phase = Phase::Overlap(Attempt::Expected);
        true
    }
}
