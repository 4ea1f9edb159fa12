//! Methods of `Query` that only the Python code of this package calls: for exports, datasets, sinks and Spark.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::part_buffer::PartBuffer;
use super::query::Query;
use crate::columns::{DecimalPolicy, schema};
use crate::python::base::arguments::ColumnNames;
use crate::python::results::arrow;
use crate::python::results::frames::ToFrame as _;
use crate::python::results::incomplete::report_incomplete;
use crate::python::results::records::Records;
use crate::python::results::report::Report;
use crate::query::{self, GrowthOrder, QueryStart, SharedReport};

#[pymethods]
impl Query {
    /// A run for an export: its records stay in the core until they are written, in pieces if there were `earlier_requests`.
    fn _part_buffer(
        slf: &Bound<'_, Self>,
        max_rows: usize,
        max_age: f64,
        keyed: bool,
        in_order: bool,
        earlier_requests: Option<u64>,
    ) -> PyResult<PartBuffer> {
        let (run, begun, bar) = slf.get().stream_pages(slf.py())?;
        // A run that looks for the records of an earlier one may find them on the first page.
        let run = if in_order { run.in_order().returning_first_page_at_once() } else { run };
        let max_age = Duration::from_secs_f64(max_age);
        Ok(PartBuffer::new((run, begun), bar, (max_rows, max_age), keyed, earlier_requests))
    }

    /// Type of amounts that the client asks for.
    #[getter]
    fn _numbers(&self) -> Option<&'static str> {
        self.numbers().map(DecimalPolicy::name)
    }

    /// Arguments of the query as JSON, for the manifest of an export.
    fn _stated(&self) -> PyResult<String> {
        Ok(self.start.canonical_json()?.to_string())
    }

    /// Cursor of the first record, with which a process that has nothing else reads the query.
    fn _whole_cursor(&self) -> String {
        self.start.whole_cursor()
    }

    /// Unit, progress and expected end of the last run.
    fn _progress(&self) -> (&'static str, u64, Option<u64>) {
        let progress = self.last.report().unwrap_or_default().progress;
        (progress.unit, progress.done, progress.total)
    }

    /// True if a list of this many records may have more than its pages show.
    fn _reaches_result_window(&self, records: u64) -> bool {
        self.start.query().reaches_result_window(records)
    }

    /// Order in which new records join the result, where it is known.
    fn _growth_order(&self) -> Option<&'static str> {
        self.start.query().growth_order().map(|order| match order {
            GrowthOrder::NewestFirst => "newest_first",
            GrowthOrder::ByHeight => "by_height",
        })
    }

    /// Returns the query of a range of heights with `height` as its start.
    fn _from_height(&self, py: Python<'_>, height: i64) -> PyResult<Self> {
        let query = self.start.query().reject_set("an export").and_then(|()| self.start.query().from_height(height))?;
        Ok(self.of_run(py, QueryStart::from(query)))
    }

    /// The next `max_items` records of the query after those that the last run of another one, which is a part of it, returned.
    fn _rest(&self, py: Python<'_>, max_items: u64, after: &Self) -> PyResult<Self> {
        let start = self.start.rest(&after.cursor(), max_items)?;
        Ok(self.of_run(py, start))
    }

    /// Warns or raises if a result is not shown to be complete, as the end of a run does.
    fn _warn_if_incomplete(&self, py: Python<'_>, report: &Report) -> PyResult<()> {
        let partial = (!report.inner.complete).then(|| self.partial());
        report_incomplete(py, self.start.query().client().settings().strict, report.clone(), partial)
    }

    /// A stream of some columns, of which no others are decoded but those that a run needs. It keeps no partial records.
    fn _arrow_stream<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<String>,
        first: usize,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let start = self.start.with_columns(&columns);
        let schema = schema(self.record(), DecimalPolicy::Decimal);
        self.growing_stream(py, &start, first, arrow::project(py, schema, Some(&ColumnNames(columns)))?)
    }

    /// The query with heights in place of times, and the report of the requests that found them.
    fn _resolved(&self, py: Python<'_>) -> PyResult<(Self, Report)> {
        let report = SharedReport::default();
        let start = self.wait(py, self.start.clone().resolved(report.clone()))?;
        Ok((self.of_run(py, start), Report { inner: report.read() }))
    }

    /// One page of the list, its count of records, and the report of the request.
    fn _page(&self, py: Python<'_>, number: u64) -> PyResult<(Records, Option<u64>, Report)> {
        let report = SharedReport::default();
        let page = self.wait(py, self.start.clone().page(number, report.clone()))?;
        let records = query::Records::new(self.record(), vec![page.columns]);
        Ok((Records::new(records, report.read(), self.numbers()), page.paging.total, Report { inner: report.read() }))
    }
}
