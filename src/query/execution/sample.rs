//! Samples of a query: single pages of it, and the time they take.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::Instant;

use super::fetch::{confirm_empty, get_request};
use crate::client::Error;
use crate::decode::Page;
use crate::process;
use crate::query::request::{Options, Query};
use crate::query::results::SharedReport;
use crate::query::snapshot::PageRequest;

/// One page of one slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub slice: u64,
    pub page: u64,
    pub limit: u64,
    /// Upper height bound of the list.
    pub top: Option<i64>,
}

impl Sample {
    pub fn first(slice: u64, limit: u64) -> Self {
        Self { slice, page: 1, limit, top: None }
    }
}

/// Fetches samples, and counts what they took.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    taken: Mutex<SampleCost>,
    report: SharedReport,
}

#[derive(Clone, Copy, Debug, Default)]
struct SampleCost {
    requests: u32,
    elapsed: Duration,
    waited: Duration,
    /// Mean time in which one of several concurrent requests was done, without waiting for the rate limiter.
    each: Option<Duration>,
}

impl Sampler {
    /// Samples whose empty responses are added to a report.
    pub fn new(report: SharedReport) -> Self {
        Self { report, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, SampleCost> {
        process::lock(&self.taken)
    }

    /// Expected duration of that many requests without a rate limiter.
    pub fn time_for(&self, requests: u64, concurrency: usize) -> Duration {
        let SampleCost { requests: sampled, elapsed, each, .. } = *self.lock();
        let rounds = requests.div_ceil(concurrency as u64);
        let latency = elapsed / sampled.max(1);
        let in_rounds = latency.as_secs_f64() * rounds as f64;
        let seconds = match each {
            Some(each) if concurrency > 1 && requests > 0 => {
                (each.as_secs_f64() * requests as f64).max(latency.as_secs_f64())
            }
            Some(_) | None => in_rounds,
        };
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    pub async fn fetch(&self, query: &Query, sample: Sample) -> Result<Page, Error> {
        let Sample { slice, page, limit, top } = sample;
        let request = PageRequest { page, height_bound: top, ..PageRequest::first(limit) };
        let request = get_request(query, slice, &request, false);
        let fetched = match query.client().get(&request, &|| ()).await {
            Err(error) if error.is_absent_block() && query.slices().height(slice).is_some() => {
                return Ok(Page::empty(query.endpoint().record()));
            }
            fetched => fetched?,
        };
        if let Some(believed) = fetched.believed_empty {
            self.report.add_believed_empty(query.client().empty_responses(), believed, request);
        }
        confirm_empty(query, &self.report).await;
        let mut taken = self.lock();
        taken.requests += 1;
        taken.elapsed += fetched.elapsed;
        taken.waited += fetched.waited;
        Ok(fetched.page)
    }

    /// Fetches samples as a run does: as many at once as the client allows, in order.
    pub async fn fetch_all(&self, query: &Query, samples: Vec<Sample>) -> Result<Vec<Page>, Error> {
        // Requests before these were of small pages, on connections that had to be opened.
        *self.lock() = SampleCost::default();
        let concurrency = query.client().concurrency().max(1);
        let count = samples.len();
        let started = Instant::now();
        let requests = samples.into_iter().map(|sample| self.fetch(query, sample));
        let pages = stream::iter(requests).buffered(concurrency).try_collect().await?;
        let mut taken = self.lock();
        let busy = started.elapsed().saturating_sub(taken.waited / concurrency as u32);
        taken.each = (count > concurrency).then(|| busy / count as u32);
        Ok(pages)
    }
}

/// Height of the only record of a page.
pub(super) fn height(page: &Page) -> Option<i64> {
    page.columns.heights().next()?
}

/// The newest records of a list, by height: as many as can be paged through.
pub(super) struct Recent<'a> {
    sampler: &'a Sampler,
    /// The whole list, in pages of one record.
    list: Query,
    /// Number of records that can be paged through.
    pub records: u64,
    /// Height of the newest and of the oldest of them.
    pub newest: i64,
    pub oldest: i64,
    /// True if the list has no other records.
    pub is_whole: bool,
    /// Position and height of another record.
    known: Option<(u64, i64)>,
}

impl<'a> Recent<'a> {
    /// The list that the slices of `query` are parts of, or `None` if it is empty or does not show its length.
    pub async fn of(query: &Query, sampler: &'a Sampler) -> Result<Option<Self>, Error> {
        let options = Options { page_size: Some(1), chain: query.options().chain.clone(), ..Options::default() };
        let list = Query::new(query.client(), query.endpoint(), Vec::new(), options)?;
        let first = sampler.fetch(&list, Sample::first(0, 1)).await?;
        let Some(newest) = height(&first) else { return Ok(None) };
        let Some(records) = first.paging.total_pages else { return Ok(None) };
        let mut recent = Self { sampler, list, records, newest, oldest: newest, is_whole: false, known: None };
        recent.is_whole = recent.list.result_window().is_some() && !recent.list.reaches_result_window(records);
        match recent.height_at(records).await? {
            Some(oldest) if oldest <= newest => recent.oldest = oldest,
            // The list is in another order.
            _ => return Ok(None),
        }
        Ok(Some(recent))
    }

    /// Height of the record at a position, from 1.
    async fn height_at(&self, position: u64) -> Result<Option<i64>, Error> {
        let page = self.sampler.fetch(&self.list, Sample { page: position, ..Sample::first(0, 1) }).await?;
        Ok(height(&page))
    }

    /// Adds the record that is where a height is expected, if the list has it.
    pub async fn with_position_of(mut self, height: i64) -> Result<Self, Error> {
        if (self.oldest..self.newest).contains(&height) {
            let position = (self.records_above(height) as u64).clamp(1, self.records);
            self.known = self.height_at(position).await?.map(|found| (position, found));
        }
        Ok(self)
    }

    /// About how many records are above a height, by those whose positions are known. Below the window, blocks have as many
    /// records as in it.
    pub fn records_above(&self, height: i64) -> f64 {
        let ends = [(0, self.newest), (self.records, self.oldest.saturating_sub(1))];
        let [newest, oldest] = ends.map(|(position, height)| (position as f64, height as f64));
        let known = self.known.map(|(position, height)| (position as f64, height as f64));
        let known = known.filter(|(_, height)| (oldest.1..newest.1).contains(height));
        let height = height as f64;
        if height >= newest.1 {
            return 0.0;
        }
        if height <= oldest.1 && self.is_whole {
            return oldest.0;
        }
        let ((from, top), (to, bottom)) = match known {
            Some(known) if height >= known.1 => (newest, known),
            Some(known) if height >= oldest.1 => (known, oldest),
            Some(_) | None => (newest, oldest),
        };
        from + (to - from) * (top - height) / (top - bottom)
    }
}
