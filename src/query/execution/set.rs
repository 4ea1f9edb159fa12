//! `Set`: the lists of a query with several values, read next to each other. Each list is a run of its own, with its
//! slices and its position. Up to `OPEN` of them for each request in flight are open at a time, and each is asked for one
//! page after the other, so that short lists end while long ones are read.

mod across;
mod emptied;
mod ended;
mod open_list;
mod outcome;
mod page;
mod restore;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use tokio::task::JoinSet;

pub(super) use across::{add_records, in_common_of, lacking_reason};
use ended::EndedLists;
use open_list::OpenList;
use outcome::Outcome;
pub(super) use outcome::is_of_one_list;
use page::MemberPage;

use super::query_start::QueryStart;
use super::shared_heights::SharedHeights;
use super::shown_lists::ShownLists;
use super::slice_fetcher::{Discarded, HELD};
use super::unique::Unique;
use crate::client::{Error, log};
use crate::process;
use crate::query::audit::{Blocks, InCommon};
use crate::query::request::{Members, Query};
use crate::query::results::{Checkpoint, Cursor, Page, Partial, Progress, SharedReport};

/// Lists that are open at a time for each request in flight: enough that requests of short lists do not wait until those
/// of long lists have ended.
const OPEN: usize = 4;
/// Lists that are open at a time, unless more requests are in flight: a cursor has the position of each.
const MAX_OPEN: usize = 64;

/// Requests that a list may take before it returns a page. The last ones of a bound are for as few lists as that leaves: a list
/// that sends fewer returns nothing, and the run that continues the set sends them again.
const REQUESTS_OF_LIST: u64 = 5;

/// Times that another run takes the place of that of a list: one that changed too much before its first records were
/// returned, or a page of which was empty that had records.
const MAX_NEW_RUNS: u64 = 3;

/// The run of one list.
pub(super) trait ListRun: Send + Sync {
    fn report(&self) -> &SharedReport;
    /// Requests at most that many pages at once.
    fn set_max_in_flight(&mut self, pages: usize);
    /// Returns the records that the run received of the list that it was reading.
    fn discard(&mut self) -> Option<Discarded>;
    /// Takes the records that a discarded run received, which began where this one does.
    fn begin_after(&mut self, discarded: Discarded);
    fn next(&mut self) -> NextPage<'_>;
}

pub(super) type NextPage<'a> = Pin<Box<dyn Future<Output = Result<Option<Page>, Error>> + Send + 'a>>;

/// Begins the run of a list.
pub(super) type Begin = fn(&QueryStart) -> Box<dyn ListRun>;

/// A list by its index, and what its run returned.
type Answered = (usize, Box<dyn ListRun>, Result<Option<Page>, Error>);

pub(super) struct Set {
    query: Query,
    begin: Begin,
    /// Begins the first list, until it has returned a page or ended, for a caller that may need no other one.
    begin_at_once: Option<Begin>,
    members: Members,
    shared: Arc<SharedHeights>,
    /// Positions of the lists that an earlier run had begun, by index.
    starts: BTreeMap<usize, Arc<Cursor>>,
    is_resumed: bool,
    /// Lists that are being read, by index.
    open: BTreeMap<usize, OpenList>,
    /// Lists that an earlier run had begun, until this one returns a page of them.
    begun: BTreeSet<usize>,
    /// Lists that were not opened yet: those that an earlier run had begun, so that their number does not grow from run
    /// to run, then the others.
    unopened: VecDeque<usize>,
    /// Open lists that are asked for a page.
    asked: JoinSet<Answered>,
    /// Open lists to be asked for a page.
    waiting: VecDeque<(usize, Box<dyn ListRun>)>,
    /// Open lists with an empty page where the API counts records. They wait until another list returns records, or all
    /// have answered.
    emptied: Vec<(usize, Box<dyn ListRun>, Error)>,
    /// Process of the tasks.
    process: u32,
    ended: EndedLists,
    /// Pages with records that the lists returned.
    num_pages: u64,
    outcome: Outcome,
    /// `None` if no two lists have a record in common.
    shown_lists: Option<ShownLists>,
    /// The records that other lists may return again, where each is returned once.
    unique: Option<Unique>,
    /// Blocks of the records of all lists.
    blocks: Blocks,
    /// The records that several lists have, where these are compared.
    in_common: Option<InCommon>,
    /// Lists that have ended without records, and without a reason.
    empty: BTreeSet<usize>,
    /// Those of them that were opened again.
    opened_again: BTreeSet<usize>,
    /// The error of a list that may send no further request. It is raised once the requests of the other lists are
    /// answered, which count as sent.
    spent: Option<Error>,
    /// True if lists have ended or moved without records since the last page that was returned.
    has_moved: bool,
    is_finished: bool,
}

impl Set {
    pub fn new(query: &Query, members: &Members, begin: Begin, start: Option<&Cursor>, report: &SharedReport) -> Self {
        let mut set = Self {
            query: query.clone(),
            begin,
            begin_at_once: None,
            members: members.clone(),
            shared: Arc::new(SharedHeights::continuing(start)),
            starts: BTreeMap::new(),
            is_resumed: start.is_some(),
            open: BTreeMap::new(),
            begun: BTreeSet::new(),
            unopened: VecDeque::new(),
            asked: JoinSet::new(),
            waiting: VecDeque::new(),
            emptied: Vec::new(),
            process: process::id(),
            ended: EndedLists::of(members.values.len()),
            num_pages: 0,
            outcome: Outcome::default(),
            shown_lists: None,
            unique: None,
            blocks: Blocks::default(),
            in_common: None,
            empty: BTreeSet::new(),
            opened_again: BTreeSet::new(),
            spent: None,
            has_moved: false,
            is_finished: false,
        };
        set.restore(start);
        set.outcome.add_verdicts(members, &set.ended, report);
        set
    }

    pub fn shared(&self) -> &SharedHeights {
        &self.shared
    }

    /// Opens one list, and the others once it has returned a page or ended: the caller may need no other.
    pub fn begin_with_one_list(&mut self, begin: Begin) {
        self.begin_at_once = Some(begin);
    }

    /// Returns the next page of any list, or `None` after the last. Cancel-safe: the tasks keep their pages. After an
    /// error that is not of one list alone, the next call continues.
    pub async fn next(&mut self, report: &SharedReport, partial: &Partial) -> Result<Option<Page>, Error> {
        loop {
            self.reopen_after_fork();
            self.judge_emptied(report);
            if self.spent.is_none() {
                self.ask();
            }
            let Some(answered) = self.asked.join_next().await else {
                if self.spent.is_some()
                    && let Some(page) = self.page_of_moved(report, partial)
                {
                    return Ok(Some(page));
                }
                match self.spent.take().or_else(|| self.ask_emptied_again()) {
                    Some(error) => return Err(error),
                    None if self.read_empty_again(report) => continue,
                    None => return self.finish(report),
                }
            };
            let answered = answered.map_err(|crash| Error::Internal(crash.to_string()))?;
            if let Some(page) = self.take(answered, report, partial)? {
                return Ok(Some(page));
            }
        }
    }

    /// Takes what the run of a list returned. Returns the page of the set that it leads to, or the error that ends the call.
    fn take(&mut self, answered: Answered, report: &SharedReport, partial: &Partial) -> Result<Option<Page>, Error> {
        let (index, mut run, page) = answered;
        match page {
            Ok(Some(page)) => {
                self.waiting.push_back((index, run));
                return Ok(self.accept(index, page, report, partial));
            }
            Ok(None) => self.end(index, None, report),
            Err(Error::Drift { .. }) if self.read_again(index, &mut *run) => self.account(report),
            Err(error @ Error::Empty { denies_list, .. }) => {
                if let Some(list) = self.open.get_mut(&index) {
                    list.was_denied |= denies_list;
                }
                self.emptied.push((index, run, error));
                self.account(report);
                // Other lists show whether the service throttles.
                self.begin_at_once = None;
            }
            Err(error) if is_of_one_list(&error) => self.end(index, Some(error), report),
            Err(error) => {
                self.waiting.push_back((index, run));
                self.account(report);
                if !matches!(error, Error::Budget { .. }) {
                    return Err(error);
                }
                self.spent = Some(error);
            }
        }
        Ok(None)
    }

    /// Asks all open lists for a page, and opens others while there is room.
    fn ask(&mut self) {
        let concurrency = self.query.client().concurrency();
        let max_asked = self.max_asked();
        let max_open = match self.begin_at_once {
            Some(_) => 1,
            None => (concurrency * OPEN).min(MAX_OPEN).max(concurrency).min(max_asked),
        };
        while self.asked.len() + self.waiting.len() + self.emptied.len() < max_open
            && let Some(index) = self.unopened.pop_front()
        {
            let begin = self.begin_at_once.unwrap_or(self.begin);
            let run = begin(&self.start_of(index, self.starts.get(&index).cloned()));
            self.open.insert(index, OpenList::new(run.report()));
            self.waiting.push_back((index, run));
        }
        // The last lists share the requests in flight, and what may be held for them.
        let lists = self.asked.len() + self.waiting.len();
        let share = if lists < concurrency { (HELD * concurrency).div_ceil(lists.max(1)) } else { 1 };
        while self.asked.len() < max_asked
            && let Some((index, mut run)) = self.waiting.pop_front()
        {
            run.set_max_in_flight(share);
            if let Some(list) = self.open.get_mut(&index) {
                list.asked_at = self.num_pages;
            }
            self.asked.spawn(log::inherit(async move {
                let page = run.next().await;
                (index, run, page)
            }));
        }
    }

    /// Lists that are asked at a time.
    fn max_asked(&self) -> usize {
        let Some(left) = self.query.client().requests_left() else { return usize::MAX };
        usize::try_from(left / REQUESTS_OF_LIST).unwrap_or(usize::MAX).max(1)
    }

    fn start_of(&self, index: usize, cursor: Option<Arc<Cursor>>) -> QueryStart {
        QueryStart::of_member(self.query.member(index), cursor, &self.shared)
    }

    /// Opens the lists again in a forked child, whose parent has the tasks.
    fn reopen_after_fork(&mut self) {
        if self.process == process::id() {
            return;
        }
        self.process = process::id();
        // The threads of the tasks do not exist here, and their locks may be held for ever.
        std::mem::forget(std::mem::take(&mut self.asked));
        std::mem::forget(std::mem::take(&mut self.waiting));
        std::mem::forget(std::mem::take(&mut self.emptied));
        let open: Vec<usize> = self.open.keys().copied().collect();
        open.into_iter().for_each(|index| self.reopen(index, None));
    }

    /// Continues an open list with another run. One that reads the list from its beginning compares it with what the earlier
    /// run received.
    fn reopen(&mut self, index: usize, discarded: Option<Discarded>) {
        let earlier = self.starts.get(&index).cloned();
        let Some(list) = self.open.get(&index) else { return };
        let start = list.checkpoint.as_ref().map(|checkpoint| Arc::new(checkpoint.cursor())).or(earlier);
        let is_begun_again = start.is_none();
        let mut run = (self.begin)(&self.start_of(index, start));
        if is_begun_again && let Some(discarded) = discarded {
            run.begin_after(discarded);
        }
        if let Some(list) = self.open.get_mut(&index) {
            list.begin_again(run.report());
        }
        self.waiting.push_back((index, run));
    }

    /// The page of a list as one of the set; `None` if it has no records that are to be returned.
    fn accept(&mut self, index: usize, page: Page, report: &SharedReport, partial: &Partial) -> Option<Page> {
        if page.columns.rows() > 0 {
            self.num_pages += 1;
            self.begin_at_once = None;
            self.compare_blocks(index, &page.columns, report);
            if self.open.get(&index).is_some_and(|list| list.was_denied) {
                self.query.client().empty_responses().on_false_count();
            }
        } else if self.has_block_of_each_value() && !self.has_returned(index) {
            // A run that continues from here reads the list again, and so knows that it is empty.
            self.account(report);
            return None;
        }
        let kept = self.fresh_rows(index, &page.columns);
        let columns = kept.as_ref().map_or_else(|| page.columns.clone(), |kept| page.columns.take(kept));
        if let Some(list) = self.open.get_mut(&index) {
            list.repeated += (page.columns.rows() - columns.rows()) as u64;
            list.checkpoint = Some(page.checkpoint.clone());
        }
        self.begun.remove(&index);
        self.account(report);
        self.has_moved = columns.rows() == 0;
        if self.has_moved {
            return None;
        }
        let columns = columns.with_queried(&self.members.values[index]);
        let of_list = MemberPage { list: index, after: page.checkpoint, kept };
        let checkpoint = Checkpoint::after(self.position(Some(of_list), report), columns.rows());
        partial.push(&columns, 0, Some(&checkpoint));
        Some(Page { columns, checkpoint, ..page })
    }

    /// True if pages of an open list were returned.
    fn has_returned(&self, index: usize) -> bool {
        self.open.get(&index).is_some_and(|list| list.checkpoint.is_some())
    }

    /// Reads a list again that changed too much, if none of its records were returned.
    fn read_again(&mut self, index: usize, run: &mut dyn ListRun) -> bool {
        !self.has_returned(index) && !self.starts.contains_key(&index) && self.begin_again(index, run)
    }

    /// Reads a list from its position with a run in place of this one, a few times.
    fn begin_again(&mut self, index: usize, run: &mut dyn ListRun) -> bool {
        let Some(list) = self.open.get_mut(&index) else { return false };
        if list.before.rereads >= MAX_NEW_RUNS {
            return false;
        }
        list.before.rereads += 1;
        self.reopen(index, run.discard());
        true
    }

    /// Ends a list, with the error that ended it.
    fn end(&mut self, index: usize, error: Option<Error>, report: &SharedReport) {
        let Some(list) = self.open.remove(&index) else { return };
        self.ended.insert(index);
        self.begun.remove(&index);
        self.has_moved = true;
        self.begin_at_once = None;
        let counts = list.counts();
        // An earlier run may have returned the records of a list that it had begun.
        let is_whole = !self.starts.contains_key(&index);
        if is_whole && counts.records == 0 && counts.reasons.is_empty() && error.is_none() {
            self.empty.insert(index);
        }
        self.outcome.add(index, &self.members.values[index], counts, error, report);
        self.account(report);
    }

    /// Brings the report up to date with those of the lists.
    fn account(&self, report: &SharedReport) {
        let open = self.open.iter().map(|(index, list)| (*index, list.counts()));
        let progress = Progress {
            unit: "arguments",
            start: self.ended.skipped,
            done: self.ended.count,
            total: Some(self.members.values.len() as u64),
        };
        self.outcome.account(open, progress, report);
    }

    fn finish(&mut self, report: &SharedReport) -> Result<Option<Page>, Error> {
        let num_lists = self.members.values.len();
        if self.ended.count < num_lists as u64 {
            return Err(Error::Internal("a list of a set ended without its last page".into()));
        }
        // An error of every argument is not one of its value.
        let are_all_refused = !self.is_resumed && self.outcome.refused.len() == num_lists;
        if are_all_refused && let Some(error) = &self.outcome.error {
            return Err(error.clone());
        }
        if !std::mem::replace(&mut self.is_finished, true) {
            self.doubt_absent_blocks(report);
            self.doubt_empty_lists(report);
            self.doubt_records_in_common(report);
            self.outcome.refusals(&self.members).into_iter().for_each(|reason| report.add_reason(reason));
            report.finish();
        }
        Ok(None)
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        if self.process != process::id() {
            std::mem::forget(std::mem::take(&mut self.asked));
        }
    }
}
