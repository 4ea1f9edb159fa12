//! `Pages`: the pages of a run, fetched several at a time and delivered in order.

use std::collections::VecDeque;
use std::pin::Pin;

use super::cursor::Cursor;
use super::in_flight::SliceFetcher;
use super::observed::{Observed, RunObserver};
use super::reread::SliceStart;
use super::resolve::resolve;
use super::run::Run;
use super::selection::{Selection, Selector};
use super::set::{ListRun, Set};
use crate::client::{Error, log, process};
use crate::decode;
use crate::interface::ResultLimit;
use crate::message::{Hint, Message, Narrowing};
use crate::query::audit::Arguments;
use crate::query::request::Query;
use crate::query::results::{
    Checkpoint, LatestCheckpoint, Page, PageCheckpoint, Partial, Progress, SharedReport, Source,
};
use crate::query::snapshot::{Accepted, End, FirstPage, PageRequest};

/// Reason of a list that cannot be shown to be complete.
pub(super) const UNKNOWN_LENGTH: &str = "The API does not report how many records the list has: some may be missing.";

/// A run in progress. Dropping it, or a future of it, cancels its requests and loses no page.
pub struct Pages {
    query: Query,
    /// Values that the records can have, once the heights of the query are known.
    arguments: Arguments,
    report: SharedReport,
    partial: Partial,
    state: State,
    /// Slices with requests in flight; the first is being delivered.
    fetchers: VecDeque<SliceFetcher>,
    /// Beginning of the slice that is being delivered, to which a run that collects can return.
    slice_start: Option<SliceStart>,
    /// Slice whose list continues a snapshot: that of a cursor, or of a partition.
    resumed_slice: Option<u64>,
    next_slice: u64,
    delivered: u64,
    /// Slice and offset of the first page of this run.
    began: Option<(u64, u64)>,
    /// Position after the last page of the slice that is being delivered.
    latest: Option<LatestCheckpoint>,
    observed: Observed,
    /// The end of the last slice.
    end: Option<End>,
    /// Most requests in flight, apart from the client's limit.
    max_in_flight: usize,
    /// True if the caller needs no more of the list, so that its length does not matter.
    is_cut: bool,
    first_page: FirstPage,
    /// The lists of a set, which are read in place of one.
    set: Option<Box<Set<Self>>>,
}

enum State {
    /// The heights of the query may be unknown; it starts here.
    Unresolved(Option<Box<Cursor>>),
    Started,
}

impl Pages {
    /// Starts a run that streams its records and retains the last of them.
    pub fn new(run: &Run) -> Self {
        let partial = Partial::latest(run.query().record());
        Self::collect_into(run, partial)
    }

    /// Starts a run that collects its records in `partial`.
    pub fn collect_into(run: &Run, partial: Partial) -> Self {
        let (query, start) = (run.query().clone(), run.start().cloned());
        let _time = query.client().enter_time();
        let first_page = start.as_ref().map_or(FirstPage::default(), |start| start.first_page());
        let reported = start.as_ref().map(|start| (start.reasons.clone(), start.missing.clone())).unwrap_or_default();
        let report = SharedReport::start(reported.0, reported.1);
        let set = query.members().map(|_| Box::new(Set::new(&query, start.as_ref(), &report)));
        let state = State::Unresolved(start.map(Box::new));
        Self {
            query,
            arguments: Arguments::default(),
            report,
            partial,
            state,
            fetchers: VecDeque::new(),
            slice_start: None,
            resumed_slice: None,
            next_slice: 0,
            delivered: 0,
            began: None,
            latest: None,
            end: None,
            max_in_flight: usize::MAX,
            is_cut: false,
            first_page,
            set,
            observed: Observed::default(),
        }
    }

    /// Requests at most that many pages at once.
    pub(super) fn set_max_in_flight(&mut self, pages: usize) {
        self.max_in_flight = pages.max(1);
    }

    /// Returns the first page of a list as it arrives, for a caller that may need no other one.
    #[must_use]
    pub fn returning_first_page_at_once(self) -> Self {
        Self { first_page: FirstPage::AtOnce, ..self }
    }

    /// Reads no further: the next call proves, where the list has a count, that what was returned is of one instant.
    pub fn end_here(&mut self) {
        self.query = self.query.limited_to(self.delivered);
        self.is_cut = true;
    }

    /// The end of the list, once it was reached.
    pub(super) fn end(&self) -> Option<End> {
        self.fetchers.front().map_or(self.end, |fetcher| fetcher.list.end())
    }

    /// Reports the run to an observer.
    pub fn observe(&mut self, observer: Box<dyn RunObserver>) {
        self.observed = Observed::new(observer, self.report.clone());
    }

    /// Finds the heights of the query and starts its first slice.
    async fn start(&mut self) -> Result<(), Error> {
        let State::Unresolved(start) = &self.state else { return Ok(()) };
        self.query = resolve(&self.query, &self.report).await?;
        let unread = self.query.slices().count().saturating_sub(start.as_ref().map_or(0, |start| start.slice + 1));
        // Each slice takes a request, unless the run may end before the last of them.
        let needed = if self.query.max_items().is_some() { unread.min(1) } else { unread };
        self.query.client().check_requests(needed)?;
        self.arguments = Arguments::of(&self.query);
        if let Some(start) = start {
            if start.slice < self.query.slices().count() {
                self.fetchers.push_back(SliceFetcher::resumed(&self.query, start, self.first_page));
                self.resumed_slice = (!start.list.is_start()).then_some(start.slice);
            }
            self.next_slice = start.slice + 1;
        }
        self.state = State::Started;
        Ok(())
    }

    pub fn query(&self) -> &Query {
        &self.query
    }

    pub fn report(&self) -> &SharedReport {
        &self.report
    }

    pub fn partial(&self) -> &Partial {
        &self.partial
    }

    /// Returns the next page in order, or `None` at the end. After an error or a cancelled call, the next call continues
    /// from the same position.
    pub async fn next(&mut self) -> Result<Option<Page>, Error> {
        let Some(context) = self.observed.context() else { return self.next_page().await };
        let page = log::scope(Some(context), self.next_page()).await;
        self.observed.returned(&page);
        page
    }

    async fn next_page(&mut self) -> Result<Option<Page>, Error> {
        if let Some(set) = &mut self.set {
            return set.next(&self.report, &self.partial).await;
        }
        loop {
            match self.next_page_or_drift().await {
                Err(Error::Drift { .. }) if self.read_again() => {}
                result => return result,
            }
        }
    }

    async fn next_page_or_drift(&mut self) -> Result<Option<Page>, Error> {
        self.start().await?;
        loop {
            self.mark_slice();
            let is_stopped = self.remaining() == Some(0);
            if is_stopped {
                self.stop();
            }
            self.send_requests();
            let Some(fetcher) = self.fetchers.front_mut() else {
                self.finish();
                return Ok(None);
            };
            let Some(response) = fetcher.next_response().await else {
                if let Some(error) = fetcher.list.error() {
                    return Err(error.clone());
                }
                fetcher.conclude()?;
                if is_stopped {
                    if fetcher.list.end() == Some(End::UnknownLength) && !self.is_cut {
                        self.report.add_reason(UNKNOWN_LENGTH);
                    }
                    for reason in fetcher.audit.doubts() {
                        self.report.add_contradiction(reason);
                    }
                    self.finish();
                    return Ok(None);
                }
                // A block whose list ends at the result window may have any number of records beyond it.
                fetcher.check_window(&self.query, fetcher.list.returned().saturating_add(1))?;
                self.end_slice();
                continue;
            };
            let page = response.and_then(|response| {
                let Some((request, page)) = response else { return Ok(None) };
                process::long_if(page.columns.copied_size(), || self.deliver(request, page))
            });
            let Some(page) = page? else { continue };
            // An empty list is one empty page.
            if page.columns.rows() > 0 || (self.query.slices().count() == 1 && page.number == 1) {
                return Ok(Some(page));
            }
        }
    }

    /// Remembers where a slice begins that this run reads from its beginning.
    fn mark_slice(&mut self) {
        let slice = self.fetchers.front().map(|fetcher| fetcher.slice);
        if self.slice_start.is_none() && (slice.is_none() || slice != self.resumed_slice) {
            self.slice_start = SliceStart::of(&self.partial, &self.report, self.delivered);
        }
    }

    /// Reads a list again that changed too much, if none of its records were handed out.
    fn read_again(&mut self) -> bool {
        let (Some(start), Some(fetcher)) = (&mut self.slice_start, self.fetchers.front_mut()) else { return false };
        let Some(delivered) = start.restore(&self.partial, &self.report) else { return false };
        (self.delivered, self.latest) = (delivered, None);
        let wanted = self.query.max_items().map(|most| most.saturating_sub(delivered));
        let received = fetcher.audit.received();
        *fetcher = SliceFetcher::new(&self.query, fetcher.slice, wanted, self.first_page).after_discarded(received);
        self.next_slice = self.fetchers.back().map_or(self.next_slice, |last| last.slice + 1);
        true
    }

    /// True if the response of the next page has arrived.
    pub fn is_ready(&self) -> bool {
        self.set.is_none() && self.fetchers.front().is_some_and(SliceFetcher::is_ready)
    }

    /// Records still wanted, where there is a limit.
    fn remaining(&self) -> Option<u64> {
        self.query.max_items().map(|most| most.saturating_sub(self.delivered))
    }

    /// Requests no more than it takes to verify the records that were returned.
    fn stop(&mut self) {
        self.next_slice = self.query.slices().count();
        let has_returned = self.fetchers.front().is_some_and(|fetcher| fetcher.list.returned() > 0);
        self.fetchers.truncate(usize::from(has_returned));
        for fetcher in &mut self.fetchers {
            fetcher.stop();
        }
    }

    /// Sends requests until `concurrency` of them are in flight.
    fn send_requests(&mut self) {
        self.fetchers.iter_mut().for_each(SliceFetcher::requeue_after_fork);
        let mut in_flight: usize = self.fetchers.iter().map(SliceFetcher::in_flight).sum();
        let concurrency = self.max_in_flight(in_flight);
        let wanted = self.remaining().map(|left| left.div_ceil(self.query.page_size().max(1)).max(1));
        for fetcher in &mut self.fetchers {
            while in_flight < concurrency
                && wanted.is_none_or(|wanted| (in_flight as u64) < wanted)
                && fetcher.send_next(&self.query, &self.report)
            {
                in_flight += 1;
            }
        }
        // With a limit, the slices after this one may not be needed at all.
        let ahead = if wanted.is_some() { 1 } else { concurrency };
        while in_flight < ahead
            && self.next_slice < self.query.slices().count()
            && (wanted.is_none() || self.fetchers.is_empty())
        {
            let mut fetcher = SliceFetcher::new(&self.query, self.next_slice, self.remaining(), self.first_page);
            fetcher.send_next(&self.query, &self.report);
            self.fetchers.push_back(fetcher);
            self.next_slice += 1;
            in_flight += 1;
        }
    }

    /// Requests that may be in flight together. The last ones of a bound are for the next pages, not for those after them.
    fn max_in_flight(&self, in_flight: usize) -> usize {
        let client = self.query.client();
        let most = client.settings().concurrency.min(self.max_in_flight);
        let Some(left) = client.requests_left() else { return most };
        // Later slices may hold what is left: the list that is returned now does not wait for them.
        let is_waited_for = self.fetchers.front().is_some_and(|front| front.in_flight() == 0);
        let least = if is_waited_for { in_flight + 1 } else { 1 };
        most.min(usize::try_from(left).unwrap_or(usize::MAX).max(least))
    }

    /// Returns the page of a response, or `None` if the response brought no records that come next.
    fn deliver(&mut self, request: PageRequest, page: decode::Page) -> Result<Option<Page>, Error> {
        let (query, report) = (&self.query, &self.report);
        let Some(fetcher) = self.fetchers.front_mut() else { return Ok(None) };
        let (offset, slice) = (fetcher.list.returned(), fetcher.slice);
        let (moved, drift) = (fetcher.list.moved(), fetcher.list.drift());
        let missing_before = report.read().missing.len();
        let selector = Selector { query, arguments: &self.arguments, report, slice };
        let (Accepted { rows, before, .. }, selection) = fetcher.on_response(&request, &page, |accepted| {
            selector.select(&page, &page.columns.slice(accepted.rows.start, accepted.rows.len()))
        })?;
        report.update(|report| report.moved += fetcher.list.moved() - moved);
        let is_empty_list = offset == 0 && fetcher.list.end().is_some();
        if rows.is_empty() && !is_empty_list {
            if let Some(latest) = &self.latest {
                latest.set(fetcher.list.checkpoint());
            }
            return Ok(None);
        }
        // Other returned records were requested again on purpose.
        let grown = u64::try_from(fetcher.list.drift() - drift).unwrap_or(0);
        let snapshot = fetcher.list.snapshot();
        let (total, min_length) = (snapshot.total, snapshot.min_length);
        fetcher.check_window(query, min_length)?;
        let received = page.columns.slice(rows.start, rows.len());
        let mut columns = match selection.rows() {
            None => received.clone(),
            Some(rows) => received.take(rows),
        };
        // The records of a single hash that were delivered before this run are skipped.
        let skip = (fetcher.skip as usize).min(columns.rows());
        columns = columns.slice(skip, columns.rows() - skip);
        let left = query.max_items().map(|most| most - self.delivered);
        let cut = left.is_some_and(|left| (left as usize) < columns.rows());
        if let Some(left) = left.filter(|_| cut) {
            columns = columns.slice(0, left as usize);
        }
        self.delivered += columns.rows() as u64;
        if page.columns.rows() > 0 {
            report.add_members(query.client().decoder(query.endpoint()).names(), &page.members);
        }
        let began = *self.began.get_or_insert((slice, offset));
        let position = Position { slice, offset: fetcher.list.returned(), began };
        report.update(|report| {
            report.pages += 1;
            report.records += columns.rows() as u64;
            report.duplicates_dropped += grown.min(rows.start as u64);
            report.progress = progress(query, &position, total, page.total_pages, report.pages, self.delivered);
        });
        self.latest = (!cut).then(|| LatestCheckpoint::new(fetcher.list.checkpoint()));
        let source = match selection {
            Selection::Hashes { found, missing, .. } => Source::Hashes { found, missing, missing_before },
            _ if !query.is_paged() => Source::Hash { offset: skip as u64 },
            selection => Source::List {
                offset,
                received: if cut { columns.clone() } else { received },
                received_rows: if let Selection::Rows(rows) = selection { Some(rows) } else { None },
                before: Box::new(before),
                after: self.latest.clone(),
                repeats: fetcher.audit.open_repeats().to_vec(),
                doubts: fetcher.audit.doubts(),
            },
        };
        let checkpoint = Checkpoint::after(PageCheckpoint {
            query: query.clone(),
            slice: fetcher.slice,
            source,
            rows: columns.rows(),
            end: (!cut && fetcher.is_ended())
                .then(|| [limits(query, fetcher), contradictions(query, fetcher)].concat()),
            remaining: left,
            report: report.read(),
        });
        let left = left.map_or(u64::MAX, |left| left - columns.rows() as u64);
        let ahead = left.min(fetcher.list.to_come());
        self.partial.push(&columns, usize::try_from(ahead).unwrap_or(usize::MAX), Some(&checkpoint));
        Ok(Some(Page {
            checkpoint,
            number: request.page,
            total_pages: page.total_pages,
            total: page.total,
            chain_full_name: page.chain_full_name,
            chain_short_name: page.chain_short_name,
            columns,
        }))
    }

    /// Ends the slice that is being delivered.
    fn end_slice(&mut self) {
        let Some(fetcher) = self.fetchers.pop_front() else { return };
        (self.latest, self.slice_start) = (None, None);
        self.end = fetcher.list.end();
        for reason in limits(&self.query, &fetcher) {
            self.report.add_reason(reason);
        }
        for reason in contradictions(&self.query, &fetcher) {
            self.report.add_contradiction(reason);
        }
    }

    fn finish(&mut self) {
        self.fetchers.clear();
        self.next_slice = self.query.slices().count();
        if self.delivered == 0 && self.report.read().dropped == 0 {
            self.report.update(|report| report.remarks = self.query.implausible_args().into());
        }
        self.report.finish();
    }
}

impl ListRun for Pages {
    fn start(run: &Run) -> Self {
        Self::new(run)
    }

    fn report(&self) -> &SharedReport {
        &self.report
    }

    fn set_max_in_flight(&mut self, pages: usize) {
        self.set_max_in_flight(pages);
    }

    fn next(&mut self) -> impl Future<Output = Result<Option<Page>, Error>> + Send {
        let next: Pin<Box<dyn Future<Output = _> + Send + '_>> = Box::pin(self.next());
        next
    }
}

/// Position of a run after a page.
struct Position {
    slice: u64,
    offset: u64,
    /// Slice and offset at which the run began: those of its cursor, if it continues an earlier one.
    began: (u64, u64),
}

/// Progress of a run that delivered `pages` pages and `records` records. The list has `total` records or else
/// `total_pages` pages.
fn progress(
    query: &Query,
    position: &Position,
    total: Option<u64>,
    total_pages: Option<u64>,
    pages: u64,
    records: u64,
) -> Progress {
    let (limit, (slice, offset)) = (query.max_items(), position.began);
    match (query.slices().unit(), total, total_pages) {
        (Some(unit), ..) => {
            let total = Some(query.slices().count()).filter(|_| limit.is_none());
            Progress { unit, start: slice, done: position.slice + 1, total }
        }
        (None, Some(total), _) => {
            let done = if limit.is_some() { offset + records } else { position.offset };
            let total = Some(limit.map_or(total, |limit| total.min(offset + limit)));
            Progress { unit: "records", start: offset, done, total }
        }
        (None, None, Some(last)) if last > 0 => {
            let size = query.page_size().max(1);
            let total = Some(limit.map_or(last, |limit| last.min((offset + limit).div_ceil(size))));
            // Pages may be smaller than what was asked for.
            let done = if offset == 0 { pages } else { position.offset.div_ceil(size) };
            Progress { unit: "pages", start: offset / size, done, total }
        }
        _ => Progress { unit: "records", start: offset, done: offset + records, total: None },
    }
}

/// The limit of a list of an address. A later start needs nothing that the API does not return.
pub(super) fn last_year(consequence: &str) -> Message {
    let problem = format!("The API returns only the last 12 months of an address{consequence}");
    Message::new(problem).hint(Hint::NarrowQuery(vec![Narrowing::Pass("start_time".into())]))
}

/// Reasons why a slice that ended is incomplete by what the API documents.
fn limits(query: &Query, fetcher: &SliceFetcher) -> Vec<Message> {
    let name = label(query, fetcher);
    let (list, records) = (&fetcher.list, fetcher.list.returned());
    let mut reasons = Vec::new();
    if matches!(query.endpoint().limit, ResultLimit::LastYear) && records > 0 && !query.is_recent() {
        reasons.push(last_year(": older records may exist"));
    }
    match list.snapshot().total {
        Some(total) if total > records && is_at_cap(query, fetcher) => reasons.push(query.with_narrowing(format!(
            "The API reports {total} records{name} but only the first {records} can be paged through"
        ))),
        None if is_at_cap(query, fetcher) => reasons.push(query.with_narrowing(format!(
            "The list{name} ends at {records} records, about as many as can be paged through: more may exist"
        ))),
        _ => {}
    }
    if list.end() == Some(End::Unsettled) {
        let problem = "The order of the list changed so much that some of its records were not received";
        reasons.push(Message::new(problem).hint(Hint::RetryLater));
    }
    if list.end() == Some(End::UnknownLength) {
        reasons.push(UNKNOWN_LENGTH.into());
    }
    reasons
}

/// Reasons why a slice that ended is incomplete, since responses contradict each other.
fn contradictions(query: &Query, fetcher: &SliceFetcher) -> Vec<Message> {
    let (name, records) = (label(query, fetcher), fetcher.list.returned());
    let is_reached = |total: &u64| *total == records || *total > records && is_at_cap(query, fetcher);
    let missing = fetcher.list.snapshot().total.filter(|total| !is_reached(total));
    let reason = missing.map(|total| format!("The API reports {total} records{name} but returned {records}").into());
    reason.into_iter().chain(fetcher.audit.doubts()).collect()
}

fn label(query: &Query, fetcher: &SliceFetcher) -> String {
    query.slices().label(fetcher.slice).map_or(String::new(), |name| format!(" of {name}"))
}

fn is_at_cap(query: &Query, fetcher: &SliceFetcher) -> bool {
    let records = fetcher.list.returned();
    fetcher.list.end() == Some(End::ResultWindow)
        || !query.is_paged() && query.result_window().is_some_and(|cap| records >= cap)
}
