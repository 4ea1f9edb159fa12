//! `Stream`: what a query yields, one thing at a time, for `for` and `async for` alike.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::bridge;
use super::classes;
use super::page::Page;
use super::progress::Bar;
use super::query::Query;
use super::records::Records;
use super::report::Report;
use crate::client::Error;
use crate::columns::Columns;
use crate::query::{self, Batches, DeliveredPage, Pages, Partial, Place, SharedReport};

/// What a stream yields.
#[derive(Clone, Copy, PartialEq)]
pub enum Of {
    Rows,
    Pages,
    Batches,
}

// One iterator. Threads that share it get each item once.
#[doc = doc!(Stream)]
#[pyclass(frozen, module = "chainframe")]
pub struct Stream {
    of: Of,
    rows: Rows,
    source: Option<Source>,
    ended: AtomicBool,
}

/// The rest of some columns.
pub struct RowCursor {
    columns: Arc<Columns>,
    row: usize,
    /// In the run, after the last of the columns.
    place: Option<Place>,
}

impl RowCursor {
    pub fn new(columns: Arc<Columns>) -> Self {
        Self { columns, row: 0, place: None }
    }

    /// In the run, after the latest row.
    pub fn place(&self) -> Option<Place> {
        self.place.as_ref().map(|place| place.back_to(self.row))
    }
}

/// Rows at hand, in order. What was read to its end stays first until there is something after it.
pub type Rows = Arc<Mutex<VecDeque<RowCursor>>>;

struct Source {
    query: Py<Query>,
    pages: Arc<tokio::sync::Mutex<(Pages, Batches)>>,
    report: SharedReport,
    partial: Partial,
    arrived: Arc<Mutex<Arrived>>,
    bar: Mutex<Bar>,
}

impl Source {
    fn end_bar(&self) {
        let bar = std::mem::replace(&mut *self.bar.lock().unwrap_or_else(PoisonError::into_inner), Bar::none());
        // Only now: closing it runs Python, and so may come back here.
        drop(bar);
    }
}

/// Items that were read and not handed over yet. A caller that is interrupted or cancelled meanwhile leaves its item
/// here for the next one.
#[derive(Default)]
struct Arrived {
    items: VecDeque<Item>,
    /// How many of them somebody is about to take.
    claimed: usize,
}

/// The right to one item that arrived, given back if it is not used.
struct Claim(Arc<Mutex<Arrived>>);

impl Claim {
    /// The right to the next item that nobody else is about to take.
    fn of(arrived: &Arc<Mutex<Arrived>>) -> Option<Self> {
        let mut state = lock(arrived);
        let free = state.items.len() > state.claimed;
        state.claimed += usize::from(free);
        free.then(|| Self(arrived.clone()))
    }

    fn take(self) -> Option<Item> {
        lock(&self.0).items.pop_front()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.0).claimed -= 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What came next.
enum Item {
    Page(DeliveredPage),
    Batch(query::Batch),
    Failure(Error),
}

impl Stream {
    pub fn of_rows(rows: VecDeque<RowCursor>) -> Self {
        Self { of: Of::Rows, rows: Arc::new(Mutex::new(rows)), source: None, ended: AtomicBool::new(false) }
    }

    pub fn of_query(query: Py<Query>, pages: Pages, bar: Bar, of: Of, batch_rows: usize) -> Self {
        let (report, partial) = (pages.report().clone(), pages.partial().clone());
        let batches = Batches::new(pages.query().endpoint().record(), batch_rows);
        let pages = Arc::new(tokio::sync::Mutex::new((pages, batches)));
        let source = Source { query, pages, report, partial, arrived: Arc::default(), bar: Mutex::new(bar) };
        Self { of, rows: Rows::default(), source: Some(source), ended: AtomicBool::new(false) }
    }

    /// The same, and its end says nothing of what the result lacks: who reads it does.
    pub fn quiet(self) -> Self {
        Self { ended: AtomicBool::new(true), ..self }
    }

    /// The rows that this stream has at hand, to tell how far it has come.
    pub fn shared_rows(&self) -> Option<Rows> {
        (self.of == Of::Rows).then(|| self.rows.clone())
    }

    /// The next record at hand.
    fn row<'py>(&self, py: Python<'py>) -> Option<PyResult<Bound<'py, PyAny>>> {
        let (columns, row) = {
            let mut rows = lock(&self.rows);
            loop {
                let cursor = rows.front_mut()?;
                if cursor.row < cursor.columns.rows() {
                    cursor.row += 1;
                    break (cursor.columns.clone(), cursor.row - 1);
                }
                if rows.len() == 1 {
                    return None;
                }
                rows.pop_front();
            }
        };
        Some(classes::view(py, columns, row))
    }

    /// Sees to it that an item has arrived; nothing at the end.
    fn next_item(&self, source: &Source) -> impl Future<Output = Option<Claim>> + Send + use<> {
        let (of, pages, arrived) = (self.of, source.pages.clone(), source.arrived.clone());
        async move {
            let (pages, batches) = &mut *pages.lock().await;
            let most = pages.query().client().settings().concurrency;
            let mut along = false;
            loop {
                if !along && let Some(claim) = Claim::of(&arrived) {
                    return Some(claim);
                }
                let item = match of {
                    Of::Batches => next_batch(pages, batches).await.map(|batch| batch.map(Item::Batch)),
                    Of::Rows | Of::Pages => pages.next().await.map(|page| page.map(Item::Page)),
                };
                match item {
                    Ok(Some(Item::Page(page))) if of == Of::Rows && page.columns.rows() == 0 => {}
                    Ok(Some(item)) => lock(&arrived).items.push_back(item),
                    Ok(None) => return Claim::of(&arrived),
                    Err(error) => lock(&arrived).items.push_back(Item::Failure(error)),
                }
                if of == Of::Rows {
                    // Pages that came at the same time are taken along: to wake a thread costs more than to read one.
                    tokio::task::yield_now().await;
                    along = pages.is_ready() && lock(&arrived).items.len() < most;
                }
            }
        }
    }

    /// What an item is to the caller; nothing at the end, once the report has had its say.
    fn yielded<'py>(
        &self,
        py: Python<'py>,
        source: &Source,
        claim: Option<Claim>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if claim.is_none() {
            source.end_bar();
        }
        let Some(item) = claim.and_then(Claim::take) else {
            if !self.ended.swap(true, Ordering::Relaxed) {
                source.query.get().ended(py, &source.report, &source.partial)?;
            }
            return Ok(None);
        };
        match item {
            Item::Failure(error) => {
                source.end_bar();
                Err(source.query.get().failed(py, &error))
            }
            Item::Page(page) if self.of == Of::Rows => {
                let rest = RowCursor { columns: Arc::new(page.columns), row: 1, place: Some(page.place) };
                let first = classes::view(py, rest.columns.clone(), 0)?;
                let mut rows = lock(&self.rows);
                rows.retain(|cursor| cursor.row < cursor.columns.rows());
                rows.push_back(rest);
                Ok(Some(first))
            }
            Item::Page(page) => {
                source.query.get().handed_over(Some(page.place.clone()));
                Ok(Some(Bound::new(py, Page::new(py, page, source.report.read())?)?.into_any()))
            }
            Item::Batch(batch) => {
                source.query.get().handed_over(batch.place);
                Ok(Some(Bound::new(py, Records::new(batch.records, source.report.read()))?.into_any()))
            }
        }
    }
}

#[pymethods]
impl Stream {
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, item: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        super::query::generic(class, item)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(row) = self.row(py) {
            return row.map(Some);
        }
        let Some(source) = &self.source else { return Ok(None) };
        let claim = match Claim::of(&source.arrived) {
            Some(claim) => Some(claim),
            None => bridge::wait(py, self.next_item(source))?,
        };
        self.yielded(py, source, claim)
    }

    fn __aiter__(slf: Py<Self>) -> PyResult<Py<Self>> {
        match &slf.get().source {
            Some(_) => Ok(slf),
            None => Err(PyTypeError::new_err("records at hand are iterated with for, not with async for")),
        }
    }

    fn __anext__(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let stream = slf.get();
        if let Some(row) = stream.row(py) {
            return Ok(Py::new(py, Ready(Mutex::new(Some(row?.unbind()))))?.into_any());
        }
        let Some(source) = &stream.source else { return Err(PyStopAsyncIteration::new_err(())) };
        if let Some(claim) = Claim::of(&source.arrived) {
            let item = stream.yielded(py, source, Some(claim))?.ok_or_else(|| PyStopAsyncIteration::new_err(()))?;
            return Ok(Py::new(py, Ready(Mutex::new(Some(item.unbind()))))?.into_any());
        }
        let future = stream.next_item(source);
        let slf = slf.unbind();
        bridge::awaitable(py, future, move |py, item| {
            let stream = slf.get();
            let Some(source) = &stream.source else { return Err(PyStopAsyncIteration::new_err(())) };
            match stream.yielded(py, source, item)? {
                Some(item) => Ok(item.unbind()),
                None => Err(PyStopAsyncIteration::new_err(())),
            }
        })
    }

    /// Of this run, whatever else the query is used for meanwhile.
    fn _report(&self) -> Report {
        Report { inner: self.source.as_ref().map(|source| source.report.read()).unwrap_or_default() }
    }

    fn __repr__(&self) -> &'static str {
        match self.of {
            Of::Rows => "<Stream of records>",
            Of::Pages => "<Stream of pages>",
            Of::Batches => "<Stream of batches>",
        }
    }
}

async fn next_batch(pages: &mut Pages, batches: &mut Batches) -> Result<Option<query::Batch>, Error> {
    loop {
        if let Some(batch) = batches.full() {
            return Ok(Some(batch));
        }
        match pages.next().await? {
            Some(page) => batches.push(page),
            None => return Ok(batches.rest()),
        }
    }
}

/// An awaitable of something at hand, so that a record of a page that is here costs no turn of the event loop.
#[pyclass(frozen)]
struct Ready(Mutex<Option<Py<PyAny>>>);

#[pymethods]
impl Ready {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self) -> PyResult<()> {
        let value = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Err(PyStopIteration::new_err((value,)))
    }
}
