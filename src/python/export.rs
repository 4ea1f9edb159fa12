//! Arrow's C interface: results as a stream and its schema, taken by any Arrow library without a copy.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBool, PyCapsule};
use tokio::sync::Mutex;

use super::bridge::Interrupts;
use super::errors;
use super::progress::Bar;
use super::query::Query;
use crate::client::Error;
use crate::columns::{Columns, Layout, Numbers, batch, schema, schema_in};
use crate::interface::{RecordType, record};
use crate::query::{Batch, Batches, Pages, Partial, Records, SharedReport};

/// Rows of the largest batch of a stream that is read while it is asked for.
const MOST_ROWS: usize = 65_536;

pub fn numbers(py: Python<'_>, text: &str) -> PyResult<Numbers> {
    match text {
        "decimal" => Ok(Numbers::Decimal),
        "float" => Ok(Numbers::Float),
        "string" => Ok(Numbers::Text),
        other => Err(errors::parameter(py, "numbers", &format!("{other:?} is none of decimal, float, string"))),
    }
}

/// The schema of a result of which only some columns are wanted; of the others, nothing is looked at.
pub fn wanted(record: &RecordType, numbers: Numbers, columns: Option<Vec<String>>) -> PyResult<SchemaRef> {
    let all = schema(record, numbers);
    let Some(names) = columns else { return Ok(all) };
    let indices = names.iter().map(|name| all.index_of(name)).collect::<Result<Vec<_>, _>>();
    let some = indices.and_then(|indices| all.project(&indices));
    some.map(Arc::new).map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// A result under a policy of numbers, on its way to one Arrow library, which takes it once: nothing is held here that
/// it has no use for.
#[pyclass(frozen)]
pub struct Table {
    schema: SchemaRef,
    batches: std::sync::Mutex<Vec<RecordBatch>>,
}

/// A data frame's library.
#[derive(Clone, Copy, PartialEq)]
pub enum Frame {
    Pandas,
    Polars,
    Arrow,
}

impl Frame {
    const fn name(self) -> &'static str {
        match self {
            Self::Pandas => "to_pandas",
            Self::Polars => "to_polars",
            Self::Arrow => "to_arrow",
        }
    }

    /// As the library keeps its texts.
    pub const fn layout(self) -> Layout {
        match self {
            Self::Polars => Layout::Views,
            Self::Pandas | Self::Arrow => Layout::Offsets,
        }
    }

    /// Sees to it that the library is there, before anything is fetched for it.
    pub fn load(self, py: Python<'_>) -> PyResult<()> {
        PyModule::import(py, "chainframe.frames")?.call_method1("require", (self.name(),)).map(drop)
    }
}

impl Table {
    /// Converts at once, so that a number that does not fit is our error and not the consumer's.
    pub fn new(records: &Records, numbers: Numbers, layout: Layout) -> Result<Self, Error> {
        Self::with(schema_in(records.record(), numbers, layout), records, numbers)
    }

    pub fn with(schema: SchemaRef, records: &Records, numbers: Numbers) -> Result<Self, Error> {
        let mut row = 0;
        let mut batches = Vec::with_capacity(records.chunks().len());
        for chunk in records.chunks() {
            let converted = self::batch(chunk, &schema, numbers, row);
            batches.push(converted.map_err(|overflow| Error::Overflow(Box::new(overflow)))?);
            row += chunk.rows();
        }
        Ok(Self::of(schema, batches))
    }

    fn of(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches: std::sync::Mutex::new(batches) }
    }

    pub fn into_frame(self, py: Python<'_>, frame: Frame) -> PyResult<Bound<'_, PyAny>> {
        PyModule::import(py, "chainframe.frames")?.call_method1(frame.name(), (self,))
    }
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    pub fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer pass over what was requested; the consumer then casts.
        let _ = requested_schema;
        let batches = std::mem::take(&mut *self.batches.lock().unwrap_or_else(PoisonError::into_inner));
        stream_capsule(py, Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), self.schema.clone())))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }
}

pub fn stream_capsule(py: Python<'_>, reader: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

pub fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema =
        FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

// The schema of a result, for Arrow libraries and for people.
#[doc = doc!(Schema)]
#[pyclass(frozen, module = "chainframe")]
pub struct Schema {
    record: &'static RecordType,
}

impl Schema {
    pub fn new(record: &'static RecordType) -> Self {
        Self { record }
    }

    fn schema(&self) -> SchemaRef {
        schema(self.record, Numbers::Decimal)
    }
}

#[pymethods]
impl Schema {
    #[getter]
    fn names(&self) -> Vec<&'static str> {
        self.record.fields.iter().map(|field| field.name).collect()
    }

    fn __len__(&self) -> usize {
        self.record.fields.len()
    }

    /// Two record types may have the same columns.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Py<PyAny> {
        let Ok(other) = other.cast::<Self>() else { return py.NotImplemented() };
        let same = self.schema() == other.get().schema();
        PyBool::new(py, same).to_owned().into_any().unbind()
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.names().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let schema = self.schema();
        let fields = schema.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type()));
        format!("Schema({})", fields.collect::<Vec<_>>().join(", "))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        let restore = py.import("chainframe._native")?.getattr("_restore_schema")?;
        Ok((restore, (self.record.name,)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema())
    }
}

#[pyfunction]
pub fn _restore_schema(name: &str) -> PyResult<Schema> {
    let record = record(name).ok_or_else(|| PyTypeError::new_err(format!("no record type {name:?}")))?;
    Ok(Schema::new(record))
}

/// A query that is read while an Arrow library asks for more.
pub struct QueryReader {
    query: Py<Query>,
    pages: Arc<Mutex<(Pages, Batches)>>,
    report: SharedReport,
    partial: Partial,
    schema: SchemaRef,
    numbers: Numbers,
    /// Rows that a batch may grow to.
    most: usize,
    /// Of a batch that is too large for one, what was not given yet.
    chunks: VecDeque<Columns>,
    row: usize,
    ended: bool,
    bar: Bar,
    interrupts: Interrupts,
}

impl QueryReader {
    /// Batches start with one page and grow, so that a consumer that wants five rows costs one request.
    pub fn growing(py: Python<'_>, query: Py<Query>, pages: Pages, bar: Bar) -> PyResult<Self> {
        let schema = schema(pages.query().endpoint().record(), Numbers::Decimal);
        Self::new(py, query, pages, bar, (1, MOST_ROWS), (schema, Numbers::Decimal))
    }

    pub fn of_batches(
        py: Python<'_>,
        query: Py<Query>,
        pages: Pages,
        bar: Bar,
        rows: usize,
        form: (SchemaRef, Numbers),
    ) -> PyResult<Self> {
        Self::new(py, query, pages, bar, (rows, rows), form)
    }

    fn new(
        py: Python<'_>,
        query: Py<Query>,
        pages: Pages,
        bar: Bar,
        (first, most): (usize, usize),
        (schema, numbers): (SchemaRef, Numbers),
    ) -> PyResult<Self> {
        let record = pages.query().endpoint().record();
        let (report, partial) = (pages.report().clone(), pages.partial().clone());
        let pages = Arc::new(Mutex::new((pages, Batches::new(record, first))));
        let chunks = VecDeque::new();
        let interrupts = Interrupts::watch(py)?;
        Ok(Self { query, pages, report, partial, schema, numbers, most, chunks, row: 0, ended: false, bar, interrupts })
    }

    /// The next batch. The query keeps an error as it is, whatever its consumer makes of it.
    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        if self.ended {
            return Ok(None);
        }
        let read = self.read(py);
        self.ended = !matches!(read, Ok(Some(_)));
        if self.ended {
            self.bar = Bar::none();
        }
        read.inspect_err(|error| self.query.get().set_last_error(py, error.clone_ref(py)))
    }

    fn read(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        if self.chunks.is_empty() {
            let Some(batch) = self.fetch(py)? else {
                self.query.get().ended(py, &self.report, &self.partial)?;
                return Ok(None);
            };
            self.query.get().handed_over(batch.place);
            self.chunks = batch.records.chunks().iter().cloned().collect();
        }
        let Some(chunk) = self.chunks.pop_front() else { return Ok(None) };
        let first_row = self.row;
        self.row += chunk.rows();
        let converted = self::batch(&chunk, &self.schema, self.numbers, first_row);
        converted.map(Some).map_err(|overflow| errors::raise(py, &Error::Overflow(Box::new(overflow))))
    }

    /// The records of the next batch; none at the end.
    fn fetch(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let (shared, most) = (self.pages.clone(), self.most);
        let records = self.interrupts.wait(py, async move {
            let (pages, batches) = &mut *shared.lock().await;
            loop {
                if let Some(batch) = batches.full() {
                    batches.resize((batch.records.len() * 2).min(most));
                    return Ok(Some(batch));
                }
                match pages.next().await? {
                    Some(page) => batches.push(page),
                    None => return Ok::<_, Error>(batches.rest()),
                }
            }
        })?;
        records.map_err(|error| self.query.get().failed(py, &error))
    }
}

impl Iterator for QueryReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Consumers may call without the interpreter, and from threads of their own.
        // All that they hand on of an error is its text; an interrupt has none but its name.
        let text = |py: Python<'_>, error: PyErr| match error.value(py).to_string() {
            text if text.is_empty() => error.get_type(py).name().map_or(text, |name| name.to_string()),
            text => text,
        };
        let read = Python::try_attach(|py| self.next_batch(py).map_err(|error| text(py, error)))?;
        read.map_err(|text| ArrowError::ExternalError(text.into())).transpose()
    }
}

impl RecordBatchReader for QueryReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The batches of a query, one table each, in a Python loop: errors are raised as they are.
#[pyclass(frozen)]
pub struct Tables {
    reader: std::sync::Mutex<QueryReader>,
    schema: SchemaRef,
}

impl Tables {
    pub fn new(reader: QueryReader) -> Self {
        Self { schema: reader.schema.clone(), reader: std::sync::Mutex::new(reader) }
    }
}

#[pymethods]
impl Tables {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let mut reader = self.reader.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let batch = reader.next_batch(py)?;
        Ok(batch.map(|batch| Table::of(self.schema.clone(), vec![batch])))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }
}
