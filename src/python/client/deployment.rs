//! `Deployment`, as Python has it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::client::Error;
use crate::interface;
use crate::python::base::arguments::{self, Given};
use crate::python::base::errors;

#[doc = doc!(Deployment)]
#[pyclass(frozen, eq, hash, module = "chainframe")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Deployment {
    pub inner: interface::Deployment,
}

fn default(default: &str) -> Given<String> {
    Given(Ok(default.to_owned()))
}

#[pymethods]
impl Deployment {
    #[new]
    #[pyo3(signature = (
        *, header_prefix=default("SVC"), main=default("main"), zone=default("zone"),
        prehash=default("{timestamp}{method}{target}{body}"), signature_encoding=default("base64"),
        result_window=Given(Ok(10_000)), log_window=Given(Ok(1_000)), **unknown,
    ), text_signature = "(*, header_prefix='SVC', main='main', zone='zone', \
        prehash='{timestamp}{method}{target}{body}', signature_encoding='base64', result_window=10000, log_window=1000)")]
    #[expect(clippy::too_many_arguments, reason = "the settings, all by keyword")]
    fn new(
        py: Python<'_>,
        header_prefix: Given<String>,
        main: Given<String>,
        zone: Given<String>,
        prehash: Given<String>,
        signature_encoding: Given<String>,
        result_window: Given<u64>,
        log_window: Given<u64>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        arguments::reject(&py.get_type::<Self>(), unknown)?;
        let made = || {
            let inner = interface::Deployment::new(
                &header_prefix.named("header_prefix")?,
                &main.named("main")?,
                &zone.named("zone")?,
                &prehash.named("prehash")?,
                &signature_encoding.named("signature_encoding")?,
            )?
            .with_windows(result_window.named("result_window")?, log_window.named("log_window")?)?;
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

    #[getter]
    fn result_window(&self) -> u64 {
        self.inner.result_window()
    }

    #[getter]
    fn log_window(&self) -> u64 {
        self.inner.log_window()
    }

    fn __repr__(&self) -> String {
        let (prefix, main, zone, prehash) = self.names();
        let (result_window, log_window) = (self.result_window(), self.log_window());
        let encoding = self.signature_encoding();
        format!(
            "Deployment(header_prefix='{prefix}', main='{main}', zone='{zone}', prehash='{prehash}', \
             signature_encoding='{encoding}', result_window={result_window}, log_window={log_window})"
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (prefix, main, zone, prehash) = self.names();
        let restore = py.import("chainframe._native")?.getattr("_restore_deployment")?;
        let (result_window, log_window) = (self.result_window(), self.log_window());
        let values = (prefix, main, zone, prehash, self.signature_encoding(), result_window, log_window);
        Ok((restore, values.into_pyobject(py)?))
    }
}

impl Deployment {
    fn names(&self) -> (&str, &str, &str, &str) {
        (self.header_prefix(), self.main(), self.zone(), self.prehash())
    }
}

/// The OpenAPI document as JSON.
#[pyfunction]
pub fn _openapi(deployment: &Bound<'_, Deployment>, main_chain: &str, zone_chain: &str, base_url: &str) -> String {
    let names = interface::Names { main_chain, zone_chain, base_url };
    interface::openapi(&deployment.get().inner, names).to_string()
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the settings, in order")]
pub fn _restore_deployment(
    py: Python<'_>,
    header_prefix: Given<String>,
    main: Given<String>,
    zone: Given<String>,
    prehash: Given<String>,
    signature_encoding: Given<String>,
    result_window: Given<u64>,
    log_window: Given<u64>,
) -> PyResult<Deployment> {
    Deployment::new(py, header_prefix, main, zone, prehash, signature_encoding, result_window, log_window, None)
}
