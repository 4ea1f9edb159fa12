//! Requests in flight for one slice, and their responses in the order sent.

use std::collections::VecDeque;

use tokio::task::JoinHandle;

use super::cursor::Cursor;
use crate::client::{Error, Expectation, log, process};
use crate::columns::Column;
use crate::decode::Page;
use crate::interface::Shape;
use crate::planted::Bug;
use crate::query::request::Query;
use crate::query::results::SharedReport;
use crate::query::snapshot::{FirstPage, ListKind, ListSpec, PageRequest, Purpose, Response, SnapshotReader, Tuning};

/// One slice of a run: its list and the requests that are in flight for it.
pub(super) struct SliceFetcher {
    pub slice: u64,
    pub list: SnapshotReader,
    in_flight: VecDeque<(PageRequest, Task<Result<Page, Error>>)>,
    /// Records of a lookup's first response that were delivered before this run.
    pub skip: u64,
}

/// A spawned task that is aborted when it is dropped.
struct Task<T> {
    handle: JoinHandle<T>,
    process: u32,
}

impl<T> Task<T> {
    fn new(handle: JoinHandle<T>) -> Self {
        Self { handle, process: process::id() }
    }

    /// False in a forked child, where the task's threads do not exist and its locks may be held for ever.
    fn is_ours(&self) -> bool {
        self.process == process::id()
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if self.is_ours() {
            self.handle.abort();
        }
    }
}

impl SliceFetcher {
    /// A slice of which `wanted` records are wanted, or all.
    pub fn new(query: &Query, slice: u64, wanted: Option<u64>, first_page: FirstPage) -> Self {
        let list = SnapshotReader::new(ListSpec { first_page, ..list_spec(query, wanted) });
        Self { slice, list, in_flight: VecDeque::new(), skip: 0 }
    }

    /// The slice of a cursor, of which an earlier run delivered the records before it.
    pub fn resumed(query: &Query, cursor: &Cursor, first_page: FirstPage) -> Self {
        let wanted = query.max_items().map(|limit| cursor.offset.saturating_add(limit));
        let mut fetcher = Self::new(query, cursor.slice, wanted, first_page);
        if query.is_paged() {
            let spec = ListSpec { first_page, ..list_spec(query, wanted) };
            fetcher.list = SnapshotReader::resumed(spec, cursor.offset, &cursor.list);
        } else {
            fetcher.skip = cursor.offset;
        }
        fetcher
    }

    /// Fails if the list of one block in a range of heights has `records` records or more and cannot hold them.
    pub fn check_window(&mut self, query: &Query, records: u64) -> Result<(), Error> {
        let (Some(height), Some(window)) = (query.slices().height(self.slice), query.result_window()) else {
            return Ok(());
        };
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

    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Sends the next request, if the list has one by now.
    pub fn send_next(&mut self, query: &Query, report: &SharedReport) -> bool {
        let Some(request) = self.list.next_request(self.in_flight.len()) else { return false };
        let (query, slice, must_have_rows) = (query.clone(), self.slice, must_have_rows(&self.list, &request));
        let report = report.clone();
        let fetch = async move { fetch(&query, slice, request, must_have_rows, &report).await };
        self.in_flight.push_back((request, Task::new(tokio::spawn(log::inherit(fetch)))));
        true
    }

    /// Aborts all requests in flight.
    pub fn cancel_in_flight(&mut self) {
        for (request, _) in self.in_flight.drain(..).rev() {
            self.list.cancel(&request);
        }
    }

    /// Stops reading; a last request may verify what was read.
    pub fn stop(&mut self) {
        if self.list.stop() {
            self.cancel_in_flight();
        }
    }

    /// Sends the parent process's requests again in a forked child.
    pub fn requeue_after_fork(&mut self) {
        if self.in_flight.iter().any(|(_, task)| !task.is_ours()) {
            self.cancel_in_flight();
        }
    }

    /// True if the next response has arrived.
    pub fn is_ready(&self) -> bool {
        self.in_flight.front().is_some_and(|(_, task)| task.handle.is_finished())
    }

    /// Returns the next response with its request, or `None` if none is in flight. Cancel-safe: a response that was
    /// waited for is returned by the next call.
    pub async fn next_response(&mut self) -> Option<Result<(PageRequest, Page), Error>> {
        if Bug::ResponseLostOnCancel.is_planted() {
            let (request, mut task) = self.in_flight.pop_front()?;
            return Some((&mut task.handle).await.ok()?.map(|page| (request, page)));
        }
        let (request, task) = self.in_flight.front_mut()?;
        let request = *request;
        let fetched = (&mut task.handle).await.unwrap_or_else(|crash| Err(Error::Internal(crash.to_string())));
        if fetched.is_err() {
            // Sent again if the caller continues.
            self.cancel_in_flight();
        } else {
            self.in_flight.pop_front();
        }
        Some(fetched.map(|page| (request, page)))
    }
}

/// Fetches one page. `must_have_rows` is true if an empty page would contradict an earlier response.
pub(super) async fn fetch(
    query: &Query,
    slice: u64,
    request: PageRequest,
    must_have_rows: bool,
    report: &SharedReport,
) -> Result<Page, Error> {
    let rows = if query.is_paged() { request.limit as usize } else { query.slices().hashes(slice).len().max(16) };
    let offset = (request.page - 1) * request.limit;
    let expected =
        Expectation { row_hint: rows, page: request.page, offset, must_have_rows, projection: query.projection() };
    // Counted when it is sent: the run may be gone when the response arrives.
    let on_send = || report.update(|report| report.requests += 1);
    let target = query.target(slice, request.page, request.limit, request.height_bound);
    let fetched = query.client().get(query.endpoint(), &target, expected, &on_send).await;
    let attempts = fetched.as_ref().map_or_else(Error::attempts, |fetched| fetched.attempts);
    report.update(|report| {
        report.retries += u64::from(attempts.saturating_sub(1));
        report.bytes += fetched.as_ref().map_or(0, |fetched| fetched.bytes as u64);
    });
    let fetched = match fetched {
        // One height of a range: there may be none between two others.
        Err(error) if error.is_absent_block() && query.slices().height(slice).is_some() => {
            return Ok(Page::empty(query.endpoint().record()));
        }
        fetched => fetched?,
    };
    if let Some(believed) = fetched.believed_empty {
        report.add_believed_empty(query.client().empty_responses(), believed);
    }
    check_heights(query, slice, &fetched.page)?;
    Ok(fetched.page)
}

/// Fails if a record lacks the height by which its slice was requested, or by which its list is followed.
fn check_heights(query: &Query, slice: u64, page: &Page) -> Result<(), Error> {
    let (columns, endpoint) = (&page.columns, query.endpoint());
    let Some(height) = columns.record().height().filter(|_| columns.rows() > 0) else { return Ok(()) };
    let is_slice = query.slices().height(slice).is_some();
    // A pending record has the member, without a value.
    let is_absent = page.members.in_all & 1 << height == 0;
    let row = match columns.column(height) {
        Column::Integer(heights) if is_slice => heights.iter().position(|height| height.is_none()),
        _ => None,
    };
    if row.is_none() && !(is_absent && (is_slice || query.is_followed())) {
        return Ok(());
    }
    let name = &query.client().decoder(endpoint).names()[height];
    let list =
        if let Shape::Paged { list, .. } = endpoint.shape { format!("data[0].{list}") } else { "data".to_owned() };
    let path = row.map_or_else(|| list.clone(), |row| format!("{list}[{row}].{name}"));
    let identity = columns
        .record()
        .identity
        .iter()
        .find_map(|name| columns.text(columns.record().position(name)?, row.unwrap_or(0)));
    Err(Error::Format {
        endpoint: endpoint.name,
        path,
        problem: format!("expected records with {name}, by which they are requested"),
        excerpt: identity.unwrap_or_default().into(),
        attempts: 1,
        retryable: false,
    })
}

/// Description of a query's lists for their reader. Of each, `wanted` records are wanted, or all.
pub(super) fn list_spec(query: &Query, wanted: Option<u64>) -> ListSpec {
    ListSpec {
        endpoint: query.endpoint().name,
        kind: match (query.is_paged(), query.may_grow()) {
            (false, _) => ListKind::Lookup,
            (true, false) => ListKind::Fixed,
            (true, true) => ListKind::Growing,
        },
        page_size: query.page_size().max(1),
        max_page_size: query.endpoint().page_size_max().map_or(1, u64::from),
        height_bound: query.height_bound(),
        result_window: query.result_window(),
        wanted,
        first_page: FirstPage::default(),
        hints: query.retry_hints(),
        tuning: Tuning::default(),
    }
}

/// A fetched page as its list's reader takes it.
pub(super) fn response(page: &Page) -> Response<'_> {
    Response { rows: &page.columns, limit: page.limit, total_pages: page.total_pages, total: page.total }
}

/// True if an empty response would contradict what is known of the list.
fn must_have_rows(list: &SnapshotReader, request: &PageRequest) -> bool {
    match request.purpose {
        Purpose::CountProbe => request.page == 1,
        // It is requested where the list is expected to have moved to.
        Purpose::FinalLook => false,
        // The last page of a list has at least one record.
        Purpose::Records => {
            let position = (request.page - 1) * request.limit;
            request.height_bound.is_none() && position < list.snapshot().min_length
        }
    }
}
