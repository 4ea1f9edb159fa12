//! `Stream`: iterator over the items of one run, for `for` and `async for` alike.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::feed::{Feed, Polled, Ready};
use super::iterator::{self, FeedIterator, feed_iterator};
use super::last_run::BegunRun;
use super::progress::Bar;
use super::run_source::{RunItem, RunSource, StreamItem};
use crate::client::Error;
use crate::columns::Projection;
use crate::python::base::asyncio::Coroutine;
use crate::python::results::page::Page;
use crate::python::results::record_classes;
use crate::python::results::records::Records;
use crate::query::{Run, SharedReport};

// One iterator. Threads that share it get each item once.
#[doc = doc!(Stream)]
#[pyclass(frozen, module = "chainframe")]
pub struct Stream {
    kind: StreamItem,
    /// Columns of the records of batches.
    selection: Projection,
    feed: Feed<RunSource>,
    /// The query, for the garbage collector: its last error has a traceback, whose frames may have this stream.
    owner: Py<PyAny>,
    run: BegunRun,
    report: SharedReport,
    bar: Bar,
    /// True once the end was reported.
    reported: AtomicBool,
}

impl Stream {
    pub fn new(
        owner: Py<PyAny>,
        (run, begun): (Run, BegunRun),
        bar: Bar,
        kind: StreamItem,
        (batch_size, selection): (usize, Projection),
    ) -> Self {
        let report = run.report().clone();
        let feed = Feed::of_run(run, kind, batch_size, batch_size);
        begun.follow(feed.ready());
        Self { kind, selection, owner, report, feed, run: begun, bar, reported: AtomicBool::new(false) }
    }

    pub fn ready(&self) -> &Ready<RunSource> {
        self.feed.ready()
    }

    /// As `Feed::take`, for records of a page.
    fn take_record<'py>(&self, py: Python<'py>) -> PyResult<Polled<Bound<'py, PyAny>>> {
        self.ready().take_row().try_map(|(page, row)| {
            let record = record_classes::view(py, page.columns.clone(), row);
            let record = record.and_then(|record| py.check_signals().map(|()| record));
            record.inspect_err(|_| self.ready().restore_row(page, row))
        })
    }

    fn make<'py>(&self, py: Python<'py>, item: RunItem) -> PyResult<Bound<'py, PyAny>> {
        let numbers = self.feed.client().settings().numbers;
        match item {
            RunItem::Page(page) => Ok(Bound::new(py, Page::new(py, page, self.report.read(), numbers)?)?.into_any()),
            RunItem::Batch(batch) => {
                let records = Records::new(batch.records, self.report.read(), numbers).select(self.selection);
                Ok(Bound::new(py, records)?.into_any())
            }
        }
    }

    fn failed(&self, py: Python<'_>, error: &Error) -> PyErr {
        self.bar.close();
        self.run.failed(py, error)
    }
}

impl FeedIterator for Stream {
    type Source = RunSource;

    fn feed(&self) -> &Feed<RunSource> {
        &self.feed
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Polled<Bound<'py, PyAny>>> {
        let taken = match self.kind {
            StreamItem::Records => self.take_record(py)?,
            StreamItem::Pages | StreamItem::Batches => self.feed.take(py, |item| self.make(py, item))?,
        };
        match &taken {
            Polled::Failure(error) => return Err(self.failed(py, error)),
            Polled::Ended => {
                self.bar.close();
                if !self.reported.swap(true, Ordering::Relaxed) {
                    self.run.ended(py)?;
                }
            }
            Polled::Pending | Polled::Item(_) => {}
        }
        Ok(taken)
    }

    fn interrupted(&self, py: Python<'_>, raised: PyErr) -> PyErr {
        self.run.interrupted(py, raised)
    }

    fn annotate(&self, exception: &Bound<'_, PyAny>) {
        self.run.annotate(exception);
    }

    fn end(&self) {
        self.reported.store(true, Ordering::Relaxed);
        self.feed.close();
        self.bar.close();
    }
}

feed_iterator!(Stream);

#[pymethods]
impl Stream {
    fn __repr__(&self) -> &'static str {
        match self.kind {
            StreamItem::Records => "<Stream of records>",
            StreamItem::Pages => "<Stream of pages>",
            StreamItem::Batches => "<Stream of batches>",
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.owner)
    }
}
