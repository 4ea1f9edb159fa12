//! `Deployment`, as Python has it.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::client::{Error, variables};
use crate::interface;
use crate::python::base::arguments::{self, DeferredArg};
use crate::python::base::pickle::{Reduced, reduced};

#[doc = doc!(Deployment)]
#[pyclass(frozen, eq, hash, module = "chainframe")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Deployment {
    pub inner: interface::Deployment,
}

/// Arguments, each of which has an attribute.
const SETTINGS: [&str; 9] = [
    "header_prefix",
    "main",
    "zone",
    "prehash",
    "signature_encoding",
    "result_window",
    "log_window",
    "max_page_size",
    "signed",
];

fn default(default: &str) -> DeferredArg<String> {
    DeferredArg(Ok(default.to_owned()))
}

#[pymethods]
impl Deployment {
    #[new]
    #[pyo3(signature = (
        *, header_prefix=default("SVC"), main=default("main"), zone=default("zone"),
        prehash=default("{timestamp}{method}{target}{body}"), signature_encoding=default("base64"),
        result_window=DeferredArg(Ok(10_000)), log_window=DeferredArg(Ok(1_000)), max_page_size=None, signed=DeferredArg(Ok(true)),
        **unknown,
    ), text_signature = "(*, header_prefix='SVC', main='main', zone='zone', \
        prehash='{timestamp}{method}{target}{body}', signature_encoding='base64', result_window=10000, log_window=1000, \
        max_page_size=None, signed=True)")]
    #[expect(clippy::too_many_arguments, reason = "the settings, all by keyword")]
    fn new(
        py: Python<'_>,
        header_prefix: DeferredArg<String>,
        main: DeferredArg<String>,
        zone: DeferredArg<String>,
        prehash: DeferredArg<String>,
        signature_encoding: DeferredArg<String>,
        result_window: DeferredArg<u64>,
        log_window: DeferredArg<u64>,
        max_page_size: Option<DeferredArg<u32>>,
        signed: DeferredArg<bool>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        arguments::reject(&py.get_type::<Self>(), unknown)?;
        let inner = interface::Deployment::new(
            &header_prefix.named("header_prefix")?,
            &main.named("main")?,
            &zone.named("zone")?,
            &prehash.named("prehash")?,
            &signature_encoding.named("signature_encoding")?,
        )?
        .with_windows(result_window.named("result_window")?, log_window.named("log_window")?)?
        .with_max_page_size(arguments::named("max_page_size", max_page_size)?)?
        .with_signed(signed.named("signed")?);
        Ok(Self { inner })
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

    #[getter]
    fn max_page_size(&self) -> Option<u32> {
        self.inner.max_page_size()
    }

    #[getter]
    fn signed(&self) -> bool {
        self.inner.signed()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let settings = SETTINGS.map(|name| Ok(format!("{name}={}", slf.getattr(name)?.repr()?)));
        Ok(format!("Deployment({})", settings.into_iter().collect::<PyResult<Vec<_>>>()?.join(", ")))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let settings = PyDict::new(slf.py());
        for name in SETTINGS {
            settings.set_item(name, slf.getattr(name)?)?;
        }
        reduced(slf.py(), "_restore_deployment", (settings,))
    }
}

/// The OpenAPI document as JSON.
#[pyfunction]
pub fn _openapi(deployment: &Bound<'_, Deployment>, main_chain: &str, zone_chain: &str, base_url: &str) -> String {
    let names = interface::Names { main_chain, zone_chain, base_url };
    interface::openapi(&deployment.get().inner, names).to_string()
}

#[pyfunction]
pub fn _restore_deployment<'py>(settings: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    settings.py().get_type::<Deployment>().call((), Some(settings))
}

const VARIABLE: &str = "CHAINFRAME_DEPLOYMENT";

/// The deployment that the environment describes, or the default one.
#[pyfunction]
pub fn _environment_deployment(py: Python<'_>) -> PyResult<Deployment> {
    let Some(text) = variables::read(VARIABLE, VARIABLE)?.filter(|text| !text.is_empty()) else {
        return Ok(Deployment { inner: interface::Deployment::default() });
    };
    let read = py.import("json")?.call_method1("loads", (&text,));
    let Some(arguments) = read.ok().and_then(|read| read.cast_into::<PyDict>().ok()) else {
        let problem = "must be a JSON object of arguments of Deployment, such as {\"header_prefix\": \"XY\"}";
        return Err(Error::config(VARIABLE, format!("{problem}; got {text:?}")).into());
    };
    let made = py.get_type::<Deployment>().call((), Some(&arguments));
    let made = made.map_err(|error| Error::config(VARIABLE, format!("is invalid: {}", error.value(py))))?;
    Ok(made.cast_into::<Deployment>()?.get().clone())
}
