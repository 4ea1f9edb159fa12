//! `RangeRun`: reads a part of a followed list, whole or within a limit.

use std::ops::RangeInclusive;

use super::query_start::QueryStart;
use super::run::Run;
use super::shown_log::ShownLog;
use crate::client::Error;
use crate::columns::Columns;
use crate::interface::ResultLimit;
use crate::query::request::Query;
use crate::query::results::SharedReport;
use crate::query::snapshot::End;

/// All records of a range of heights up to one of them.
pub(super) struct CompleteRows {
    pub up_to: i64,
    /// The rows of each response.
    pub pages: Vec<Columns>,
}

/// Outcome of reading a range of heights.
pub(super) enum RangeRead {
    Complete(CompleteRows),
    /// More records than may be held: `rows` of them are from `reached` on.
    TooLarge {
        rows: u64,
        reached: i64,
    },
}

/// Most records of a read.
pub(super) struct ReadLimit {
    pub max_rows: u64,
    /// Heights that may have records, over which those of the first page are extrapolated.
    pub heights: RangeInclusive<i64>,
}

impl ReadLimit {
    /// True if the records will be far more than may be held, if those below are as dense as these.
    fn is_exceeded(&self, rows: u64, reached: i64) -> bool {
        if self.max_rows == u64::MAX || rows == 0 {
            return false;
        }
        // A range that is too large is read in halves, so that a wrong guess costs requests and nothing else.
        let high = *self.heights.end() as f64;
        let low = *self.heights.start() as f64;
        let read = (high - reached as f64 + 1.0).max(1.0);
        let expected = rows as f64 * (high - low + 1.0) / read;
        rows > self.max_rows || expected > 2.0 * self.max_rows as f64
    }
}

pub(super) struct RangeRun<'q> {
    query: &'q Query,
    report: &'q SharedReport,
    shown: &'q ShownLog,
    run: Run,
}

impl<'q> RangeRun<'q> {
    pub fn new(query: &'q Query, report: &'q SharedReport, shown: &'q ShownLog) -> Self {
        let mut run = Run::new(&QueryStart::from(query.clone()));
        run.log_responses(shown.of_ranges());
        Self { query, report, shown, run }
    }

    /// All records, with one request in flight.
    pub async fn read(mut self) -> Result<Vec<Columns>, Error> {
        self.run.set_max_in_flight(1);
        let mut all = Vec::new();
        let read = loop {
            match self.run.next().await {
                Ok(Some(page)) => all.push(page.columns),
                Ok(None) => break Ok(all),
                Err(error) => break Err(error),
            }
        };
        self.end(read)
    }

    /// All records, unless there are more than the limit.
    pub async fn read_within(mut self, limit: &ReadLimit, max_in_flight: usize) -> Result<RangeRead, Error> {
        if limit.max_rows < u64::MAX {
            // The first page may show that there are too many.
            self.run.set_max_in_flight(1);
        }
        let mut pages = Vec::new();
        let mut rows = 0;
        let read = loop {
            match self.run.next().await {
                Ok(Some(page)) => {
                    self.run.set_max_in_flight(max_in_flight);
                    rows += page.columns.rows() as u64;
                    let reached = page.columns.heights().flatten().next_back().unwrap_or(i64::MAX);
                    pages.push(page.columns);
                    if limit.is_exceeded(rows, reached) {
                        break Ok(RangeRead::TooLarge { rows, reached });
                    }
                }
                Ok(None) => break Ok(RangeRead::Complete(CompleteRows { up_to: *limit.heights.end(), pages })),
                Err(error) => break Err(error),
            }
        };
        self.end(read)
    }

    fn end<T>(self, read: Result<T, Error>) -> Result<T, Error> {
        self.shown.doubt(self.run.doubts());
        end_of_part(&self.run, self.query, self.report, read)
    }
}

/// Returns what was read, unless records are missing from it, and counts the requests for the whole.
pub(super) fn end_of_part<T>(
    run: &Run,
    query: &Query,
    report: &SharedReport,
    read: Result<T, Error>,
) -> Result<T, Error> {
    let own = run.report().read();
    report.add_cost(&own);
    report.take_counted(run.report());
    // The last year of an address is all that there is to follow, unless the list ends before it.
    let is_cut = query.endpoint().limit != ResultLimit::LastYear || run.end() == Some(End::ResultWindow);
    match own.reasons.to_vec().into_iter().next() {
        Some(problem) if is_cut => Err(Error::Window { endpoint: query.endpoint().name, problem }),
        Some(_) | None => read,
    }
}
