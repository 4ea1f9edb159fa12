//! Conversions of `Records` to frames, tables and dictionaries.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::arrow::{self, Conversion, DtypeBackend, Frame};
use super::records::Records;
use crate::columns::{DecimalPolicy, schema};
use crate::python::base::arguments::{self, ColumnNames};
use crate::python::base::{convert, errors, finalize};

impl Records {
    fn convert<'py>(&self, py: Python<'py>, conversion: &Conversion) -> PyResult<Bound<'py, PyAny>> {
        let table =
            finalize::detach(py, || conversion.table(&self.inner)).map_err(|error| errors::raise(py, &error))?;
        conversion.finish(py, table)
    }

    fn conversion(
        &self,
        py: Python<'_>,
        frame: Frame,
        numbers: DecimalPolicy,
        columns: Option<&ColumnNames>,
    ) -> PyResult<Conversion> {
        Conversion::new(py, self.inner.record(), self.selection(), frame, numbers, columns)
    }

    /// One dictionary a record. With `json`, values that JSON lacks are strings.
    pub fn dicts<'py>(
        &self,
        py: Python<'py>,
        json: bool,
        columns: Option<&ColumnNames>,
    ) -> PyResult<Bound<'py, PyList>> {
        let schema = arrow::select(&schema(self.inner.record(), DecimalPolicy::Decimal), self.selection());
        let schema = arrow::project(py, schema, columns)?;
        let fields = schema.fields().iter().filter_map(|field| self.inner.record().position(field.name()));
        let fields: Vec<_> = fields.map(|column| (column, &self.inner.record().fields[column])).collect();
        let dicts = PyList::empty(py);
        for (chunk, row) in self.chunks.iter().flat_map(|chunk| (0..chunk.rows()).map(move |row| (chunk, row))) {
            let dict = PyDict::new(py);
            for (column, field) in &fields {
                let value = convert::cell(py, chunk, *column, row)?;
                let value = if json { convert::for_json(value, field.kind)? } else { value };
                dict.set_item(PyString::intern(py, field.name), value)?;
            }
            dicts.append(dict)?;
        }
        Ok(dicts)
    }
}

#[pymethods]
impl Records {
    #[doc = doc!(Records.to_pandas)]
    #[pyo3(
        signature = (numbers=DecimalPolicy::Decimal, *, dtype_backend=None, columns=None, **unknown),
        text_signature = "($self, numbers='decimal', *, dtype_backend=None, columns=None)"
    )]
    fn to_pandas<'py>(
        &self,
        py: Python<'py>,
        numbers: DecimalPolicy,
        dtype_backend: Option<DtypeBackend>,
        columns: Option<ColumnNames>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        arguments::reject_in::<Self>(py, "to_pandas", unknown)?;
        let conversion = self.conversion(py, Frame::Pandas, numbers, columns.as_ref())?;
        self.convert(py, &conversion.with_dtype_backend(dtype_backend))
    }

    #[doc = doc!(Records.to_polars)]
    #[pyo3(
        signature = (numbers=DecimalPolicy::Decimal, *, columns=None, **unknown),
        text_signature = "($self, numbers='decimal', *, columns=None)"
    )]
    fn to_polars<'py>(
        &self,
        py: Python<'py>,
        numbers: DecimalPolicy,
        columns: Option<ColumnNames>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        arguments::reject_in::<Self>(py, "to_polars", unknown)?;
        self.convert(py, &self.conversion(py, Frame::Polars, numbers, columns.as_ref())?)
    }

    #[doc = doc!(Records.to_arrow)]
    #[pyo3(
        signature = (numbers=DecimalPolicy::Decimal, *, columns=None, **unknown),
        text_signature = "($self, numbers='decimal', *, columns=None)"
    )]
    fn to_arrow<'py>(
        &self,
        py: Python<'py>,
        numbers: DecimalPolicy,
        columns: Option<ColumnNames>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        arguments::reject_in::<Self>(py, "to_arrow", unknown)?;
        self.convert(py, &self.conversion(py, Frame::Arrow, numbers, columns.as_ref())?)
    }

    #[doc = doc!(Records.to_dicts)]
    #[pyo3(
        signature = (*, json=None, columns=None, **unknown),
        text_signature = "($self, *, json=False, columns=None)"
    )]
    fn to_dicts<'py>(
        &self,
        py: Python<'py>,
        json: Option<&Bound<'py, PyAny>>,
        columns: Option<ColumnNames>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        arguments::reject_in::<Self>(py, "to_dicts", unknown)?;
        self.dicts(py, arguments::flag("json", json)?, columns.as_ref())
    }
}
