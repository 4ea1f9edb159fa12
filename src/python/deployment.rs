//! `Deployment`, as Python has it.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arguments::Given;
use super::errors;
use crate::client::Error;
use crate::interface;

#[doc = doc!(Deployment)]
#[pyclass(frozen, eq, hash, module = "chainframe")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Deployment {
    pub inner: interface::Deployment,
}

fn word(default: &str) -> Given<String> {
    Given(Ok(default.to_owned()))
}

#[pymethods]
impl Deployment {
    #[new]
    #[pyo3(signature = (
        *, header_prefix=word("SVC"), main=word("main"), zone=word("zone"),
        prehash=word("{timestamp}{method}{target}{body}"), signature_encoding=word("base64"),
    ), text_signature = "(*, header_prefix='SVC', main='main', zone='zone', \
        prehash='{timestamp}{method}{target}{body}', signature_encoding='base64')")]
    fn new(
        py: Python<'_>,
        header_prefix: Given<String>,
        main: Given<String>,
        zone: Given<String>,
        prehash: Given<String>,
        signature_encoding: Given<String>,
    ) -> PyResult<Self> {
        let made = || {
            let inner = interface::Deployment::new(
                &header_prefix.named("header_prefix")?,
                &main.named("main")?,
                &zone.named("zone")?,
                &prehash.named("prehash")?,
                &signature_encoding.named("signature_encoding")?,
            )?;
            Ok::<_, Error>(Self { inner })
        };
        made().map_err(|error| errors::raise(py, &error))
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
    header_prefix: Given<String>,
    main: Given<String>,
    zone: Given<String>,
    prehash: Given<String>,
    signature_encoding: Given<String>,
) -> PyResult<Deployment> {
    Deployment::new(py, header_prefix, main, zone, prehash, signature_encoding)
}
