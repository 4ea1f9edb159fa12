//! `Stream`: iterator over the items of one run, for `for` and `async for` alike.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::feed::{Feed, Item, Polled, Ready, StreamItem};
use super::last_run::LastRun;
use super::progress::Bar;
use crate::client::Error;
use crate::columns::Projection;
use crate::python::base::asyncio::{ANEXT, AsyncStep, Coroutine, coroutine};
use crate::python::base::block_on::block_on;
use crate::python::base::generic;
use crate::python::results::page::Page;
use crate::python::results::record_classes;
use crate::python::results::records::Records;
use crate::query::{Partial, Run, SharedReport};

// One iterator. Threads that share it get each item once.
#[doc = doc!(Stream)]
#[pyclass(frozen, module = "chainframe")]
pub struct Stream {
    kind: StreamItem,
    /// Columns of the records of batches.
    selection: Projection,
    feed: Feed,
    /// The query, for the garbage collector: its last error has a traceback, whose frames may have this stream.
    owner: Py<PyAny>,
    last: Arc<LastRun>,
    report: SharedReport,
    partial: Partial,
    bar: Mutex<Bar>,
    /// True once the end was reported.
    reported: AtomicBool,
}

impl Stream {
    pub fn new(
        owner: Py<PyAny>,
        last: Arc<LastRun>,
        run: Run,
        bar: Bar,
        kind: StreamItem,
        (batch_size, selection): (usize, Projection),
    ) -> Self {
        Self {
            kind,
            selection,
            owner,
            last,
            report: run.report().clone(),
            partial: run.partial().clone(),
            feed: Feed::new(run, kind, batch_size, batch_size),
            bar: Mutex::new(bar),
            reported: AtomicBool::new(false),
        }
    }

    pub fn ready(&self) -> &Ready {
        self.feed.ready()
    }

    /// The next item if it was read already. A signal is raised here, and leaves the item: once it is returned, the
    /// interpreter would raise in the body of the loop, which could not know whether it has the item.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Polled<Bound<'py, PyAny>>> {
        if self.kind == StreamItem::Records {
            return match self.ready().take_row() {
                Polled::Item((page, row)) => {
                    let record = record_classes::view(py, page.columns.clone(), row);
                    match record.and_then(|record| py.check_signals().map(|()| record)) {
                        Ok(record) => Ok(Polled::Item(record)),
                        Err(raised) => {
                            self.ready().restore_row(page, row);
                            Err(raised)
                        }
                    }
                }
                other => self.end_of(py, other),
            };
        }
        match self.ready().take() {
            Polled::Item((item, before)) => {
                let checkpoint = self.ready().checkpoint();
                let made = self.make(py, item)?;
                match py.check_signals() {
                    Ok(()) => Ok(Polled::Item(made)),
                    Err(raised) => {
                        self.ready().restore(Item::Converted(made.unbind(), checkpoint), before);
                        Err(raised)
                    }
                }
            }
            other => self.end_of(py, other),
        }
    }

    fn make<'py>(&self, py: Python<'py>, item: Item) -> PyResult<Bound<'py, PyAny>> {
        let numbers = self.feed.client().settings().numbers;
        match item {
            Item::Page(page) => Ok(Bound::new(py, Page::new(py, page, self.report.read(), numbers)?)?.into_any()),
            Item::Batch(batch) => {
                let records = Records::new(batch.records, self.report.read(), numbers).select(self.selection);
                Ok(Bound::new(py, records)?.into_any())
            }
            Item::Converted(item, _) => Ok(item.into_bound(py)),
            Item::Failure(error) => Err(self.failed(py, &error)),
        }
    }

    /// Everything but an item.
    fn end_of<'py, T>(&self, py: Python<'py>, taken: Polled<T>) -> PyResult<Polled<Bound<'py, PyAny>>> {
        match taken {
            Polled::Failure(error) => Err(self.failed(py, &error)),
            Polled::Ended => {
                self.end_bar();
                if !self.reported.swap(true, Ordering::Relaxed) {
                    self.last.ended(py, self.feed.client(), &self.report, &self.partial)?;
                }
                Ok(Polled::Ended)
            }
            Polled::Pending | Polled::Item(_) => Ok(Polled::Pending),
        }
    }

    fn failed(&self, py: Python<'_>, error: &Error) -> PyErr {
        self.end_bar();
        self.last.failed(py, error)
    }

    fn end_bar(&self) {
        let bar = std::mem::replace(&mut *self.bar.lock().unwrap_or_else(PoisonError::into_inner), Bar::none());
        // Not under the lock: closing it runs Python, and so may come back here.
        drop(bar);
    }
}

#[pymethods]
impl Stream {
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, item: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        generic(class, item)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            match self.take(py).map_err(|raised| self.last.interrupted(py, raised))? {
                Polled::Item(item) => return Ok(Some(item)),
                Polled::Ended | Polled::Failure(_) => return Ok(None),
                // Another thread may take what this one waited for.
                Polled::Pending => {
                    let filled = block_on(py, self.feed.client(), self.feed.fill(py)?);
                    filled.map_err(|raised| self.last.interrupted(py, raised))?;
                }
            }
        }
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(slf: Py<Self>) -> Coroutine {
        let last = slf.get().last.clone();
        let next = Coroutine::new(ANEXT, move |py| match slf.get().take(py)? {
            Polled::Item(item) => Ok(AsyncStep::Done(item.unbind())),
            Polled::Ended | Polled::Failure(_) => Err(PyStopAsyncIteration::new_err(())),
            Polled::Pending => Ok(AsyncStep::Wait(slf.get().feed.client().clone(), Box::pin(slf.get().feed.fill(py)?))),
        });
        next.annotating(move |exception| last.annotate(exception))
    }

    #[doc = doc!(Stream.close)]
    fn close(&self) {
        self.reported.store(true, Ordering::Relaxed);
        self.feed.close();
        self.end_bar();
    }

    #[doc = doc!(Stream.aclose)]
    fn aclose(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let client = slf.get().feed.client().clone();
        coroutine(py, "Stream.aclose", &client, move |_| {
            slf.get().close();
            Ok((std::future::ready(()), |py: Python<'_>, ()| Ok(py.None())))
        })
    }

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
