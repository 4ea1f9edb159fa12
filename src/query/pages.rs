//! The pages of a query, asked several at a time and delivered in order.

use std::collections::{HashMap, VecDeque};

use super::cursor::{Mark, Place};
use super::list::{Ask, Purpose, Seam, Taken};
use super::partial::Partial;
use super::plan::Query;
use super::report::SharedReport;
use super::run::Run;
use crate::client::Error;
use crate::columns::{Column, Columns};
use crate::decode::Page;
use crate::interface::{Kind, Reach};

/// One page, ready for whoever asked.
#[derive(Clone, Debug)]
pub struct DeliveredPage {
    pub number: u64,
    pub total_pages: Option<u64>,
    pub total: Option<u64>,
    pub chain_full_name: Option<String>,
    pub chain_short_name: Option<String>,
    pub columns: Columns,
    /// The place in the run after this page.
    pub place: Place,
}

/// A run of a query. Dropping it, or a future of it, leaves nothing running and loses no page.
pub struct Pages {
    query: Query,
    report: SharedReport,
    partial: Partial,
    /// Windows that were begun, the one being delivered first.
    runs: VecDeque<Run>,
    next_window: u64,
    delivered: u64,
}

impl Pages {
    /// A run that hands its records on, and keeps the latest.
    pub fn new(query: Query) -> Self {
        let partial = Partial::latest(query.endpoint().record());
        Self::into(query, partial)
    }

    /// A run that puts its records there.
    pub fn into(query: Query, partial: Partial) -> Self {
        let (mut runs, mut next_window) = (VecDeque::new(), 0);
        let mut said = (Vec::new(), Vec::new());
        if let Some(start) = query.start.clone() {
            said = (start.reasons.clone(), start.missing.clone());
            if start.window < query.windows() {
                runs.push_back(Run::resumed(&query, &start));
            }
            next_window = start.window + 1;
        }
        let report = SharedReport::start(said.0, said.1);
        Self { query, report, partial, runs, next_window, delivered: 0 }
    }

    /// The place where the run begins.
    pub fn start(&self) -> Place {
        let (window, position, list) = match &self.query.start {
            Some(start) => (start.window, start.position, start.list.clone()),
            None => (0, 0, Seam::default()),
        };
        Place::after(Mark {
            query: self.query.clone(),
            window,
            position,
            offsets: None,
            rows: 0,
            covered: Columns::empty(self.query.endpoint().record()),
            ending: None,
            after: Some(list.clone()),
            list,
            left: self.query.max_items,
            report: self.report.clone(),
            said: self.report.counts(),
        })
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
            let Some(answered) = run.answered().await else {
                if let Some(error) = &run.list.broken {
                    return Err(error.clone());
                }
                self.end_window();
                continue;
            };
            let page = answered.and_then(|(ask, page)| self.deliver(ask, page));
            let Some(page) = page? else { continue };
            // An empty list is one empty page.
            if page.columns.rows() > 0 || (self.query.windows() == 1 && page.number == 1) {
                return Ok(Some(page));
            }
        }
    }

    /// Whether the next page has been answered.
    pub fn is_ready(&self) -> bool {
        self.runs.front().is_some_and(Run::is_answered)
    }

    /// Records still wanted, where there is a limit.
    fn left(&self) -> Option<u64> {
        self.query.max_items.map(|most| most.saturating_sub(self.delivered))
    }

    /// Asks for what comes next until as many requests are open as may be.
    fn fill(&mut self) {
        self.runs.iter_mut().for_each(Run::survive_fork);
        let concurrency = self.query.client().settings().concurrency;
        let mut open: usize = self.runs.iter().map(Run::open).sum();
        let wanted = self.left().map(|left| left.div_ceil(self.query.page_size().max(1)).max(1));
        for run in &mut self.runs {
            while open < concurrency
                && wanted.is_none_or(|wanted| (open as u64) < wanted)
                && run.ask(&self.query, &self.report)
            {
                open += 1;
            }
        }
        // With a limit the windows after this one may not be needed at all.
        let ahead = if wanted.is_some() { 1 } else { concurrency };
        while open < ahead && self.next_window < self.query.windows() && (wanted.is_none() || self.runs.is_empty()) {
            let mut run = Run::new(&self.query, self.next_window);
            run.ask(&self.query, &self.report);
            self.runs.push_back(run);
            self.next_window += 1;
            open += 1;
        }
    }

    /// What of an answer belongs next; nothing if it has to be asked again, since the list moved on.
    fn deliver(&mut self, ask: Ask, page: Page) -> Result<Option<DeliveredPage>, Error> {
        let (query, report) = (&self.query, &self.report);
        let Some(run) = self.runs.front_mut() else { return Ok(None) };
        let (position, before) = (run.list.next(), run.list.seam());
        let taken = run.list.take(&ask, &page);
        for note in run.list.notes.drain(..) {
            report.reason(note);
        }
        if taken.as_ref().map_or(true, |taken| taken.void) {
            run.give_up();
        }
        let Taken { from, to, .. } = taken?;
        // A question that brought nothing new is no page.
        if ask.purpose != Purpose::Records || (from == to && !(position == 0 && ask.page == 1)) {
            return Ok(None);
        }
        let first = run.list.first.unwrap_or_default();
        if let (Some(height), Some(cap), Some(pages)) = (query.asked_height(run.window), query.cap(), first.pages)
            && pages.saturating_mul(run.list.page_rows()) >= cap
        {
            let problem = format!(
                "block {height} has about {cap} records or more, and no more of a list can be reached; ask for the \
                 heights below it and above it"
            );
            let error = Error::Window { endpoint: query.endpoint().name, problem };
            run.list.broken = Some(error.clone());
            return Err(error);
        }
        let covered = page.columns.slice(from, to - from);
        let (mut columns, offsets) = arrange(query, report, run.window, covered.clone());
        // A look-up has one answer a window; what was delivered of it before is passed over.
        let passed = if query.is_paged() { 0 } else { (run.skip as usize).min(columns.rows()) };
        columns = columns.slice(passed, columns.rows() - passed);
        let left = query.max_items.map(|most| most - self.delivered);
        let cut = left.is_some_and(|left| (left as usize) < columns.rows());
        if let Some(left) = left.filter(|_| cut) {
            columns = columns.slice(0, left as usize);
        }
        self.delivered += columns.rows() as u64;
        report.update(|report| {
            report.pages += 1;
            report.records += columns.rows() as u64;
            report.duplicates_dropped += from as u64;
            let total = run.list.first.and_then(|first| first.total);
            report.outlook = query.outlook(run.window, total, page.total_pages, report.pages, self.delivered);
        });
        let covered = if query.is_paged() && !cut { covered } else { columns.clone() };
        let place = Place::after(Mark {
            query: query.clone(),
            window: run.window,
            position: if query.is_paged() { position } else { passed as u64 },
            offsets,
            rows: columns.rows(),
            covered,
            ending: (!cut && run.list.is_ended()).then(|| shortfalls(query, run)),
            // What the first page says of the list is known to it from its first record on.
            list: if position == 0 { run.list.seam().without_records() } else { before },
            after: (!cut).then(|| run.list.seam()),
            left,
            report: report.clone(),
            said: report.counts(),
        });
        let left = left.map_or(u64::MAX, |left| left - columns.rows() as u64);
        let ahead = left.min(run.list.to_come());
        self.partial.push(&columns, usize::try_from(ahead).unwrap_or(usize::MAX), Some(&place));
        Ok(Some(DeliveredPage {
            place,
            number: ask.page,
            total_pages: page.total_pages,
            total: page.total,
            chain_full_name: page.chain_full_name,
            chain_short_name: page.chain_short_name,
            columns,
        }))
    }

    /// The first window has no more pages: say what it could not give.
    fn end_window(&mut self) {
        let Some(run) = self.runs.pop_front() else { return };
        for reason in shortfalls(&self.query, &run) {
            self.report.reason(reason);
        }
    }

    fn finish(&mut self) {
        self.runs.clear();
        self.next_window = self.query.windows();
        self.report.finish();
    }
}

/// What a window that ended could not give.
fn shortfalls(query: &Query, run: &Run) -> Vec<String> {
    let name = query.window_name(run.window).map_or(String::new(), |name| format!(" of {name}"));
    let list = &run.list;
    let records = list.next();
    let mut reasons = Vec::new();
    if matches!(query.endpoint().reach, Reach::LastYear(_)) && records > 0 {
        reasons.push("The service gives out the last year of an address only: there are perhaps more.".into());
    }
    let total = list.first.and_then(|first| first.total);
    let at_cap = list.capped || !query.is_paged() && query.cap().is_some_and(|cap| records >= cap);
    match total {
        Some(total) if total > records && at_cap => reasons.push(format!(
            "The service counted {total} records{name} and lets anyone reach {records} of a list. {}",
            query.advice()
        )),
        Some(total) if total != records => {
            reasons.push(format!("The service counted {total} records{name} and returned {records}."));
        }
        None if at_cap => reasons.push(format!(
            "The list{name} ends at about {records} records, as far as the service lets anyone reach: there are perhaps \
             more. {}",
            query.advice()
        )),
        _ => {}
    }
    reasons
}

/// The rows of a window that belong to the result, in its order; with their places if some of a list were left out.
fn arrange(query: &Query, report: &SharedReport, window: u64, columns: Columns) -> (Columns, Option<Vec<u32>>) {
    if let Some((low, high)) = query.kept_times(window) {
        let Some(times) = (0..columns.record().fields.len()).find(|index| columns.kind(*index) == Kind::Time) else {
            return (columns, None);
        };
        let Column::Time(times) = columns.column(times) else { return (columns, None) };
        let kept: Vec<u32> = (0..columns.rows() as u32)
            .zip(times.iter())
            .filter(|(_, time)| time.map_or(query.keeps_undated(window), |time| (low..=high).contains(&time)))
            .map(|(row, _)| row)
            .collect();
        return if kept.len() == columns.rows() { (columns, None) } else { (columns.take(&kept), Some(kept)) };
    }
    if let Some(height) = query.asked_height(window) {
        let heights = columns.record().position("height").map(|index| columns.column(index));
        if let Some(Column::Integer(heights)) = heights
            && heights.iter().flatten().any(|other| other != height)
        {
            report.reason("The service returned records of other blocks than were asked for.".into());
        }
    }
    let asked = query.asked(window);
    if asked.is_empty() || matches!(query.endpoint().reach, Reach::Answer(_)) {
        return (columns, None);
    }
    (in_order_asked(asked, report, &columns), None)
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
        // A run that goes on from within this window may have said so before.
        report.update(|report| {
            missing.retain(|hash| !report.missing.contains(hash));
            report.missing.extend(missing);
        });
        report.reason("Some of the transactions asked for were not returned; they are in `missing`.".into());
    }
    columns.take(&order)
}
