//! The response of each phase: what it shows, which rows it brings, and which phase follows.

use super::delivered::{Delivered, latest_runs};
use super::evidence::{Length, Snapshot};
use super::locate::{Evidence, Location, by_count};
use super::reader::{Attempt, Drift, Earlier, Phase, Proof, SnapshotReader};
use super::spec::{Accepted, FirstPage, ListKind, PageRequest, Response, View};
use crate::client::Error;

impl SnapshotReader {
    pub(super) fn on_first(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<Accepted, Error> {
        let is_unknown = self.snapshot.length == Length::Unknown;
        self.snapshot = Snapshot::new(request, response);
        self.delivered = Delivered::new(self.max_keys(&self.snapshot));
        let view = self.view(request, response);
        self.snapshot.length = match view.total {
            _ if self.spec.kind == ListKind::Lookup => Length::Exact(view.len()),
            _ if view.is_last() && view.len() < view.window => Length::Exact(view.len()),
            Some(total) => Length::Exact(total),
            None if view.is_last() || self.snapshot.min_length >= view.window => Length::Unknown,
            None if self.spec.kind == ListKind::Fixed || is_unknown || self.is_overlapping() => Length::Unknown,
            None => view.length().map_or(Length::Pending, Length::Exact),
        };
        if self.snapshot.length == Length::Pending {
            self.phase = Phase::Length;
            return Ok(self.on_first_of_several(&view));
        }
        let accepted = self.deliver(&view, 0..view.rows.len());
        self.phase = self.ahead();
        self.finish(&view, accepted)
    }

    /// Takes the first page of a list of unknown length. The snapshot begins with the response that shows the length, and
    /// must contain this page if it is returned.
    fn on_first_of_several(&mut self, view: &View<'_>) -> Accepted {
        let (before, rows) = (self.checkpoint(), 0..view.rows.len());
        if self.earlier.is_some() || rows.is_empty() {
            return Accepted::default();
        }
        if self.spec.first_page == FirstPage::Located {
            self.earlier = Some(Earlier { keys: view.keys(0..1), records: 0 });
            return Accepted::default();
        }
        self.earlier = Some(Earlier { keys: view.keys(rows.clone()), records: view.len() });
        if self.spec.continues_by_height() {
            self.tail = self.tail.after(view.rows, rows.clone());
        }
        self.returned += view.len();
        Accepted { rows, before }
    }

    pub(super) fn on_length(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        if view.len() == 0 {
            return Err(self.drift_error("the list became empty while it was read"));
        }
        self.drift = Drift { restarts: self.drift.restarts, misses: self.drift.misses, ..Drift::default() };
        let Some(length) = view.length() else {
            self.snapshot.length = Length::Unknown;
            self.continue_without_length();
            return Ok(Accepted::default());
        };
        (self.delivered, self.proof) = (Delivered::new(self.max_keys(&self.snapshot)), Proof::Overlap);
        let (anchors, first) = (Vec::new(), Some(view.rows.key(0)));
        self.snapshot = Snapshot { length: Length::Exact(length), anchors, first, ..self.snapshot.clone() };
        self.phase = self.ahead();
        // The record is read with its page: a reorganization may replace it before.
        Ok(Accepted::default())
    }

    /// The list begins with its first page, or with the returned records if there are any.
    fn continue_without_length(&mut self) {
        let Some(Earlier { keys, records }) = self.earlier.take().filter(|earlier| earlier.records > 0) else {
            (self.phase, self.proof) = (Phase::First, Proof::Overlap);
            return;
        };
        let runs = latest_runs(keys.iter().rev().map(|key| (*key, 1)), u64::MAX);
        self.delivered = Delivered::resumed(records, &runs, self.max_keys(&self.snapshot));
        // The list may have grown since they were returned.
        self.phase = if self.snapshot.has_fixed_pages() { self.ahead() } else { Phase::Overlap(Attempt::First) };
    }

    pub(super) fn on_records(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        if self.spec.kind == ListKind::Fixed {
            return self.on_fixed(view);
        }
        if view.total.is_some_and(|total| view.len() > 0 && view.position as u64 + view.len() > total) {
            return Err(self.drift_error("a page ends below the last record of the list by its count"));
        }
        let delivered = match self.snapshot.first {
            // The first record was read with the length.
            Some(first) if self.delivered.end() == 0 => &Delivered::resumed(1, &[(first, 1)], 1),
            _ => &self.delivered,
        };
        let (shift, may_follow) = (self.drift.shift, self.is_ahead() || self.snapshot.has_fixed_pages());
        let next = Some(delivered.end() as i64).filter(|next| may_follow && view.position - shift == *next);
        match (Evidence { view, snapshot: &self.snapshot, delivered, shift, next }.locate()) {
            Location::At(offset) => self.on_page(view, offset),
            location => {
                let attempt = if let Phase::Overlap(attempt) = self.phase { attempt } else { Attempt::First };
                self.phase = self.next_attempt(attempt, location);
                self.miss(view)
            }
        }
    }

    /// Next request for the next record, after a page that did not show its offset.
    fn next_attempt(&mut self, attempt: Attempt, location: Location) -> Phase {
        let is_unread = self.delivered.end() == 0 && self.drift.misses < self.spec.tuning.max_head_misses;
        let may_begin_again = self.can_probe() && is_unread && !self.drift.growth.is_stable(1);
        let is_slow = self.drift.growth.expected() * 2 < self.snapshot.page_rows();
        let may_read_again = self.is_overlapping() && self.drift.restarts == 0 && self.delivered.end() > 0;
        match (attempt, location) {
            (Attempt::First, Location::Ambiguous) if self.drift.misses == 0 => Phase::Overlap(Attempt::First),
            // Another snapshot may begin with a record that occurs once.
            (Attempt::Second, Location::Ambiguous) if may_begin_again => Phase::Length,
            // The first record was replaced: this page of a list that grows slowly would show it.
            (Attempt::Second, _) if may_begin_again && is_slow => Phase::Length,
            (Attempt::Second, _) if self.can_probe() => Phase::Single,
            (Attempt::Second, _) if may_read_again => self.read_again(),
            _ if self.can_probe() => Phase::Locate,
            _ => Phase::Overlap(Attempt::Second),
        }
    }

    /// Requests the length after all, and begins another snapshot, which must contain the returned records.
    fn read_again(&mut self) -> Phase {
        self.earlier = Some(Earlier { keys: self.delivered.keys().collect(), records: self.delivered.end() });
        self.drift.restarts += 1;
        Phase::Length
    }

    /// True if a request for one record shows the length, and so the drift.
    fn can_probe(&self) -> bool {
        self.snapshot.length.exact().is_some() && !self.snapshot.has_fixed_pages()
    }

    /// Takes a page whose first row has this offset.
    fn on_page(&mut self, view: &View<'_>, offset: i64) -> Result<Accepted, Error> {
        let (next, rows) = (self.delivered.end() as i64, view.rows.len());
        let has_drifted = self.observe(view.position - offset);
        // No row is new if the next record lies above the page.
        let from = usize::try_from(next - offset).unwrap_or(usize::MAX);
        let is_by_count = by_count(view, &self.snapshot).is_some();
        // The first record alone may be replaced before the next page.
        let least = if next == 0 && !is_by_count { 2 } else { 1 };
        if from.saturating_add(least) > rows {
            // Without drift, no page begins with delivered records and reaches the next one.
            let is_reachable = is_by_count || has_drifted;
            self.phase = if is_reachable {
                Phase::Overlap(Attempt::First)
            } else {
                self.next_attempt(Attempt::Second, Location::Lost)
            };
            return self.miss(view);
        }
        let needed = match from {
            _ if is_by_count => Proof::FinalLook,
            0 if next > 0 => Proof::Length,
            _ => Proof::Overlap,
        };
        self.proof = self.proof.max(needed);
        let to = rows.min(from + self.snapshot.page_rows().max(self.spec.page_size) as usize);
        let accepted = self.deliver(view, from..to);
        let is_stable = self.drift.growth.is_stable(self.spec.tuning.stable_responses);
        match self.phase {
            // By their count, pages requested ahead are of use unless most of their records were delivered.
            Phase::Ahead { .. } if has_drifted && (!self.snapshot.is_counted() || from * 2 > rows) => {
                self.phase = Phase::Overlap(Attempt::First);
            }
            Phase::Overlap(_) => {
                self.phase = if is_stable { self.ahead() } else { Phase::Overlap(Attempt::First) };
            }
            _ => {}
        }
        if to < rows && !self.is_read() { Ok(accepted) } else { self.finish(view, accepted) }
    }

    /// Pages of a list that does not change follow each other, and all but the last are full.
    fn on_fixed(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        let (least, most) = (self.snapshot.min_length as i64, self.snapshot.max_length() as i64);
        let has_changed = view.total.is_some_and(|total| self.snapshot.length.exact() != Some(total))
            || *view.lengths().end() < least
            || *view.lengths().start() > most
            || view.position > self.delivered.end() as i64;
        if has_changed {
            return Err(self.drift_error("the list of one block changed while it was read"));
        }
        self.on_page(view, view.position)
    }

    /// Takes one record by its count, or only the drift in `Locate`.
    pub(super) fn on_single(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        let Some(offset) = by_count(view, &self.snapshot).filter(|_| view.len() <= 1) else {
            self.phase = Phase::Overlap(Attempt::Second);
            return self.miss(view);
        };
        let has_drifted = self.observe(view.position - offset);
        let is_probe = matches!(self.phase, Phase::Locate);
        if is_probe || view.len() == 0 || offset != self.delivered.end() as i64 {
            if is_probe || has_drifted {
                // A page reaches further than one record.
                self.phase = Phase::Overlap(Attempt::Second);
            }
            return self.miss(view);
        }
        let key = view.rows.key(0);
        if offset == 0 && self.snapshot.first != Some(key) {
            return Err(self.first_page_error());
        }
        let repeats = self.delivered.last().is_none_or(|last| last == key);
        if let Some(record) = self.delivered.boundary_record() {
            self.snapshot.add_anchor(record, self.spec.tuning.max_anchors);
        }
        self.proof = Proof::FinalLook;
        self.phase = if repeats { Phase::Single } else { Phase::Overlap(Attempt::First) };
        let accepted = self.deliver(view, 0..1);
        self.finish(view, accepted)
    }

    /// Records the drift of a response. True if it is another one than before.
    pub(super) fn observe(&mut self, shift: i64) -> bool {
        let grown = shift - self.drift.shift;
        self.drift.growth.observe(grown, self.spec.tuning.growth_samples);
        self.drift.shift = shift;
        grown != 0
    }
}

#[cfg(test)]
mod tests;
