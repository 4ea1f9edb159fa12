//! What a query will take and give, told beforehand from one request.

use std::time::{Duration, Instant};

use super::list::Ask;
use super::plan::Query;
use super::report::SharedReport;
use super::run::fetch;
use crate::client::Error;
use crate::decode::Page;
use crate::interface::Reach;

/// What is to be expected of a run. What the service does not tell is left open.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Lists that are read one after the other: blocks, years, or requests for hashes.
    pub windows: u64,
    pub pages: Option<u64>,
    pub requests: Option<u64>,
    pub records: Option<u64>,
    /// Whether these numbers were counted by the service, and not inferred from the first window.
    pub exact: bool,
    pub seconds: Option<f64>,
    /// What the service cannot deliver, a sentence each.
    pub cannot: Vec<String>,
}

/// One window, as far as one answer tells.
struct Window {
    records: Option<u64>,
    pages: Option<u64>,
    exact: bool,
}

impl Window {
    /// What is left of it for a query that goes on after so many of its records.
    fn after(&self, position: u64, size: u64) -> Self {
        let records = self.records.map(|records| records.saturating_sub(position));
        let pages = self.pages.map(|pages| pages.saturating_sub(position / size.max(1)));
        Self { records, pages, exact: self.exact }
    }
}

impl Query {
    pub async fn explain(self) -> Result<Plan, Error> {
        let nothing = Plan { pages: Some(0), requests: Some(0), records: Some(0), exact: true, ..Plan::default() };
        let (first, position) = self.start().map_or((0, 0), |cursor| (cursor.window, cursor.position));
        let left = self.windows().saturating_sub(first);
        if left == 0 || self.max_items == Some(0) {
            return Ok(Plan { seconds: Some(0.0), ..nothing });
        }
        let started = Instant::now();
        // In pages of one, a list's number of pages is its length.
        let asked = if self.counts_pages_only() { self.head(1) } else { self.clone() };
        let page = fetch(&asked, first, Ask::first(asked.page_size()), false, &SharedReport::default()).await?;
        let latency = started.elapsed();
        let window = self.first_window(first, &page);
        let mut plan = self.extrapolate(&window.after(position, self.page_size()), left);
        plan.cannot = self.cannot(first, &page, &window);
        plan.seconds = plan.requests.map(|requests| self.seconds(requests, latency));
        Ok(plan)
    }

    /// Whether the service tells of a list how many pages it has, and not how many records.
    fn counts_pages_only(&self) -> bool {
        self.is_paged() && !self.endpoint().counts()
    }

    fn first_window(&self, first: u64, page: &Page) -> Window {
        let rows = page.columns.rows() as u64;
        if !self.is_paged() {
            let asked = self.asked(first).len() as u64;
            // A look-up of several hashes has a record for each; one of a transaction's logs has any number.
            let records = if matches!(self.endpoint().reach, Reach::Answer(_)) { rows } else { asked.min(rows) };
            return Window { records: Some(records), pages: Some(1), exact: true };
        }
        // A service may answer in pages of another size than was asked for.
        let given = page.limit.unwrap_or(if self.counts_pages_only() { 1 } else { self.page_size() }).max(rows).max(1);
        let size = self.page_size().max(1);
        let last = page.total_pages.filter(|last| *last > 0 || rows == 0);
        // What lies beyond the reach of a list can be had where a height cuts it off.
        let reach = last.filter(|_| self.top().is_none()).map_or(u64::MAX, |last| last.saturating_mul(given));
        let counted = page.total.or_else(|| last.filter(|_| given == 1 || last == Some(0)));
        let only = last == Some(1) || (last.is_none() && rows < given);
        let records = match counted {
            Some(counted) => Some(counted.min(reach)),
            None if only => Some(rows),
            // The last page may hold fewer.
            None => last.map(|last| last.saturating_mul(given)),
        };
        // A list that goes on below the service's reach, by height, is not counted any further.
        let open = page.total.is_none() && self.top().is_some() && self.meets_cap(records.unwrap_or(0));
        let records = records.filter(|_| !open);
        let pages = records.map(|records| records.div_ceil(size).max(1));
        Window { records, pages, exact: (counted.is_some() || only) && !open }
    }

    /// All blocks are taken to be like the first, and so are the transactions whose logs are asked for. An empty block
    /// says nothing of others, and a year nothing of another.
    fn extrapolate(&self, first: &Window, all: u64) -> Plan {
        if all > 1 && self.is_paged() && (self.kept_times(0).is_some() || first.records == Some(0)) {
            return Plan { windows: all, ..Plan::default() };
        }
        let each = first.records.map(|records| records.max(1));
        let needed = |most: u64| each.map_or(1, |each| most.div_ceil(each)).min(all);
        let windows = self.max_items.map_or(all, needed);
        let most = self.max_items.unwrap_or(u64::MAX);
        let records = first.records.map(|records| (records * windows).min(most));
        let pages = match (first.pages, self.max_items) {
            // A list that does not tell its length is read no further than to the limit.
            (None, Some(most)) => Some(most.div_ceil(self.page_size().max(1))),
            (Some(pages), Some(most)) if windows == 1 => Some(pages.min(most.div_ceil(self.page_size().max(1)))),
            (pages, _) => pages.map(|pages| pages * windows),
        };
        let requests = pages.map(|pages| pages + u64::from(self.proves_head(pages)));
        Plan { windows, pages, requests, records, exact: all == 1 && first.exact, ..Plan::default() }
    }

    /// Whether the length of the list is asked for by itself.
    fn proves_head(&self, pages: u64) -> bool {
        self.counts_pages_only() && self.head_moves() && pages > 1
    }

    /// Whether a list of so many records ends about where the service lets nobody go on.
    fn meets_cap(&self, records: u64) -> bool {
        self.cap().is_some_and(|cap| records >= cap - cap / 100)
    }

    fn cannot(&self, first: u64, page: &Page, window: &Window) -> Vec<String> {
        let records = window.records.unwrap_or(0);
        let wanted = self.max_items.unwrap_or(u64::MAX);
        let name = self.window_name(first).map_or(String::new(), |name| format!(" of {name}"));
        let mut cannot = Vec::new();
        if matches!(self.endpoint().reach, Reach::LastYear(_)) && page.columns.rows() > 0 {
            cannot.push("The service gives out the last year of an address only.".to_owned());
        }
        if let Some(total) = page.total.filter(|total| *total > records && wanted > records) {
            cannot.push(format!(
                "The service counts {total} records{name} and lets anyone reach {records} of a list. {}",
                self.advice()
            ));
        } else if self.meets_cap(records) && wanted > records && self.top().is_none() {
            cannot.push(format!(
                "The list{name} ends at {records} records, about as far as the service lets anyone reach: there are \
                 perhaps more. {}",
                self.advice()
            ));
        }
        let asked = self.asked(first).len() as u64;
        if !matches!(self.endpoint().reach, Reach::Answer(_)) && asked > records {
            let missing = asked - records;
            cannot.push(format!("Of the first {asked} transactions asked for, {missing} are not returned."));
        }
        cannot
    }

    /// At the pace that the client keeps at present, or as fast as this answer came where it keeps none.
    fn seconds(&self, requests: u64, latency: Duration) -> f64 {
        let side_by_side = self.client().settings().concurrency.max(1) as f64;
        let rounds = (requests as f64 / side_by_side).ceil();
        let paced = self.client().pace().rate.map_or(0.0, |rate| requests as f64 / rate);
        (rounds * latency.as_secs_f64()).max(paced)
    }
}
