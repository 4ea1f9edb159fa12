//! Requests in flight for one slice, and their responses in the order sent.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use super::fetch::fetch;
use super::fetch_task::{FetchTask, ResponseSize};
use super::list_spec::{list_spec, must_have_rows, response, subject};
use super::selection::Selection;
use crate::client::Error;
use crate::columns::Columns;
use crate::decode::Page;
use crate::interface::ApiErrorKind;
use crate::message::{Message, counted};
use crate::planted::Bug;
use crate::query::audit::{self, AcceptedRows, ListAudit, ReaderState};
use crate::query::request::Query;
use crate::query::results::{Cursor, KeyedRows, SharedReport, key_of_all};
use crate::query::snapshot::{
    Accepted, FirstPage, ListCheckpoint, ListReader, ListSpec, PageRequest, Purpose, Response,
};

/// Responses that may be held or awaited for each request in flight.
pub(super) const HELD: usize = 3;

/// State of a list by whether its caller wants more records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    No,
    /// The list had ended when the caller stopped it, or its last request was in flight, which verifies what was read.
    AtEnd,
    /// The caller ended it before its own end.
    BeforeEnd,
}

/// Result of the wait for the next response.
#[expect(clippy::large_enum_variant, reason = "taken apart where it is returned, and never kept")]
pub(super) enum NextResponse {
    Page(PageRequest, Page),
    /// The API refused a page beyond its result window, where the list ends.
    BeyondWindow,
    /// No request is in flight.
    None,
}

/// Records of a lookup's response that an earlier run delivered.
struct Skipped {
    count: u64,
    /// Common key of them.
    key: Option<u64>,
    /// Common key of all records of that response.
    key_of_all: Option<u64>,
}

/// One slice of a run: its list and the requests that are in flight for it.
pub(super) struct SliceFetcher {
    pub slice: u64,
    pub list: ListReader,
    pub audit: ListAudit,
    /// Requests whose responses were not taken yet.
    in_flight: VecDeque<(PageRequest, FetchTask<Result<Page, Error>>)>,
    /// Records before the cursor, if this is the lookup of one.
    skipped: Option<Skipped>,
    stopped: Stopped,
    /// Records that the list has at least, by a first response that was not taken yet.
    announced: Option<u64>,
    /// Number of responses that were taken when no request was in flight last: those that are were sent after it.
    taken_before: u64,
}

/// The records that a reading of a slice received, which was discarded.
pub(super) struct Discarded {
    pub slice: u64,
    audit: ListAudit,
}

impl SliceFetcher {
    /// A slice of which `wanted` records are wanted, or all.
    pub fn new(query: &Query, slice: u64, wanted: Option<u64>, first_page: FirstPage) -> Self {
        let list = ListReader::new(ListSpec { first_page, ..list_spec(query, wanted) });
        let audit = ListAudit::new(subject(query, wanted), 0, &[]);
        let in_flight = VecDeque::new();
        Self { slice, list, audit, in_flight, skipped: None, stopped: Stopped::No, announced: None, taken_before: 0 }
    }

    /// Returns the records that were received of the slice, which is not read on.
    pub fn discarded(self) -> Discarded {
        Discarded { slice: self.slice, audit: self.audit }
    }

    /// The slice after a reading of it that was discarded.
    #[must_use]
    pub fn after_discarded(self, discarded: Discarded) -> Self {
        Self { audit: self.audit.after_discarded(discarded.audit), ..self }
    }

    /// The slice of a cursor, of which an earlier run delivered the records before it.
    pub fn resumed(query: &Query, cursor: &Cursor, first_page: FirstPage) -> Self {
        let wanted = query.max_items().map(|limit| cursor.offset.saturating_add(limit));
        let mut fetcher = Self::new(query, cursor.slice, wanted, first_page);
        if query.is_paged() {
            let spec = ListSpec { first_page, ..list_spec(query, wanted) };
            fetcher.list = ListReader::resumed(spec, cursor.offset, &cursor.list);
            fetcher.audit = ListAudit::resumed(subject(query, wanted), cursor.offset, &cursor.audit, &cursor.list);
        } else {
            let key = cursor.audit.latest.first().copied();
            let key_of_all = cursor.audit.latest.get(1).copied();
            let skipped = Skipped { count: cursor.offset, key, key_of_all };
            fetcher.skipped = (skipped.count > 0).then_some(skipped);
        }
        fetcher
    }

    /// The last slice of a divided list: a look at the list, of which nothing is read.
    pub fn final_look(query: &Query, slice: u64, end: &ListCheckpoint) -> Self {
        let list = ListReader::resumed(list_spec(query, None), end.end(), end);
        let audit = ListAudit::new(subject(query, None), end.end(), &[]).after_first_page(end.first_page(), 0);
        Self { list, audit, ..Self::new(query, slice, None, FirstPage::default()) }
    }

    /// Returns the number of records of a lookup that an earlier run delivered. Fails if the lookup does not begin with them: their
    /// number alone shows no position if a log was added or removed, or the order is another one.
    pub fn skipped(&mut self, rows: &Columns) -> Result<usize, Error> {
        let Some(Skipped { count, key, key_of_all: all }) = self.skipped else { return Ok(0) };
        let skip = usize::try_from(count).unwrap_or(usize::MAX);
        let problem = if skip > rows.rows() || key != Some(key_of_all(&rows.slice(0, skip))) {
            let records = counted(count, "record");
            format!("the response does not begin with the {records} that an earlier run returned of it")
        } else if all.is_some_and(|all| all != key_of_all(rows)) {
            "the response has other records than the one that an earlier run received".into()
        } else {
            return Ok(skip);
        };
        Err(self.contradicted(problem))
    }

    /// Fails if the list of one block in a range of heights has `records` records or more and cannot hold them.
    pub fn check_window(&mut self, query: &Query, records: u64) -> Result<(), Error> {
        let Some(height) = query.slices().height(self.slice) else { return Ok(()) };
        let Some(window) = query.result_window() else { return Ok(()) };
        if records <= window {
            return Ok(());
        }
        let problem = format!(
            "block {height} exceeds the API's result window ({window}); query the heights around it separately"
        );
        let error = Error::Window { endpoint: query.endpoint().name, problem: problem.into() };
        self.list.fail(error.clone());
        Err(error)
    }

    /// Number of requests whose responses were not taken yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Number of requests without a response.
    pub fn unanswered(&self) -> usize {
        self.in_flight.iter().filter(|(_, task)| task.size().is_none()).count()
    }

    /// Notes the number of pages that a first response counts which waits for those of the slices before.
    pub fn note_first_page(&mut self) {
        let [(request, task)] = self.in_flight.make_contiguous() else { return };
        if request.page != 1 || self.announced.is_some() {
            return;
        }
        let Some(ResponseSize { pages, rows }) = task.size() else { return };
        let full_pages = pages.unwrap_or(1).saturating_sub(1);
        self.announced = Some(if full_pages > 0 { full_pages * request.limit + 1 } else { rows });
        self.list.announce(full_pages + 1);
    }

    /// Records that are still to come at least; `None` before the first response.
    pub fn min_to_come(&self) -> Option<u64> {
        let list = &self.list;
        match (list.end(), list.snapshot().min_length) {
            (Some(_), _) => Some(0),
            (None, 0) => self.announced,
            (None, records) => Some(records.saturating_sub(list.returned())),
        }
    }

    /// Sends the next request, if the list has one by now. Its response is notified to `responses`.
    pub fn send_next(&mut self, query: &Query, report: &SharedReport, responses: &Arc<Notify>) -> bool {
        let Some(request) = self.next_request() else { return false };
        if self.in_flight.is_empty() {
            self.taken_before = self.audit.taken();
        }
        let is_shown = request.page == 1 && query.is_shown(self.slice);
        let must_have_rows = is_shown || must_have_rows(&self.list, &request);
        let query = query.clone();
        let slice = self.slice;
        let report = report.clone();
        let fetch = async move {
            let page = fetch(&query, slice, request, must_have_rows, &report).await?;
            if query.slices().hashes(slice).len() == 1 {
                report.add_lookup(slice, &page.columns);
            }
            Ok(page)
        };
        self.in_flight.push_back((request, FetchTask::spawn(fetch, size_of_response, responses.clone())));
        true
    }

    /// Next request of the reader; once it has ended, of the audit.
    fn next_request(&mut self) -> Option<PageRequest> {
        let in_flight = self.in_flight.len();
        if self.list.end().is_none() || in_flight > 0 {
            return self.list.next_request(in_flight);
        }
        self.audit.next_request(&self.audited_end())
    }

    fn audited_end(&self) -> audit::End {
        let list = &self.list;
        let wants_more =
            list.spec().wanted.is_none_or(|wanted| list.returned() < wanted) && self.stopped == Stopped::No;
        audit::End::of(list, wants_more)
    }

    /// Takes a response, for the reader and for the audit. `select` says which of the rows belong to the result.
    pub fn on_response(
        &mut self,
        request: &PageRequest,
        page: &Page,
        select: impl Fn(&Accepted) -> Selection,
    ) -> Result<(Accepted, Selection), Error> {
        let rows = KeyedRows::new(&page.columns);
        let response = Response { rows: &rows, ..response(page, self.list.spec()) };
        if self.list.spec().is_beyond_window(request) && self.audit.is_repetition(request, &response) {
            self.list.end_at_window();
            self.cancel_in_flight();
            return Ok((Accepted::default(), Selection::All));
        }
        self.audit.note_records(&response);
        let is_of_audit = request.purpose == Purpose::Audit;
        let taken = if is_of_audit { Ok(Accepted::default()) } else { self.list.on_response(request, &response) };
        let accepted = match taken {
            Ok(accepted) => accepted,
            Err(error) => {
                self.reject(request, &response, select);
                return Err(error);
            }
        };
        if !self.list.is_ahead() {
            self.cancel_in_flight();
        }
        let selection = select(&accepted).of_fresh(accepted.fresh.as_deref());
        if self.audit.is_of_partition() && selection.rows().is_some_and(|rows| rows.len() < accepted.rows.len()) {
            let problem = "a partition has records that contradict the arguments, and would end too late without them";
            return Err(self.contradicted(problem.into()));
        }
        let Self { taken_before, .. } = *self;
        let seen = ReaderState { length: self.list.snapshot().length.exact(), drift: self.list.drift(), taken_before };
        let returned = AcceptedRows { rows: accepted.rows.clone(), kept: selection.rows(), seen };
        if let Err(contradiction) = self.audit.on_response(request, &response, &returned) {
            self.reject(request, &response, select);
            return Err(self.contradicted(contradiction));
        }
        Ok((accepted, selection))
    }

    /// Keeps what a response has that contradicts others, for another reading of the list.
    fn reject(&mut self, request: &PageRequest, response: &Response<'_>, select: impl Fn(&Accepted) -> Selection) {
        let all = Accepted { rows: 0..response.rows.len(), ..Accepted::default() };
        self.audit.on_rejected(request, response, select(&all).rows());
    }

    /// Fails if the list that has ended contradicts itself.
    pub fn conclude(&mut self) -> Result<(), Error> {
        if self.list.end().is_none() && self.stopped == Stopped::No {
            return Err(Error::Internal(format!(
                "no request is in flight for slice {}, which has not ended",
                self.slice
            )));
        }
        self.audit.on_end(&self.audited_end()).map_err(|contradiction| self.contradicted(contradiction))
    }

    /// Contradictions of the list so far that are no errors.
    pub fn doubts(&self) -> Vec<Message> {
        self.audit.doubts(&self.audited_end())
    }

    /// True if the list, which was read to its end, lacks records that other responses of the run showed.
    pub fn lacks_shown_records(&self, query: &Query) -> bool {
        let shown = query.shown_records(self.slice).iter();
        self.audited_end().is_whole() && self.audit.lacks(shown.map(|record| record.key))
    }

    /// True if nothing more is requested.
    pub fn is_ended(&self) -> bool {
        self.list.end().is_some() && !self.audit.is_open(&self.audited_end())
    }

    /// Ends a list whose responses contradict each other.
    fn contradicted(&mut self, problem: String) -> Error {
        let error = self.list.drift_error(problem);
        self.list.fail(error.clone());
        self.cancel_in_flight();
        error
    }

    /// Aborts all requests in flight.
    fn cancel_in_flight(&mut self) {
        for (request, _) in self.in_flight.drain(..).rev() {
            self.list.cancel(&request);
        }
    }

    /// Stops reading; a last request may verify what was read.
    pub fn stop(&mut self) {
        if self.list.stop() {
            self.stopped = Stopped::BeforeEnd;
            self.cancel_in_flight();
        } else if self.stopped == Stopped::No {
            self.stopped = Stopped::AtEnd;
        }
    }

    /// True if the caller wanted no more records before the list had ended.
    pub fn was_stopped(&self) -> bool {
        self.stopped == Stopped::BeforeEnd
    }

    /// Sends the parent process's requests again in a forked child. True if there were any.
    pub fn requeue_after_fork(&mut self) -> bool {
        let is_forked = self.in_flight.iter().any(|(_, task)| !task.is_ours());
        if is_forked {
            self.cancel_in_flight();
        }
        is_forked
    }

    /// True if the next response has arrived.
    pub fn is_ready(&self) -> bool {
        self.in_flight.front().is_some_and(|(_, task)| task.handle.is_finished())
    }

    /// Returns the next response with its request. Cancel-safe: a response that was waited for is returned by the next call.
    pub async fn next_response(&mut self) -> Result<NextResponse, Error> {
        if Bug::ResponseLostOnCancel.is_planted()
            && let Some((request, mut task)) = self.in_flight.pop_front()
        {
            return Ok(match (&mut task.handle).await {
                Ok(page) => NextResponse::Page(request, page?),
                Err(_) => NextResponse::None,
            });
        }
        let Some((request, task)) = self.in_flight.front_mut() else { return Ok(NextResponse::None) };
        let request = *request;
        let fetched = (&mut task.handle).await.unwrap_or_else(|crash| Err(Error::Internal(crash.to_string())));
        match fetched {
            Ok(page) => {
                self.in_flight.pop_front();
                Ok(NextResponse::Page(request, page))
            }
            Err(error) => {
                // Sent again if the caller continues.
                self.cancel_in_flight();
                if !self.list.spec().is_beyond_window(&request) || !is_refusal(&error) {
                    return Err(error);
                }
                self.list.end_at_window();
                Ok(NextResponse::BeyondWindow)
            }
        }
    }
}

fn size_of_response(fetched: &Result<Page, Error>) -> ResponseSize {
    let Ok(page) = fetched else { return ResponseSize::default() };
    ResponseSize { pages: page.paging.total_pages, rows: page.columns.rows() as u64 }
}

/// True if the API rejects a request that it would serve for another page, or has nothing there.
fn is_refusal(error: &Error) -> bool {
    match error {
        Error::Service(error) => matches!(error.kind, ApiErrorKind::BadRequest | ApiErrorKind::NotFound),
        Error::Empty { .. } => true,
        _ => false,
    }
}
