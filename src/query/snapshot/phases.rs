//! The response of each phase: what it shows, which rows it brings, and which phase follows.

use super::checkpoint::Accepted;
use super::delivered::{Delivered, has_duplicates, occurs_once};
use super::evidence::{Evidence, Location, by_count};
use super::reader::{Attempt, Drift, Phase, SnapshotReader};
use super::snapshot::{Length, Proof, shows_one};
use super::spec::{End, FirstPage, ListKind, View};
use crate::client::Error;

impl SnapshotReader {
    pub(super) fn on_first(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        let is_unknown = self.snapshot.length == Length::Unknown;
        self.snapshot.length = self.first_length(view);
        if self.snapshot.length == Length::Pending {
            return Ok(self.on_first_of_several(view));
        }
        let accepted = self.deliver(view, 0..view.rows.len())?;
        let begins_with_mark = !is_unknown && self.snapshot.length == Length::Unknown && self.may_mark();
        self.phase = if begins_with_mark { Phase::Mark } else { self.ahead() };
        self.finish(view, accepted)
    }

    /// Length of the list by its first response; `Pending` if one more request shows it.
    fn first_length(&self, view: &View<'_>) -> Length {
        if self.spec.kind == ListKind::Lookup || view.is_last() && view.len() < view.window {
            return Length::Exact(view.len());
        }
        if let Some(total) = view.total {
            return Length::Exact(total);
        }
        let has_none = view.pages.is_none() || view.is_last() || self.snapshot.min_length >= view.window;
        // Pages of one block follow each other, and pages of a beginning overlap or have a mark.
        let needs_none = self.spec.kind == ListKind::Fixed || self.is_overlapping() || self.may_mark();
        if has_none || needs_none || self.snapshot.length == Length::Unknown {
            return Length::Unknown;
        }
        view.length().map_or(Length::Pending, Length::Exact)
    }

    /// Takes the last page of the beginning that is wanted. If a record of it is read at its offset later, no record before
    /// it was skipped: as many records were read before it as the list had then, and all of them were in the list then. Those
    /// of the first page are requested again for that.
    pub(super) fn on_mark(&mut self, view: &View<'_>) -> Accepted {
        let keys = view.keys(0..view.rows.len());
        let wanted = self.spec.wanted.unwrap_or(0).saturating_sub(view.position as u64);
        let row = (0..keys.len().min(usize::try_from(wanted).unwrap_or(usize::MAX)))
            .rev()
            .find(|row| occurs_once(keys[*row], &keys) && !self.delivered.keys().contains(&keys[*row]));
        self.new_mark = row.map(|row| (view.position as u64 + row as u64, keys[row]));
        self.phase = match self.new_mark {
            Some(_) => Phase::Ahead { next_page: 1 },
            None => Phase::Overlap(Attempt::First),
        };
        Accepted::default()
    }

    /// Takes the first page of a list of unknown length. The snapshot begins with the response that shows the length, and
    /// must contain this page if it is returned.
    fn on_first_of_several(&mut self, view: &View<'_>) -> Accepted {
        let before = self.checkpoint();
        let rows = 0..view.rows.len();
        self.phase = Phase::Length;
        self.earlier = if rows.is_empty() { None } else { Some(Delivered::of(view.keys(rows.clone()))) };
        if rows.is_empty() || self.spec.first_page == FirstPage::Located {
            return Accepted::default();
        }
        self.returned = view.len();
        Accepted { rows, fresh: None, before }
    }

    pub(super) fn on_length(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        if view.len() == 0 {
            return Err(self.drift_error("the list became empty while it was read"));
        }
        let Drift { restarts, has_changed, .. } = self.drift;
        self.drift = Drift { restarts, has_changed, ..Drift::default() };
        match view.length() {
            Some(length) if length >= self.snapshot.min_length => {
                self.snapshot.length = Length::Exact(length);
                self.snapshot.first = Some(view.rows.key(0));
                self.snapshot.anchors.clear();
                self.phase = self.ahead();
            }
            // Records may have been deleted since the first page. If the numbers contradict each other again, none of them
            // is the length. A first page that was returned cannot be read again.
            Some(_) if self.drift.restarts == 0 && self.returned == 0 => {
                self.drift.restarts = 1;
                self.read_first_again(Length::Pending);
            }
            Some(_) | None => self.read_first_again(Length::Unknown),
        }
        // The record is read with its page: a reorganization may replace it before.
        Ok(Accepted::default())
    }

    fn read_first_again(&mut self, length: Length) {
        self.snapshot.length = length;
        self.forget_unreturned();
        self.phase = Phase::First;
    }

    pub(super) fn on_records(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        if self.spec.kind == ListKind::Fixed {
            return self.on_fixed(view);
        }
        if view.len() == 0 && view.pages.is_none() && self.snapshot.length == Length::Unknown && self.is_ahead() {
            return self.on_empty_page(view);
        }
        if let Some(mark) = self.new_mark.take()
            && self.on_first_page_again(view, mark)?
        {
            return Ok(Accepted::default());
        }
        if view.total.is_some_and(|total| view.len() > 0 && view.position as u64 + view.len() > total) {
            return Err(self.drift_error("a page ends below the last record of the list by its count"));
        }
        let delivered = match self.snapshot.first {
            // The first record was read with the length.
            Some(first) if self.delivered.end() == 0 => &Delivered::of(vec![first]),
            _ => &self.delivered,
        };
        let drift = self.drift.offset;
        let may_follow = self.is_ahead() || self.snapshot.has_fixed_pages();
        let next = Some(delivered.end() as i64).filter(|next| may_follow && view.position - drift == *next);
        let location = Evidence { view, snapshot: &self.snapshot, delivered, drift, next }.locate();
        if let Location::At(offset) = location {
            return self.on_page(view, offset);
        }
        // The list up to a height begins with more records of this height than are known.
        if self.bound.is_some() && self.position(self.delivered.end()) == 0 {
            self.end_with(End::ResultWindow);
            return Ok(Accepted::default());
        }
        self.check_length(view)?;
        self.phase = self.next_attempt(self.attempt(), location);
        self.miss(view)
    }

    /// Ends a list whose pages are not counted. If it has one page, that is all of it.
    fn on_empty_page(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        if self.delivered.end() <= self.snapshot.page_rows() {
            self.snapshot.length = Length::Exact(self.delivered.end());
        }
        self.finish(view, Accepted::default())
    }

    /// Fails if the pages of a stable list do not have as many records as pages of one record show, again and again.
    fn check_length(&mut self, view: &View<'_>) -> Result<(), Error> {
        let length = self.snapshot.length.exact().map(|length| length as i64 + self.drift.offset);
        let is_measured = self.attempt() == Attempt::Third && self.drift.growth.is_stable(1);
        if is_measured && length.is_some_and(|length| !view.lengths().contains(&length)) {
            self.drift.contradictions += 1;
        }
        if self.drift.contradictions <= self.spec.tuning.max_contradictions {
            return Ok(());
        }
        Err(self.drift_error("the numbers of pages that the API reports contradict each other"))
    }

    /// Next request for the next record, after a page that did not show its offset.
    fn next_attempt(&mut self, attempt: Attempt, location: Location) -> Phase {
        let is_unread = self.delivered.end() == 0 && !self.drift.growth.is_stable(1);
        // The list is read again and compared with what was returned, as far as its keys are known.
        let is_comparable = self.proof == Proof::Overlap || self.delivered.base() == 0;
        let is_beginning = self.is_overlapping() && self.drift.restarts == 0 && is_comparable;
        let may_locate = self.snapshot.length.exact().is_some() && !self.snapshot.has_fixed_pages();
        match (attempt, location) {
            // Another snapshot may begin with a record that occurs once.
            (Attempt::Second | Attempt::Third, Location::Ambiguous) if is_unread && self.may_begin_again() => {
                self.begin_again()
            }
            (Attempt::Third, _) => Phase::Single,
            (Attempt::Second, _) if is_beginning => {
                self.earlier.get_or_insert(self.delivered.clone());
                self.begin_again()
            }
            // One record shows the length, and so the drift.
            (Attempt::First | Attempt::Second, _) if may_locate => Phase::Locate,
            (Attempt::First | Attempt::Second, _) => Phase::Overlap(Attempt::Second),
        }
    }

    fn attempt(&self) -> Attempt {
        if let Phase::Overlap(attempt) = self.phase { attempt } else { Attempt::First }
    }

    /// Takes a page whose first row has this offset.
    fn on_page(&mut self, view: &View<'_>, offset: i64) -> Result<Accepted, Error> {
        let next = self.delivered.end() as i64;
        let rows = view.rows.len();
        self.drift.contradictions = 0;
        let has_drifted = self.observe(view.position - offset);
        // No row is new if the next record lies above the page.
        let from = usize::try_from(next - offset).unwrap_or(usize::MAX);
        let is_by_count = by_count(view, &self.snapshot).is_some();
        // The first record alone may be replaced before the next page.
        let least = if next == 0 && !is_by_count { 2 } else { 1 };
        if from.saturating_add(least) > rows {
            return self.on_known_page(view, from == rows, has_drifted);
        }
        let is_adjacent = from == 0 && next > 0;
        // Next to a first page that was read before the snapshot, all newer records may have been replaced, and a record of
        // that page skipped.
        let needed = if is_by_count || is_adjacent && self.earlier.is_some() {
            Proof::FinalLook
        } else if is_adjacent {
            Proof::Length
        } else {
            Proof::Overlap
        };
        self.proof = self.proof.max(needed);
        let to = rows.min(from + self.snapshot.page_rows().max(self.spec.page_size) as usize);
        let accepted = self.deliver(view, from..to)?;
        match self.phase {
            // By their count, pages requested ahead are of use unless most of their records were delivered.
            Phase::Ahead { .. } if has_drifted && (!self.snapshot.is_counted() || from * 2 > rows) => {
                self.phase = Phase::Overlap(Attempt::First);
            }
            Phase::Overlap(_) if self.drift.growth.is_stable(self.spec.tuning.stable_responses) => {
                self.phase = self.ahead();
            }
            Phase::Overlap(_) => self.phase = Phase::Overlap(Attempt::First),
            _ => {}
        }
        if to < rows && !self.is_read() { Ok(accepted) } else { self.finish(view, accepted) }
    }

    /// Takes a located page without new rows, which may end with the last record of a list of unknown length.
    fn on_known_page(&mut self, view: &View<'_>, is_end: bool, has_drifted: bool) -> Result<Accepted, Error> {
        if is_end && view.is_last() && self.snapshot.length == Length::Unknown {
            return self.finish(view, Accepted::default());
        }
        // Without drift, no page begins with delivered records and reaches the next one.
        self.phase = if has_drifted {
            Phase::Overlap(Attempt::First)
        } else {
            self.next_attempt(self.attempt().max(Attempt::Second), Location::Lost)
        };
        self.miss(view)
    }

    /// Pages of a list that does not change follow each other, and all but the last are full.
    fn on_fixed(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        if view.len() == 0 && view.pages.is_none() {
            return self.on_empty_page(view);
        }
        let from = usize::try_from(self.delivered.end() as i64 - view.position).unwrap_or(usize::MAX);
        let lengths = view.lengths();
        let has_other_total = view.total.is_some_and(|total| self.snapshot.length.exact() != Some(total));
        let is_shorter = *lengths.end() < self.snapshot.min_length as i64;
        let is_longer = *lengths.start() > self.snapshot.max_length() as i64;
        if has_other_total || view.pages.is_some() && (is_shorter || is_longer) || from > view.rows.len() {
            return Err(self.drift_error("the list of one block changed while it was read"));
        }
        let accepted = self.deliver(view, from..view.rows.len())?;
        self.finish(view, accepted)
    }

    /// Takes the drift, and a returned record as evidence that none before it was skipped.
    pub(super) fn on_locate(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        let mut attempt = Attempt::Second;
        if let Some(offset) = self.single_offset(view) {
            self.observe(view.position - offset);
            match self.delivered.boundary_record().map_or(Some(true), |record| shows_one(&[record], view, offset)) {
                Some(true) => attempt = Attempt::Third,
                Some(false) => return Err(self.changed_error()),
                None => {}
            }
        }
        self.phase = Phase::Overlap(attempt);
        self.miss(view)
    }

    /// Takes one record by its count.
    pub(super) fn on_single(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        let Some(offset) = self.single_offset(view) else {
            self.phase = Phase::Overlap(Attempt::Second);
            return self.miss(view);
        };
        self.observe(view.position - offset);
        if view.len() == 0 || offset != self.delivered.end() as i64 {
            return self.miss(view);
        }
        let key = view.rows.key(0);
        if offset == 0 && self.snapshot.first != Some(key) {
            return Err(self.first_page_error());
        }
        if offset == 0 && self.earlier.as_ref().is_some_and(|earlier| has_duplicates(earlier.keys())) {
            // One record does not show which are newer than the first page.
            self.forget_unreturned();
        }
        self.proof = Proof::FinalLook;
        let repeats = self.delivered.last().is_none_or(|last| last == key);
        self.phase = if repeats { Phase::Single } else { Phase::Overlap(Attempt::First) };
        let accepted = self.deliver(view, 0..1)?;
        self.finish(view, accepted)
    }

    /// Offset of a response of one record, by its count.
    fn single_offset(&self, view: &View<'_>) -> Option<i64> {
        if view.len() <= 1 { by_count(view, &self.snapshot) } else { None }
    }

    /// Records the drift of a response. True if it is another one than before.
    pub(super) fn observe(&mut self, drift: i64) -> bool {
        let grown = drift - self.drift.offset;
        self.drift.growth.observe(grown, self.spec.tuning.growth_samples);
        self.drift.offset = drift;
        self.drift.has_changed |= grown != 0;
        grown != 0
    }
}

#[cfg(test)]
mod tests;
