//! `Run`: a run of a query. Its pages are fetched several at a time and delivered in order.

mod deliver;
mod divide;
mod empty_heights;
mod list_run;
mod output;
mod resume;
mod send;
mod slice;

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use divide::Dividing;
use empty_heights::EmptyHeights;
pub(super) use output::MAX_REREADS;
use output::RunOutput;
pub(super) use resume::KnownPage;
use send::SliceSizes;
use slice::CurrentSlice;

use super::observed::{Observed, RunObserver};
use super::query_start::QueryStart;
use super::reasons::{UNKNOWN_LENGTH, contradictions, earlier_records, lacks_oldest};
use super::resolve::resolve;
use super::set::{Begin, Set};
use super::shared_heights::SharedHeights;
use super::shown_log::ShownLog;
use super::slice_fetcher::{Discarded, NextResponse, SliceFetcher};
use super::undated::Undated;
use crate::client::{Error, log};
use crate::decode;
use crate::message::Message;
use crate::process;
use crate::query::audit::{Arguments, Source};
use crate::query::evidence::{Evidence, Part};
use crate::query::request::Query;
use crate::query::results::{Checkpoint, Cursor, Page, Partial, Records, SharedReport};
use crate::query::snapshot::{End, FirstPage, PageRequest};

/// Dropping a run, or a future of it, cancels its requests and loses no page.
pub struct Run {
    query: Query,
    output: RunOutput,
    stage: RunStage,
    /// Slices with requests in flight; the first is being delivered.
    fetchers: VecDeque<SliceFetcher>,
    /// Notified by each request that has its response.
    responses: Arc<Notify>,
    current: CurrentSlice,
    empty_heights: EmptyHeights,
    next_slice: u64,
    observed: Observed,
    /// Reading of a list beyond the result window.
    dividing: Dividing,
    /// Sizes of the slices that have ended.
    sizes: SliceSizes,
    /// The newest block that a response showed, if the range of heights ends with it.
    open_end: Option<i64>,
    /// The end of the last slice.
    end: Option<End>,
    /// Most requests in flight, apart from the client's limit.
    max_in_flight: usize,
    /// The query before `end_here`: the list may have to be read again.
    whole: Option<Query>,
    /// The records that an earlier run from the same start received of a list, before this one reads it.
    discarded: Option<Discarded>,
    first_page: FirstPage,
    /// Log of all responses, for a follower.
    shown: Option<ShownLog>,
}

enum RunStage {
    /// The heights of the query may be unknown, some of which other lists of its set may have found; it starts here.
    Unresolved { start: Option<Box<Cursor>>, shared: Option<Arc<SharedHeights>> },
    /// The slices are read. The records can have these values.
    Started(Arguments),
    /// The lists of a set are read, in place of slices.
    OfSet(Box<Set>),
}

impl Run {
    /// Starts a run that streams its records and retains the last of them.
    pub fn new(start: &QueryStart) -> Self {
        let partial = Partial::latest(start.query().record());
        Self::collect_into(start, partial)
    }

    /// Starts a run that collects its records in `partial`.
    pub(super) fn collect_into(start: &QueryStart, partial: Partial) -> Self {
        Self::with_lists(start, partial, Self::begin)
    }

    /// Starts a run that collects its records in `partial`. `begin` begins the runs of the lists of a set.
    pub(super) fn with_lists(start: &QueryStart, partial: Partial, begin: Begin) -> Self {
        let query = start.query().clone();
        let shared = start.shared_heights();
        let start = start.resumed_from();
        let _time = query.client().enter_time();
        let first_page = start.map_or(FirstPage::default(), Cursor::first_page);
        let report = start.map_or_else(SharedReport::default, |start| {
            let report = SharedReport::start(start.reasons.clone(), start.missing.clone());
            report.update(|report| report.search.clone_from(&start.search));
            report.continue_lookups(&start.lookups);
            report
        });
        let stage = match query.members() {
            Some(members) => RunStage::OfSet(Box::new(Set::new(&query, members, begin, start, &report))),
            None => RunStage::Unresolved { start: start.cloned().map(Box::new), shared },
        };
        let mut output = RunOutput::new(partial, report, Undated::new(&query, start.is_some()));
        let earlier = start.map_or(&[][..], |start| &start.blocks);
        earlier.iter().for_each(|(height, block)| output.blocks.add_block(Source::EarlierRun, *height, *block));
        let run = Self {
            query,
            output,
            stage,
            fetchers: VecDeque::new(),
            responses: Arc::default(),
            current: CurrentSlice::default(),
            empty_heights: EmptyHeights::default(),
            next_slice: 0,
            dividing: Dividing::of(start),
            sizes: SliceSizes::default(),
            open_end: None,
            end: None,
            max_in_flight: usize::MAX,
            whole: None,
            discarded: None,
            first_page,
            shown: None,
            observed: Observed::default(),
        };
        if first_page == FirstPage::AtOnce { run.returning_first_page_at_once() } else { run }
    }

    /// True if the list was divided, so that its records are not in their order.
    pub(super) fn is_divided(&self) -> bool {
        self.dividing.divided().is_some()
    }

    /// Requests at most that many pages at once.
    pub(super) fn set_max_in_flight(&mut self, pages: usize) {
        self.max_in_flight = pages.max(1);
    }

    /// Returns the first page of a list as it arrives, for a caller that may need no other one.
    #[must_use]
    pub fn returning_first_page_at_once(mut self) -> Self {
        if let RunStage::OfSet(set) = &mut self.stage {
            set.begin_with_one_list(Self::begin_at_once);
        }
        Self { first_page: FirstPage::AtOnce, ..self }
    }

    /// Reads no list again from its beginning, for a caller that hands out the pages that are collected.
    pub(super) fn hand_out(&mut self) {
        self.output.is_handed_out = true;
    }

    /// Reads page by page, for a caller that compares the first pages with what it has and may need no other ones.
    pub(super) fn compare_pages(&mut self) {
        self.first_page = FirstPage::Compared;
        self.max_in_flight = 1;
    }

    /// Reads the list again, without a comparison of pages.
    pub(super) fn read_without_comparison(&mut self) {
        self.first_page = FirstPage::default();
        self.max_in_flight = usize::MAX;
        self.read_again();
    }

    /// Reads a range of heights from this one on, before its start. The records below it are known.
    pub(super) fn continue_after(&mut self, known: &Records, height: i64, max_items: Option<u64>) -> Result<(), Error> {
        let rest = self.query.from_height(height)?;
        self.query = max_items.map_or_else(|| rest.clone(), |max_items| rest.limited_to(max_items));
        let output = &mut self.output;
        output.report.update(|report| report.records += known.len() as u64);
        for columns in known.chunks() {
            let after = Checkpoint::after(KnownPage::before(&self.query, &output.report), columns.rows());
            output.partial.push(columns, 0, Some(&after));
        }
        Ok(())
    }

    /// Logs all responses.
    pub(super) fn log_responses(&mut self, shown: ShownLog) {
        self.shown = Some(shown);
    }

    /// Ends a run that has sent nothing and needs nothing.
    pub(super) fn end_unread(&mut self) {
        self.stage = RunStage::Started(Arguments::default());
        self.finish();
    }

    /// Reads no further: the next call proves, where the list has a count, that what was returned is of one instant.
    pub fn end_here(&mut self) {
        let limited = self.query.limited_to(self.output.delivered);
        let query = std::mem::replace(&mut self.query, limited);
        self.whole.get_or_insert(query);
    }

    /// Height of the newest block that a response showed, 0 without one, if the range of heights ends with it.
    pub(super) fn open_end(&self) -> Option<i64> {
        self.open_end
    }

    /// The end of the list, once it was reached.
    pub(super) fn end(&self) -> Option<End> {
        self.fetchers.front().map_or(self.end, |fetcher| fetcher.list.end())
    }

    /// True if the result is complete, also one of no request, or lacks nothing but records that are older than those that
    /// the API returns.
    pub fn is_read_to_end(&self) -> bool {
        let report = self.output.report.read();
        let limit = lacks_oldest(&self.query, earlier_records(&self.query, &self.output.evidence));
        report.complete
            || self.end() == Some(End::List) && report.reasons.to_vec().iter().all(|reason| *reason == limit)
    }

    /// Contradictions, also of a list that was read to its end and of which no more is requested, and an unknown length.
    pub(super) fn doubts(&self) -> Vec<Message> {
        let mut reasons = self.output.report.contradictions();
        let ended =
            self.fetchers.front().filter(|fetcher| fetcher.list.end() == Some(End::List) && !fetcher.was_stopped());
        reasons.extend(ended.into_iter().flat_map(|fetcher| contradictions(&self.query, fetcher)));
        if self.end() == Some(End::UnknownLength) {
            reasons.push(UNKNOWN_LENGTH.into());
        }
        reasons
    }

    /// Contradictory heights of the records that were returned of the list.
    pub(super) fn doubtful_height(&self) -> Option<Message> {
        self.fetchers.front()?.audit.doubtful_height()
    }

    /// Reports the run to an observer.
    pub fn observe(&mut self, observer: Box<dyn RunObserver>) {
        self.observed = Observed::new(observer, self.output.report.clone());
    }

    /// Finds the heights of the query and starts its first slice.
    async fn start(&mut self) -> Result<(), Error> {
        let RunStage::Unresolved { start, shared } = &self.stage else { return Ok(()) };
        let resolved = resolve(&self.query, shared.as_deref(), &self.output.report).await?;
        self.query = resolved.query;
        self.open_end = resolved.open_end;
        let unread = self.query.slices().count().saturating_sub(start.as_ref().map_or(0, |start| start.slice + 1));
        // Each slice takes a request, unless the run may end before the last of them.
        let needed = if self.query.max_items().is_some() { unread.min(1) } else { unread };
        self.query.client().check_requests(needed)?;
        let part = match start {
            Some(start) if !(start.slice == 0 && start.list.is_start()) => Part::FromOther,
            _ => Part::FromFirst,
        };
        if !self.is_divided() {
            self.output.evidence = evidence_of(&self.query, part)?;
        }
        if let Some(start) = start {
            if self.query.slices().is_final_look(start.slice) {
                self.fetchers.push_back(self.open(start.slice));
            } else if start.slice < self.query.slices().count() {
                let fetcher = SliceFetcher::resumed(&self.query, start, self.first_page);
                // A look-up has no list, but its records.
                if !start.list.is_start() || start.offset > 0 {
                    self.query.client().check_requests(fetcher.list.requests_to_continue())?;
                    self.current = CurrentSlice::continued();
                }
                self.fetchers.push_back(fetcher);
            }
            self.next_slice = start.slice + 1;
        }
        self.stage = RunStage::Started(Arguments::of(&self.query));
        Ok(())
    }

    pub fn query(&self) -> &Query {
        &self.query
    }

    pub fn is_of_set(&self) -> bool {
        matches!(self.stage, RunStage::OfSet(_))
    }

    /// Has the report of a set show what the requests of the cache for its lists show.
    pub(super) fn share_shown(&self) {
        if let RunStage::OfSet(set) = &self.stage {
            self.output.report.share_shown(&set.shared().shown);
        }
    }

    pub fn report(&self) -> &SharedReport {
        &self.output.report
    }

    pub fn partial(&self) -> &Partial {
        &self.output.partial
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
        if let RunStage::OfSet(set) = &mut self.stage {
            return set.next(&self.output.report, &self.output.partial).await;
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
            self.current.save(&self.output);
            let is_stopped = self.remaining() == Some(0);
            if is_stopped {
                self.stop();
            }
            self.skip_final_look();
            self.send_requests();
            let Some(fetcher) = self.fetchers.front_mut() else {
                return self.end_run().await;
            };
            let responses = self.responses.clone();
            let response = tokio::select! {
                biased;
                response = fetcher.next_response() => response,
                // The response to the request for a later page has come: there is room for another request.
                () = responses.notified() => continue,
            };
            let (request, page) = match response {
                Err(Error::Empty { .. }) if self.is_at_new_range() => {
                    // Only the count of all records says that the page has some.
                    self.give_up();
                    continue;
                }
                Ok(NextResponse::Page(request, page)) => (request, page),
                Ok(NextResponse::BeyondWindow) => continue,
                Ok(NextResponse::None) if self.conclude(is_stopped)? => continue,
                Ok(NextResponse::None) => return self.end_run().await,
                Err(error) => return Err(error),
            };
            let Some(page) = self.on_response(request, page)? else { continue };
            // An empty list is one empty page.
            if page.columns.rows() > 0 || (self.query.slices().count() == 1 && page.number == 1) {
                return Ok(Some(page));
            }
        }
    }

    fn on_response(&mut self, request: PageRequest, page: decode::Page) -> Result<Option<Page>, Error> {
        if let (Some(shown), RunStage::Started(arguments)) = (&self.shown, &self.stage) {
            shown.add(&self.query, &request, &page, arguments);
        }
        if self.split(&request, &page) {
            return Ok(None);
        }
        self.note_height(&request, &page);
        process::long_if(page.columns.copied_size(), || self.deliver(request, page))
    }

    /// Ends the run, after a last look at heights without records.
    async fn end_run(&mut self) -> Result<Option<Page>, Error> {
        self.look_at_empty_heights().await?;
        self.finish();
        Ok(None)
    }

    /// True if the response of the next page has arrived.
    pub fn is_ready(&self) -> bool {
        self.fetchers.front().is_some_and(SliceFetcher::is_ready)
    }

    /// Records still wanted, where there is a limit.
    fn remaining(&self) -> Option<u64> {
        self.query.max_items().map(|max_items| max_items.saturating_sub(self.output.delivered))
    }
}

/// Evidence on the list of a query.
pub(super) fn evidence_of(query: &Query, part: Part) -> Result<Evidence, Error> {
    let args = query.canonical_args()?;
    let argument =
        |name: &str| args.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    Ok(Evidence::of(query.endpoint().name, part, argument))
}
