//! `Estimate`: the expected size of a result, from one request.

use std::time::Duration;

use tokio::time::Instant;

use super::in_flight::fetch;
use super::resolve::resolve;
use super::run::Run;
use crate::client::Error;
use crate::decode::Page;
use crate::interface::ResultLimit;
use crate::message::Message;
use crate::query::list::Ask;
use crate::query::request::Query;
use crate::query::results::SharedReport;

/// Expectation size of a run. `None` is unknown.
#[derive(Clone, Debug, Default)]
pub struct Estimate {
    /// Lists that are read one after the other: blocks, years, or requests for hashes.
    pub num_slices: u64,
    pub pages: Option<u64>,
    pub requests: Option<u64>,
    pub records: Option<u64>,
    /// True if the API counted the records; false if they are inferred from the first slice.
    pub is_exact: bool,
    pub estimated_seconds: Option<f64>,
    /// Records that the API cannot return, one sentence each.
    pub limitations: Vec<Message>,
}

/// Size of one slice, as far as one response reports it.
struct SliceSize {
    records: Option<u64>,
    pages: Option<u64>,
    is_exact: bool,
}

impl SliceSize {
    /// Size of what follows the first `offset` records.
    fn after(&self, offset: u64, page_size: u64) -> Self {
        let records = self.records.map(|records| records.saturating_sub(offset));
        let pages = self.pages.map(|pages| pages.saturating_sub(offset / page_size.max(1)));
        Self { records, pages, is_exact: self.is_exact }
    }
}

impl Run {
    /// Sends one request and returns the expected size of the run.
    pub async fn estimate(self) -> Result<Estimate, Error> {
        let query = resolve(self.query(), &SharedReport::default()).await?;
        let (first, offset) = self.start().map_or((0, 0), |cursor| (cursor.slice, cursor.offset));
        let query = &query;
        let slices = query.slices().count().saturating_sub(first);
        if slices == 0 || query.max_items() == Some(0) {
            let none = Some(0);
            return Ok(Estimate {
                pages: none,
                requests: none,
                records: none,
                is_exact: true,
                estimated_seconds: Some(0.0),
                ..Estimate::default()
            });
        }
        let started = Instant::now();
        // In pages of one, a list's number of pages is its length.
        let asked = if counts_pages_only(query) { query.limited_to(1) } else { query.clone() };
        let page = fetch(&asked, first, Ask::first(asked.page_size()), false, &SharedReport::default()).await?;
        let latency = started.elapsed();
        let size = slice_size(query, first, &page);
        let mut estimate = extrapolate(query, &size.after(offset, query.page_size()), slices);
        estimate.limitations = limitations(query, first, &page, &size);
        estimate.estimated_seconds = estimate.requests.map(|requests| seconds(query, requests, latency));
        Ok(estimate)
    }
}

/// True if responses report how many pages a list has, but not how many records.
fn counts_pages_only(query: &Query) -> bool {
    query.is_paged() && !query.endpoint().counts()
}

fn slice_size(query: &Query, first: u64, page: &Page) -> SliceSize {
    let rows = page.columns.rows() as u64;
    if !query.is_paged() {
        let requested = query.slices().hashes(first).len() as u64;
        // A look-up of several hashes returns one record for each; one of a transaction's logs any number.
        let records = if matches!(query.endpoint().limit, ResultLimit::Logs) { rows } else { requested.min(rows) };
        return SliceSize { records: Some(records), pages: Some(1), is_exact: true };
    }
    // A server may return pages of another size than requested.
    let limit = page.limit.unwrap_or(if counts_pages_only(query) { 1 } else { query.page_size() }).max(rows).max(1);
    let size = query.page_size().max(1);
    let last = page.total_pages.filter(|last| *last > 0 || rows == 0);
    // Records beyond the result window can be read where the list can be bounded by height.
    let reachable = last.filter(|_| query.height_bound().is_none()).map_or(u64::MAX, |last| last.saturating_mul(limit));
    let counted = page.total.or_else(|| last.filter(|_| limit == 1 || last == Some(0)));
    let only = last == Some(1) || (last.is_none() && rows < limit);
    let records = match counted {
        Some(counted) => Some(counted.min(reachable)),
        None if only => Some(rows),
        // The last page may hold fewer.
        None => last.map(|last| last.saturating_mul(limit)),
    };
    // A list that continues by height below the result window is not counted beyond it.
    let continues =
        page.total.is_none() && query.height_bound().is_some() && reaches_result_window(query, records.unwrap_or(0));
    let records = records.filter(|_| !continues);
    let pages = records.map(|records| records.div_ceil(size).max(1));
    SliceSize { records, pages, is_exact: (counted.is_some() || only) && !continues }
}

/// Takes all blocks to be like the first, and likewise the transactions whose logs are requested. An empty block
/// indicates nothing about others, nor does one year about another.
fn extrapolate(query: &Query, first: &SliceSize, all: u64) -> Estimate {
    if all > 1 && query.is_paged() && (query.slices().time_range(0).is_some() || first.records == Some(0)) {
        return Estimate { num_slices: all, ..Estimate::default() };
    }
    let each = first.records.map(|records| records.max(1));
    let needed = |most: u64| each.map_or(1, |each| most.div_ceil(each)).min(all);
    let num_slices = query.max_items().map_or(all, needed);
    let most = query.max_items().unwrap_or(u64::MAX);
    let records = first.records.and_then(|records| records.checked_mul(num_slices)).map(|records| records.min(most));
    let pages = match (first.pages, query.max_items()) {
        // A list of unknown length is read no further than the limit.
        (None, Some(most)) => Some(most.div_ceil(query.page_size().max(1))),
        (Some(pages), Some(most)) if num_slices == 1 => Some(pages.min(most.div_ceil(query.page_size().max(1)))),
        (pages, _) => pages.and_then(|pages| pages.checked_mul(num_slices)),
    };
    let requests = pages.map(|pages| pages.saturating_add(u64::from(needs_count_probe(query, pages))));
    Estimate { num_slices, pages, requests, records, is_exact: all == 1 && first.is_exact, ..Estimate::default() }
}

/// True if the length of the list takes a request of its own.
fn needs_count_probe(query: &Query, pages: u64) -> bool {
    counts_pages_only(query) && query.may_grow() && pages > 1
}

/// True if a list of this many records ends about at the result window.
fn reaches_result_window(query: &Query, records: u64) -> bool {
    query.result_window().is_some_and(|window| records >= window - window / 100)
}

fn limitations(query: &Query, first: u64, page: &Page, size: &SliceSize) -> Vec<Message> {
    let records = size.records.unwrap_or(0);
    let wanted = query.max_items().unwrap_or(u64::MAX);
    let name = query.slices().label(first).map_or(String::new(), |name| format!(" of {name}"));
    let mut limitations = Vec::new();
    if matches!(query.endpoint().limit, ResultLimit::LastYear) && page.columns.rows() > 0 && !query.is_recent() {
        limitations.push("The API returns only the last 12 months of an address".into());
    }
    if let Some(total) = page.total.filter(|total| *total > records && wanted > records) {
        limitations.push(query.with_narrowing(format!(
            "The API reports {total} records{name} but only the first {records} can be paged through"
        )));
    } else if reaches_result_window(query, records) && wanted > records && query.height_bound().is_none() {
        limitations.push(query.with_narrowing(format!(
            "The list{name} ends at {records} records, about as many as can be paged through: more may exist"
        )));
    }
    let requested = query.slices().hashes(first).len() as u64;
    if !matches!(query.endpoint().limit, ResultLimit::Logs) && requested > records {
        let missing = requested - records;
        limitations.push(format!("{missing} of the first {requested} requested transactions are not returned").into());
    }
    limitations
}

/// Duration at the client's current rate, or at the latency of this response where the rate is unlimited.
fn seconds(query: &Query, requests: u64, latency: Duration) -> f64 {
    let concurrency = query.client().settings().concurrency.max(1) as f64;
    let rounds = (requests as f64 / concurrency).ceil();
    let at_rate = query.client().rate_limiter_state().rate.map_or(0.0, |rate| requests as f64 / rate);
    (rounds * latency.as_secs_f64()).max(at_rate)
}
