//! Conversions of `Records` to frames, tables and dictionaries.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::arrow::{self, Conversion, DtypeBackend, Frame, FrameOptions};
use super::frames::{ToFrame, to_frame_methods};
use super::records::Records;
use crate::columns::{DecimalPolicy, schema};
use crate::python::base::arguments::{self, ColumnNames};
use crate::python::base::at_caller::at_caller;
use crate::python::base::{convert, finalize};

impl Records {
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

impl ToFrame for Records {
    fn numbers(&self) -> Option<DecimalPolicy> {
        self.numbers
    }

    fn to_frame<'py>(&self, py: Python<'py>, options: FrameOptions) -> PyResult<Bound<'py, PyAny>> {
        let conversion = Conversion::new(py, self.inner.record(), self.selection(), &options)?;
        let table = finalize::detach(py, || conversion.table(&self.inner))?;
        conversion.finish(py, table, self.report.clone())
    }
}

to_frame_methods! { Records }

/// Declares the methods that write a file. They differ in its format only.
macro_rules! files {
    ($($name:ident)*) => {
        #[pymethods]
        impl Records {
            $(
                #[doc = doc!(Records.$name)]
                #[pyo3(
                    signature = (path, *, columns=None, numbers=None, storage_options=None, **unknown),
                    text_signature = "($self, path, *, columns=None, numbers=None, storage_options=None)"
                )]
                fn $name<'py>(
                    slf: &Bound<'py, Self>,
                    path: &Bound<'py, PyAny>,
                    columns: Option<ColumnNames>,
                    numbers: Option<DecimalPolicy>,
                    storage_options: Option<Bound<'py, PyAny>>,
                    unknown: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyAny>> {
                    let py = slf.py();
                    arguments::reject_in::<Self>(py, stringify!($name), unknown)?;
                    let numbers = numbers.or(slf.get().numbers).map(DecimalPolicy::name);
                    let columns = columns.map(|ColumnNames(names)| names);
                    let methods = PyModule::import(py, "chainframe.exports.methods")?;
                    let arguments = (slf, stringify!($name), path, columns, numbers, storage_options);
                    methods.call_method1("write_records", arguments).map_err(|raised| at_caller(py, raised))
                }
            )*
        }
    };
}

files! { to_parquet to_csv to_json }

#[pymethods]
impl Records {
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
