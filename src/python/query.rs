//! `Query`: a call that was checked and not sent, and the two ways to every result: waiting and awaiting.

use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyModule, PyTuple, PyType};

use super::client::Client;
use super::export::{self, QueryReader, Tables};
use super::records::Records;
use super::report::Report;
use super::stream::{Of, Stream};
use super::{bridge, classes, errors};
use crate::client::Error;
use crate::interface::endpoint;
use crate::query::{self, Arg, Options, Pages, RecordsBuilder, SharedReport};

#[pyclass(frozen, module = "chainframe")]
pub struct Query {
    inner: query::Query,
    client: Py<Client>,
    /// As given, for pickling.
    given: (Vec<(String, Arg)>, Options),
    last: Mutex<Last>,
}

/// The latest run.
#[derive(Default)]
struct Last {
    report: Option<SharedReport>,
    /// What a run that collects has so far.
    partial: Option<Arc<Mutex<RecordsBuilder>>>,
    error: Option<Py<PyAny>>,
}

/// `class[item]`, as `typing` has it.
pub fn generic(class: &Bound<'_, PyType>, item: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let alias = class.py().import("types")?.getattr("GenericAlias")?;
    alias.call1((class, item)).map(Bound::unbind)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count_of_rows(py: Python<'_>, rows: i64) -> PyResult<usize> {
    let count = usize::try_from(rows).ok().filter(|rows| *rows > 0);
    count.ok_or_else(|| errors::parameter(py, "rows", &format!("{rows} is under 1")))
}

impl Query {
    pub fn new(client: &Bound<'_, Client>, call: &str, args: Vec<(String, Arg)>, options: Options) -> PyResult<Self> {
        let py = client.py();
        let endpoint = endpoint(call).ok_or_else(|| PyTypeError::new_err(format!("no call {call:?}")))?;
        let inner = query::Query::new(&client.get().inner, endpoint, &args, options.clone())
            .map_err(|error| errors::raise(py, &error))?;
        Ok(Self { inner, client: client.clone().unbind(), given: (args, options), last: Mutex::default() })
    }

    fn begin(&self, inner: query::Query) -> Pages {
        let pages = Pages::new(inner);
        let begun = Last { report: Some(pages.report().clone()), partial: None, error: None };
        let before = std::mem::replace(&mut *lock(&self.last), begun);
        // Not under the lock: an error's end may run code of anyone's.
        drop(before);
        pages
    }

    /// Everything, as a future. What it has so far can be read meanwhile.
    fn gather(&self) -> impl Future<Output = Result<(query::Records, query::Report), Error>> + Send + use<> {
        let mut pages = self.begin(self.inner.clone());
        let report = pages.report().clone();
        let record = self.inner.endpoint().record();
        let builder = Arc::new(Mutex::new(RecordsBuilder::new(record)));
        lock(&self.last).partial = Some(builder.clone());
        async move {
            while let Some(page) = pages.next().await? {
                lock(&builder).push(page.columns);
            }
            let gathered = std::mem::replace(&mut *lock(&builder), RecordsBuilder::new(record)).finish();
            *lock(&builder) = RecordsBuilder::of(&gathered);
            Ok((gathered, report.read()))
        }
    }

    fn gathered(&self, py: Python<'_>, result: Result<(query::Records, query::Report), Error>) -> PyResult<Records> {
        let (records, report) = result.map_err(|error| self.failed(py, &error))?;
        let report = Report { inner: report };
        let records = Records::new(records, report.inner.clone());
        errors::incomplete(py, self.inner.client().settings().strict, report, Some(records.clone()))?;
        Ok(records)
    }

    pub fn failed(&self, py: Python<'_>, error: &Error) -> PyErr {
        let error = errors::raise(py, error);
        self.set_last_error(py, error.clone_ref(py));
        error
    }

    fn first_page(&self) -> impl Future<Output = Result<Option<query::Records>, Error>> + Send + use<> {
        let mut pages = self.begin(self.inner.head(1));
        async move {
            while let Some(page) = pages.next().await? {
                if page.columns.rows() > 0 {
                    return Ok(Some(query::Records::new(page.columns.record(), vec![page.columns])));
                }
            }
            Ok(None)
        }
    }

    fn first_of(&self, py: Python<'_>, result: Result<Option<query::Records>, Error>) -> PyResult<Py<PyAny>> {
        let records = result.map_err(|error| self.failed(py, &error))?;
        match records.as_ref().and_then(|records| records.locate(0)) {
            Some((columns, row)) => classes::view(py, Arc::new(columns.slice(row, 1)), 0).map(Bound::unbind),
            None => Ok(py.None()),
        }
    }

    /// A run came to its end: an error or a warning if its result was not shown to be complete.
    pub fn ended(&self, py: Python<'_>, report: &SharedReport) -> PyResult<()> {
        errors::incomplete(py, self.inner.client().settings().strict, Report { inner: report.read() }, None)
    }

    pub fn set_last_error(&self, py: Python<'_>, error: PyErr) {
        let error = Some(error.into_value(py).into_any());
        let before = std::mem::replace(&mut lock(&self.last).error, error);
        drop(before);
    }

    fn stream(slf: &Bound<'_, Self>, of: Of, rows: usize) -> Stream {
        let pages = slf.get().begin(slf.get().inner.clone());
        Stream::of_query(slf.clone().unbind(), pages, of, rows)
    }
}

#[pymethods]
impl Query {
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, record: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        generic(class, record)
    }

    fn __iter__(slf: &Bound<'_, Self>) -> Stream {
        Self::stream(slf, Of::Rows, 0)
    }

    fn __aiter__(slf: &Bound<'_, Self>) -> Stream {
        Self::stream(slf, Of::Rows, 0)
    }

    fn pages(slf: &Bound<'_, Self>) -> Stream {
        Self::stream(slf, Of::Pages, 0)
    }

    #[pyo3(signature = (rows=65_536))]
    fn batches(slf: &Bound<'_, Self>, rows: i64) -> PyResult<Stream> {
        Ok(Self::stream(slf, Of::Batches, count_of_rows(slf.py(), rows)?))
    }

    #[pyo3(signature = (rows=65_536, numbers="decimal"))]
    fn reader<'py>(slf: &Bound<'py, Self>, rows: i64, numbers: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let (rows, numbers) = (count_of_rows(py, rows)?, export::numbers(py, numbers)?);
        let pages = slf.get().begin(slf.get().inner.clone());
        let tables = Tables::new(QueryReader::of_batches(slf.clone().unbind(), pages, rows, numbers));
        PyModule::import(py, "chainframe.frames")?.call_method1("reader", (tables,))
    }

    fn collect(&self, py: Python<'_>) -> PyResult<Records> {
        let result = bridge::wait(py, self.gather())?;
        self.gathered(py, result)
    }

    fn collect_async(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        bridge::coroutine(py, slf.get().gather(), move |py, result| {
            Py::new(py, slf.get().gathered(py, result)?).map(Py::into_any)
        })
    }

    fn first(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let result = bridge::wait(py, self.first_page())?;
        self.first_of(py, result)
    }

    fn first_async(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        bridge::coroutine(py, slf.get().first_page(), move |py, result| slf.get().first_of(py, result))
    }

    #[pyo3(signature = (numbers="decimal"))]
    fn to_pandas<'py>(&self, py: Python<'py>, numbers: &str) -> PyResult<Bound<'py, PyAny>> {
        export::numbers(py, numbers)?;
        self.collect(py)?.to_pandas(py, numbers)
    }

    #[pyo3(signature = (numbers="decimal"))]
    fn to_polars<'py>(&self, py: Python<'py>, numbers: &str) -> PyResult<Bound<'py, PyAny>> {
        export::numbers(py, numbers)?;
        self.collect(py)?.to_polars(py, numbers)
    }

    #[pyo3(signature = (numbers="decimal"))]
    fn to_arrow<'py>(&self, py: Python<'py>, numbers: &str) -> PyResult<Bound<'py, PyAny>> {
        export::numbers(py, numbers)?;
        self.collect(py)?.to_arrow(py, numbers)
    }

    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.collect(py)?.to_dicts(py)
    }

    #[getter]
    fn report(&self) -> Report {
        let inner = lock(&self.last).report.as_ref().map(SharedReport::read).unwrap_or_default();
        Report { inner }
    }

    #[getter]
    fn partial(&self) -> Records {
        let builder = lock(&self.last).partial.clone();
        let records = match builder {
            Some(builder) => lock(&builder).snapshot(),
            None => query::Records::new(self.inner.endpoint().record(), Vec::new()),
        };
        Records::new(records, self.report().inner)
    }

    #[getter]
    fn last_error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.last).error.as_ref().map(|error| error.clone_ref(py))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer pass over what was requested; the consumer then casts.
        let _ = requested_schema;
        let pages = slf.get().begin(slf.get().inner.clone());
        export::stream_capsule(slf.py(), Box::new(QueryReader::growing(slf.clone().unbind(), pages)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let numbers = crate::columns::Numbers::Decimal;
        export::schema_capsule(py, &crate::columns::schema(self.inner.endpoint().record(), numbers))
    }

    /// Queries are equal when they ask the same of equal clients.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let other = other.get();
        let same = std::ptr::eq(self.inner.endpoint(), other.inner.endpoint()) && self.given == other.given;
        Ok(same && self.client.bind(py).eq(other.client.bind(py))?)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.inner.endpoint().name, &self.given).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let sent: Vec<String> = self.inner.describe().iter().map(|(name, value)| format!(", {name}={value}")).collect();
        format!("<Query {} of {}{}>", self.inner.endpoint().name, self.inner.chain(), sent.concat())
    }

    /// A query does not change, so it is its own copy.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let given = serde_json::to_string(&self.given).map_err(|error| PyTypeError::new_err(error.to_string()))?;
        let restore = py.import("chainframe._native")?.getattr("_restore_query")?;
        Ok((restore, (self.client.bind(py), self.inner.endpoint().name, given).into_pyobject(py)?))
    }
}

#[pyfunction]
pub fn _restore_query(client: &Bound<'_, Client>, call: &str, given: &str) -> PyResult<Query> {
    let (args, options) = serde_json::from_str(given).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    Query::new(client, call, args, options)
}
