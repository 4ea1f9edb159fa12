//! `Follower`: its state, what it requests next, and what it makes of the responses. The table is in the module's
//! documentation.

use std::time::Duration;

use super::discarded::Responses;
use super::fingerprint::RowFacts;
use super::first_records::{FirstRecords, Rechecked};
use super::pace::Pace;
use super::reading::Reading;
use super::spec::{Event, FollowSpec, Forgets, HeadSource, Poll, Request, RoundProof, Start, Stop};
use super::state::{ChainHead, Changes, FollowState, LastRound};
use crate::client::Error;
use crate::planted::Bug;

/// Part of the records that a round may hold which a range is expected to have, by the density of the one before. It may
/// be denser, and one that turns out too large is requested again.
const EXPECTED_FILL: f64 = 0.7;

/// Events that a response leads to, or why following ends.
pub type Step = Result<Vec<Event>, Error>;

#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Between two rounds, until this time.
    Resting {
        until: Duration,
    },
    /// A round that begins with the head of the chain, and ends there unless something is due.
    HeadFirst,
    Head,
    Newest,
    ReadDown,
    Verify(Conclusion),
    /// The page on which the first records of the reading are looked for once more.
    Recheck(Conclusion, u32),
    Range {
        low: i64,
        high: i64,
    },
    Oldest,
    /// As `Oldest`, before reading down: fails early if the first height is unknown.
    OldestFirst,
    Fork {
        low: i64,
        high: i64,
    },
    Finished,
    Failed(Box<Error>),
}

/// Conclusion from a reading down, once its pages are known to be of one instant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Conclusion {
    Deliver,
    /// The heights above this one changed.
    Undo(i64),
    /// A change of this height cannot be undone.
    Changed(i64),
    /// Ranges follow, up to what was read down.
    Ranges,
}

/// The list as far as this round has read it.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub reading: Reading,
    /// Records of the reading.
    pub rows: Vec<RowFacts>,
    pub shown: Responses,
    pub pages: u64,
    pub first_records: FirstRecords,
    /// Hash of the first page.
    pub first_page: u64,
    /// The height up to which heights are to be delivered.
    pub target: i64,
    /// The request for the head of the chain.
    pub probe: Probe,
    /// Pages that follow those that were read, where the API reports it.
    pub more: Option<u64>,
    /// The height from which on the rows of the reading belong to the ranges that follow it.
    pub kept_from: Option<i64>,
    /// The height from which on another reading down is expected to reach the position, where this one could not.
    pub reachable: Option<i64>,
    /// The request for the height of the first block.
    pub beginning: Probe,
}

/// Last request of the round before. Records that were listed late show only in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastRequest {
    #[default]
    List,
    Head,
}

/// A request that a round sends once at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    NotYet,
    Done,
}

#[derive(Clone, Debug)]
pub struct Follower {
    pub(super) spec: FollowSpec,
    /// None before the first round, if it starts now.
    pub(super) state: Option<FollowState>,
    pub(super) phase: Phase,
    pub(super) round: Round,
    /// Responses of the rounds before this one, since records were delivered.
    pub(super) discarded: Responses,
    /// Rounds in a row that found an empty list which had records.
    pub(super) empty_rounds: u32,
    /// The chain's newest block, where another list shows it.
    pub(super) head: Option<ChainHead>,
    last_request: LastRequest,
    /// Heights of the next range.
    pub(super) span: i64,
    pub(super) pace: Pace,
    pub(super) now: Duration,
}

impl Follower {
    pub fn new(spec: FollowSpec, start: Start) -> Self {
        let state = match start {
            Start::Now => None,
            Start::Height(low) => Some(FollowState::start_after(low - 1)),
            Start::After(state) => Some(state),
        };
        let last = state.as_ref().and_then(FollowState::last_round);
        Self {
            spec,
            state,
            head: last.and_then(|last| last.head),
            last_request: LastRequest::List,
            phase: Phase::Resting { until: Duration::ZERO },
            round: Round::new(None),
            discarded: Responses::default(),
            empty_rounds: 0,
            span: 1,
            pace: Pace::default(),
            now: Duration::ZERO,
        }
    }

    pub fn state(&self) -> Option<&FollowState> {
        self.state.as_ref()
    }

    /// Records that the round holds.
    #[cfg(test)]
    pub fn rows_held(&self) -> u64 {
        self.round.reading.rows()
    }

    #[cfg(test)]
    pub fn spec(&self) -> &FollowSpec {
        &self.spec
    }

    /// Next request. `now` is the time since following began.
    pub fn next_request(&mut self, now: Duration) -> Result<Request, Error> {
        self.now = self.now.max(now);
        if let Phase::Resting { until } = self.phase {
            if until > self.now {
                return Ok(Request::Wait(until - self.now));
            }
            self.round = Round::new(self.overlap());
            self.phase = self.first_phase();
            self.last_request = LastRequest::List;
        }
        Ok(match &self.phase {
            Phase::Newest if self.round.pages > 0 => Request::Older { pages: 1 },
            Phase::Resting { .. } | Phase::Newest => Request::Newest,
            Phase::HeadFirst | Phase::Head => Request::Head,
            Phase::Oldest | Phase::OldestFirst => Request::Oldest,
            Phase::ReadDown => Request::Older { pages: self.pages_to_come() },
            Phase::Verify(_) => Request::Verify,
            Phase::Recheck(_, page) => Request::Recheck { page: *page },
            Phase::Range { low, high } => {
                let max_rows = if *high > self.first_due() { self.spec.max_rows } else { u64::MAX };
                Request::Range { low: *low, high: *high, max_rows }
            }
            Phase::Fork { low, high } => Request::Range { low: *low, high: *high, max_rows: u64::MAX },
            Phase::Finished => Request::Finished,
            Phase::Failed(error) => return Err((**error).clone()),
        })
    }

    /// Takes the chain's newest block.
    pub fn on_head(&mut self, head: Option<ChainHead>) {
        let before = std::mem::replace(&mut self.head, head);
        self.discard_responses();
        self.round = Round { probe: Probe::Done, ..Round::new(self.overlap()) };
        let last = self.state.as_ref().and_then(FollowState::last_round);
        let is_single = self.spec.poll == Poll::Once;
        if let (Phase::HeadFirst, Some(last), Some(head)) = (&self.phase, last, head) {
            // Blocks may have been replaced, and no later round of a single one notices a record that was listed late.
            let is_unchanged = before == Some(head);
            let is_idle = match self.spec.changes {
                Changes::Held => !self.is_due(&last, self.target(last.top)) && (!is_single || is_unchanged),
                Changes::Undone => is_unchanged,
            };
            if is_idle {
                self.last_request = LastRequest::Head;
                self.pace.observe(head.height.max(last.top), self.now);
                self.rest();
                return;
            }
        }
        self.phase = Phase::Newest;
    }

    /// Takes the height of the chain's first block, where ranges begin.
    pub fn on_oldest(&mut self, height: i64) -> Step {
        let is_first = matches!(self.phase, Phase::OldestFirst);
        if let Some(state) = &mut self.state {
            state.begin_after(height - 1);
        }
        self.round.beginning = Probe::Done;
        if !is_first {
            self.first_range();
            return Ok(Vec::new());
        }
        let stepped = self.on_older(Stop::Page(self.round.more));
        self.fail_on_error(stepped)
    }

    /// Takes a page of the reading.
    pub fn on_page(&mut self, rows: &[RowFacts], stop: Stop) -> Step {
        self.round.reading.push(rows);
        self.round.rows.extend_from_slice(rows);
        self.round.pages += 1;
        self.round.first_records.take(rows);
        self.round.more = if let Stop::Page(more) = stop { more } else { Some(0) };
        if stop == Stop::List {
            let is_known = self.state.as_ref().is_some_and(|state| state.highest().is_some());
            let young = self.young_from();
            self.round.end_of_list(if is_known { self.spec.forgets } else { Forgets::Never }, young);
        }
        let stepped =
            if matches!(self.phase, Phase::Newest) { self.on_newest(rows, stop) } else { self.on_older(stop) };
        if matches!(self.phase, Phase::Newest) && self.round.reading.top().is_none() {
            // After an error of an empty list the next call reads the list again.
            return stepped;
        }
        self.fail_on_error(stepped)
    }

    /// The pages of the reading are of one instant, if the list has a count.
    pub fn on_verified(&mut self) -> Step {
        let Phase::Verify(conclusion) = self.phase else { return Ok(Vec::new()) };
        if self.spec.proof == RoundProof::Recheck && !Bug::FinalLookSkipped.is_planted() {
            return self.go_to(Phase::Recheck(conclusion, 1));
        }
        let concluded = self.conclude(conclusion);
        self.fail_on_error(concluded)
    }

    /// Takes a page on which the first records may be.
    pub fn on_recheck(&mut self, rows: &[RowFacts], stop: Stop) -> Step {
        let Phase::Recheck(conclusion, page) = self.phase else { return Ok(Vec::new()) };
        if page == 1 {
            self.round.first_records.begin_recheck();
        }
        match self.round.first_records.recheck(rows, !matches!(stop, Stop::Page(_))) {
            Rechecked::Same => {
                let concluded = self.conclude(conclusion);
                self.fail_on_error(concluded)
            }
            // Not a failure: the round is repeated.
            Rechecked::Different => Err(self.spec.drift()),
            Rechecked::NotVisible => self.go_to(Phase::Recheck(conclusion, page + 1)),
        }
    }

    /// Checks, where following ends at a height, that what was delivered is what another follower delivered up to there.
    pub fn check_end(&self, end: &FollowState) -> Result<(), Error> {
        let Some(state) = &self.state else { return Ok(()) };
        let missing = (state.delivered_to() < end.delivered_to()).then_some(state.delivered_to() + 1);
        state.difference(end).or(missing).map_or(Ok(()), |height| Err(self.spec.changed(height)))
    }

    /// Takes all records of the range up to `up_to`, which is its end unless it held too many.
    pub fn on_range(&mut self, up_to: i64, rows: &[RowFacts]) -> Step {
        let stepped = match self.phase {
            Phase::Range { low, high } => self.on_span(low, up_to.min(high), rows),
            Phase::Fork { low, high } => self.on_fork(Reading::range(low, high, rows, self.overlap())),
            _ => Ok(Vec::new()),
        };
        self.fail_on_error(stepped)
    }

    /// The height from which on the rows of the reading are those of ranges.
    pub fn kept_from(&self) -> Option<i64> {
        self.round.kept_from
    }

    /// The range up to `high` has more records than may be held: `rows` of them are from `reached` on.
    pub fn on_large_range(&mut self, high: i64, rows: u64, reached: i64) {
        let first = self.first_due();
        let half = (high - first) / 2;
        let fitting = half.min(self.fitting_span(rows, high.saturating_sub(reached).saturating_add(1)));
        // Records may be as dense below, or nowhere but here.
        let is_known = rows > self.spec.max_rows;
        let span = if is_known { fitting } else { (half as f64 * fitting as f64).sqrt() as i64 };
        let end = first.saturating_add(span.max(0));
        if let Phase::Range { high, .. } = &mut self.phase {
            *high = end;
            self.span = end - first + 1;
        }
    }

    /// Heights of a range that holds somewhat fewer records than it may, if they are as dense as these.
    pub(super) fn fitting_span(&self, rows: u64, heights: i64) -> i64 {
        let density = rows as f64 / heights.max(1) as f64;
        ((self.spec.max_rows as f64 * EXPECTED_FILL / density.max(1e-9)) as i64).max(1)
    }

    /// Repeats the round, since a request of it failed or the list changed meanwhile.
    pub fn repeat(&mut self) {
        if !matches!(self.phase, Phase::Finished | Phase::Failed(_)) {
            self.discard_responses();
            self.phase = Phase::Resting { until: Duration::ZERO };
            // The failed round has found the head and delivered nothing. With that head the next one would have no news.
            self.head = self.state.as_ref().and_then(FollowState::last_round).and_then(|last| last.head);
        }
    }

    fn fail_on_error(&mut self, stepped: Step) -> Step {
        // After a drift the round is repeated.
        if let Err(error) = &stepped
            && !matches!(error, Error::Drift { .. })
        {
            self.phase = Phase::Failed(Box::new(error.clone()));
        }
        stepped
    }

    /// Ends the round. Heights that are due at once begin another one.
    pub(super) fn rest(&mut self) {
        // A set has many followers that rest.
        self.round.rows = Vec::new();
        self.round.shown = Responses::default();
        let interval = self.pace.interval(self.spec.poll);
        self.phase = match self.spec.poll {
            Poll::Once => Phase::Finished,
            Poll::Auto | Poll::Every(_) => Phase::Resting { until: self.now + interval },
        };
    }

    /// The first request of a round. The head of the chain that shows which heights of a page are whole has to be older than
    /// the page. Only after another round may a page be the same as before, so that it needs no head.
    fn first_phase(&self) -> Phase {
        let last = self.state.as_ref().and_then(FollowState::last_round);
        // Heights are held back until the head of the chain moves: it alone can show that nothing is due.
        let is_held = last.is_some_and(|last| last.held.is_some());
        if self.spec.head != HeadSource::Chain {
            Phase::Newest
        } else if is_held && self.last_request == LastRequest::List {
            Phase::HeadFirst
        } else if last.is_none() && self.head.is_none() {
            Phase::Head
        } else {
            Phase::Newest
        }
    }

    /// True if some of the heights up to `target` may have records that were not delivered.
    pub(super) fn is_due(&self, last: &LastRound, target: i64) -> bool {
        let first = self.spec.until.map_or(last.first_unknown(), |_| self.first_due());
        target >= first
    }

    /// The lowest height that is not delivered.
    pub fn first_due(&self) -> i64 {
        self.state.as_ref().map_or(i64::MAX, |state| state.delivered_to().saturating_add(1))
    }

    pub(super) fn overlap(&self) -> Option<i64> {
        self.state.as_ref().and_then(FollowState::overlap).map(|overlap| overlap.height)
    }

    /// The greatest height that is whole, or settled, as far as this round shows.
    pub(super) fn target(&self, top: i64) -> i64 {
        let head = self.head.map_or(top, |head| head.height.max(top));
        match (self.spec.until, self.spec.changes) {
            (Some(until), _) => until.min(head - 1),
            (None, Changes::Held) => head - self.spec.settle.max(1),
            (None, Changes::Undone) => head - 1,
        }
    }
}
