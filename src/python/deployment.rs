//! `Deployment`, as Python has it.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::errors;
use crate::interface;

#[pyclass(frozen, eq, hash, module = "chainframe")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Deployment {
    pub inner: interface::Deployment,
}

#[pymethods]
impl Deployment {
    #[new]
    #[pyo3(signature = (
        *, header_prefix="SVC", main="main", zone="zone",
        prehash="{timestamp}{method}{target}{body}", signature_encoding="base64",
    ))]
    fn new(
        py: Python<'_>,
        header_prefix: &str,
        main: &str,
        zone: &str,
        prehash: &str,
        signature_encoding: &str,
    ) -> PyResult<Self> {
        let inner = interface::Deployment::new(header_prefix, main, zone, prehash, signature_encoding);
        inner.map(|inner| Self { inner }).map_err(|error| errors::raise(py, &error.into()))
    }

    #[getter]
    fn header_prefix(&self) -> &str {
        self.inner.header_prefix()
    }

    #[getter]
    fn main(&self) -> &str {
        self.inner.main()
    }

    #[getter]
    fn zone(&self) -> &str {
        self.inner.zone()
    }

    #[getter]
    fn prehash(&self) -> &str {
        self.inner.prehash_template()
    }

    #[getter]
    fn signature_encoding(&self) -> &'static str {
        self.inner.signature_encoding().as_str()
    }

    fn __repr__(&self) -> String {
        let (prefix, main, zone, prehash) = self.words();
        let encoding = self.signature_encoding();
        format!(
            "Deployment(header_prefix='{prefix}', main='{main}', zone='{zone}', prehash='{prehash}', \
             signature_encoding='{encoding}')"
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (prefix, main, zone, prehash) = self.words();
        let restore = py.import("chainframe._native")?.getattr("_restore_deployment")?;
        Ok((restore, (prefix, main, zone, prehash, self.signature_encoding()).into_pyobject(py)?))
    }
}

impl Deployment {
    fn words(&self) -> (&str, &str, &str, &str) {
        (self.header_prefix(), self.main(), self.zone(), self.prehash())
    }
}

#[pyfunction]
pub fn _restore_deployment(
    py: Python<'_>,
    header_prefix: &str,
    main: &str,
    zone: &str,
    prehash: &str,
    signature_encoding: &str,
) -> PyResult<Deployment> {
    Deployment::new(py, header_prefix, main, zone, prehash, signature_encoding)
}
