//! `Query`: a call that was checked and not sent, and the two ways to every result: waiting and awaiting.

use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyList, PyModule, PyTuple, PyType};

use super::client::Client;
use super::export::{self, Frame, QueryReader, Table, Tables};
use super::plan::Plan;
use super::progress::Bar;
use super::records::Records;
use super::report::Report;
use super::stream::{Of, RowCursor, Rows, Stream};
use super::{bridge, classes, errors, html};
use crate::client::Error;
use crate::columns::Layout;
use crate::interface::endpoint;
use crate::query::{self, Arg, Options, Pages, Partial, Place, SharedReport};

/// All records of a run with its account, or what ended it.
type Gathered = Result<(query::Records, query::Report), Error>;

#[doc = doc!(Query)]
#[pyclass(frozen, module = "chainframe")]
pub struct Query {
    inner: query::Query,
    client: Py<Client>,
    last: Mutex<Last>,
}

/// Rows of a batch where nobody says.
const ROWS: usize = 65_536;

/// The latest run.
#[derive(Default)]
struct Last {
    report: Option<SharedReport>,
    partial: Option<Partial>,
    error: Option<Py<PyAny>>,
    /// How far it has come: after what was handed over, or by the rows of a stream.
    place: Option<Place>,
    rows: Option<Rows>,
}

impl Last {
    fn cursor(&self) -> Option<String> {
        let collected = self.partial.as_ref().and_then(Partial::place);
        let of_rows = || self.rows.as_ref().and_then(|rows| lock(rows).front().and_then(RowCursor::place));
        collected.or_else(of_rows).or_else(|| self.place.clone()).map(|place| place.cursor())
    }
}

/// The place where a run of that query begins.
fn start(query: &query::Query) -> String {
    Pages::new(query.clone()).start().cursor()
}

/// `class[item]`, as `typing` has it.
pub fn generic(class: &Bound<'_, PyType>, item: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let alias = class.py().import("types")?.getattr("GenericAlias")?;
    alias.call1((class, item)).map(Bound::unbind)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number of at least 1, or the rows of a batch where none was given.
fn count(name: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let Some(given) = given else { return Ok(ROWS) };
    match given.extract() {
        Ok(count) if count > 0 && !given.is_instance_of::<PyBool>() => Ok(count),
        _ => {
            // Python refuses to write out very long numbers.
            let shown = given.repr().map_or_else(|_| "that".into(), |text| text.to_string());
            Err(errors::parameter(given.py(), name, &format!("{shown} is not a whole number from 1 to 2^63-1")))
        }
    }
}

impl Query {
    pub fn new(client: &Bound<'_, Client>, call: &str, args: Vec<(String, Arg)>, options: Options) -> PyResult<Self> {
        let py = client.py();
        let endpoint = endpoint(call).ok_or_else(|| PyTypeError::new_err(format!("no call {call:?}")))?;
        let inner = query::Query::new(&client.get().inner, endpoint, &args, options);
        Ok(Self::of(client, inner.map_err(|error| errors::raise(py, &error))?))
    }

    pub fn resume(client: &Bound<'_, Client>, cursor: &str) -> PyResult<Self> {
        let inner = query::Cursor::resume(&client.get().inner, cursor);
        Ok(Self::of(client, inner.map_err(|error| errors::raise(client.py(), &error))?))
    }

    fn of(client: &Bound<'_, Client>, inner: query::Query) -> Self {
        Self { inner, client: client.clone().unbind(), last: Mutex::default() }
    }

    fn begin(&self, pages: Pages) -> Pages {
        let (report, partial, place) = (pages.report().clone(), pages.partial().clone(), pages.start());
        let begun = Last { report: Some(report), partial: Some(partial), place: Some(place), ..Last::default() };
        let before = std::mem::replace(&mut *lock(&self.last), begun);
        // Not under the lock: an error's end may run code of anyone's.
        drop(before);
        pages
    }

    /// A run that hands its records on, and its bar.
    fn run(&self, py: Python<'_>) -> PyResult<(Pages, Bar)> {
        let pages = self.begin(Pages::new(self.inner.clone()));
        let bar = self.bar(py, &pages)?;
        Ok((pages, bar))
    }

    /// The newest run has given out everything up to there.
    pub fn handed_over(&self, place: Option<Place>) {
        lock(&self.last).place = place;
    }

    /// Everything, as a future, and its bar. What it has so far can be read meanwhile.
    fn gather(&self, py: Python<'_>, layout: Layout) -> PyResult<(impl Future<Output = Gathered> + Send + use<>, Bar)> {
        let result = Partial::all(self.inner.endpoint().record(), layout);
        let mut pages = self.begin(Pages::into(self.inner.clone(), result.clone()));
        let bar = self.bar(py, &pages)?;
        let gathering = async move {
            while pages.next().await?.is_some() {}
            Ok((result.read(), pages.report().read()))
        };
        Ok((gathering, bar))
    }

    fn bar(&self, py: Python<'_>, pages: &Pages) -> PyResult<Bar> {
        Bar::of(py, self.client.get().progress, pages)
    }

    fn gathered(&self, py: Python<'_>, result: Gathered) -> PyResult<Records> {
        let (records, report) = result.map_err(|error| self.failed(py, &error))?;
        let report = Report { inner: report };
        let records = Records::new(records, report.inner.clone());
        errors::incomplete(py, self.inner.client().settings().strict, report, Some(records.clone()))?;
        Ok(records)
    }

    fn collect_in(&self, py: Python<'_>, layout: Layout) -> PyResult<Records> {
        let (gathering, bar) = self.gather(py, layout)?;
        let result = bridge::wait(py, gathering)?;
        drop(bar);
        self.gathered(py, result)
    }

    fn convert<'py>(&self, py: Python<'py>, frame: Frame, numbers: &str) -> PyResult<Bound<'py, PyAny>> {
        let numbers = export::numbers(py, numbers)?;
        frame.load(py)?;
        let records = self.collect_in(py, frame.layout())?.inner;
        // Where the columns were made, since an allocator keeps what is let go for the thread that it gave it to.
        let table = bridge::wait(py, async move { Table::new(&records, numbers, frame.layout()) })?;
        let table = table.map_err(|error| self.failed(py, &error))?;
        // From here on the result is the frame's, and is not kept beside it.
        lock(&self.last).partial = None;
        table.into_frame(py, frame)
    }

    pub fn failed(&self, py: Python<'_>, error: &Error) -> PyErr {
        let cursor = lock(&self.last).cursor();
        let error = errors::raise_at(py, error, cursor);
        self.set_last_error(py, error.clone_ref(py));
        error
    }

    fn first_page(&self) -> impl Future<Output = Result<Option<query::Records>, Error>> + Send + use<> {
        let mut pages = self.begin(Pages::new(self.inner.head(1)));
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
    pub fn ended(&self, py: Python<'_>, report: &SharedReport, partial: &Partial) -> PyResult<()> {
        let report = report.read();
        let partial = (!report.complete).then(|| Records::new(partial.read(), report.clone()));
        errors::incomplete(py, self.inner.client().settings().strict, Report { inner: report }, partial)
    }

    pub fn set_last_error(&self, py: Python<'_>, error: PyErr) {
        let error = Some(error.into_value(py).into_any());
        let before = std::mem::replace(&mut lock(&self.last).error, error);
        drop(before);
    }

    fn stream(slf: &Bound<'_, Self>, of: Of, rows: usize) -> PyResult<Stream> {
        let (pages, bar) = slf.get().run(slf.py())?;
        let stream = Stream::of_query(slf.clone().unbind(), pages, bar, of, rows);
        lock(&slf.get().last).rows = stream.shared_rows();
        Ok(stream)
    }
}

#[pymethods]
impl Query {
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, record: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        generic(class, record)
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Stream> {
        Self::stream(slf, Of::Rows, 0)
    }

    fn __aiter__(slf: &Bound<'_, Self>) -> PyResult<Stream> {
        Self::stream(slf, Of::Rows, 0)
    }

    #[doc = doc!(Query.pages)]
    fn pages(slf: &Bound<'_, Self>) -> PyResult<Stream> {
        Self::stream(slf, Of::Pages, 0)
    }

    fn _quiet_pages(slf: &Bound<'_, Self>) -> PyResult<Stream> {
        Self::stream(slf, Of::Pages, 0).map(Stream::quiet)
    }

    #[doc = doc!(Query.batches)]
    #[pyo3(signature = (rows=None), text_signature = "($self, rows=65_536)")]
    fn batches(slf: &Bound<'_, Self>, rows: Option<&Bound<'_, PyAny>>) -> PyResult<Stream> {
        Self::stream(slf, Of::Batches, count("rows", rows)?)
    }

    #[doc = doc!(Query.reader)]
    #[pyo3(signature = (rows=None, numbers="decimal"), text_signature = "($self, rows=65_536, numbers='decimal')")]
    fn reader<'py>(
        slf: &Bound<'py, Self>,
        rows: Option<&Bound<'py, PyAny>>,
        numbers: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::_reader(slf, rows, numbers, None)
    }

    /// `reader` of some columns only, for the shell.
    fn _reader<'py>(
        slf: &Bound<'py, Self>,
        rows: Option<&Bound<'py, PyAny>>,
        numbers: &str,
        columns: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let (rows, numbers) = (count("rows", rows)?, export::numbers(py, numbers)?);
        let form = (export::wanted(slf.get().inner.endpoint().record(), numbers, columns)?, numbers);
        let (pages, bar) = slf.get().run(py)?;
        let tables = Tables::new(QueryReader::of_batches(py, slf.clone().unbind(), pages, bar, rows, form)?);
        PyModule::import(py, "chainframe.frames")?.call_method1("reader", (tables,))
    }

    #[doc = doc!(Query.collect)]
    fn collect(&self, py: Python<'_>) -> PyResult<Records> {
        self.collect_in(py, Layout::Offsets)
    }

    #[doc = doc!(Query.collect_async)]
    fn collect_async(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (gathering, bar) = slf.get().gather(py, Layout::Offsets)?;
        bridge::coroutine(py, gathering, move |py, result| {
            drop(bar);
            Py::new(py, slf.get().gathered(py, result)?).map(Py::into_any)
        })
    }

    #[doc = doc!(Query.first)]
    fn first(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let result = bridge::wait(py, self.first_page())?;
        self.first_of(py, result)
    }

    #[doc = doc!(Query.first_async)]
    fn first_async(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        bridge::coroutine(py, slf.get().first_page(), move |py, result| slf.get().first_of(py, result))
    }

    #[doc = doc!(Query.to_pandas)]
    #[pyo3(signature = (numbers="decimal"))]
    fn to_pandas<'py>(&self, py: Python<'py>, numbers: &str) -> PyResult<Bound<'py, PyAny>> {
        self.convert(py, Frame::Pandas, numbers)
    }

    #[doc = doc!(Query.to_polars)]
    #[pyo3(signature = (numbers="decimal"))]
    fn to_polars<'py>(&self, py: Python<'py>, numbers: &str) -> PyResult<Bound<'py, PyAny>> {
        self.convert(py, Frame::Polars, numbers)
    }

    #[doc = doc!(Query.to_arrow)]
    #[pyo3(signature = (numbers="decimal"))]
    fn to_arrow<'py>(&self, py: Python<'py>, numbers: &str) -> PyResult<Bound<'py, PyAny>> {
        self.convert(py, Frame::Arrow, numbers)
    }

    #[doc = doc!(Query.to_dicts)]
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.collect(py)?.to_dicts(py)
    }

    #[doc = doc!(Query.explain)]
    fn explain(&self, py: Python<'_>) -> PyResult<Plan> {
        let plan = bridge::wait(py, self.inner.clone().explain())?;
        plan.map(|inner| Plan { inner }).map_err(|error| errors::raise_at(py, &error, start(&self.inner)))
    }

    #[doc = doc!(Query.explain_async)]
    fn explain_async(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let cursor = start(&self.inner);
        bridge::coroutine(py, self.inner.clone().explain(), |py, plan| {
            let inner = plan.map_err(|error| errors::raise_at(py, &error, cursor))?;
            Py::new(py, Plan { inner }).map(Py::into_any)
        })
    }

    #[doc = doc!(Query.partitions)]
    fn partitions<'py>(slf: &Bound<'py, Self>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let most = count("n", Some(n))?;
        let parts = bridge::wait(py, slf.get().inner.clone().partitions(most as u64))?;
        let parts = parts.map_err(|error| errors::raise_at(py, &error, start(&slf.get().inner)))?;
        let (client, count) = (slf.get().client.bind(py), parts.len());
        let class = PyModule::import(py, "chainframe.partitions")?.getattr("Partition")?;
        let made =
            parts.into_iter().enumerate().map(|(number, part)| class.call1((Self::of(client, part), number, count)));
        PyList::new(py, made.collect::<PyResult<Vec<_>>>()?)
    }

    #[doc = doc!(Query.to_parquet)]
    #[pyo3(signature = (
        directory, *, resume=true, overwrite=false, since=None, numbers="decimal", rows_per_part=None,
    ), text_signature = "($self, directory, *, resume=True, overwrite=False, since=None, numbers='decimal', \
        rows_per_part=65_536)")]
    fn to_parquet<'py>(
        slf: &Bound<'py, Self>,
        directory: &Bound<'py, PyAny>,
        resume: bool,
        overwrite: bool,
        since: Option<&Bound<'py, PyAny>>,
        numbers: &str,
        rows_per_part: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        exported(slf, "to_parquet", directory, (resume, overwrite, since, numbers, rows_per_part))
    }

    #[doc = doc!(Query.to_parquet_async)]
    #[pyo3(signature = (
        directory, *, resume=true, overwrite=false, since=None, numbers="decimal", rows_per_part=None,
    ), text_signature = "($self, directory, *, resume=True, overwrite=False, since=None, numbers='decimal', \
        rows_per_part=65_536)")]
    fn to_parquet_async<'py>(
        slf: &Bound<'py, Self>,
        directory: &Bound<'py, PyAny>,
        resume: bool,
        overwrite: bool,
        since: Option<&Bound<'py, PyAny>>,
        numbers: &str,
        rows_per_part: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        exported(slf, "to_parquet_async", directory, (resume, overwrite, since, numbers, rows_per_part))
    }

    /// What the query asks for, as JSON, for the manifest of an export.
    fn _stated(&self, py: Python<'_>) -> PyResult<String> {
        self.inner.stated().map(|stated| stated.to_string()).map_err(|error| errors::raise(py, &error))
    }

    fn _newest_first(&self) -> bool {
        self.inner.is_newest_first()
    }

    /// Says of a result what the end of a run says of its own.
    fn _settle(&self, py: Python<'_>, report: &Report) -> PyResult<()> {
        let partial = (!report.inner.complete).then(|| self.partial());
        errors::incomplete(py, self.inner.client().settings().strict, report.clone(), partial)
    }

    #[doc = doc!(Query.report)]
    #[getter]
    fn report(&self) -> Report {
        let inner = lock(&self.last).report.as_ref().map(SharedReport::read).unwrap_or_default();
        Report { inner }
    }

    #[doc = doc!(Query.partial)]
    #[getter]
    fn partial(&self) -> Records {
        let partial = lock(&self.last).partial.clone();
        let nothing = || query::Records::new(self.inner.endpoint().record(), Vec::new());
        Records::new(partial.map_or_else(nothing, |partial| partial.read()), self.report().inner)
    }

    #[doc = doc!(Query.cursor)]
    #[getter]
    fn cursor(&self) -> String {
        let cursor = lock(&self.last).cursor();
        cursor.unwrap_or_else(|| start(&self.inner))
    }

    #[doc = doc!(Query.last_error)]
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
        let (pages, bar) = slf.get().run(slf.py())?;
        let reader = QueryReader::growing(slf.py(), slf.clone().unbind(), pages, bar)?;
        export::stream_capsule(slf.py(), Box::new(reader))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        // DuckDB asks for the schema in the main thread, and for the stream perhaps in another.
        bridge::Interrupts::watch(py)?;
        let numbers = crate::columns::Numbers::Decimal;
        export::schema_capsule(py, &crate::columns::schema(self.inner.endpoint().record(), numbers))
    }

    /// Queries are equal when they ask the same of equal clients.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let other = other.get();
        let same =
            std::ptr::eq(self.inner.endpoint(), other.inner.endpoint()) && self.inner.given() == other.inner.given();
        let same = same && self.inner.start() == other.inner.start();
        Ok(same && self.client.bind(py).eq(other.client.bind(py))?)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.inner.endpoint().name, self.inner.given()).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let sent: Vec<String> = self.inner.describe().iter().map(|(name, value)| format!(", {name}={value}")).collect();
        format!("<Query {} of {}{}>", self.inner.endpoint().name, self.inner.chain(), sent.concat())
    }

    fn _repr_html_(&self) -> String {
        let (endpoint, last) = (self.inner.endpoint(), lock(&self.last));
        let mut sent = self.inner.describe();
        sent.push(("chain", self.inner.chain().to_owned()));
        let columns: Vec<&str> = endpoint.record().fields.iter().map(|field| field.name).collect();
        let gives = format!("<p>Gives {} with {}.</p>", endpoint.record().name, columns.join(", "));
        let state = match &last.report {
            Some(report) => html::summary(&report.read()),
            None => "<p class=\"dim\">Nothing was sent yet.</p>".into(),
        };
        let about = format!("{} of {}", endpoint.name, self.inner.chain());
        html::form("Query", &about, &[html::pairs(&sent), gives, state])
    }

    /// A query does not change, so it is its own copy.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        if let Some(start) = self.inner.start() {
            let resume = py.import("chainframe._native")?.getattr("_resume_query")?;
            return Ok((resume, (self.client.bind(py), start.text()).into_pyobject(py)?));
        }
        let given = serde_json::to_string(self.inner.given());
        let given = given.map_err(|error| PyTypeError::new_err(error.to_string()))?;
        let restore = py.import("chainframe._native")?.getattr("_restore_query")?;
        Ok((restore, (self.client.bind(py), self.inner.endpoint().name, given).into_pyobject(py)?))
    }
}

type ExportOptions<'a, 'py> = (bool, bool, Option<&'a Bound<'py, PyAny>>, &'a str, Option<&'a Bound<'py, PyAny>>);

fn exported<'py>(
    query: &Bound<'py, Query>,
    how: &str,
    directory: &Bound<'py, PyAny>,
    (resume, overwrite, since, numbers, rows_per_part): ExportOptions<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = query.py();
    export::numbers(py, numbers)?;
    let options = PyDict::new(py);
    options.set_item("resume", resume)?;
    options.set_item("overwrite", overwrite)?;
    options.set_item("since", since)?;
    options.set_item("numbers", numbers)?;
    options.set_item("rows_per_part", count("rows_per_part", rows_per_part)?)?;
    let client = query.get().client.bind(py);
    PyModule::import(py, "chainframe.exports")?.getattr(how)?.call((query, client, directory), Some(&options))
}

#[pyfunction]
pub fn _restore_query(client: &Bound<'_, Client>, call: &str, given: &str) -> PyResult<Query> {
    let (args, options) = serde_json::from_str(given).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    Query::new(client, call, args, options)
}

#[pyfunction]
pub fn _resume_query(client: &Bound<'_, Client>, cursor: &str) -> PyResult<Query> {
    Query::resume(client, cursor)
}
