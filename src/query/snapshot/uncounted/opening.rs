//! The first responses of a list: its first page, its length or its mark, and the first page again.

use super::super::checkpoint::Accepted;
use super::super::delivered::{Delivered, key_of_both, occurs_once};
use super::super::reader::Reader;
use super::super::snapshot::Length;
use super::super::spec::{FirstPage, View};
use super::super::state::{Attempt, Drift};
use super::{Mark, Phase, UncountedReader};
use crate::client::Error;

impl UncountedReader {
    pub(super) fn on_first(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        let was_unknown = self.list.snapshot.length == Length::Unknown;
        let length = self.first_length(view);
        self.list.snapshot.length = length;
        if length == Length::Pending {
            return Ok(self.on_first_of_several(view));
        }
        let accepted = self.deliver(view, 0..view.rows.len())?;
        let begins_with_mark = !was_unknown && length == Length::Unknown && self.may_mark();
        if begins_with_mark {
            self.phase = Phase::Mark;
        } else {
            self.go_ahead();
        }
        self.finish(view, accepted)
    }

    /// Length of the list by its first response; `Pending` if one more request shows it.
    fn first_length(&self, view: &View<'_>) -> Length {
        let snapshot = &self.list.snapshot;
        if view.is_whole() {
            return Length::Exact(view.len());
        }
        let has_none = view.pages.is_none() || view.is_last() || snapshot.min_length >= view.window;
        // Pages of a beginning overlap or have a mark.
        let needs_none = self.is_overlapping() || self.may_mark();
        if has_none || needs_none || snapshot.length == Length::Unknown {
            return Length::Unknown;
        }
        view.length().map_or(Length::Pending, Length::Exact)
    }

    /// Takes the first page of a list of unknown length, which the snapshot must contain if it is returned.
    fn on_first_of_several(&mut self, view: &View<'_>) -> Accepted {
        let before = self.checkpoint();
        let rows = 0..view.rows.len();
        self.phase = Phase::Length;
        self.earlier = if rows.is_empty() { None } else { Some(Delivered::of(view.keys(rows.clone()))) };
        if rows.is_empty() || self.list.spec.first_page == FirstPage::Located {
            return Accepted::default();
        }
        self.list.returned = view.len();
        Accepted { rows, fresh: None, before }
    }

    /// Takes the last page of the beginning that is wanted. If a record of it is read at its offset later, no record before
    /// it was skipped: as many records were read before it as the list had then, and all of them were in the list then. Those
    /// of the first page are requested again for that.
    pub(super) fn on_mark(&mut self, view: &View<'_>) -> Accepted {
        let keys = view.keys(0..view.rows.len());
        let wanted = self.max_marked().saturating_sub(view.position as u64);
        let row = (1..keys.len().min(usize::try_from(wanted).unwrap_or(usize::MAX)))
            .rev()
            .find(|row| occurs_once(keys[*row], &keys) && !self.list.delivered.keys().contains(&keys[*row]));
        self.phase = match row {
            Some(row) => {
                self.list.next_page = 1;
                Phase::Ahead {
                    new_mark: Some((view.position as u64 + row as u64, key_of_both(keys[row - 1], keys[row]))),
                }
            }
            None => Phase::Overlap(Attempt::Expected),
        };
        Accepted::default()
    }

    /// Compares the first page with what was returned of it. If it is the same, the mark will show whether a record before it
    /// was skipped.
    pub(super) fn on_first_page_again(&mut self, view: &View<'_>, mark: Mark) -> Result<Accepted, Error> {
        if view.len() == 0 && view.pages.is_none() {
            return self.on_empty_page(view);
        }
        self.phase = Phase::Ahead { new_mark: None };
        if self.list.delivered.keys() == view.keys(0..view.rows.len()) {
            self.list.snapshot.mark = Some(mark);
            return Ok(Accepted::default());
        }
        // Newer records may be above it, and equal to some of its own.
        self.phase = Phase::Overlap(Attempt::Expected);
        self.on_records(view)
    }

    pub(super) fn on_length(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        if view.len() == 0 {
            return Err(self.list.drift_error("the list became empty while it was read"));
        }
        self.list.drift = Drift::new(0);
        self.history.contradictions = 0;
        match view.length() {
            Some(length) if length >= self.list.snapshot.min_length => {
                self.list.snapshot.length = Length::Exact(length);
                self.list.snapshot.first = Some(view.rows.key(0));
                self.list.snapshot.anchors.clear();
                self.go_ahead();
            }
            // Records may have been deleted since the first page. If the numbers contradict each other again, none of them
            // is the length. A first page that was returned cannot be read again.
            Some(_) if self.history.restarts == 0 && self.list.returned == 0 => {
                self.history.restarts = 1;
                self.read_first_again(Length::Pending);
            }
            length => {
                self.history.is_length_contradicted = length.is_some();
                self.read_first_again(Length::Unknown);
            }
        }
        // The record is read with its page: a reorganization may replace it before.
        Ok(Accepted::default())
    }

    fn read_first_again(&mut self, length: Length) {
        self.list.snapshot.length = length;
        self.forget_unreturned();
        self.list.next_page = 1;
        self.phase = Phase::First;
    }
}
