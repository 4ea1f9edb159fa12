//! `ListFollow`: carries out what a follower requests, and makes batches of what it delivers.

mod oldest;
mod reads;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use oldest::OldestRecords;
use reads::RoundReads;

use super::follow_cursor::{FollowCursor, Position};
use super::follow_plan::{FollowOptions, FollowPlan, FollowStart};
use super::lag::Lag;
use super::query_start::QueryStart;
use super::read_down::records_between;
use crate::client::Error;
use crate::query::follow::{Event, EventKind, FollowState, Follower, Request, Start};
use crate::query::results::{Records, SharedReport};

/// Rounds in a row that are repeated since the list changed while it was read. A list that only grows or is reorganized once is
/// read by one of the next rounds; one that changes in all of these, for three seconds with the pauses, contradicts itself.
const MAX_REPEATS: u32 = 15;
/// Requests of these rounds after which no other one is repeated, if there were two: the longest lists are read three times, as
/// by a query. With 40, a range of heights of a chain that is reorganized with every fifth response was given up.
const MAX_REPEATED_REQUESTS: u64 = 150;
/// Pause before a round is repeated: servers that disagree would answer alike at once. It is short beside the shortest interval
/// of polling, which is a second.
const REPEAT_PAUSE: Duration = Duration::from_millis(200);

const NOT_DELIVERED: &str =
    "The list has records without a height below others that have one: they were not delivered.";

/// One event of a follower.
pub struct FollowEvent {
    pub item: FollowItem,
    /// The position of its list after it.
    pub cursor: FollowCursor,
    /// Index of its list in a set.
    pub list: Option<usize>,
}

/// Outcome of a step.
pub(super) enum FollowStep {
    Event(Box<FollowEvent>),
    /// Nothing is due for this time.
    Rest(Duration),
    Ended,
}

pub enum FollowItem {
    /// Records of whole heights, oldest first.
    Batch(Records),
    /// All records above this height are void.
    Undo { after_height: i64 },
    /// Heights without records.
    Moved,
}

/// Dropping it, or a future of it, cancels its requests and loses no event.
pub struct ListFollow {
    pub(super) plan: FollowPlan,
    /// Position before the first event.
    pub(super) cursor: FollowCursor,
    stage: FollowStage,
    /// The end, where following ends at a known one.
    end: Option<FollowState>,
    pub(super) report: SharedReport,
    pub(super) lag: Lag,
    reads: RoundReads,
    oldest: OldestRecords,
    events: VecDeque<FollowEvent>,
    repeats: u32,
    /// Requests before the rounds that are repeated.
    requests_before: u64,
    /// Rounds that were repeated since the length of the list was lost.
    lost_lengths: u32,
}

enum FollowStage {
    /// The lowest height may follow from a time, which takes requests.
    Unresolved(Start),
    Started {
        follower: Box<Follower>,
        since: Instant,
    },
}

impl ListFollow {
    pub fn new(start: &QueryStart, options: FollowOptions) -> Result<Self, Error> {
        let plan = FollowPlan::new(start, &options)?;
        let position = match options.start {
            FollowStart::Cursor(cursor) => cursor.resolve(&plan.query)?,
            FollowStart::Now => Position::Now,
            FollowStart::Beginning => Position::Beginning,
            FollowStart::Export { newest, oldest_known } => {
                let state = FollowState::of_export(&newest, oldest_known);
                state.map_or(Position::Beginning, |state| Position::After(Arc::new(state)))
            }
        };
        let end = match options.end {
            None => None,
            Some(json) => match FollowCursor::parse(&plan.query, &json)? {
                Position::After(end) => Some(Arc::unwrap_or_clone(end)),
                Position::Now | Position::Beginning | Position::Set { .. } => return Err(FollowCursor::no_end()),
            },
        };
        Self::from_position(plan, position, end)
    }

    /// A follower that continues at a position, up to an end where one is given.
    pub(super) fn from_position(
        mut plan: FollowPlan,
        position: Position,
        end: Option<FollowState>,
    ) -> Result<Self, Error> {
        plan.spec.until = end.as_ref().map(FollowState::delivered_to);
        let cursor = FollowCursor::new(&plan.query, position.clone())?;
        let oldest = OldestRecords::after(&position, &plan.query)?;
        let start = match position {
            Position::After(state) => Start::After(Arc::unwrap_or_clone(state)),
            Position::Now => Start::Now,
            Position::Beginning => Start::Height(0),
            Position::Set { .. } => return Err(Error::Internal("the position of a set is not that of a list".into())),
        };
        let report = SharedReport::of_follower();
        plan.blind_spot().into_iter().chain(oldest.reason(&plan.query)).for_each(|reason| report.add_reason(reason));
        Ok(Self {
            plan,
            cursor,
            stage: FollowStage::Unresolved(start),
            end,
            report,
            lag: Lag::new(1),
            reads: RoundReads::default(),
            oldest,
            events: VecDeque::new(),
            repeats: 0,
            requests_before: 0,
            lost_lengths: 0,
        })
    }

    /// Requests at most that many pages at once.
    pub(super) fn set_max_in_flight(&mut self, pages: usize) {
        self.plan.max_in_flight = pages.max(1);
    }

    /// Drops the rows of a round that has ended.
    pub(super) fn release(&mut self) {
        self.reads.release();
    }

    /// Returns the next event, or `None` at the end of a follower that ends. After an error or a cancelled call, the next
    /// call continues from the same position.
    pub async fn next(&mut self) -> Result<Option<FollowEvent>, Error> {
        loop {
            match self.step().await? {
                FollowStep::Event(event) => return Ok(Some(*event)),
                FollowStep::Rest(time) => sleep(time).await,
                FollowStep::Ended => return Ok(None),
            }
        }
    }

    /// Reads until there is an event, or until nothing more is due. An error or a cancelled call is as that of `next`.
    pub(super) async fn step(&mut self) -> Result<FollowStep, Error> {
        self.start().await?;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(FollowStep::Event(Box::new(event)));
            }
            let FollowStage::Started { follower, since } = &mut self.stage else {
                unreachable!("it was started above")
            };
            let request = follower.next_request(since.elapsed())?;
            if matches!(request, Request::Finished | Request::Wait(_)) {
                self.plan.shown.conclude(&self.report);
                self.report.doubt_believed_empty();
                if let Some(event) = self.caught_up() {
                    return Ok(FollowStep::Event(Box::new(event)));
                }
            }
            if request == Request::Finished {
                self.check_end()?;
                self.report.finish();
                self.lag.caught_up(0);
                return Ok(FollowStep::Ended);
            }
            if let Request::Wait(time) = request {
                self.lag.caught_up(0);
                return Ok(FollowStep::Rest(time));
            }
            match self.respond(request).await {
                Ok(events) => {
                    if !events.is_empty() {
                        self.repeats = 0;
                        self.lost_lengths = 0;
                        self.plan.shown.conclude(&self.report);
                    }
                    self.take(events);
                }
                Err(error) => self.repeat(error).await?,
            }
        }
    }

    fn check_end(&self) -> Result<(), Error> {
        match (&self.end, &self.stage) {
            (Some(end), FollowStage::Started { follower, .. }) => follower.check_end(end),
            _ => Ok(()),
        }
    }

    /// Returns the position of a list that has delivered all that is due, if the events before it keep its beginning.
    fn caught_up(&mut self) -> Option<FollowEvent> {
        let FollowStage::Started { follower, .. } = &self.stage else { return None };
        let state = follower.state().filter(|state| self.oldest.catch_up(state))?.clone();
        Some(self.event(FollowItem::Moved, state))
    }

    fn follower(&mut self) -> &mut Follower {
        match &mut self.stage {
            FollowStage::Started { follower, .. } => follower,
            FollowStage::Unresolved(_) => unreachable!("a follower is started before its first request"),
        }
    }

    /// Repeats the round of an error that says that the list changed while it was read. Other errors are returned, and
    /// the next call sends the request again.
    async fn repeat(&mut self, error: Error) -> Result<(), Error> {
        self.absorb();
        if !matches!(error, Error::Drift { .. } | Error::Empty { .. }) {
            return Err(error);
        }
        self.reads.down = None;
        self.reads.recheck = None;
        // All of the round is void: its pages may be of two moments.
        self.plan.shown.discard_reasons();
        self.follower().repeat();
        if self.repeats == 0 {
            self.requests_before = self.report.requests();
        }
        self.repeats += 1;
        let is_costly = self.report.requests() - self.requests_before > MAX_REPEATED_REQUESTS;
        if self.repeats > MAX_REPEATS || self.repeats > 2 && is_costly {
            self.repeats = 0;
            self.follower().forget_discarded();
            // A follower has no filters that would narrow it.
            return Err(match error {
                Error::Drift { endpoint, problem } => Error::Drift { endpoint, problem: problem.without_narrowing() },
                error => error,
            });
        }
        sleep(REPEAT_PAUSE).await;
        Ok(())
    }

    async fn start(&mut self) -> Result<(), Error> {
        let FollowStage::Unresolved(start) = &self.stage else { return Ok(()) };
        let mut start = start.clone();
        if !matches!(start, Start::After(_)) {
            let query = self.plan.resolved(self.oldest.is_unresolved(), &self.report).await?;
            let low = query.canonical_args()?.get("start_height").and_then(serde_json::Value::as_i64);
            self.plan.spec.low = low.unwrap_or(0);
            self.oldest.resolve(&query)?;
        }
        if let Start::Height(low) = &mut start {
            *low = self.plan.spec.low;
        }
        let follower = Box::new(Follower::new(self.plan.spec.clone(), start));
        self.stage = FollowStage::Started { follower, since: Instant::now() };
        Ok(())
    }

    fn take(&mut self, events: Vec<Event>) {
        for Event { kind, state } in events {
            let item = match kind {
                EventKind::Deliver { above, up_to, overlap } => {
                    if self.reads.has_unplaced(up_to.saturating_sub(self.plan.spec.settle)) {
                        self.report.add_contradiction(NOT_DELIVERED);
                    }
                    let record = self.plan.list.endpoint().record();
                    let records = records_between(record, &self.reads.pages, above, up_to, overlap);
                    self.report.update(|report| report.records += records.len() as u64);
                    let reason = self.oldest.add(&self.plan.query, &records);
                    reason.into_iter().for_each(|reason| self.report.add_reason(reason));
                    if records.is_empty() { FollowItem::Moved } else { FollowItem::Batch(records) }
                }
                EventKind::Undo { after_height } => FollowItem::Undo { after_height },
                EventKind::Moved => FollowItem::Moved,
            };
            let event = self.event(item, state);
            self.events.push_back(event);
        }
    }

    fn event(&self, item: FollowItem, state: FollowState) -> FollowEvent {
        let state = state.with_beginning(self.oldest.beginning());
        FollowEvent { item, cursor: self.cursor.at(&state), list: None }
    }
}
