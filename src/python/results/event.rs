//! `Event`: a declared event of a contract.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::client::Error;
use crate::events;
use crate::message::Message;
use crate::python::base::arguments::{DeferredArg, Readable};
use crate::python::base::hash_of;
use crate::python::base::pickle::Reduced;

#[doc = doc!(Event)]
#[pyclass(frozen, module = "chainframe")]
pub struct Event {
    pub inner: Arc<events::Event>,
}

impl Event {
    fn of(argument: &str, event: Result<events::Event, Message>) -> PyResult<Self> {
        match event {
            Ok(event) => Ok(Self { inner: Arc::new(event) }),
            Err(problem) => Err(Error::parameter(argument, problem).into()),
        }
    }
}

impl Readable for Py<Event> {
    const EXPECTED: &'static str = "must be an Event, such as Event.named(\"ERC20.Transfer\")";

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(given.extract()?)
    }
}

#[pymethods]
impl Event {
    #[new]
    fn new(declaration: DeferredArg<String>) -> PyResult<Self> {
        let declaration = declaration.of_parameter("declaration")?;
        Self::of("declaration", events::Event::parse(&declaration))
    }

    #[doc = doc!(Event.named)]
    #[staticmethod]
    fn named(name: DeferredArg<String>) -> PyResult<Self> {
        Self::of("name", events::named(&name.of_parameter("name")?))
    }

    #[doc = doc!(Event.name)]
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    #[doc = doc!(Event.signature)]
    #[getter]
    fn signature(&self) -> &str {
        self.inner.signature()
    }

    #[doc = doc!(Event.topic)]
    #[getter]
    fn topic(&self) -> Option<String> {
        self.inner.topic()
    }

    #[doc = doc!(Event.columns)]
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.inner.params().iter().map(|param| param.column.as_str()).collect()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Py<PyAny> {
        let Ok(other) = other.cast::<Self>() else { return py.NotImplemented() };
        PyBool::new(py, self.inner == other.get().inner).to_owned().into_any().unbind()
    }

    fn __hash__(&self) -> u64 {
        hash_of(self.inner.declaration())
    }

    fn __repr__(&self) -> String {
        format!("Event({:?})", self.inner.declaration())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let arguments = (slf.get().inner.declaration(),).into_pyobject(slf.py())?;
        Ok((slf.get_type().into_any(), arguments))
    }
}
