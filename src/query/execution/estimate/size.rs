//! `Size`: records, pages and requests of a list, as far as one response shows them, and of many lists by a sample.

use super::super::bounds::Bounds;
use super::super::fetch::expectation;
use super::super::list_spec::list_spec;
use super::super::stable::requests_of;
use crate::decode::Page;
use crate::interface::ResultLimit;
use crate::query::request::Query;
use crate::query::results::Division;

/// Longest list whose requests are counted one by one.
const MAX_STABLE: u64 = 100_000;

/// Records, pages and requests of one slice or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub records: Bounds,
    pub pages: Bounds,
    pub requests: Bounds,
}

impl Size {
    /// One list, of which all records are wanted, or the first of them.
    pub fn of_list(query: &Query, records: Bounds, pages: Bounds) -> Self {
        let max_items = query.max_items().unwrap_or(u64::MAX);
        let pages =
            if query.max_items().is_some() { pages.limited_to(pages_of(query, max_items).max(1)) } else { pages };
        let is_short = records.high.is_some_and(|high| high <= MAX_STABLE);
        let requests = if counts_pages_only(query) && is_short && !continues_below(query, records.expected) {
            records.map(|length| {
                let spec = list_spec(query, query.max_items());
                let requests = requests_of(spec, length, query.client().concurrency());
                let has_final_look = !query.may_grow() && pages_of(query, length.min(max_items)) > 1;
                requests.saturating_add(u64::from(has_final_look))
            })
        } else {
            // In the end, it is compared with its first two records.
            let final_look = if query.is_paged() { pages_of(query, 2) } else { 0 };
            pages.map(|pages| if pages > 1 { pages.saturating_add(final_look) } else { pages })
        };
        Self { records, pages, requests }
    }

    /// The list with the requests that check its first page, if that is empty.
    pub fn with_checks(self, query: &Query, page: &Page) -> Self {
        Self { requests: self.requests.plus(checks(query, page)), ..self }
    }

    /// Several lists, whose pages are all that they take.
    pub fn of_pages(records: Bounds, pages: Bounds) -> Self {
        Self { records, pages, requests: pages }
    }
}

/// Requests that check the first page of a list, if that is empty and does not say that there are no records.
pub(super) fn checks(query: &Query, page: &Page) -> Bounds {
    if !query.client().is_doubtful(expectation(query), page) {
        return Bounds::exact(0);
    }
    let checks = query.client().empty_responses().checks();
    Bounds::between(checks.min, checks.expected, checks.max)
}

/// Size of `count` slices of which some were measured.
pub(super) fn extrapolate(sizes: &[Size], count: u64) -> Size {
    Size {
        records: sum(sizes.iter().map(|size| size.records), count, 0.0),
        pages: sum(sizes.iter().map(|size| size.pages), count, 1.0),
        requests: sum(sizes.iter().map(|size| size.requests), count, 1.0),
    }
}

/// Sum of `count` numbers, each at least `min_each`, of which some were measured.
pub(super) fn sum(measured: impl Iterator<Item = Bounds>, count: u64, min_each: f64) -> Bounds {
    let measured: Vec<_> = measured.collect();
    if measured.len() as u64 == count {
        return measured.into_iter().reduce(Bounds::plus).unwrap_or_default();
    }
    scale(&measured, count, min_each)
}

/// Sum of `count` numbers of which some were measured: two standard errors around the mean, and not under `min_each` each.
fn scale(measured: &[Bounds], count: u64, min_each: f64) -> Bounds {
    let samples = measured.len() as f64;
    let count = count as f64;
    let mean = measured.iter().map(|bounds| bounds.expected as f64).sum::<f64>() / samples;
    let variance =
        measured.iter().map(|bounds| (bounds.expected as f64 - mean).powi(2)).sum::<f64>() / (samples - 1.0).max(1.0);
    let error = 2.0 * (variance / samples * (1.0 - samples / count)).sqrt();
    // Equal samples do not prove that all are equal: at 95 % confidence, 3 / n of them may differ.
    let unseen = if variance == 0.0 { (3.0 / samples).min(1.0) } else { 0.0 };
    let high = mean + error.max(unseen);
    let low = mean - error.max(unseen * mean);
    let known: f64 = measured.iter().map(|bounds| bounds.low as f64).sum();
    Bounds::between(
        known.max(low.max(min_each) * count) as u64,
        (mean * count).round() as u64,
        (high * count).ceil() as u64,
    )
}

pub(super) fn pages_of(query: &Query, records: u64) -> u64 {
    records.div_ceil(query.page_size().max(1))
}

/// Size of one slice, as far as one response reports it.
pub(super) fn slice_size(query: &Query, slice: u64, page: &Page) -> Size {
    let rows = page.columns.rows() as u64;
    if !query.is_paged() {
        let requested = query.slices().hashes(slice).len() as u64;
        // A lookup of several hashes returns one record for each; one of a transaction's logs any number.
        let records = if matches!(query.endpoint().limit, ResultLimit::Logs) { rows } else { requested.min(rows) };
        return Size::of_pages(Bounds::exact(records), Bounds::exact(1));
    }
    // A server may return pages of another size than requested.
    let limit = page.paging.limit.unwrap_or(if rows > 1 || !counts_pages_only(query) { query.page_size() } else { 1 });
    let limit = limit.max(rows).max(1);
    let last = page.paging.total_pages;
    // Records beyond the result window can be read where the list can be bounded by height.
    let reachable = match last {
        Some(last) if query.height_bound().is_none() => last.saturating_mul(limit),
        Some(_) | None => u64::MAX,
    };
    if let Some(total) = page.paging.total.filter(|total| *total > reachable && is_divided(query, *total)) {
        return of_divided(query, total, reachable);
    }
    // In pages of one record, the number of pages is that of the records.
    let counted = page.paging.total.or(last.filter(|last| limit == 1 || *last == 0));
    let only = last == Some(1) || (last.is_none() && rows < limit);
    let records = match (counted, last) {
        (Some(counted), _) => Bounds::exact(counted.min(reachable)),
        (None, _) if only => Bounds::exact(rows),
        // The last page may hold fewer.
        (None, Some(last)) => {
            let max_records = last.saturating_mul(limit);
            Bounds::between(max_records - limit + 1, max_records - limit / 2, max_records)
        }
        (None, None) => match query.result_window() {
            Some(window) => Bounds::between(rows, window, window),
            None => Bounds::at_least(rows),
        },
    };
    Size::of_list(query, records, records.map(|records| pages_of(query, records).max(1)))
}

/// True if a list with `total` records is read by ranges of values beyond the result window.
pub(super) fn is_divided(query: &Query, total: u64) -> bool {
    let is_wanted = query.max_items().is_none_or(|max_items| max_items >= total);
    let is_beyond = query.reaches_result_window(total) && !list_spec(query, None).is_capped(total);
    query.endpoint().divider().is_some() && is_wanted && is_beyond
}

/// Size of a list that is divided. Its ranges have the newest records as well, which the list itself returns.
fn of_divided(query: &Query, total: u64, reachable: u64) -> Size {
    let pages = pages_of(query, total);
    let again = pages_of(query, reachable);
    // Ranges that are a quarter of what can be paged through or more; each has a last page and a final look.
    let ranges = (total * 4).div_ceil(reachable.max(1));
    let expected = pages + again + ranges;
    let pages = Bounds::between(pages + again / 2, expected, expected + 2 * ranges);
    Size { records: Bounds::exact(total), pages, requests: pages.map(|pages| pages + ranges) }
}

/// Size of what is left of a divided list.
pub(super) fn of_rest(query: &Query, division: &Division) -> Size {
    let pages = pages_of(query, division.remaining);
    let ranges = division.ranges.len() as u64;
    let window = pages_of(query, query.result_window().unwrap_or(0));
    let pages = Bounds::between(pages.max(1), pages + ranges + window / 2, 2 * (pages + ranges + window));
    Size { records: Bounds::exact(division.remaining), pages, requests: pages.map(|pages| pages + ranges + 1) }
}

/// True if responses report how many pages a list has, but not how many records.
pub(super) fn counts_pages_only(query: &Query) -> bool {
    query.is_paged() && !query.endpoint().counts()
}

/// True if a list of this many records is continued by height below the result window.
pub(super) fn continues_below(query: &Query, records: u64) -> bool {
    let is_wanted = query.max_items().is_none_or(|max_items| max_items >= records);
    is_wanted && query.height_bound().is_some() && query.reaches_result_window(records)
}
