//! The steps of a round: how far to read, what changed, and what is delivered.
//!
//! | Height | Records |
//! |---|---|
//! | `target` | up to it are due |
//! | `depth` | from it on have to be read |
//! | `unsettled` | from it on may have changed since they were delivered |
//! | `young_from` | from it on are too young to have left a list that forgets its oldest ones |

use std::ops::RangeInclusive;

use super::discarded::{Lacking, Responses, Shown};
use super::fingerprint::{RowFacts, page_hash};
use super::first_records::FirstRecords;
use super::follower::{Conclusion, Follower, Phase, Probe, Round, Step};
use super::reading::Reading;
use super::spec::{Event, EventKind, FollowSpec, Forgets, HeadSource, Ranges, Stop};
use super::state::{Changes, FollowState, LastRound};
use crate::client::Error;
use crate::planted::Bug;

/// Rounds in a row by which a list that had records is found to be empty: a service may throttle by responses that say so.
const EMPTY_ROUNDS: u32 = 3;

impl Round {
    pub fn new(overlap: Option<i64>) -> Self {
        Self {
            reading: Reading::down(overlap),
            rows: Vec::new(),
            shown: Responses::default(),
            pages: 0,
            first_records: FirstRecords::default(),
            first_page: 0,
            target: i64::MIN,
            probe: Probe::NotYet,
            more: None,
            kept_from: None,
            reachable: None,
            beginning: Probe::NotYet,
        }
    }

    /// The list has ended. None of its records from `young` on are a year old.
    pub fn end_of_list(&mut self, forgets: Forgets, young: i64) {
        match forgets {
            Forgets::Never => self.reading.end(),
            Forgets::LastYear { .. } => self.reading.end_forgetful(young),
        }
    }
}

impl Follower {
    /// The newest page: decides whether there is anything to do.
    pub(super) fn on_newest(&mut self, rows: &[RowFacts], stop: Stop) -> Step {
        self.round.first_page = page_hash(rows);
        let Some(top) = self.round.reading.top() else { return self.on_empty(stop) };
        self.empty_rounds = 0;
        self.round.target = self.target(top);
        self.pace.observe(self.head.map_or(top, |head| head.height.max(top)), self.now);
        let may_probe = self.spec.head == HeadSource::Chain && self.round.probe == Probe::NotYet;
        let is_held = self.state.as_ref().is_none_or(|state| state.delivered_to() < top);
        let last = self.state.as_ref().and_then(FollowState::last_round);
        // The page is that of the last round: nothing was listed since, and only what was held back then can be due.
        if let Some(last) = last.filter(|last| (last.first_page, last.top) == (self.round.first_page, top))
            && !self.is_due(&last, self.round.target)
        {
            self.rest_after(LastRound { head: self.head, ..last });
            return Ok(Vec::new());
        }
        // Records above the position are due by the height of the chain's head, not by that of the newest record.
        if may_probe && is_held {
            return self.go_to(Phase::Head);
        }
        let Some(state) = &self.state else {
            let mut state = FollowState::start_after(self.round.target.max(self.spec.low - 1));
            state.set_last_round(self.last_round(top, state.delivered_to()));
            self.state = Some(state.clone());
            self.rest();
            return Ok(vec![Event { kind: EventKind::Moved, state }]);
        };
        // With undone changes, the heights that may have changed are read again even if no other is due.
        if self.spec.changes == Changes::Held && self.round.target <= state.delivered_to() {
            // Nothing is due: what the page shows is compared, and no more is read.
            let step = self.compare_held();
            let last = self.last_round(top, state.delivered_to());
            self.rest_after(last);
            return step;
        }
        self.phase = Phase::ReadDown;
        self.on_older(stop)
    }

    /// The pages so far have no records of a block: they wait for one, or contradict the arguments and were dropped.
    fn on_empty(&mut self, stop: Stop) -> Step {
        if matches!(stop, Stop::Page(_)) {
            return Ok(Vec::new());
        }
        let known = self.state.as_ref().map(FollowState::highest);
        if let Some(Some(highest)) = known
            && (self.spec.forgets == Forgets::Never || self.lacks_settled(highest))
        {
            self.empty_rounds += 1;
            if self.empty_rounds < EMPTY_ROUNDS {
                return Err(self.spec.seemingly_emptied(highest));
            }
            // The next call reads the list again.
            self.empty_rounds = 0;
            self.round.pages = 0;
            return Err(self.spec.emptied(highest));
        }
        self.compare_empty()?;
        if let Some(Some(highest)) = known
            && self.round.reading.is_complete(highest)
        {
            return self.on_lost_records(stop);
        }
        self.rest();
        if known.is_some() {
            return Ok(Vec::new());
        }
        let state = FollowState::start_after(self.spec.low - 1);
        self.state = Some(state.clone());
        Ok(vec![Event { kind: EventKind::Moved, state }])
    }

    /// Fails if the list is empty, and had a record that no reorganization removes: a settled one, or any of a list that has
    /// records of every block.
    fn compare_empty(&self) -> Result<(), Error> {
        let is_of_all = self.spec.head == HeadSource::List;
        let lacking = self.round.shown.highest(true).or_else(|| self.discarded.highest(is_of_all));
        lacking.map_or(Ok(()), |height| Err(self.spec.lacking(Lacking::Record(height))))
    }

    /// True if an empty list lacks a record that was settled when it was delivered, and no known record is old enough to have
    /// left the list: no reorganization has removed all of them.
    fn lacks_settled(&self, highest: i64) -> bool {
        if self.spec.changes == Changes::Held || self.round.probe != Probe::Done {
            return false;
        }
        let unsettled = self.first_due().saturating_sub(self.spec.settle);
        let had_settled = self.state.as_ref().is_some_and(|state| state.below(unsettled).is_some());
        had_settled && self.round.reading.is_complete(highest)
    }

    /// Known records are gone from an empty list, and are too young to have left it.
    fn on_lost_records(&mut self, stop: Stop) -> Step {
        if self.spec.head == HeadSource::Chain && self.round.probe == Probe::NotYet {
            // By a later head they may be old enough.
            return self.go_to(Phase::Head);
        }
        self.round.target = self.target(i64::MIN);
        self.phase = Phase::ReadDown;
        self.on_older(stop)
    }

    /// The height from which on no record is too old for a list that forgets its oldest ones. If the highest known height is
    /// not, neither are those that may have changed with it.
    pub(super) fn young_from(&self) -> i64 {
        let lowest = self.round.reading.lowest();
        let highest = self.state.as_ref().and_then(FollowState::highest);
        let young = match self.spec.forgets {
            // Records that become too old leave the list one after another. Here all known ones are missing.
            Forgets::LastYear { heights } if lowest.is_none_or(|lowest| Some(lowest) > highest) => {
                heights.max(self.spec.settle)
            }
            Forgets::LastYear { .. } | Forgets::Never => self.spec.settle,
        };
        let recent = self.head.map_or(i64::MAX, |head| head.height.saturating_sub(young));
        let state = self.state.as_ref().filter(|state| state.highest() >= Some(recent));
        state.and_then(|state| self.unsettled(state, Stop::List)).map_or(recent, |lowest| lowest.min(recent))
    }

    /// Continues with a phase, without events.
    pub(super) fn go_to(&mut self, phase: Phase) -> Step {
        self.phase = phase;
        Ok(Vec::new())
    }

    /// Ends a round that delivers nothing.
    pub(super) fn rest_after(&mut self, last: LastRound) {
        if let Some(state) = &mut self.state {
            state.set_last_round(last);
        }
        self.rest();
    }

    /// The end of this round, after which all heights up to `position` are delivered.
    pub(super) fn last_round(&self, top: i64, position: i64) -> LastRound {
        let reading = &self.round.reading;
        let first = position.saturating_add(1);
        let held = if reading.complete_from() <= first {
            reading.heights(first, top).next().map(|lowest| lowest.height)
        } else {
            Some(first)
        };
        LastRound { first_page: self.round.first_page, top, held, head: self.head }
    }

    fn compare_held(&self) -> Step {
        let state = self.state.as_ref();
        let changed = state.and_then(|state| state.lowest_change(&self.round.reading, Changes::Held));
        changed.map_or(Ok(Vec::new()), |height| Err(self.spec.changed(height)))
    }

    /// The height from which on a round has to read all records.
    pub(super) fn depth(&self, state: &FollowState, stop: Stop) -> i64 {
        let known = state.verified_from();
        let depth = self.unsettled(state, stop).map_or(known, |lowest| lowest.min(known));
        let overlap = state.overlap().map_or(depth, |overlap| overlap.height.min(depth));
        self.round.reading.lowest_late(state.oldest_known().height()).map_or(overlap, |late| late.min(overlap))
    }

    /// The lowest delivered height that may have changed since: the chain had one more when it was delivered last.
    pub(super) fn unsettled(&self, state: &FollowState, stop: Stop) -> Option<i64> {
        let head = state.delivered_to().saturating_add(1).min(self.round.reading.top().unwrap_or(i64::MAX));
        let lowest = head.saturating_sub(self.spec.settle);
        match (self.spec.changes, stop) {
            (Changes::Held, _) => None,
            (Changes::Undone, _) if Bug::UnsettledForgotten.is_planted() => None,
            // The list has no records below.
            (Changes::Undone, Stop::List) => state.from(lowest),
            // The first record of a height may have been listed late.
            (Changes::Undone, _) => Some(lowest.max(state.oldest_known().height().saturating_add(1))),
        }
    }

    /// A page of a reading down: reads on, or finds out what to deliver.
    pub(super) fn on_older(&mut self, stop: Stop) -> Step {
        let Some(state) = &self.state else { return Ok(Vec::new()) };
        let reading = &self.round.reading;
        let depth = self.depth(state, stop);
        if reading.complete_from() > depth {
            return self.read_on(depth, stop);
        }
        let Some(changed) = state.lowest_change(reading, self.spec.changes) else {
            return self.verify(Conclusion::Deliver);
        };
        if self.spec.changes == Changes::Held {
            // This follower takes no delivered record back: the change is an error if the pages are of one instant.
            return self.verify(Conclusion::Changed(changed));
        }
        if self.spec.head == HeadSource::Chain && self.round.probe == Probe::NotYet {
            // The head may have moved back.
            return self.go_to(Phase::Head);
        }
        if state.has_forgotten_all_below(changed) {
            return self.verify(Conclusion::Changed(changed));
        }
        let start = state.oldest_known().height().saturating_add(1).min(changed);
        // A list that has ended has no other records below.
        let lowest = if stop == Stop::List { changed } else { state.below(changed).unwrap_or(start) };
        if reading.complete_from() > lowest {
            return self.read_on(lowest, stop);
        }
        self.verify(Conclusion::Undo(changed - 1))
    }

    /// Proves that the pages are of one instant, which one page always is.
    fn verify(&mut self, conclusion: Conclusion) -> Step {
        if self.round.pages > 1 {
            return self.go_to(Phase::Verify(conclusion));
        }
        self.conclude(conclusion)
    }

    /// Reads further down, to `depth`, in the way that is cheaper and possible.
    fn read_on(&mut self, depth: i64, stop: Stop) -> Step {
        let can_range = self.spec.ranges != Ranges::None && self.range_end() > self.delivered_to();
        // Reading down would end in ranges, and these begin at the first block: an unknown height fails before the reading.
        if self.round.pages == 1 && self.needs_oldest() && self.is_too_long_to_read_down(stop) {
            return self.go_to(Phase::OldestFirst);
        }
        match stop {
            Stop::Page(_) if can_range && self.is_range_cheaper(depth) => {
                self.begin_ranges();
                Ok(Vec::new())
            }
            Stop::Page(_) if can_range && self.is_too_large(depth) => self.stop_reading_down(),
            Stop::Page(_) => self.go_to(Phase::ReadDown),
            Stop::Window if can_range => self.stop_reading_down(),
            Stop::Window if self.spec.ranges != Ranges::None => {
                Err(self.spec.unsettled_gap(depth, self.round.reading.complete_from()))
            }
            // The known heights have left the list, or can no longer be reached.
            Stop::Window | Stop::List => {
                let first = self.first_due();
                Err(self.spec.gap(first, self.round.reading.complete_from().saturating_sub(1).max(first)))
            }
        }
    }

    /// Delivers what was read down, or fails.
    pub(super) fn conclude(&mut self, conclusion: Conclusion) -> Step {
        self.compare_with_discarded(&self.round.rows, self.round.reading.complete_from()..=i64::MAX)?;
        match conclusion {
            Conclusion::Deliver => Ok(self.deliver_reading(Vec::new())),
            Conclusion::Changed(height) => Err(self.spec.changed(height)),
            Conclusion::Undo(after_height) => {
                let Some(state) = &mut self.state else { return Ok(Vec::new()) };
                let undone = Self::undo(&self.spec, state, &self.round.reading, after_height)?;
                Ok(self.deliver_reading(if Bug::UndoDropped.is_planted() { Vec::new() } else { vec![undone] }))
            }
            Conclusion::Ranges => {
                self.round.kept_from = Some(self.round.reading.complete_from());
                self.begin_ranges_below();
                Ok(Vec::new())
            }
        }
    }

    /// Takes what responses of the round showed, before it takes their rows.
    pub fn on_shown(&mut self, responses: Vec<Shown>) {
        let head = self.head.map_or(i64::MIN, |head| head.height);
        self.round.shown.add(responses, head, self.spec.settle);
    }

    /// Keeps what the round has shown so far, whose rows are not delivered.
    pub(super) fn discard_responses(&mut self) {
        self.discarded.append(&mut self.round.shown);
    }

    /// Forgets the rounds that were discarded, once their contradiction was raised.
    pub fn forget_discarded(&mut self) {
        self.discarded = Responses::default();
    }

    /// Fails if records of some heights, which are all of a round, lack some that a response of it or of a discarded round had.
    /// Heights that are not due may still gain records. In a list that forgets its oldest records, the lowest height may have lost
    /// some, and those below all of them.
    pub(super) fn compare_with_discarded(&self, rows: &[RowFacts], heights: RangeInclusive<i64>) -> Result<(), Error> {
        let lowest = rows.iter().filter_map(|row| row.height).min().unwrap_or(i64::MAX);
        let kept_from = match self.spec.forgets {
            Forgets::LastYear { .. } => lowest.saturating_add(1),
            Forgets::Never => i64::MIN,
        };
        let heights = kept_from.max(*heights.start())..=self.round.target.min(*heights.end());
        let lacking = self.discarded.lacking(rows, &heights, &self.round.shown);
        lacking.map_or(Ok(()), |lacking| Err(self.spec.lacking(lacking)))
    }

    /// Takes back all heights above one, unless the reading shows that they were not reorganized.
    pub(super) fn undo(
        spec: &FollowSpec,
        state: &mut FollowState,
        reading: &Reading,
        after_height: i64,
    ) -> Result<Event, Error> {
        if let Some((first, last)) = state.contradicted(reading) {
            return Err(spec.contradicted(first, last));
        }
        state.undo(after_height);
        Ok(Event { kind: EventKind::Undo { after_height }, state: state.clone() })
    }

    /// Delivers the heights of the reading after some events, and ends the round.
    fn deliver_reading(&mut self, mut events: Vec<Event>) -> Vec<Event> {
        let Some(mut state) = self.state.take() else { return events };
        let top = self.round.reading.top().unwrap_or(i64::MIN);
        events.extend(Self::deliver(&self.spec, &mut state, &self.round.reading, self.round.target));
        state.set_last_round(self.last_round(top, state.delivered_to()));
        // A follower that continues after the last event knows the first page that led to it.
        if let Some(last) = events.last_mut() {
            last.state = state.clone();
        }
        self.state = Some(state);
        self.discarded = Responses::default();
        self.rest();
        events
    }

    pub(super) fn deliver(spec: &FollowSpec, state: &mut FollowState, reading: &Reading, up_to: i64) -> Option<Event> {
        let above = state.delivered_to();
        if up_to <= above {
            return None;
        }
        let overlap = state.overlap().cloned();
        let has_records = reading.heights(above.saturating_add(1), up_to).next().is_some();
        state.deliver(reading, up_to, spec.settle, spec.remembered);
        let kind = if has_records { EventKind::Deliver { above, up_to, overlap } } else { EventKind::Moved };
        Some(Event { kind, state: state.clone() })
    }
}
