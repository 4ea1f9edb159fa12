//! Arrow's C interface: results as a stream and its schema, taken by any Arrow library without a copy.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule};

use super::report::Report;
use crate::client::Error;
use crate::columns::{DecimalPolicy, Projection, StringLayout, batch, schema, schema_in};
use crate::interface::{RecordType, record};
use crate::message::quoted;
use crate::process;
use crate::python::base::arguments::{self, ColumnNames, Readable};
use crate::python::base::hash_of;
use crate::python::base::pickle::{Reduced, reduced};
use crate::query::Records;

impl<'py> FromPyObject<'_, 'py> for DecimalPolicy {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        arguments::one_of("numbers", &given, &Self::NAMES)
    }
}

/// As a setting of a client.
impl Readable for DecimalPolicy {
    const EXPECTED: &'static str = "must be \"decimal\", \"float\", \"string\" or None";

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        given.extract()
    }
}

/// Dtypes of a pandas frame other than the default ones.
#[derive(Clone, Copy)]
pub struct DtypeBackend(&'static str);

impl<'py> FromPyObject<'_, 'py> for DtypeBackend {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let backends = ["numpy_nullable", "pyarrow"].map(|name| (name, Self(name)));
        arguments::one_of("dtype_backend", &given, &backends)
    }
}

/// Projects a schema on some of its columns, in the order given; all of them where `columns` is `None`.
pub fn project(py: Python<'_>, schema: SchemaRef, columns: Option<&ColumnNames>) -> PyResult<SchemaRef> {
    let Some(ColumnNames(names)) = columns else { return Ok(schema) };
    let mut indices = Vec::with_capacity(names.len());
    for name in names {
        let Ok(index) = schema.index_of(name) else {
            let known: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let names = known.join(", ");
            let advice = arguments::similar(py, name, &known)?;
            return Err(
                Error::parameter("columns", format!("must be among {names}; got {}{advice}", quoted(name))).into()
            );
        };
        if indices.contains(&index) {
            return Err(Error::parameter("columns", format!("must be distinct; got {name:?} twice")).into());
        }
        indices.push(index);
    }
    schema.project(&indices).map(Arc::new).map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// The columns of a schema that were selected, in its order.
pub fn select(schema: &SchemaRef, selection: Projection) -> SchemaRef {
    let columns: Vec<_> = (0..schema.fields().len()).filter(|column| selection.contains(*column)).collect();
    schema.project(&columns).map_or_else(|_| schema.clone(), Arc::new)
}

/// The library that a conversion is for, and its arguments.
pub struct FrameOptions {
    pub frame: Frame,
    pub numbers: DecimalPolicy,
    pub columns: Option<ColumnNames>,
    pub dtype_backend: Option<DtypeBackend>,
}

/// Conversion of a result to the table or frame of one library.
pub struct Conversion {
    frame: Frame,
    schema: SchemaRef,
    numbers: DecimalPolicy,
    dtype_backend: Option<DtypeBackend>,
}

impl Conversion {
    /// Checks the arguments of a conversion, before anything is fetched for it.
    pub fn new(py: Python<'_>, record: &RecordType, selection: Projection, options: &FrameOptions) -> PyResult<Self> {
        let &FrameOptions { frame, numbers, ref columns, dtype_backend } = options;
        let schema = project(py, select(&schema_in(record, numbers, frame.layout()), selection), columns.as_ref())?;
        Ok(Self { frame, schema, numbers, dtype_backend })
    }

    pub fn table(&self, records: &Records) -> Result<Table, Error> {
        Table::new(self.schema.clone(), records, self.numbers)
    }

    pub fn finish<'py>(&self, py: Python<'py>, table: Table, report: Report) -> PyResult<Bound<'py, PyAny>> {
        self.frame.convert(py, table, self.dtype_backend, report)
    }
}

/// A result under a policy of numbers, on its way to one Arrow library, which takes it once: nothing is held here that
/// it has no use for.
#[pyclass(frozen)]
pub struct Table {
    schema: SchemaRef,
    batches: Mutex<Vec<RecordBatch>>,
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
    pub const fn layout(self) -> StringLayout {
        match self {
            Self::Polars => StringLayout::Utf8View,
            Self::Pandas | Self::Arrow => StringLayout::Utf8,
        }
    }

    /// Converts a table to the library's own. `dtype_backend` is that of pandas, whose frames have the report as well.
    pub fn convert<'py>(
        self,
        py: Python<'py>,
        table: Table,
        dtype_backend: Option<DtypeBackend>,
        report: Report,
    ) -> PyResult<Bound<'py, PyAny>> {
        let frames = PyModule::import(py, "chainframe.frames")?;
        match self {
            Self::Pandas => {
                let dtype_backend = dtype_backend.map(|backend| backend.0);
                frames.call_method1(self.name(), (table, dtype_backend, report))
            }
            Self::Polars | Self::Arrow => frames.call_method1(self.name(), (table,)),
        }
    }

    /// Sees to it that the library is there, before anything is fetched for it.
    pub fn load(self, py: Python<'_>) -> PyResult<()> {
        PyModule::import(py, "chainframe.frames")?.call_method1("require", (self.name(),)).map(drop)
    }
}

impl Table {
    /// Converts at once, so that a number that does not fit is our error and not the consumer's.
    pub fn new(schema: SchemaRef, records: &Records, numbers: DecimalPolicy) -> Result<Self, Error> {
        let mut row = 0;
        let mut batches = Vec::with_capacity(records.chunks().len());
        for chunk in records.chunks() {
            let converted = self::batch(chunk, &schema, numbers, row);
            batches.push(converted.map_err(|overflow| Error::Overflow(Box::new(overflow)))?);
            row += chunk.rows();
        }
        Ok(Self::of(schema, batches))
    }

    /// Returns the rows with the columns of a schema.
    pub fn project(self, schema: SchemaRef) -> PyResult<Self> {
        let batches = self.batches.into_inner().unwrap_or_else(PoisonError::into_inner);
        let indices: Result<Vec<_>, _> =
            schema.fields().iter().map(|field| self.schema.index_of(field.name())).collect();
        let projected: Result<_, _> =
            indices.and_then(|indices| batches.iter().map(|batch| batch.project(&indices)).collect());
        Ok(Self::of(schema, projected.map_err(|error| PyTypeError::new_err(error.to_string()))?))
    }

    pub fn of(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches: Mutex::new(batches) }
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
        let batches = std::mem::take(&mut *process::lock(&self.batches));
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
    selection: Projection,
}

impl Schema {
    pub fn new(record: &'static RecordType, selection: Projection) -> Self {
        Self { record, selection }
    }

    fn schema(&self) -> SchemaRef {
        select(&schema(self.record, DecimalPolicy::Decimal), self.selection)
    }
}

#[pymethods]
impl Schema {
    #[doc = doc!(Schema.names)]
    #[getter]
    fn names(&self) -> Vec<&'static str> {
        let fields = self.record.fields.iter().enumerate().filter(|(column, _)| self.selection.contains(*column));
        fields.map(|(_, field)| field.name).collect()
    }

    fn __len__(&self) -> usize {
        self.names().len()
    }

    /// Two record types may have the same columns.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Py<PyAny> {
        let Ok(other) = other.cast::<Self>() else { return py.NotImplemented() };
        let same = self.schema() == other.get().schema();
        PyBool::new(py, same).to_owned().into_any().unbind()
    }

    fn __hash__(&self) -> u64 {
        hash_of(self.names())
    }

    fn __repr__(&self) -> String {
        let schema = self.schema();
        let fields = schema.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type()));
        format!("Schema({})", fields.collect::<Vec<_>>().join(", "))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "_restore_schema", (self.record.name, self.names()))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema())
    }
}

#[pyfunction]
pub fn _restore_schema(name: &str, columns: Vec<String>) -> PyResult<Schema> {
    let record = record(name).ok_or_else(|| PyTypeError::new_err(format!("no record type {name:?}")))?;
    Ok(Schema::new(record, Projection::of(record, &columns)))
}
