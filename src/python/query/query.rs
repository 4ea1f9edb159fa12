//! `Query`: a call that was checked and not sent, and the two ways to every result: waiting and awaiting.

use std::future::Future;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyModule, PyType};

use super::last_run::{BegunRun, LastRun};
use super::progress::{Bar, Delivery, ProgressMode};
use super::reader::{BatchIterator, Guarded, QueryReader};
use super::run_source::StreamItem;
use super::stream::Stream;
use crate::client::Error;
use crate::columns::{DecimalPolicy, Projection, schema};
use crate::display::html;
use crate::interface::RecordType;
use crate::python::base::arguments::{self, ColumnNames};
use crate::python::base::asyncio::{Coroutine, coroutine};
use crate::python::base::block_on::{SignalWatcher, block_on};
use crate::python::base::errors;
use crate::python::base::generic;
use crate::python::base::hash_of;
use crate::python::base::pickle::{Reduced, reduced};
use crate::python::results::arrow::{self, Frame};
use crate::python::results::estimate::Estimate;
use crate::python::results::frames::ToFrame as _;
use crate::python::results::records::Records;
use crate::python::results::report::Report;
use crate::query::{self, QueryStart, Run};

#[doc = doc!(Query)]
#[pyclass(frozen, weakref, module = "chainframe")]
pub struct Query {
    pub(in crate::python) start: QueryStart,
    pub(super) client: Py<PyAny>,
    progress: ProgressMode,
    pub(super) last: Arc<LastRun>,
}

/// Default number of rows of a batch.
const ROWS: usize = 32_768;

impl Query {
    pub fn new(client: &Bound<'_, PyAny>, progress: ProgressMode, start: QueryStart) -> Self {
        Self { start, client: client.clone().unbind(), progress, last: Arc::default() }
    }

    /// Another query of the same client.
    pub(super) fn of_run(&self, py: Python<'_>, start: QueryStart) -> Self {
        Self::new(self.client.bind(py), self.progress, start)
    }

    /// Waits for what requests of the query return. Their error has the cursor of the query.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        py: Python<'_>,
        requests: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> PyResult<T> {
        let result = block_on(py, self.start.query().client(), requests)?;
        result.map_err(|error| errors::raise_at(py, &error, self.start.cursor()))
    }

    /// A run that hands its records on, and its bar.
    pub(super) fn stream_pages(&self, py: Python<'_>) -> PyResult<(Run, BegunRun, Bar)> {
        self.stream_run(py, &self.start, Delivery::AtOnce)
    }

    fn stream_run(&self, py: Python<'_>, start: &QueryStart, delivery: Delivery) -> PyResult<(Run, BegunRun, Bar)> {
        let (run, begun) = self.last.begin(py, start, Run::new(start).dividing())?;
        let bar = Bar::of(py, self.progress, delivery, &run)?;
        Ok((run, begun, bar))
    }

    /// A stream whose first batch has up to `first` rows.
    pub(super) fn growing_stream<'py>(
        &self,
        py: Python<'py>,
        start: &QueryStart,
        first: usize,
        schema: SchemaRef,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let (run, begun, bar) = self.stream_run(py, start, Delivery::Reader)?;
        let run = (run.returning_first_page_at_once(), begun);
        let reader = QueryReader::growing(py, run, bar, first, schema)?;
        arrow::stream_capsule(py, Box::new(Guarded::new(reader)))
    }

    pub(super) fn bar(&self, py: Python<'_>, run: &Run) -> PyResult<Bar> {
        Bar::of(py, self.progress, Delivery::AtOnce, run)
    }

    pub(super) fn record(&self) -> &'static RecordType {
        self.start.query().record()
    }

    /// The query as a pyarrow dataset of a class of `chainframe.datasets`.
    fn dataset_of<'py>(slf: &Bound<'py, Self>, module: &str, class: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        Frame::Arrow.load(py)?;
        PyModule::import(py, &*format!("chainframe.datasets.{module}"))?.getattr(class)?.call1((slf,))
    }

    /// Raises for a set, which `operation` cannot take.
    pub(super) fn reject_set(&self, operation: &str) -> PyResult<()> {
        Ok(self.start.query().reject_set(operation)?)
    }

    fn stream(slf: &Bound<'_, Self>, kind: StreamItem) -> PyResult<Stream> {
        Self::stream_of(slf, &slf.get().start, kind, (0, Projection::ALL))
    }

    fn stream_of(
        slf: &Bound<'_, Self>,
        start: &QueryStart,
        kind: StreamItem,
        form: (usize, Projection),
    ) -> PyResult<Stream> {
        let (run, begun, bar) = slf.get().stream_run(slf.py(), start, Delivery::Loop)?;
        // Who iterates over pages may stop after the first one.
        let run = if kind == StreamItem::Pages { run.returning_first_page_at_once() } else { run };
        Ok(Stream::new(slf.clone().into_any().unbind(), (run, begun), bar, kind, form))
    }
}

#[pymethods]
impl Query {
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, record: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        generic(class, record)
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __len__(&self) -> PyResult<usize> {
        Err(PyTypeError::new_err("a query has no length; use len(query.collect()), or query.estimate().records"))
    }

    fn __getitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let advice = "use query.first(), query.collect()[...], or query.to_pandas()[...] for columns";
        Err(PyTypeError::new_err(format!("a query has no records before it is run; {advice}")))
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        let is_column = slf.get().record().position(name).is_some();
        let of_column = format!("it is a column of the result: use query.collect()[\"{name}\"]");
        let advice = match name {
            "head" | "limit" | "take" | "show" => "pass max_items= to the call, or use query.first()",
            "tail" | "count" | "sample" | "describe" | "columns" | "shape" | "dtypes" | "groupby" | "sort_values"
            | "sort" | "plot" | "sum" | "mean" => "use query.collect(), query.to_pandas() or query.to_polars() first",
            "to_excel" | "to_sql" => "use query.to_pandas() first",
            "df" | "to_frame" | "to_df" | "pandas" => "use query.to_pandas()",
            "pl" | "polars" => "use query.to_polars()",
            "arrow" => "use query.to_arrow()",
            "json" | "data" | "results" | "items" => "use query.collect(), or query.to_dicts(json=True)",
            "fetch" | "fetchall" | "all" | "run" | "execute" | "get" => "use query.collect()",
            "page" | "paginate" | "get_pages" | "iter_pages" | "pages_async" => {
                "use query.pages() in a loop, with for or async for"
            }
            "next" => "use query.first(), or next(iter(query))",
            "csv" | "save" => "use query.to_csv(path)",
            "parquet" | "write_parquet" => "use query.to_parquet(path)",
            "status_code" | "ok" | "text" | "content" | "headers" => {
                "errors of the API are raised, and query.report has the counts of the run"
            }
            "to_dict" | "to_list" => "use query.to_dicts(), or list(query) for records",
            "to_duckdb" | "sql" => "duckdb.sql(\"select * from query\") reads a variable that holds the query",
            "cache" | "persist" => "use query.collect() once, or Client(cache=...)",
            "filter" | "select" | "where" | "query" => "use query.scan() or query.dataset()",
            _ if is_column => of_column.as_str(),
            _ => return Err(arguments::no_similar_attribute(slf, name, slf.get().record())),
        };
        Err(arguments::no_attribute(slf, name, advice))
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Stream> {
        Self::stream(slf, StreamItem::Records)
    }

    fn __aiter__(slf: &Bound<'_, Self>) -> PyResult<Stream> {
        Self::stream(slf, StreamItem::Records)
    }

    #[doc = doc!(Query.pages)]
    #[pyo3(signature = (**unknown), text_signature = "($self)")]
    fn pages(slf: &Bound<'_, Self>, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<Stream> {
        arguments::reject_in::<Self>(slf.py(), "pages", unknown)?;
        Self::stream(slf, StreamItem::Pages)
    }

    #[doc = doc!(Query.batches)]
    #[pyo3(
        signature = (batch_size=None, *, columns=None, **unknown),
        text_signature = "($self, batch_size=32_768, *, columns=None)"
    )]
    fn batches(
        slf: &Bound<'_, Self>,
        batch_size: Option<&Bound<'_, PyAny>>,
        columns: Option<ColumnNames>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Stream> {
        arguments::reject_in::<Self>(slf.py(), "batches", unknown)?;
        let query = slf.get();
        let batch_size = batch_size.map_or(Ok(ROWS), |given| arguments::count("batch_size", given))?;
        let Some(columns) = columns else {
            return Self::stream_of(slf, &query.start, StreamItem::Batches, (batch_size, Projection::ALL));
        };
        arrow::project(slf.py(), schema(query.record(), DecimalPolicy::Decimal), Some(&columns))?;
        let selection = Projection::of(query.record(), &columns.0);
        Self::stream_of(slf, &query.start.with_columns(&columns.0), StreamItem::Batches, (batch_size, selection))
    }

    #[doc = doc!(Query.to_arrow_batch_reader)]
    #[pyo3(
        signature = (batch_size=None, numbers=None, *, columns=None, **unknown),
        text_signature = "($self, batch_size=32_768, numbers=None, *, columns=None)"
    )]
    fn to_arrow_batch_reader<'py>(
        slf: &Bound<'py, Self>,
        batch_size: Option<&Bound<'py, PyAny>>,
        numbers: Option<DecimalPolicy>,
        columns: Option<ColumnNames>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        arguments::reject_in::<Self>(py, "to_arrow_batch_reader", unknown)?;
        let batch_size = batch_size.map_or(Ok(ROWS), |given| arguments::count("batch_size", given))?;
        let numbers = slf.get().numbers_or(numbers);
        let form = (arrow::project(py, schema(slf.get().record(), numbers), columns.as_ref())?, numbers);
        let start = columns.map_or_else(|| slf.get().start.clone(), |columns| slf.get().start.with_columns(&columns.0));
        let (run, begun, bar) = slf.get().stream_run(py, &start, Delivery::Reader)?;
        let batches = BatchIterator::new(QueryReader::of_batches(py, (run, begun), bar, batch_size, form)?);
        PyModule::import(py, "chainframe.frames")?.call_method1("reader", (batches,))
    }

    #[doc = doc!(Query.dataset)]
    fn dataset<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::dataset_of(slf, "dataset", "Dataset")
    }

    #[doc = doc!(Query.scan)]
    fn scan<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        Frame::Polars.load(py)?;
        let dataset = Self::dataset_of(slf, "shared", "SharedDataset")?;
        PyModule::import(py, "chainframe.datasets.lazy")?.call_method1("scan", (dataset,))
    }

    #[doc = doc!(Query.estimate)]
    fn estimate(&self, py: Python<'_>) -> PyResult<Estimate> {
        Ok(Estimate { inner: self.wait(py, self.start.clone().estimate())? })
    }

    #[doc = doc!(Query.estimate_async)]
    fn estimate_async(&self) -> Coroutine {
        let start = self.start.clone();
        coroutine("Query.estimate_async", start.query().client().clone(), move |_| {
            let cursor = start.cursor();
            Ok((start.estimate(), move |py: Python<'_>, estimate: Result<query::Estimate, Error>| {
                let inner = estimate.map_err(|error| errors::raise_at(py, &error, cursor))?;
                Py::new(py, Estimate { inner }).map(Py::into_any)
            }))
        })
    }

    #[doc = doc!(Query.partitions)]
    fn partitions<'py>(slf: &Bound<'py, Self>, num_partitions: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let num_partitions = arguments::count("num_partitions", num_partitions)?;
        let query = slf.get();
        let parts = query.wait(py, query.start.clone().partitions(num_partitions as u64))?;
        let count = parts.len();
        let class = PyModule::import(py, "chainframe.partitions")?.getattr("Partition")?;
        let partitions =
            parts.into_iter().enumerate().map(|(number, part)| class.call1((query.of_run(py, part), number, count)));
        PyList::new(py, partitions.collect::<PyResult<Vec<_>>>()?)
    }

    #[doc = doc!(Query.report)]
    #[getter]
    fn report(&self) -> Report {
        let inner = self.last.report().unwrap_or_default();
        Report { inner }
    }

    #[doc = doc!(Query.partial)]
    #[getter]
    pub(super) fn partial(&self) -> Records {
        let records = self.last.partial().unwrap_or_else(|| query::Records::new(self.record(), Vec::new()));
        Records::new(records, self.report().inner, self.numbers())
    }

    #[doc = doc!(Query.cursor)]
    #[getter]
    pub(super) fn cursor(&self) -> String {
        self.last.cursor().unwrap_or_else(|| self.start.cursor())
    }

    #[doc = doc!(Query.last_error)]
    #[getter]
    fn last_error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.last.error(py)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer pass over what was requested; the consumer then casts.
        let _ = requested_schema;
        let query = slf.get();
        let schema = schema(query.record(), DecimalPolicy::Decimal);
        query.growing_stream(slf.py(), &query.start, 1, schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        // DuckDB gets the schema in the main thread, and the stream perhaps in another.
        SignalWatcher::prepare(py)?;
        arrow::schema_capsule(py, &schema(self.record(), DecimalPolicy::Decimal))
    }

    /// Queries are equal when they ask the same of equal clients.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let other = other.get();
        let query = self.start.query();
        let other_query = other.start.query();
        let same = std::ptr::eq(query.endpoint(), other_query.endpoint())
            && query.args() == other_query.args()
            && query.options() == other_query.options()
            && self.start.resumed_from() == other.start.resumed_from();
        Ok(same && self.client.bind(py).eq(other.client.bind(py))?)
    }

    fn __hash__(&self) -> u64 {
        let query = self.start.query();
        hash_of((query.endpoint().name, query.args(), query.options()))
    }

    fn __repr__(&self) -> String {
        let sent: Vec<String> =
            self.start.query().display_args().iter().map(|(name, value)| format!(", {name}={value}")).collect();
        let query = self.start.query();
        let sent = sent.concat();
        errors::printable(&format!("<Query {} of {}{sent}>", query.endpoint().name, query.chain()))
    }

    fn _repr_html_(&self) -> String {
        let endpoint = self.start.query().endpoint();
        let mut sent = self.start.query().display_args();
        sent.push(("chain", self.start.query().chain().to_owned()));
        let columns: Vec<&str> = self.record().fields.iter().map(|field| field.name).collect();
        let returns =
            format!("<p>Returns {} records with the columns {}.</p>", endpoint.record().name, columns.join(", "));
        let state = match self.last.report() {
            Some(report) => html::summary(&report),
            None => "<p class=\"dim\">Nothing was sent yet.</p>".into(),
        };
        let about = format!("{} of {}", endpoint.name, self.start.query().chain());
        html::form("Query", &about, &[html::pairs(&sent), returns, state])
    }

    /// The last error has a traceback, whose frames may have this query.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        self.last.traverse(&visit)
    }

    fn __clear__(&self) {
        self.last.clear();
    }

    /// A query does not change, so it is its own copy.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        if let Some(start) = self.start.resumed_from() {
            return reduced(py, "_resume_query", (self.client.bind(py), start.to_whole_json()));
        }
        let given = serde_json::to_string(&(self.start.query().args(), self.start.query().options()));
        let given = given.map_err(|error| PyTypeError::new_err(error.to_string()))?;
        reduced(py, "_restore_query", (self.client.bind(py), self.start.query().endpoint().name, given))
    }
}
