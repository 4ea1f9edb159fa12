//! The pages of a query, asked several at a time and delivered in order.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::plan::Query;
use super::report::SharedReport;
use crate::client::{Error, Fetched};
use crate::columns::{Column, Columns};
use crate::decode::Page;
use crate::interface::{Kind, Reach};

/// Times an empty answer is asked again where records were promised: some services throttle that way.
const EMPTY_RETRIES: u32 = 3;

/// One page, ready for whoever asked.
#[derive(Clone, Debug)]
pub struct DeliveredPage {
    pub number: u64,
    pub total_pages: Option<u64>,
    pub total: Option<u64>,
    pub chain_full_name: Option<String>,
    pub chain_short_name: Option<String>,
    pub columns: Columns,
}

/// A run of a query. Dropping it, or a future of it, leaves nothing running and loses no page.
pub struct Pages {
    query: Query,
    report: SharedReport,
    /// Windows that were begun, the one being delivered first.
    runs: VecDeque<Run>,
    next_window: u64,
    delivered: u64,
}

/// The pages of one window.
struct Run {
    window: u64,
    /// Asked for and not delivered, in order.
    pending: VecDeque<Task<Result<Fetched, Error>>>,
    next_page: u64,
    last_page: LastPage,
    totals: Option<(Option<u64>, Option<u64>)>,
    records: u64,
    previous: Option<Columns>,
}

#[derive(Clone, Copy, PartialEq)]
enum LastPage {
    /// The first page will tell.
    Unasked,
    Known(u64),
    /// The service does not say: pages end with the first that is not full.
    Unknown,
}

/// A spawned task that ends when nobody waits for it any more.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pages {
    pub fn new(query: Query) -> Self {
        Self { query, report: SharedReport::start(), runs: VecDeque::new(), next_window: 0, delivered: 0 }
    }

    pub fn query(&self) -> &Query {
        &self.query
    }

    pub fn report(&self) -> &SharedReport {
        &self.report
    }

    /// The next page in order, or nothing at the end. After an error or a cancelled call it goes on where it was.
    pub async fn next(&mut self) -> Result<Option<DeliveredPage>, Error> {
        loop {
            if self.left() == Some(0) {
                self.finish();
                return Ok(None);
            }
            self.fill();
            let Some(run) = self.runs.front_mut() else {
                self.finish();
                return Ok(None);
            };
            let Some(task) = run.pending.front_mut() else {
                self.end_window();
                continue;
            };
            let fetched = (&mut task.0).await;
            run.pending.pop_front();
            let fetched = fetched.unwrap_or_else(|crash| Err(Error::Internal(crash.to_string())));
            let fetched = match fetched.and_then(|fetched| run.refuse_repeat(&self.query, fetched)) {
                Ok(fetched) => fetched,
                Err(error) => {
                    // Asked again if the caller goes on; what was asked after it would come out of order.
                    run.next_page -= 1 + run.pending.len() as u64;
                    run.pending.clear();
                    return Err(error);
                }
            };
            let page = self.deliver(fetched);
            if page.columns.rows() > 0 || self.query.windows() == 1 {
                return Ok(Some(page));
            }
        }
    }

    /// Records still wanted, where there is a limit.
    fn left(&self) -> Option<u64> {
        self.query.max_items.map(|most| most.saturating_sub(self.delivered))
    }

    /// Asks for what comes next until as many requests are open as may be.
    fn fill(&mut self) {
        let concurrency = self.query.client().settings().concurrency;
        let mut open: usize = self.runs.iter().map(|run| run.pending.len()).sum();
        let wanted = self.left().map(|left| left.div_ceil(self.query.page_size().max(1)).max(1));
        for run in &mut self.runs {
            while open < concurrency && run.wants_page() && wanted.is_none_or(|wanted| (open as u64) < wanted) {
                run.ask(&self.query);
                open += 1;
            }
        }
        // With a limit the windows after this one may not be needed at all.
        let ahead = if wanted.is_some() { 1 } else { concurrency };
        while open < ahead && self.next_window < self.query.windows() && (wanted.is_none() || self.runs.is_empty()) {
            let mut run = Run::new(self.next_window);
            run.ask(&self.query);
            self.runs.push_back(run);
            self.next_window += 1;
            open += 1;
        }
    }

    fn deliver(&mut self, fetched: Fetched) -> DeliveredPage {
        let Fetched { page, attempts, bytes } = fetched;
        let (query, report) = (&self.query, &self.report);
        let run = self.runs.front_mut().expect("the page is of the first run");
        let number = run.next_page - run.pending.len() as u64 - 1;
        run.learn(query, &page);
        run.notice_change(report, &page);
        run.records += page.columns.rows() as u64;
        let mut columns = arrange(query, report, run.window, page.columns);
        if let Some(left) = query.max_items.map(|most| (most - self.delivered) as usize)
            && left < columns.rows()
        {
            columns = columns.slice(0, left);
        }
        self.delivered += columns.rows() as u64;
        report.update(|report| {
            report.requests += u64::from(attempts);
            report.retries += u64::from(attempts) - 1;
            report.pages += 1;
            report.records += columns.rows() as u64;
            report.bytes += bytes as u64;
        });
        DeliveredPage {
            number,
            total_pages: page.total_pages,
            total: page.total,
            chain_full_name: page.chain_full_name,
            chain_short_name: page.chain_short_name,
            columns,
        }
    }

    /// The first window has no more pages: say what it could not give.
    fn end_window(&mut self) {
        let Some(run) = self.runs.pop_front() else { return };
        let name = self.query.window_name(run.window).map_or(String::new(), |name| format!(" of {name}"));
        let records = run.records;
        let total = run.totals.and_then(|(_, total)| total);
        let cap = self.query.cap();
        let at_cap = cap.is_some_and(|cap| (cap..cap + self.query.page_size().max(1)).contains(&records));
        let reason = match (cap, total) {
            (Some(cap), Some(total)) if total > records && at_cap => format!(
                "The service counted {total} records{name} and lets anyone reach {cap} of a list: narrow the query."
            ),
            (_, Some(total)) if total != records => {
                format!("The service counted {total} records{name} and returned {records}.")
            }
            (_, Some(_)) => return,
            (Some(cap), None) if at_cap => format!(
                "The list{name} ends at about {cap} records, as far as the service lets anyone reach: there are \
                 perhaps more. Narrow the query."
            ),
            _ => return,
        };
        self.report.reason(reason);
    }

    fn finish(&mut self) {
        self.runs.clear();
        self.next_window = self.query.windows();
        self.report.finish();
    }
}

impl Run {
    fn new(window: u64) -> Self {
        Self {
            window,
            pending: VecDeque::new(),
            next_page: 1,
            last_page: LastPage::Unasked,
            totals: None,
            records: 0,
            previous: None,
        }
    }

    fn wants_page(&self) -> bool {
        match self.last_page {
            LastPage::Unasked => self.next_page == 1,
            LastPage::Known(last) => self.next_page <= last,
            LastPage::Unknown => self.pending.is_empty(),
        }
    }

    fn ask(&mut self, query: &Query) {
        let (query, window, page) = (query.clone(), self.window, self.next_page);
        // Only the first page may be empty without having been promised.
        let promised = matches!(self.last_page, LastPage::Known(_));
        self.pending.push_back(Task(tokio::spawn(async move { fetch(&query, window, page, promised).await })));
        self.next_page += 1;
    }

    /// How far the window goes, from its first page or, where no page says, from the last one's length.
    fn learn(&mut self, query: &Query, page: &Page) {
        let rows = page.columns.rows() as u64;
        self.last_page = match self.last_page {
            LastPage::Unasked if !query.is_paged() => LastPage::Known(1),
            LastPage::Unasked => match page.total_pages {
                Some(last) if last > 0 || rows == 0 => LastPage::Known(last),
                _ => Self::goes_on(query, page, rows),
            },
            LastPage::Unknown => Self::goes_on(query, page, rows),
            known => known,
        };
    }

    fn goes_on(query: &Query, page: &Page, rows: u64) -> LastPage {
        let full = page.limit.unwrap_or(query.page_size()).min(query.page_size()).max(1);
        if rows < full { LastPage::Known(0) } else { LastPage::Unknown }
    }

    /// A service that gives one page for every number would be asked for ever, or would fill a result with repeats.
    fn refuse_repeat(&mut self, query: &Query, fetched: Fetched) -> Result<Fetched, Error> {
        let columns = &fetched.page.columns;
        // Two pages of one record each may well be twins, where the service says how many pages there are.
        let least = if self.last_page == LastPage::Unknown { 1 } else { 2 };
        if columns.rows() >= least && self.previous.as_ref() == Some(columns) {
            let number = self.next_page - 1 - self.pending.len() as u64;
            let problem = format!("page {number} is the same as the page before it; narrow the query or try later");
            return Err(Error::Drift { endpoint: query.endpoint().name, problem });
        }
        self.previous = Some(columns.clone());
        Ok(fetched)
    }

    /// A list that grew or shrank while it was read may have shifted: records can be repeated or missing.
    fn notice_change(&mut self, report: &SharedReport, page: &Page) {
        let now = (page.total_pages, page.total);
        let first = *self.totals.get_or_insert(now);
        if first != now {
            report.reason("The list changed while it was read: records may be repeated or missing.".into());
        }
    }
}

/// Gets one page. An empty one where records were promised is asked again: some services throttle that way.
async fn fetch(query: &Query, window: u64, page: u64, promised: bool) -> Result<Fetched, Error> {
    let target = query.target(window, page);
    let rows = if query.is_paged() { query.page_size() as usize } else { query.asked(window).len().max(16) };
    let (mut attempts, mut bytes) = (0, 0);
    for retry in 0.. {
        let mut fetched = query.client().get(query.endpoint(), &target, rows).await?;
        attempts += fetched.attempts;
        bytes += fetched.bytes;
        let contradicts = |page: &Page| promised || page.total > Some(0) || page.total_pages > Some(1);
        if fetched.page.columns.rows() > 0 || !contradicts(&fetched.page) {
            (fetched.attempts, fetched.bytes) = (attempts, bytes);
            return Ok(fetched);
        }
        if retry == EMPTY_RETRIES {
            break;
        }
        tokio::time::sleep(Duration::from_millis(250 << retry).mul_f64(0.5 + fastrand::f64() / 2.0)).await;
    }
    let problem = format!("page {page} came back empty although the list goes on; try again later");
    Err(Error::Drift { endpoint: query.endpoint().name, problem })
}

/// The rows of a window that belong to the result, in its order.
fn arrange(query: &Query, report: &SharedReport, window: u64, columns: Columns) -> Columns {
    if let Some((low, high)) = query.kept_times(window) {
        let Some(times) = (0..columns.record().fields.len()).find(|index| columns.kind(*index) == Kind::Time) else {
            return columns;
        };
        let Column::Time(times) = columns.column(times) else { return columns };
        let kept: Vec<u32> = (0..columns.rows() as u32)
            .zip(times.iter())
            .filter(|(_, time)| time.is_none_or(|time| (low..=high).contains(&time)))
            .map(|(row, _)| row)
            .collect();
        return if kept.len() == columns.rows() { columns } else { columns.take(&kept) };
    }
    let asked = query.asked(window);
    if asked.is_empty() || matches!(query.endpoint().reach, Reach::Answer(_)) {
        return columns;
    }
    in_order_asked(asked, report, &columns)
}

fn in_order_asked(asked: &[String], report: &SharedReport, columns: &Columns) -> Columns {
    let Some(hash) = columns.record().position("tx_id") else { return columns.clone() };
    let mut rows = HashMap::new();
    let mut repeated = 0;
    for row in 0..columns.rows() {
        let key = columns.text(hash, row).unwrap_or_default().to_ascii_lowercase();
        if rows.insert(key, row as u32).is_some() {
            repeated += 1;
        }
    }
    let mut order = Vec::with_capacity(asked.len());
    let mut missing = Vec::new();
    for asked in asked {
        match rows.remove(&asked.to_ascii_lowercase()) {
            Some(row) => order.push(row),
            None => missing.push(asked.clone()),
        }
    }
    report.update(|report| report.duplicates_dropped += repeated);
    if !rows.is_empty() {
        report.reason(format!("The service returned {} transactions that were not asked for.", rows.len()));
    }
    if !missing.is_empty() {
        report.update(|report| report.missing.extend(missing));
        report.reason("Some of the transactions asked for were not returned; they are in `missing`.".into());
    }
    columns.take(&order)
}
