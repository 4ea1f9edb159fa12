//! `FollowSet`: the followers of the lists of a set. Up to `concurrency` of them are at work at a time, in the order in
//! which their next round is due, so that none waits longer than the others have taken.

mod across;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use across::FollowedLists;

use super::follow_cursor::{FollowCursor, Position};
use super::follow_plan::{FollowOptions, FollowPlan, FollowStart};
use super::lag::Lag;
use super::list_follow::{FollowEvent, FollowItem, FollowStep, ListFollow};
use super::query_start::QueryStart;
use super::set::is_of_one_list;
use super::shared_heights::SharedHeights;
use crate::client::{Error, log};
use crate::message::Message;
use crate::process;
use crate::query::request::{Members, Query};
use crate::query::results::{Records, Report, SharedReport, Verdict};

/// A list by its index, and the outcome of a step of its follower.
type Stepped = (usize, Box<ListFollow>, Result<FollowStep, Error>);

/// Dropping it, or a future of it, cancels its requests and loses no event.
pub struct FollowSet {
    pub(super) query: Query,
    members: Members,
    /// Plan of each list, without its query.
    options: FollowOptions,
    /// Position of the set after the last event that was returned.
    pub(super) cursor: FollowCursor,
    pub(super) report: SharedReport,
    pub(super) lag: Lag,
    shared: Arc<SharedHeights>,
    /// Lists that were not followed yet.
    unopened: VecDeque<usize>,
    /// Followers that are due, the first one longest.
    due: VecDeque<(usize, Box<ListFollow>)>,
    asked: JoinSet<Stepped>,
    /// Followers between two rounds, by the time of the next one.
    resting: BTreeMap<(Instant, usize), Box<ListFollow>>,
    /// The report of each follower as far as it is part of that of the set.
    counted: BTreeMap<usize, Report>,
    lists: FollowedLists,
    /// Reasons of lists by comparison with others.
    doubts: BTreeMap<usize, Message>,
    /// Process of the tasks.
    process: u32,
    /// Reports of the lists that have ended.
    ended: Vec<(usize, SharedReport)>,
    /// Lists that could not be followed on.
    refused: BTreeSet<usize>,
    /// Error of the first list that could not be followed on.
    error: Option<Error>,
}

impl FollowSet {
    pub fn new(start: &QueryStart, members: &Members, options: FollowOptions) -> Result<Self, Error> {
        let query = start.query().clone();
        if query.options().unique {
            let problem = "must not be given where new records are followed: each of the lists returns its own";
            return Err(Error::parameter("unique", problem));
        }
        if start.resumed_from().is_some() || options.end.is_some() {
            query.reject_set("following from a cursor of the query, or up to an end")?;
        }
        // Every list can be followed if one can.
        FollowPlan::new(&QueryStart::from(query.member(0)), &options)?;
        let position = match &options.start {
            FollowStart::Cursor(cursor) => cursor.clone().resolve(&query)?,
            FollowStart::Now => Position::of_set(members, Position::Now),
            FollowStart::Beginning => Position::of_set(members, Position::Beginning),
            FollowStart::Export { .. } => {
                let problem = "must be \"now\", \"beginning\" or the cursor of a follower where lists of several values are \
                               followed";
                return Err(Error::parameter("start", problem));
            }
        };
        let cursor = FollowCursor::new(&query, position)?;
        let report = SharedReport::of_follower();
        let verdicts = members.values.iter().map(|value| Verdict { argument: value.clone(), ..Verdict::default() });
        report.update(|report| report.verdicts.replace(verdicts.collect()));
        Ok(Self {
            lists: FollowedLists::new(&query, members, options.changes, options.settle),
            doubts: BTreeMap::new(),
            options: FollowOptions { start: FollowStart::Now, ..options },
            cursor,
            report,
            lag: Lag::new(members.values.len()),
            shared: Arc::default(),
            unopened: (0..members.values.len()).collect(),
            due: VecDeque::new(),
            asked: JoinSet::new(),
            resting: BTreeMap::new(),
            counted: BTreeMap::new(),
            process: process::id(),
            ended: Vec::new(),
            refused: BTreeSet::new(),
            error: None,
            members: members.clone(),
            query,
        })
    }

    /// Returns the next event of any list, or `None` at the end of a set that is followed to its end. After an error that
    /// is not of one list alone, or a cancelled call, the next call continues.
    pub async fn next(&mut self) -> Result<Option<FollowEvent>, Error> {
        loop {
            self.reopen_after_fork()?;
            self.wake();
            self.ask()?;
            let next_round = self.resting.first_key_value().map(|((at, _), _)| *at);
            let answered = match next_round {
                Some(at) if self.asked.is_empty() => {
                    self.compare();
                    sleep_until(at).await;
                    continue;
                }
                Some(at) => match timeout_at(at, self.asked.join_next()).await {
                    Ok(answered) => answered,
                    Err(_) => continue,
                },
                None => self.asked.join_next().await,
            };
            let Some(answered) = answered else { return self.finish() };
            let (list, follow, step) = answered.map_err(|crash| Error::Internal(crash.to_string()))?;
            self.account(list, &follow);
            match step {
                Ok(FollowStep::Event(event)) => {
                    self.due.push_back((list, follow));
                    return Ok(Some(self.returned(list, *event)));
                }
                Ok(FollowStep::Rest(time)) => self.rest(list, follow, Instant::now() + time),
                Ok(FollowStep::Ended) => {
                    self.ended.push((list, follow.report.clone()));
                    self.end(list, None);
                }
                Err(error) if is_of_one_follower(&error) => self.end(list, Some(&error)),
                Err(error) => {
                    self.due.push_back((list, follow));
                    return Err(error);
                }
            }
        }
    }

    /// Makes the followers due whose next round has come.
    fn wake(&mut self) {
        let now = Instant::now();
        while let Some(entry) = self.resting.first_entry() {
            let (at, list) = *entry.key();
            if at > now {
                return;
            }
            self.due.push_back((list, entry.remove()));
        }
    }

    /// Asks followers for a step until `concurrency` of them are at work.
    fn ask(&mut self) -> Result<(), Error> {
        let concurrency = self.query.client().concurrency();
        while self.asked.len() < concurrency {
            // Followers that have begun come first: their events are to be delivered while others are read.
            let (list, mut follow) = match self.due.pop_front() {
                Some(due) => due,
                None => match self.unopened.pop_front() {
                    Some(list) => (list, self.open(list)?),
                    None => break,
                },
            };
            // The requests in flight are shared, so that a list with many pages does not hold up the others.
            let at_work = self.asked.len() + 1 + self.due.len() + self.unopened.len();
            follow.set_max_in_flight(concurrency.div_ceil(at_work.min(concurrency)));
            self.asked.spawn(log::inherit(async move {
                let step = follow.step().await;
                (list, follow, step)
            }));
        }
        Ok(())
    }

    fn start_of(&self, list: usize) -> QueryStart {
        QueryStart::of_member(self.query.member(list), None, &self.shared)
    }

    fn open(&self, list: usize) -> Result<Box<ListFollow>, Error> {
        let plan = FollowPlan::new(&self.start_of(list), &self.options)?;
        ListFollow::from_position(plan, self.cursor.list_position(list), None).map(Box::new)
    }

    /// Opens the followers again in a forked child, whose parent has the tasks.
    fn reopen_after_fork(&mut self) -> Result<(), Error> {
        if self.process == process::id() {
            return Ok(());
        }
        self.process = process::id();
        // The threads of the tasks do not exist here, and their locks may be held for ever.
        std::mem::forget(std::mem::take(&mut self.asked));
        std::mem::forget(std::mem::take(&mut self.due));
        std::mem::forget(std::mem::take(&mut self.resting));
        let begun = std::mem::take(&mut self.counted);
        for list in begun.into_keys() {
            let follow = self.open(list)?;
            self.due.push_back((list, follow));
        }
        Ok(())
    }

    /// The event of a list as one of the set.
    fn returned(&mut self, list: usize, event: FollowEvent) -> FollowEvent {
        self.cursor.advance(event.cursor.clone(), Some(list));
        let item = match event.item {
            FollowItem::Batch(records) => {
                self.lists.deliver(list, &records);
                let value = &self.members.values[list];
                let chunks = records.chunks().iter().map(|columns| columns.with_queried(value)).collect();
                FollowItem::Batch(Records::new(records.record().with_queried(), chunks))
            }
            FollowItem::Undo { after_height } => {
                self.lists.undo(list, after_height);
                FollowItem::Undo { after_height }
            }
            FollowItem::Moved => FollowItem::Moved,
        };
        FollowEvent { item, list: Some(list), ..event }
    }

    fn rest(&mut self, list: usize, mut follow: Box<ListFollow>, until: Instant) {
        follow.release();
        self.lag.caught_up(list);
        self.resting.insert((until, list), follow);
    }

    /// Ends the follower of a list, with the error that ended it.
    fn end(&mut self, list: usize, error: Option<&Error>) {
        self.counted.remove(&list);
        match error {
            None => self.lag.caught_up(list),
            Some(error) => {
                self.refused.insert(list);
                self.error.get_or_insert_with(|| error.clone());
                self.lag.forget(list);
                self.add_refusal(list, error);
            }
        }
        let message = error.map(Error::message);
        self.report.update(|report| {
            report.verdicts.update(list, |verdict| {
                verdict.complete = message.is_none() && verdict.reasons.is_empty();
                verdict.error = message;
            });
        });
    }

    fn add_refusal(&self, list: usize, error: &Error) {
        let Members { name, values, .. } = &self.members;
        let reason = format!("The list of {name} {} is not followed any more: ", values[list]);
        self.report.add_reason(Message::new(reason).append(error.message()));
    }

    /// Adds what a follower has read since it was counted last.
    fn account(&mut self, list: usize, follow: &ListFollow) {
        let now = follow.report.read();
        let before = self.counted.insert(list, now.clone()).unwrap_or_default();
        let cost = now.since(&before);
        self.report.add_cost(&cost);
        let mut reasons = now.reasons.to_vec();
        reasons.extend(self.doubts.get(&list).cloned());
        reasons.iter().for_each(|reason| self.report.add_reason(reason.clone()));
        self.report.update(|report| {
            report.records += now.records - before.records;
            report.dropped += now.dropped - before.dropped;
            report.verdicts.update(list, |verdict| {
                verdict.records += now.records - before.records;
                verdict.requests += cost.requests;
                verdict.reasons = reasons.into();
            });
        });
    }

    /// Compares what the lists have delivered since the last comparison. One that lacks a record is compared no more.
    fn compare(&mut self) {
        if !self.lists.has_news() {
            return;
        }
        self.lists.blocks_reasons().into_iter().for_each(|reason| self.report.add_reason(reason));
        let lacking =
            self.lists.lacking(&self.members, |list| !self.refused.contains(&list) && !self.doubts.contains_key(&list));
        let Some((lists, reason)) = lacking else { return };
        self.doubt(&lists, reason);
    }

    /// Gives a reason for lists that have ended with an empty page, if the service was seen to throttle by such pages since.
    fn doubt_empty_lists(&mut self) {
        let ended = std::mem::take(&mut self.ended);
        for (list, report) in ended {
            if let Some(reason) = report.empty_responses_reason()
                && !report.read().reasons.to_vec().contains(&reason)
            {
                self.doubt(&[list], reason);
            }
        }
    }

    fn doubt(&mut self, lists: &[usize], reason: Message) {
        let reason = reason.of_follower();
        self.report.add_reason(reason.clone());
        for list in lists.iter().copied() {
            self.doubts.insert(list, reason.clone());
            self.report.update(|report| {
                report.verdicts.update(list, |verdict| {
                    verdict.complete = false;
                    verdict.reasons = verdict.reasons.iter().cloned().chain([reason.clone()]).collect();
                });
            });
        }
    }

    fn finish(&mut self) -> Result<Option<FollowEvent>, Error> {
        self.compare();
        self.doubt_empty_lists();
        if self.refused.len() == self.members.values.len()
            && let Some(error) = &self.error
        {
            return Err(error.clone());
        }
        self.report.finish();
        Ok(None)
    }
}

impl Drop for FollowSet {
    fn drop(&mut self) {
        if self.process != process::id() {
            std::mem::forget(std::mem::take(&mut self.asked));
        }
    }
}

/// True of an error that the follower of another list need not have.
fn is_of_one_follower(error: &Error) -> bool {
    is_of_one_list(error) || matches!(error, Error::Gap { .. } | Error::Reorganization { .. })
}
