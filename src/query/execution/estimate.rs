//! `Estimate`: the expected size of a result, from a sample of its slices.

mod size;

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::Instant;

use self::size::{
    Size, checks, continues_below, counts_pages_only, extrapolate, is_divided, of_rest, pages_of, slice_size, sum,
};
use super::bounds::Bounds;
use super::query_start::QueryStart;
use super::reasons::{UNKNOWN_LENGTH, at_window, last_year};
use super::sample::{Recent, Sample, Sampler, height};
use super::set::is_of_one_list;
use crate::client::Error;
use crate::decode::Page;
use crate::interface::ResultLimit;
use crate::message::Message;
use crate::query::audit::Arguments;
use crate::query::request::{Members, Query};
use crate::query::results::{Cursor, SharedReport};

/// Slices that are fetched to estimate the others: all of them if there are no more. An estimate takes three requests at
/// most, beside those that find the heights of times.
const SAMPLES: u64 = 3;
/// Lists of a set that are measured to estimate the others. Some have thousands of times the records of others.
const SET_SAMPLES: u64 = 16;
/// Records that a few blocks of a range may have beyond those that are expected of it.
const SLACK: u64 = 500;

/// Expected size of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Lists that are read one after the other: blocks, years, or requests for hashes.
    pub num_slices: u64,
    pub pages: Bounds,
    pub requests: Bounds,
    pub records: Bounds,
    pub estimated_seconds: f64,
    /// Records that the API cannot return, one sentence each.
    pub limitations: Vec<Message>,
}

/// Cost of finding the heights of a query's times, which its run has as well.
#[derive(Clone, Copy, Debug)]
struct Resolved {
    requests: u64,
    elapsed: Duration,
}

impl QueryStart {
    /// Returns the expected size of the run, after a few requests.
    pub async fn estimate(self) -> Result<Estimate, Error> {
        let report = SharedReport::default();
        let sampler = Sampler::new(report.clone());
        match self.query().members() {
            Some(members) => set(self.query(), members, self.resumed_from(), &report, &sampler).await,
            None => self.estimate_list(&report, &sampler).await,
        }
    }

    /// Returns the query with its range of heights, and what it took to find it.
    async fn find_heights(&self, report: &SharedReport) -> Result<(Query, Resolved), Error> {
        let started = Instant::now();
        let before = report.read().requests;
        let query = self.resolve(report).await?;
        let requests = report.read().requests - before;
        Ok((query, Resolved { requests, elapsed: started.elapsed() }))
    }

    async fn estimate_list(&self, report: &SharedReport, sampler: &Sampler) -> Result<Estimate, Error> {
        let (query, resolved) = self.find_heights(report).await?;
        let query = &query;
        let (first, offset) = self.resumed_from().map_or((0, 0), |cursor| (cursor.slice, cursor.offset));
        let num_slices = query.slices().count().saturating_sub(first);
        if num_slices == 0 || query.max_items() == Some(0) {
            let none = Bounds::exact(0);
            // A range in which no block can be is known to be one after the search for its ends.
            let requests = if self.query().max_items() == Some(0) { none } else { Bounds::exact(resolved.requests) };
            let limitations = report.read().reasons.to_vec();
            return Ok(Estimate { pages: none, requests, records: none, limitations, ..Estimate::default() });
        }
        if let Some(division) = self.resumed_from().and_then(|cursor| cursor.division.as_ref()) {
            let size = of_rest(query, division);
            let requests = size.requests.expected;
            let estimated_seconds = seconds(query, resolved, requests, 0, sampler);
            return Ok(Estimate { estimated_seconds, ..limited(query, size, 1) });
        }
        let (size, limitations) = match (num_slices, query.slices().height(first)) {
            (1, _) => list(query, sampler, first, offset).await?,
            (_, Some(low)) => (heights(query, sampler, first, num_slices, low).await?, Vec::new()),
            _ => slices(query, sampler, first, num_slices).await?,
        };
        let estimate = limited(query, size, num_slices);
        report.finish();
        let alone = requests_alone(query, num_slices, &estimate);
        Ok(Estimate {
            estimated_seconds: seconds(query, resolved, estimate.requests.expected, alone, sampler),
            requests: estimate.requests.plus(Bounds::exact(resolved.requests)),
            limitations: [report.read().reasons.to_vec(), limitations].concat(),
            ..estimate
        })
    }
}

/// Expected size of a set from a position in it, from some of its lists. A list that the API refuses has no records.
async fn set(
    query: &Query,
    members: &Members,
    start: Option<&Cursor>,
    report: &SharedReport,
    sampler: &Sampler,
) -> Result<Estimate, Error> {
    let lists = &unread_lists(query, members, start);
    let count = lists.len() as u64;
    if count == 0 {
        let none = Bounds::exact(0);
        return Ok(Estimate { pages: none, requests: none, records: none, ..Estimate::default() });
    }
    let shared = &Arc::default();
    // One of the lists finds the heights for all.
    let (index, at) = &lists[0];
    let first = QueryStart::of_member(query.member(*index), at.clone(), shared);
    let (_, resolved) = first.find_heights(report).await?;
    let estimates = evenly(0, count, SET_SAMPLES).into_iter().map(|sample| async move {
        let (index, at) = &lists[sample as usize];
        let list = QueryStart::of_member(query.member(*index), at.clone(), shared);
        match list.estimate_list(report, sampler).await {
            Err(error) if is_of_one_list(&error) => Ok(Estimate {
                requests: Bounds::exact(1),
                limitations: vec![format!("{} is refused", members.values[*index]).into()],
                ..Estimate::default()
            }),
            list => list,
        }
    });
    let concurrency = query.client().concurrency().max(1);
    let lists: Vec<_> = stream::iter(estimates).buffered(concurrency).try_collect().await?;
    let mut limitations: Vec<Message> = Vec::new();
    for found in lists.iter().flat_map(|list| &list.limitations) {
        if !limitations.contains(found) {
            limitations.push(found.clone());
        }
    }
    let requests = sum(lists.iter().map(|list| list.requests), count, 1.0);
    let mut records = sum(lists.iter().map(|list| list.records), count, 0.0);
    if query.options().unique && count > 1 {
        records.low = lists.iter().map(|list| list.records.low).max().unwrap_or(0);
        limitations.push("records that several lists have are counted for each of them".into());
    }
    Ok(Estimate {
        num_slices: count,
        pages: sum(lists.iter().map(|list| list.pages), count, 0.0),
        requests: requests.plus(Bounds::exact(resolved.requests)),
        records,
        estimated_seconds: seconds(query, resolved, requests.expected, 0, sampler),
        limitations,
    })
}

/// Lists of a set that have not ended, by index, and the positions of those that were begun.
fn unread_lists(query: &Query, members: &Members, start: Option<&Cursor>) -> Vec<(usize, Option<Arc<Cursor>>)> {
    let indices = (0..).zip(members.by_rank.iter().map(|index| *index as usize));
    let mut lists: Vec<_> = indices
        .filter(|(rank, _)| !start.and_then(|start| start.set.as_ref()).is_some_and(|set| set.has_ended(*rank)))
        .map(|(rank, index)| (index, start.and_then(|start| start.member(rank, &query.member(index))).map(Arc::new)))
        .collect();
    lists.sort_unstable_by_key(|(index, _)| *index);
    lists
}

/// Requests of a run that no other is in flight with.
fn requests_alone(query: &Query, num_slices: u64, estimate: &Estimate) -> u64 {
    let requests = estimate.requests.expected;
    if num_slices == 1 {
        // The first one, and those beside the pages.
        let beside = requests.saturating_sub(estimate.pages.expected);
        return if beside == 0 { 0 } else { 1 + beside };
    }
    if query.slices().height(0).is_none() {
        return 0;
    }
    // Those of a height with several pages: its other pages, and the look at its first one.
    requests.saturating_sub(num_slices).min(num_slices.saturating_mul(2))
}

/// Size of the only slice.
async fn list(query: &Query, sampler: &Sampler, slice: u64, offset: u64) -> Result<(Size, Vec<Message>), Error> {
    // In pages of one, a list's number of pages is its length.
    let measured = if counts_pages_only(query) { query.limited_to(1) } else { query.clone() };
    let page = sampler.fetch(&measured, Sample::first(slice, measured.page_size())).await?;
    let mut size = slice_size(query, slice, &page);
    let limitations = limitations(query, slice, &page, size.records.expected);
    if continues(query, &page, size.records.expected) {
        size = continued(query, sampler, &measured, size).await?;
    }
    let records = size.records.minus(offset);
    // A run returns no record that contradicts the arguments.
    let records = if contradiction(query, &page).is_some() { records.or_fewer() } else { records };
    // The limit of a position counts from there.
    let pages = if offset == 0 { size.pages } else { records.map(|records| pages_of(query, records).max(1)) };
    let size = Size::of_list(query, records, pages);
    Ok((size.with_checks(query, &page), limitations))
}

/// True if a list continues by height below the result window, and is not counted beyond it.
fn continues(query: &Query, page: &Page, records: u64) -> bool {
    page.paging.total.is_none() && continues_below(query, records)
}

/// Size of a list that continues by height below the result window: the part below it is measured.
async fn continued(query: &Query, sampler: &Sampler, by_one: &Query, first: Size) -> Result<Size, Error> {
    let part = first.records.expected;
    let last = sampler.fetch(by_one, Sample { page: part, ..Sample::first(0, 1) }).await?;
    let Some(lowest) = height(&last).filter(|height| *height > 0) else { return Ok(first) };
    // Other records of the lowest block may lie beyond the window.
    let below = sampler.fetch(by_one, Sample { top: Some(lowest), ..Sample::first(0, 1) }).await?;
    let below = slice_size(by_one, 0, &below).records.expected;
    let all = part + below;
    let is_counted = !query.reaches_result_window(below);
    // Both parts have the records of the lowest height: few, as a rule.
    let records = if is_counted { Bounds::between(all - all / 50, all, all) } else { Bounds::at_least(all) };
    Ok(Size::of_pages(records, records.map(|records| pages_of(query, records))))
}

/// Size of several slices that are not heights: years, or requests for hashes.
async fn slices(query: &Query, sampler: &Sampler, first: u64, count: u64) -> Result<(Size, Vec<Message>), Error> {
    let samples = evenly(first, count, SAMPLES);
    let measured = if counts_pages_only(query) { query.limited_to(1) } else { query.clone() };
    let requests = samples.iter().map(|slice| Sample::first(*slice, measured.page_size().max(1))).collect();
    let pages = sampler.fetch_all(&measured, requests).await?;
    let sizes = sampled_sizes(query, &samples, &pages);
    let mut found: Vec<Message> = Vec::new();
    for ((slice, page), size) in samples.iter().zip(&pages).zip(&sizes) {
        found.extend(limitations(query, *slice, page, size.records.expected));
    }
    found.dedup();
    Ok((extrapolate(&sizes, count), found))
}

/// Size of a range of heights. Where the list without a filter has them, its records are counted there: a few heights say
/// little, since some blocks have hundreds of records and most a handful.
async fn heights(query: &Query, sampler: &Sampler, first: u64, count: u64, low: i64) -> Result<Size, Error> {
    let high = low.saturating_add(i64::try_from(count - 1).unwrap_or(i64::MAX));
    let recent = if count > SAMPLES { Recent::of(query, sampler).await? } else { None };
    let Some(recent) = recent else {
        let samples = evenly(first, count, if count > SAMPLES { 1 } else { SAMPLES });
        let requests = samples.iter().map(|slice| Sample::first(*slice, query.page_size())).collect();
        let pages = sampler.fetch_all(query, requests).await?;
        return Ok(extrapolate(&sampled_sizes(query, &samples, &pages), count));
    };
    let recent = recent.with_position_of(low.midpoint(high)).await?;
    let below = recent.records_above(low.saturating_sub(1));
    let above = recent.records_above(high);
    let expected = (below - above).max(0.0) as u64;
    // All or none of the records are in the range, unless the density of others is taken for its own.
    if below == above
        && (recent.is_whole || low > recent.newest)
        && let Some(size) = empty_heights(query, sampler, first, count).await?
    {
        return Ok(size);
    }
    // Elsewhere in the list, blocks may have far fewer records.
    let records = Bounds::between(0, expected, 2 * expected + SLACK);
    // A block takes a page, and another for every 50 records; where they begin among the blocks is not known.
    let further = records.map(|records| pages_of(query, records));
    let likely = further.expected - further.expected.min(count) / 2;
    let max_further = further.high.unwrap_or(further.expected);
    Ok(Size::of_pages(records, Bounds::between(count, count.saturating_add(likely), count.saturating_add(max_further))))
}

/// Size of heights that are taken to have no records. One of them shows how the service says so; `None` if it has some.
async fn empty_heights(query: &Query, sampler: &Sampler, first: u64, count: u64) -> Result<Option<Size>, Error> {
    let page = sampler.fetch(query, Sample::first(first + count / 2, query.page_size())).await?;
    if page.columns.rows() > 0 {
        return Ok(None);
    }
    let pages = Bounds::exact(count);
    let checks = checks(query, &page).map(|checks| checks.saturating_mul(count));
    Ok(Some(Size { records: Bounds::exact(0), pages, requests: pages.plus(checks) }))
}

/// Sizes of the slices whose first pages are these.
fn sampled_sizes(query: &Query, slices: &[u64], pages: &[Page]) -> Vec<Size> {
    let sizes = slices.iter().zip(pages).map(|(slice, page)| slice_size(query, *slice, page).with_checks(query, page));
    sizes.collect()
}

/// Up to `max_samples` of `count` slices, evenly distributed.
fn evenly(first: u64, count: u64, max_samples: u64) -> Vec<u64> {
    let samples = count.min(max_samples);
    let halves = 2 * u128::from(samples);
    (0..samples).map(|sample| first + ((2 * u128::from(sample) + 1) * u128::from(count) / halves) as u64).collect()
}

/// The estimate of a run that ends at the limit of the query.
fn limited(query: &Query, size: Size, all: u64) -> Estimate {
    let Size { records, pages, requests } = size;
    let Some(max_items) = query.max_items() else {
        return Estimate { num_slices: all, pages, requests, records, ..Estimate::default() };
    };
    if all == 1 {
        let records = records.limited_to(max_items);
        return Estimate { num_slices: 1, pages, requests, records, ..Estimate::default() };
    }
    // Slices are read one after the other until there are enough records.
    let share = (max_items as f64 / (records.expected as f64).max(1.0)).min(1.0);
    Estimate {
        num_slices: share_of(all, share),
        pages: bounds_of_share(pages, share),
        requests: bounds_of_share(requests, share),
        records: records.limited_to(max_items),
        ..Estimate::default()
    }
}

fn share_of(number: u64, share: f64) -> u64 {
    ((number as f64 * share).ceil() as u64).max(1)
}

fn bounds_of_share(all: Bounds, share: f64) -> Bounds {
    match all.high {
        Some(high) if share < 1.0 => Bounds::between(1, share_of(all.expected, share), high),
        _ => all,
    }
}

/// The limitation of a count of records that contradict the arguments.
fn contradiction(query: &Query, page: &Page) -> Option<Message> {
    let arguments = Arguments::of(query);
    let parameter = (0..page.columns.rows()).find_map(|row| arguments.contradicted(&page.columns, row))?;
    Some(
        Message::new("the API returned records that contradict ")
            .parameter(parameter)
            .text(": it may ignore the filter"),
    )
}

fn limitations(query: &Query, slice: u64, page: &Page, records: u64) -> Vec<Message> {
    let wanted = query.max_items().unwrap_or(u64::MAX);
    let name = query.slices().label(slice).map_or(String::new(), |name| format!(" of {name}"));
    let mut limitations = Vec::new();
    let is_last_year = matches!(query.endpoint().limit, ResultLimit::LastYear) && !query.is_recent();
    if is_last_year && page.columns.rows() > 0 && wanted > records {
        limitations.push(last_year(query, ""));
    }
    // Only reading the ranges of a divided list shows that one of them is too long.
    let is_divided_list = page.paging.total.is_some_and(|total| is_divided(query, total));
    if let Some(total) = page.paging.total.filter(|total| *total > records && wanted > records) {
        limitations.push(at_window(query, &name, records, Some(total)));
    } else if wanted > records && continues(query, page, records) {
        limitations.push(UNKNOWN_LENGTH.into());
    } else if wanted > records && query.reaches_result_window(records) && !is_divided_list {
        limitations.push(at_window(query, &name, records, None));
    }
    limitations.extend(contradiction(query, page));
    let requested = query.slices().hashes(slice).len() as u64;
    if !matches!(query.endpoint().limit, ResultLimit::Logs) && requested > records {
        let missing = requested - records;
        limitations.push(format!("{missing} of {requested} requested transactions are not returned").into());
    }
    limitations
}

/// Duration of a run: as the rate limiter is expected to admit its requests, and as the server has answered. Those that
/// find heights follow one another; `alone` of the others are in flight with no other.
fn seconds(query: &Query, resolved: Resolved, requests: u64, alone: u64, sampler: &Sampler) -> f64 {
    let client = query.client();
    let together = sampler.time_for(requests.saturating_sub(alone), client.concurrency());
    let answered = together.saturating_add(sampler.time_for(alone, 1));
    let admitted = client.time_to_admit(requests.saturating_add(resolved.requests));
    admitted.max(resolved.elapsed.saturating_add(answered)).as_secs_f64()
}
