//! A record: a view of one row. Its class has a descriptor for every declared field.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::columns::{Columns, ColumnsBuilder};
use crate::display::html;
use crate::interface::{self, QUERIED, RecordType};
use crate::python::base::pickle::{Reduced, reduced};
use crate::python::base::{arguments, convert};

/// Fields of a repr.
const SHOWN_FIELDS: usize = 5;

// The base of the record classes.
#[doc = doc!(Record)]
#[pyclass(subclass, frozen, mapping, module = "chainframe")]
pub struct Record {
    columns: Arc<Columns>,
    row: usize,
}

impl Record {
    pub fn new(columns: Arc<Columns>, row: usize) -> Self {
        Self { columns, row }
    }

    pub fn columns(&self) -> &Arc<Columns> {
        &self.columns
    }

    pub fn row(&self) -> usize {
        self.row
    }

    pub fn class(&self) -> &'static RecordType {
        self.columns.record()
    }

    fn fields(&self) -> &'static [interface::Field] {
        self.class().fields
    }

    /// True if a row holds the same record.
    pub fn is_row(&self, columns: &Columns, row: usize) -> bool {
        std::ptr::eq(self.class(), columns.record())
            && (0..self.fields().len()).all(|column| {
                self.columns.is_skipped(column) == columns.is_skipped(column)
                    && self.columns.value(column, self.row) == columns.value(column, row)
            })
    }

    /// Fields that were read.
    fn read_fields(&self) -> impl Iterator<Item = (usize, &'static interface::Field)> {
        self.fields().iter().enumerate().filter(|(column, _)| !self.columns.is_skipped(*column))
    }

    fn cell<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyAny>> {
        if self.columns.is_skipped(column) {
            let name = self.fields()[column].name;
            let problem = format!("{name} was not read; name it in batches(columns=[...])");
            return Err(PyAttributeError::new_err(problem));
        }
        convert::cell(py, &self.columns, column, self.row)
    }

    /// Appends a copy of the record to others of its class.
    pub fn append_to(&self, py: Python<'_>, rows: &mut ColumnsBuilder) -> PyResult<()> {
        for (column, field) in self.read_fields() {
            convert::put(rows, column, field.kind, &self.cell(py, column)?)?.map_err(PyTypeError::new_err)?;
        }
        rows.finish_row();
        Ok(())
    }

    fn dict<'py>(&self, py: Python<'py>, json: bool) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (column, field) in self.read_fields() {
            let value = self.cell(py, column)?;
            let value = if json { convert::for_json(value, field.kind)? } else { value };
            dict.set_item(PyString::intern(py, field.name), value)?;
        }
        Ok(dict)
    }

    /// A record of its own, from the values that a caller names.
    pub fn from_fields(record: &'static RecordType, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut rows = ColumnsBuilder::new(record, 1);
        for (name, value) in fields.into_iter().flatten() {
            let name = name.cast::<PyString>()?.to_str()?.to_owned();
            let Some(column) = record.position(&name) else {
                let names: Vec<_> = record.fields.iter().map(|field| field.name).collect();
                let advice = arguments::similar(value.py(), &name, &names)?;
                return Err(PyTypeError::new_err(format!("{} has no field {name:?}{advice}", record.name)));
            };
            if let Err(problem) = convert::put(&mut rows, column, record.fields[column].kind, &value)? {
                return Err(PyTypeError::new_err(format!("{name} {problem}")));
            }
        }
        rows.finish_row();
        Ok(Self::new(Arc::new(rows.finish()), 0))
    }
}

#[pymethods]
impl Record {
    #[doc = doc!(Record.to_dict)]
    #[pyo3(signature = (*, json=None, **unknown), text_signature = "($self, *, json=False)")]
    fn to_dict<'py>(
        &self,
        py: Python<'py>,
        json: Option<&Bound<'py, PyAny>>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        arguments::reject_in::<Self>(py, "to_dict", unknown)?;
        self.dict(py, arguments::flag("json", json)?)
    }

    #[doc = doc!(Record.queried)]
    #[getter]
    fn queried<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.class().position(QUERIED.name) {
            Some(column) => self.cell(py, column),
            None => {
                Err(PyAttributeError::new_err("queried is an attribute of the records of a query of several values"))
            }
        }
    }

    #[doc = doc!(Record.keys)]
    fn keys(&self) -> Vec<&'static str> {
        self.read_fields().map(|(_, field)| field.name).collect()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Ok(text) = name.cast::<PyString>() else {
            return Err(PyTypeError::new_err(format!(
                "a record is indexed by the name of a field; got {}",
                arguments::shown(name)
            )));
        };
        match self.class().position(text.to_str()?) {
            Some(column) => self.cell(py, column),
            None => {
                let names: Vec<_> = self.fields().iter().map(|field| field.name).collect();
                let advice = arguments::similar(py, text.to_str()?, &names)?;
                let class = self.class().name;
                Err(PyKeyError::new_err(format!("{class} has no field '{}'{advice}", text.to_str()?)))
            }
        }
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        name.cast::<PyString>().is_ok_and(|name| self.read_fields().any(|(_, field)| name == field.name))
    }

    /// Called for a name that is no attribute, such as a method of a dictionary.
    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        let record = slf.get();
        if name == "queried" {
            return Err(record
                .queried(slf.py())
                .map_or_else(|error| error, |_| arguments::no_attribute(slf, name, "")));
        }
        if let Some(column) = record.class().position(name) {
            // The reason why its value was not found.
            return record.cell(slf.py(), column).map(Bound::unbind);
        }
        let advice = match name {
            "get" | "items" | "values" | "dict" | "asdict" | "as_dict" | "_asdict" => "use record.to_dict()".to_owned(),
            "json" | "to_json" => "use record.to_dict(json=True)".to_owned(),
            _ => {
                let names: Vec<_> = slf.get().fields().iter().map(|field| field.name).collect();
                arguments::field_of_word(slf.py(), name, &names)?
            }
        };
        Err(arguments::no_attribute(slf, name, &advice))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Py<PyAny> {
        let Ok(other) = other.cast::<Self>() else { return py.NotImplemented() };
        let other = other.get();
        let same = self.is_row(&other.columns, other.row);
        pyo3::types::PyBool::new(py, same).to_owned().into_any().unbind()
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        self.class().name.hash(&mut hasher);
        for column in 0..self.fields().len() {
            self.columns.value(column, self.row).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The first fields that have a value; `to_dict` has all.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut shown = Vec::new();
        let mut more = 0;
        for (column, field) in self.read_fields() {
            let Some(text) = convert::cell_text(py, &self.columns, column, self.row)? else { continue };
            if shown.len() < SHOWN_FIELDS {
                shown.push(format!("{}={}", field.name, html::excerpt(&text, html::CELL)));
            } else {
                more += 1;
            }
        }
        let rest = if more > 0 { format!(", … {more} more") } else { String::new() };
        Ok(format!(
            "<{}: {}{rest}>",
            self.class().name,
            if shown.is_empty() { "no values".into() } else { shown.join(", ") }
        ))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let cells = self.read_fields().map(|(column, field)| {
            let text = convert::cell_text(py, &self.columns, column, self.row)?;
            Ok((field.name, text.unwrap_or_else(|| "null".into())))
        });
        let cells = cells.collect::<PyResult<Vec<_>>>()?;
        Ok(html::form(self.class().name, "one record", &[html::pairs(&cells)]))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "_restore_record", (self.class().name, self.dict(py, false)?))
    }
}

// The attribute of one declared field. What is said of the class would hide what is said of the field.
#[pyclass(frozen, module = "chainframe")]
pub struct Field {
    column: usize,
    field: &'static interface::Field,
}

impl Field {
    /// Gives a record class its attributes.
    pub fn add_all(class: &Bound<'_, PyType>, record: &'static RecordType) -> PyResult<()> {
        let py = class.py();
        for (column, field) in record.fields.iter().enumerate() {
            class.setattr(field.name, Py::new(py, Self { column, field })?)?;
        }
        class.setattr("__match_args__", PyTuple::new(py, record.fields.iter().map(|field| field.name))?)?;
        class.setattr("__doc__", record.doc)
    }
}

#[pymethods]
impl Field {
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        record: &Bound<'py, PyAny>,
        _owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match record.cast::<Record>() {
            Ok(record) => record.get().cell(slf.py(), slf.get().column),
            Err(_) => Ok(slf.clone().into_any()),
        }
    }

    fn __set__(&self, _record: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyAttributeError::new_err(format!("{} is read-only: records do not change", self.field.name)))
    }

    fn __delete__(&self, _record: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyAttributeError::new_err(format!("{} is read-only: records do not change", self.field.name)))
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.field.name
    }

    #[getter]
    fn __doc__(&self) -> &'static str {
        self.field.doc
    }

    fn __repr__(&self) -> String {
        format!("<field {} ({})>", self.field.name, self.field.kind.name())
    }
}
