//! `Records`: a result as a sequence of records, held as columns.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyKeyError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PySlice, PyString, PyType};

use super::arrow::{self, Schema, Table};
use super::record::Record;
use super::record_classes;
use super::record_iterator::RecordIterator;
use super::report::Report;
use crate::client::Error;
use crate::columns::{Columns, ColumnsBuilder, DecimalPolicy, Projection};
use crate::interface::{self, QUERIED};
use crate::message::counted;
use crate::python::base::arguments;
use crate::python::base::asyncio::{AsyncStep, Coroutine};
use crate::python::base::convert;
use crate::python::base::pickle::{Reduced, reduced};
use crate::query;

#[doc = doc!(Records)]
#[pyclass(frozen, sequence, weakref, module = "chainframe")]
#[derive(Clone)]
pub struct Records {
    pub inner: query::Records,
    /// Shared with the views of rows.
    pub(super) chunks: Vec<Arc<Columns>>,
    /// Columns that the records have.
    selection: Projection,
    pub report: Report,
    /// Position of a follower after these records.
    pub(super) cursor: Option<String>,
    /// The client's type of amounts.
    pub(super) numbers: Option<DecimalPolicy>,
}

impl Records {
    pub fn new(inner: query::Records, report: query::Report, numbers: Option<DecimalPolicy>) -> Self {
        let chunks = inner.chunks().iter().cloned().map(Arc::new).collect();
        Self { inner, chunks, selection: Projection::ALL, report: Report { inner: report }, cursor: None, numbers }
    }

    /// Returns the records as a batch of a follower.
    pub fn with_cursor(self, cursor: String) -> Self {
        Self { cursor: Some(cursor), ..self }
    }

    /// Returns the records with the selected columns only.
    pub fn select(self, selection: Projection) -> Self {
        if selection == Projection::ALL {
            return self;
        }
        let chunks = self.inner.chunks().iter().map(|chunk| chunk.select(selection)).collect();
        let selected = query::Records::new(self.inner.record(), chunks);
        Self { selection, ..Self::new(selected, self.report.inner, self.numbers) }
    }

    /// Other rows of the same run, with the same columns.
    pub fn with_rows(&self, rows: query::Records) -> Self {
        Self { selection: self.selection, ..Self::new(rows, self.report.inner.clone(), self.numbers) }
    }

    pub fn selection(&self) -> Projection {
        self.selection
    }

    /// Fields of the records, with their columns.
    pub(super) fn fields(&self) -> impl Iterator<Item = (usize, &'static interface::Field)> {
        let fields = self.inner.record().fields.iter().enumerate();
        fields.filter(|(column, _)| self.selection.contains(*column))
    }

    fn view<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyAny>> {
        let (chunk, row) = self.inner.chunk_of(row);
        let chunk = self.chunks.get(chunk).ok_or_else(|| self.out_of_range(row))?;
        record_classes::view(py, chunk.clone(), row)
    }

    fn out_of_range(&self, index: impl std::fmt::Display) -> PyErr {
        let records = counted(self.inner.len() as u64, "record");
        PyIndexError::new_err(format!("record index out of range: {index} of {records}"))
    }

    /// Values of a column.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let record = self.inner.record();
        let Some((column, _)) = self.fields().find(|(_, field)| field.name == name) else {
            let names: Vec<_> = self.fields().map(|(_, field)| field.name).collect();
            // Python prints the repr of the message: quotes of one kind need no escapes in it.
            let similar = arguments::similar(py, name, &names)?;
            let names = names.join(", ");
            return Err(PyKeyError::new_err(format!(
                "{} has no column '{name}'; it has {names}{similar}",
                record.name
            )));
        };
        self.values(py, column)
    }

    fn values<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyList>> {
        let values = PyList::empty(py);
        for chunk in &self.chunks {
            for row in 0..chunk.rows() {
                values.append(convert::cell(py, chunk, column, row)?)?;
            }
        }
        Ok(values)
    }

    /// Rows that equal a record, lazily.
    fn rows_equal_to<'a>(&'a self, record: &'a Bound<'_, PyAny>) -> impl Iterator<Item = usize> + 'a {
        let wanted = record.cast::<Record>().ok();
        let rows = self.inner.chunks().iter().flat_map(|chunk| (0..chunk.rows()).map(move |row| (chunk, row)));
        let equal = rows
            .enumerate()
            .filter(move |(_, (chunk, row))| wanted.as_ref().is_some_and(|wanted| wanted.get().is_row(chunk, *row)));
        equal.map(|(index, _)| index)
    }
}

#[pymethods]
impl Records {
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, record: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        crate::python::base::generic(class, record)
    }

    #[doc = doc!(Records.from_records)]
    #[classmethod]
    fn from_records(class: &Bound<'_, PyType>, records: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = class.py();
        let mut selected = Vec::new();
        for record in records.try_iter().map_err(|_| rejected("must be an iterable of records"))? {
            let record = record?.cast_into::<Record>().map_err(|other| {
                let class = other.into_inner().get_type();
                rejected(&format!("must be records; got {class}; chainframe.testing.make_records takes dictionaries"))
            })?;
            selected.push(record);
        }
        let Some(first) = selected.first().map(|record| record.get().class()) else {
            return Err(rejected("must not be empty; chainframe.testing.make_records(call, []) makes an empty result"));
        };
        let mut rows = ColumnsBuilder::new(first, selected.len());
        for record in &selected {
            let other = record.get().class();
            if other.name != first.name {
                return Err(rejected(&format!("must be of one class; got {} and {}", first.name, other.name)));
            }
            record.get().append_to(py, &mut rows)?;
        }
        let reason = "The records were selected by the caller; they may be a part of a result";
        let report = query::Report {
            records: selected.len() as u64,
            reasons: vec![reason.into()].into(),
            ..query::Report::default()
        };
        Ok(Self::new(query::Records::new(first, vec![rows.finish()]), report, None))
    }

    /// Called for a name that is no attribute, such as a method of a frame.
    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        let is_column = slf.get().fields().any(|(_, field)| field.name == name);
        let advice = match name {
            "head" | "limit" => "use records[:n]",
            "tail" => "use records[-n:]",
            "to_excel" | "to_sql" => "use records.to_pandas() first",
            "df" | "to_frame" | "to_df" => "use records.to_pandas()",
            "json" => "use records.to_dicts(json=True)",
            "to_dict" => "use records.to_dicts()",
            "append" | "extend" | "add" => "records do not change; Records.from_records makes some of single records",
            "next_page" | "has_next" | "next" => "records are the whole result; query.pages() returns it by page",
            "loc" | "iloc" | "info" | "value_counts" | "merge" | "join" | "apply" | "dropna" | "set_index"
            | "unique" | "filter" | "select" | "describe" | "columns" | "shape" | "dtypes" | "sample" | "groupby"
            | "sort_values" | "sort" | "plot" | "sum" | "mean" => {
                "use records.to_pandas() or records.to_polars() first"
            }
            _ if is_column => "it is a column: use records[\"name\"], or records[0].name for one record",
            _ => return Err(arguments::no_similar_attribute(slf, name, slf.get().inner.record())),
        };
        Err(arguments::no_attribute(slf, name, &advice.replace("name", name)))
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// For `await query.collect()`, which has its records already.
    fn __await__(slf: Py<Self>) -> Coroutine {
        Coroutine::new("Records.__await__", move |py| Ok(AsyncStep::Done(slf.clone_ref(py).into_any()))).awaited()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        let length = self.inner.len();
        if let Ok(name) = index.cast::<PyString>() {
            return Ok(self.column(py, name.to_str()?)?.into_any());
        }
        let Ok(slice) = index.cast::<PySlice>() else {
            let index: isize = index.extract().map_err(|error: PyErr| {
                if error.is_instance_of::<PyOverflowError>(py) {
                    return self.out_of_range(index);
                }
                PyTypeError::new_err(
                    "records are indexed by int, slice or the name of a column; \
                     use records.to_pandas(columns=[...]) for several",
                )
            })?;
            let row = if index < 0 { index + length as isize } else { index };
            let row = usize::try_from(row).ok().filter(|row| *row < length);
            return self.view(py, row.ok_or_else(|| self.out_of_range(index))?);
        };
        let range = slice.indices(length as isize)?;
        let sliced = if range.step == 1 {
            self.inner.slice(range.start as usize, range.slicelength)
        } else {
            self.inner.take((0..range.slicelength as isize).map(|n| (range.start + n * range.step) as usize))
        };
        Ok(Bound::new(py, self.with_rows(sliced))?.into_any())
    }

    fn __iter__(&self) -> RecordIterator {
        RecordIterator::new(self.chunks.clone())
    }

    fn __reversed__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let backwards = slf.py().get_type::<PySlice>().call1((slf.py().None(), slf.py().None(), -1))?;
        Ok(slf.get_item(backwards)?.try_iter()?.into_any())
    }

    fn __contains__(&self, record: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.rows_equal_to(record).next().is_some())
    }

    #[doc = doc!(Records.index)]
    #[pyo3(signature = (value, start=None, stop=None), text_signature = "($self, value, start=0, stop=None)")]
    fn index(
        &self,
        value: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        // A slice takes integers of any size, as `list.index` does.
        let slice = value.py().get_type::<PySlice>().call1((start, stop))?;
        let indices = slice.call_method1("indices", (self.inner.len(),))?;
        let (start, stop, _): (usize, usize, usize) = indices.extract()?;
        let found = self.rows_equal_to(value).find(|row| (start..stop).contains(row));
        found.ok_or_else(|| PyValueError::new_err("the record is not in these records"))
    }

    #[doc = doc!(Records.count)]
    fn count(&self, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        Ok(self.rows_equal_to(value).count())
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let same = self.selection == other.get().selection && self.inner == other.get().inner;
        Ok(pyo3::types::PyBool::new(py, same).to_owned().into_any().unbind())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.inner.len().hash(&mut hasher);
        for (columns, row) in (0..self.inner.len()).filter_map(|row| self.inner.locate(row)) {
            for column in 0..self.inner.record().fields.len() {
                columns.value(column, row).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    #[doc = doc!(Records.report)]
    #[getter]
    fn report(&self) -> Report {
        self.report.clone()
    }

    #[doc = doc!(Records.cursor)]
    #[getter]
    fn cursor(&self) -> Option<String> {
        self.cursor.clone()
    }

    #[doc = doc!(Records.schema)]
    #[getter]
    fn schema(&self) -> Schema {
        Schema::new(self.inner.record(), self.selection)
    }

    fn _identities(&self) -> Vec<String> {
        let identities = self.inner.chunks().iter().flat_map(query::record_keys);
        identities.map(|identity| format!("{identity:016x}")).collect()
    }

    fn _counts_by_queried(&self) -> HashMap<&str, u64> {
        self.inner.counts_by_queried()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let numbers = DecimalPolicy::Decimal;
        let schema = arrow::select(&crate::columns::schema(self.inner.record(), numbers), self.selection);
        let table = Table::new(schema, &self.inner, numbers)?;
        table.__arrow_c_stream__(py, requested_schema)
    }

    /// Type of amounts that the client asks for.
    #[getter]
    fn _numbers(&self) -> Option<&'static str> {
        self.numbers.map(DecimalPolicy::name)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let numbers = DecimalPolicy::Decimal;
        let schema = crate::columns::schema(self.inner.record(), numbers);
        arrow::schema_capsule(py, &arrow::select(&schema, self.selection))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let record = self.inner.record();
        let columns = PyDict::new(py);
        for (column, field) in self.fields() {
            columns.set_item(field.name, self.values(py, column)?)?;
        }
        reduced(
            py,
            "_restore_records",
            (record.name, columns, self.report.clone(), self.cursor.clone(), self.numbers.map(DecimalPolicy::name)),
        )
    }
}

fn rejected(problem: &str) -> PyErr {
    Error::parameter("records", problem).into()
}

#[pyfunction]
#[pyo3(signature = (name, columns, report, cursor=None, numbers=None))]
pub fn _restore_records(
    name: &str,
    columns: &Bound<'_, PyDict>,
    report: &Bound<'_, Report>,
    cursor: Option<String>,
    numbers: Option<DecimalPolicy>,
) -> PyResult<Records> {
    let record = interface::record(name).ok_or_else(|| PyTypeError::new_err(format!("no record type {name:?}")))?;
    let record = if columns.contains(QUERIED.name)? { record.with_queried() } else { record };
    let mut lists = Vec::new();
    for (column, field) in record.fields.iter().enumerate() {
        if let Some(values) = columns.get_item(field.name)? {
            lists.push((column, field.kind, values.cast_into::<PyList>()?));
        }
    }
    let count = lists.first().map_or(0, |(.., values)| values.len());
    let mut rows = ColumnsBuilder::new(record, count);
    for row in 0..count {
        for (column, kind, values) in &lists {
            convert::put(&mut rows, *column, *kind, &values.get_item(row)?)?.map_err(PyValueError::new_err)?;
        }
        rows.finish_row();
    }
    let selection = Projection::of(record, &columns.keys().extract::<Vec<String>>()?);
    let records = query::Records::new(record, vec![rows.finish()]);
    Ok(Records { cursor, ..Records::new(records, report.get().inner.clone(), numbers).select(selection) })
}
