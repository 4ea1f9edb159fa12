//! `Follow`: carries out what a follower requests, and makes batches of what it delivers.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::follow_cursor::{FollowCursor, Position};
use super::follow_plan::{FollowOptions, FollowPlan, FollowStart, RangeRead};
use super::heights::Heights;
use super::lag::Lag;
use super::query_start::QueryStart;
use super::read_down::{PageRows, ReadDown, from_height, records_between};
use crate::client::Error;
use crate::message::Message;
use crate::query::follow::{Event, EventKind, FollowState, Follower, Request, RowFacts, Start, Stop, facts};
use crate::query::request::Query;
use crate::query::results::{Records, SharedReport};
use crate::query::snapshot::End;

/// Rounds in a row that are repeated since the list changed while it was read.
const MAX_REPEATS: u32 = 15;
/// Pause before a round is repeated.
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
pub struct Follow {
    plan: FollowPlan,
    /// Position without state, for the cursors of events.
    cursor: FollowCursor,
    stage: FollowStage,
    /// The end, where following ends at a known one.
    end: Option<FollowState>,
    report: SharedReport,
    lag: Lag,
    started: Option<Instant>,
    read_down: Option<ReadDown>,
    /// A second read, which proves the first one.
    recheck: Option<ReadDown>,
    /// Rows of the round, in the order of the list.
    rows: Vec<PageRows>,
    /// Rows of the reading that belong to the ranges after it.
    kept: Option<Vec<PageRows>>,
    events: VecDeque<FollowEvent>,
    repeats: u32,
}

enum FollowStage {
    /// The lowest height may follow from a time, which takes requests.
    Unresolved(Start),
    Started(Box<Follower>),
}

impl Follow {
    pub fn new(start: &QueryStart, options: FollowOptions) -> Result<Self, Error> {
        let plan = FollowPlan::new(start, &options)?;
        let position = match options.start {
            FollowStart::Cursor(json) => FollowCursor::parse(&plan.query, &json)?,
            FollowStart::Now => Position::Now,
            FollowStart::Beginning => Position::Beginning,
            FollowStart::Export { newest, oldest_known } => {
                FollowState::of_export(&newest, oldest_known).map_or(Position::Beginning, Position::After)
            }
        };
        let end = match options.end {
            None => None,
            Some(json) => match FollowCursor::parse(&plan.query, &json)? {
                Position::After(end) => Some(end),
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
        plan.spec.until = end.as_ref().map(FollowState::position);
        let cursor = FollowCursor::new(&plan.query, position.clone())?;
        let stage = match position {
            Position::After(state) => {
                FollowStage::Started(Box::new(Follower::new(plan.spec.clone(), Start::After(state))))
            }
            Position::Now => FollowStage::Unresolved(Start::Now),
            Position::Beginning => FollowStage::Unresolved(Start::Height(0)),
            Position::Set { .. } => return Err(Error::Internal("the position of a set is not that of a list".into())),
        };
        let report = SharedReport::default();
        plan.blind_spot().into_iter().for_each(|reason| report.add_reason(reason));
        Ok(Self {
            plan,
            cursor,
            stage,
            end,
            report,
            lag: Lag::new(1),
            started: None,
            read_down: None,
            recheck: None,
            rows: Vec::new(),
            kept: None,
            events: VecDeque::new(),
            repeats: 0,
        })
    }

    pub fn query(&self) -> &Query {
        &self.plan.query
    }

    pub fn report(&self) -> &SharedReport {
        &self.report
    }

    pub fn lag(&self) -> &Lag {
        &self.lag
    }

    /// Requests at most that many pages at once.
    pub(super) fn set_max_in_flight(&mut self, pages: usize) {
        self.plan.max_in_flight = pages.max(1);
    }

    /// Drops the rows of a round that has ended.
    pub(super) fn release(&mut self) {
        self.rows = Vec::new();
        self.kept = None;
        self.read_down = self.read_down.take().filter(|down| down.returned == 0);
        self.recheck = None;
    }

    /// Position before the first event.
    pub fn cursor(&self) -> &FollowCursor {
        &self.cursor
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
            let started = *self.started.get_or_insert_with(Instant::now);
            let request = self.follower().next_request(started.elapsed())?;
            if request == Request::Finished {
                if let Some(end) = self.end.take() {
                    let checked = self.follower().check_end(&end);
                    self.end = Some(end);
                    checked?;
                }
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
                    }
                    self.take(events);
                }
                Err(error) => self.repeat(error).await?,
            }
        }
    }

    fn follower(&mut self) -> &mut Follower {
        match &mut self.stage {
            FollowStage::Started(follower) => follower,
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
        self.read_down = None;
        self.recheck = None;
        // All of the round is void: its pages may be of two moments.
        self.follower().repeat();
        self.repeats += 1;
        if self.repeats > MAX_REPEATS {
            self.repeats = 0;
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
        let start = start.clone();
        self.plan.spec.low = self.plan.lowest(&self.report).await?;
        let start = if let Start::Height(_) = start { Start::Height(self.plan.spec.low) } else { start };
        self.stage = FollowStage::Started(Box::new(Follower::new(self.plan.spec.clone(), start)));
        Ok(())
    }

    async fn respond(&mut self, request: Request) -> Result<Vec<Event>, Error> {
        match request {
            Request::Finished | Request::Wait(_) => Ok(Vec::new()),
            Request::Head => {
                let head = self.plan.head(&self.report).await?;
                self.read_down = None;
                self.follower().on_head(head);
                Ok(Vec::new())
            }
            Request::Oldest => {
                let Some(first) = Heights::of(&self.plan.list, &self.report).first().await? else {
                    let problem = "(\"beginning\") needs the first height of the chain, to which the list does not \
                                   reach back; pass ";
                    let problem = Message::new(problem).parameter("start_height").text(" to the call");
                    return Err(Error::parameter("start", problem));
                };
                self.follower().on_oldest(first)
            }
            Request::Newest => {
                // A read of which no page has arrived continues after an interrupt.
                if self.read_down.as_ref().is_none_or(|down| down.returned > 0) {
                    self.read_down = Some(ReadDown::new(&self.plan.list, self.repeats));
                }
                self.rows.clear();
                self.kept = None;
                self.read_page(1).await
            }
            Request::Older { pages } => self.read_page(pages).await,
            Request::Verify => {
                let Some(down) = &mut self.read_down else { return Ok(Vec::new()) };
                // The rest of the list is not wanted; the run proves what it has returned.
                down.run.end_here();
                while down.run.next().await?.is_some() {}
                self.absorb();
                self.follower().on_verified()
            }
            Request::Recheck { page } => self.recheck(page).await,
            Request::Range { low, high, max_rows } => self.read_range((low, high), max_rows).await,
        }
    }

    /// Reads a range. What was read down of it is not requested again.
    async fn read_range(&mut self, (low, high): (i64, i64), max_rows: u64) -> Result<Vec<Event>, Error> {
        let kept_from = self.follower().kept_from().unwrap_or(i64::MAX);
        if self.kept.is_none() && kept_from < i64::MAX {
            let pages = std::mem::take(&mut self.rows);
            self.kept = Some(pages.iter().map(|page| from_height(page, kept_from)).collect());
        }
        let (end, mut rows) = match &self.kept {
            Some(kept) if kept_from <= high => (kept_from - 1, kept.clone()),
            _ => (high, Vec::new()),
        };
        let mut up_to = high;
        if low <= end {
            let first = self.follower().first_due();
            match self.plan.read_range((low, end), first, max_rows, &self.report).await? {
                RangeRead::TooLarge { rows, reached } => {
                    self.follower().on_large_range(end, rows, reached);
                    return Ok(Vec::new());
                }
                RangeRead::UpTo(reached, pages) => {
                    up_to = if reached < end { reached } else { high };
                    rows.extend(pages.into_iter().map(|columns| (columns.clone(), facts(&columns))));
                }
            }
        }
        self.read_down = None;
        self.rows = rows;
        // The follower is told of complete heights only.
        let rows = self.rows.iter().flat_map(|(_, rows)| rows).copied();
        let rows: Vec<RowFacts> = rows.filter(|row| row.height.is_none_or(|height| height <= up_to)).collect();
        self.follower().on_range(up_to, &rows)
    }

    /// Reads the next page of the reading, and up to `pages` at once.
    async fn read_page(&mut self, pages: u64) -> Result<Vec<Event>, Error> {
        let Some(down) = &mut self.read_down else { return Ok(Vec::new()) };
        let pages = usize::try_from(pages).unwrap_or(usize::MAX);
        down.run.set_max_in_flight(pages.min(self.plan.max_in_flight));
        let page = down.run.next().await?;
        down.returned += 1;
        let is_ended = page.is_none();
        let stop = match down.run.end() {
            Some(End::ResultWindow) => Stop::Window,
            Some(End::List | End::UnknownLength | End::Unsettled | End::Shrunk | End::Wanted) => Stop::List,
            None if is_ended => Stop::List,
            None => Stop::Page(page.as_ref().and_then(|page| page.total_pages?.checked_sub(page.number))),
        };
        self.absorb();
        let rows = page.as_ref().map(|page| facts(&page.columns)).unwrap_or_default();
        if let Some(down) = &mut self.read_down {
            down.check_order(&rows)?;
        }
        let events = self.follower().on_page(&rows, stop);
        self.rows.extend(page.map(|page| (page.columns, rows)));
        events
    }

    /// Reads a page of the list once more.
    async fn recheck(&mut self, page: u32) -> Result<Vec<Event>, Error> {
        if page == 1 || self.recheck.is_none() {
            self.recheck = Some(ReadDown::new(&self.plan.list, self.repeats));
        }
        let Some(recheck) = &mut self.recheck else { return Ok(Vec::new()) };
        recheck.run.set_max_in_flight(1);
        let page = recheck.run.next().await?;
        let stop = match &page {
            Some(_) if recheck.run.end().is_none() => Stop::Page(None),
            _ => Stop::List,
        };
        self.absorb();
        let rows = page.map(|page| facts(&page.columns)).unwrap_or_default();
        self.follower().on_recheck(&rows, stop)
    }

    /// True if a record without a height is below one of a height that is settled. Those above wait for a block.
    fn has_unplaced(&self, settled: i64) -> bool {
        let rows = self.rows.iter().flat_map(|(_, rows)| rows);
        let mut below = rows.skip_while(|row| row.height.is_none_or(|height| height > settled));
        below.any(|row| row.height.is_none())
    }

    /// Adds the cost of the reads so far to the report.
    fn absorb(&mut self) {
        for reading in self.read_down.iter_mut().chain(&mut self.recheck) {
            reading.add_cost(&self.report);
        }
    }

    fn take(&mut self, events: Vec<Event>) {
        for Event { kind, state } in events {
            let item = match kind {
                EventKind::Deliver { above, up_to, overlap } => {
                    if self.has_unplaced(up_to.saturating_sub(self.plan.spec.settle)) {
                        self.report.add_contradiction(NOT_DELIVERED);
                    }
                    let record = self.plan.list.endpoint().record();
                    let records = records_between(record, &self.rows, above, up_to, overlap);
                    self.report.update(|report| report.records += records.len() as u64);
                    if records.is_empty() { FollowItem::Moved } else { FollowItem::Batch(records) }
                }
                EventKind::Undo { after_height } => FollowItem::Undo { after_height },
                EventKind::Moved => FollowItem::Moved,
            };
            self.events.push_back(FollowEvent { item, cursor: self.cursor.at(&state), list: None });
        }
    }
}
