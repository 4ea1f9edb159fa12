//! `ReadDown`: a read of a list from its newest page down, for a follower.

use super::query_start::QueryStart;
use super::run::Run;
use super::shown_log::ShownLog;
use crate::client::Error;
use crate::columns::{Columns, StringLayout};
use crate::interface::RecordType;
use crate::message::{Hint, Message};
use crate::query::follow::{ExportOverlap, RowFacts, facts};
use crate::query::request::Query;
use crate::query::results::{Page, Records, RecordsBuilder, Report, SharedReport};
use crate::query::snapshot::End;

/// A page that was read, and the facts of its rows.
#[derive(Clone)]
pub(super) struct ReadPage {
    columns: Columns,
    pub facts: Vec<RowFacts>,
}

impl ReadPage {
    pub fn new(columns: Columns) -> Self {
        Self { facts: facts(&columns), columns }
    }

    /// The rows from a height on.
    pub fn rows_from(&self, low: i64) -> Self {
        let mut wanted = Vec::new();
        let mut kept = Vec::new();
        for (row, facts) in (0..).zip(&self.facts) {
            if facts.height.is_some_and(|height| height >= low) {
                wanted.push(row);
                kept.push(*facts);
            }
        }
        Self { columns: self.columns.take(&wanted), facts: kept }
    }
}

/// A read from the newest page down.
pub(super) struct ReadDown {
    pub run: Run,
    pub returned: u64,
    shown: ShownLog,
    /// True if a page said how many pages there are.
    counts_pages: bool,
    /// Lowest height so far.
    lowest: Option<i64>,
    /// The part of its cost that is in the report.
    counted: Report,
}

impl ReadDown {
    pub fn new(list: &Query, repeats: u32, shown: &ShownLog) -> Self {
        // The caller may stop at any record: none of the beginning may be skipped.
        let mut run = Run::new(&QueryStart::from(list.limited_to(u64::MAX)));
        run.log_responses(shown.clone());
        Self {
            // A replaced first page can only be requested again while it is held back.
            run: if repeats == 0 { run.returning_first_page_at_once() } else { run },
            returned: 0,
            shown: shown.clone(),
            counts_pages: false,
            lowest: None,
            counted: Report::default(),
        }
    }

    /// Returns the next page, or `None` at the end of the list.
    pub async fn next(&mut self) -> Result<Option<Page>, Error> {
        let page = self.run.next().await?;
        self.returned += 1;
        self.counts_pages |= page.as_ref().is_some_and(|page| page.paging.total_pages.is_some());
        match self.run.doubtful_height() {
            // The height of the last record says whether others are read.
            Some(problem) => Err(self.drift(problem.hint(Hint::RetryLater))),
            None => Ok(page),
        }
    }

    /// The error of a list that ended at an unknown length although its pages are counted: it lost records each time that its
    /// length was requested.
    pub fn lost_length(&self) -> Option<Error> {
        let is_lost = self.counts_pages && self.run.end() == Some(End::UnknownLength);
        let problem = Message::from("the list changed each time that its length was requested").hint(Hint::RetryLater);
        is_lost.then(|| self.drift(problem))
    }

    fn drift(&self, problem: Message) -> Error {
        Error::Drift { endpoint: self.run.query().endpoint().name, problem }
    }

    /// Adds the cost so far to the report of the follower, and the reasons to those of the round.
    pub fn add_cost(&mut self, report: &SharedReport) {
        let now = self.run.report().read();
        report.add_cost(&now.since(&self.counted));
        // Other reasons of a round, such as the result window, do not concern the follower.
        let dropped = now.dropped - self.counted.dropped;
        self.shown.doubt(self.run.doubts());
        report.update(|report| report.dropped += dropped);
        self.counted = now;
        report.take_counted(self.run.report());
        if let Some(reason) = self.run.report().empty_responses_reason() {
            report.add_reason(reason);
        }
    }

    /// Fails if a record lies above those before it: what is new would be looked for at the wrong end of the list.
    pub fn check_order(&mut self, rows: &[RowFacts]) -> Result<(), Error> {
        for height in rows.iter().filter_map(|row| row.height) {
            if let Some(lowest) = self.lowest.replace(height).filter(|lowest| *lowest < height) {
                let problem = format!(
                    "a list is followed from its newest record down, and height {height} comes below {lowest} in it: \
                     it changed, or is in another order, such as data of a local server that was not loaded newest first"
                );
                return Err(self.drift(Message::new(problem).hint(Hint::RetryLater)));
            }
        }
        Ok(())
    }
}

/// Records of pages above a height and up to another one, oldest first, without those of the overlap.
pub(super) fn records_between(
    record: &'static RecordType,
    pages: &[ReadPage],
    above: i64,
    up_to: i64,
    mut overlap: Option<ExportOverlap>,
) -> Records {
    let mut wanted = Vec::new();
    for (page, read) in pages.iter().enumerate().rev() {
        for (row, facts) in read.facts.iter().enumerate().rev() {
            let Some(height) = facts.height.filter(|height| *height > above && *height <= up_to) else { continue };
            if !overlap.as_mut().is_some_and(|overlap| overlap.take(facts)) {
                wanted.push(WantedRow { height, page, row: row as u32 });
            }
        }
    }
    // Heights read one by one came in ascending order.
    wanted.sort_by_key(|row| row.height);
    let mut built = RecordsBuilder::new(record, StringLayout::Utf8);
    let count = wanted.len();
    for of_page in wanted.chunk_by(|left, right| left.page == right.page) {
        let rows: Vec<u32> = of_page.iter().map(|wanted| wanted.row).collect();
        let page = &pages[of_page[0].page];
        built.push(&page.columns.take(&rows), count.saturating_sub(built.rows() + rows.len()));
    }
    built.finish()
}

/// A row that is delivered, by the index of its page and its own.
struct WantedRow {
    height: i64,
    page: usize,
    row: u32,
}
