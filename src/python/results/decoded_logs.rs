//! `DecodedLogs`: event logs with the values of one event's parameters.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyInt, PyList, PyString};

use super::arrow::{self, DtypeBackend, Frame, FrameOptions, Table};
use super::event::Event;
use super::frames::{ToFrame, to_frame_methods};
use super::records::Records;
use super::report::Report;
use crate::client::Error;
use crate::columns::DecimalPolicy;
use crate::events::{Decoded, Type, Value, decode};
use crate::python::base::arguments::{self, ColumnNames, DeferredArg};
use crate::python::base::pickle::Reduced;
use crate::python::base::{convert, errors, finalize};

#[doc = doc!(DecodedLogs)]
#[pyclass(frozen, module = "chainframe")]
pub struct DecodedLogs {
    inner: Decoded,
    /// The records that were decoded.
    logs: Records,
}

#[pymethods]
impl Records {
    #[doc = doc!(Records.decode)]
    fn decode(&self, py: Python<'_>, event: DeferredArg<Py<Event>>) -> PyResult<DecodedLogs> {
        let event = event.of_parameter("event")?;
        let record = self.inner.record().name;
        if record != "EventLog" {
            let problem = format!("only event logs can be decoded; these are records of {record}; use client.logs()");
            return Err(errors::context(&problem));
        }
        let event = &event.get().inner;
        match finalize::detach(py, || decode(event, &self.inner, self.selection())) {
            Ok(inner) => Ok(DecodedLogs { inner, logs: self.clone() }),
            Err(column) => {
                let problem =
                    format!("the records have no column {column:?}; select the columns topics and data as well");
                Err(errors::context(&problem))
            }
        }
    }
}

impl DecodedLogs {
    fn table(&self, py: Python<'_>, numbers: DecimalPolicy) -> PyResult<Table> {
        match finalize::detach(py, || self.inner.batches(numbers)) {
            Ok(batches) => Ok(Table::of(self.inner.schema(numbers), batches)),
            Err(overflow) => Err(Error::Overflow(Box::new(overflow)).into()),
        }
    }
}

impl ToFrame for DecodedLogs {
    const NUMBERS: DecimalPolicy = DecimalPolicy::String;

    fn numbers(&self) -> Option<DecimalPolicy> {
        self.logs.numbers
    }

    fn to_frame<'py>(&self, py: Python<'py>, options: FrameOptions) -> PyResult<Bound<'py, PyAny>> {
        let FrameOptions { frame, numbers, columns, dtype_backend } = options;
        let schema = arrow::project(py, self.inner.schema(numbers), columns.as_ref())?;
        frame.load(py)?;
        frame.convert(py, self.table(py, numbers)?.project(schema)?, dtype_backend, self.report())
    }
}

to_frame_methods! { DecodedLogs }

#[pymethods]
impl DecodedLogs {
    #[doc = doc!(DecodedLogs.event)]
    #[getter]
    fn event(&self) -> Event {
        Event { inner: self.inner.event().clone() }
    }

    #[doc = doc!(DecodedLogs.matched)]
    #[getter]
    fn matched(&self) -> Records {
        self.logs.with_rows(self.inner.matched.clone())
    }

    #[doc = doc!(DecodedLogs.unmatched)]
    #[getter]
    fn unmatched(&self) -> Records {
        self.logs.with_rows(self.inner.unmatched.clone())
    }

    #[doc = doc!(DecodedLogs.malformed)]
    #[getter]
    fn malformed(&self) -> Records {
        self.logs.with_rows(self.inner.malformed.clone())
    }

    #[doc = doc!(DecodedLogs.report)]
    #[getter]
    fn report(&self) -> Report {
        self.logs.report.clone()
    }

    #[doc = doc!(DecodedLogs.columns)]
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.inner.schema(DecimalPolicy::String).fields().iter().map(|field| field.name().clone()).collect()
    }

    #[doc = doc!(DecodedLogs.to_dicts)]
    #[pyo3(signature = (*, columns=None, **unknown), text_signature = "($self, *, columns=None)")]
    fn to_dicts<'py>(
        &self,
        py: Python<'py>,
        columns: Option<ColumnNames>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        arguments::reject_in::<Self>(py, "to_dicts", unknown)?;
        let schema = arrow::project(py, self.inner.schema(DecimalPolicy::String), columns.as_ref())?;
        let record = self.inner.matched.record();
        let params = self.inner.event().params();
        let dicts = PyList::empty(py);
        for row in 0..self.inner.matched.len() {
            let dict = PyDict::new(py);
            let values: Vec<_> = self.inner.values(row).collect();
            for field in schema.fields() {
                let value = match params.iter().position(|param| param.column == *field.name()) {
                    Some(param) => to_python(py, &params[param].ty, values.get(param).copied().flatten())?,
                    None => match (self.inner.matched.locate(row), record.position(field.name())) {
                        (Some((chunk, at)), Some(column)) => convert::cell(py, chunk, column, at)?,
                        _ => continue,
                    },
                };
                dict.set_item(field.name(), value)?;
            }
            dicts.append(dict)?;
        }
        Ok(dicts)
    }

    fn __len__(&self) -> usize {
        self.inner.matched.len()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.table(py, DecimalPolicy::String)?.__arrow_c_stream__(py, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema_capsule(py, &self.inner.schema(DecimalPolicy::String))
    }

    fn __repr__(&self) -> String {
        let Decoded { matched, unmatched, malformed, .. } = &self.inner;
        format!(
            "<DecodedLogs of {}: {} logs, {} malformed; {} other logs>",
            self.inner.event().name(),
            matched.len(),
            malformed.len(),
            unmatched.len()
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let decode = py.get_type::<Records>().getattr("decode")?;
        Ok((decode, (self.logs.clone(), self.event()).into_pyobject(py)?))
    }
}

fn to_python<'py>(py: Python<'py>, ty: &Type, value: Option<&Value>) -> PyResult<Bound<'py, PyAny>> {
    let Some(value) = value else { return Ok(py.None().into_bound(py)) };
    Ok(match (ty, value) {
        (_, Value::Bool(value)) => PyBool::new(py, *value).to_owned().into_any(),
        (_, Value::Int(_) | Value::Uint(_)) => py.get_type::<PyInt>().call1((value.text(),))?,
        (Type::List(item, _), Value::List(values)) => {
            let items = values.iter().map(|value| to_python(py, item, Some(value)));
            PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        (Type::Struct(members), Value::Struct(values)) => {
            let dict = PyDict::new(py);
            for ((name, ty), value) in members.iter().zip(values) {
                dict.set_item(name, to_python(py, ty, Some(value))?)?;
            }
            dict.into_any()
        }
        (_, value) => PyString::new(py, &value.text()).into_any(),
    })
}
