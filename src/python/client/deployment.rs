//! `Deployment`, as Python has it.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::client::{Error, variables};
use crate::interface;
use crate::python::base::given::GivenSettings;
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

getters! { Deployment {
    header_prefix(): &str, main(): &str, zone(): &str, result_window(): u64, log_window(): u64,
    max_page_size(): Option<u32>, signed(): bool,
} }

#[pymethods]
impl Deployment {
    #[new]
    #[pyo3(signature = (**settings), text_signature = "(*, header_prefix='SVC', main='main', zone='zone', \
        prehash='{timestamp}{method}{target}{body}', signature_encoding='base64', result_window=10000, log_window=1000, \
        max_page_size=None, signed=True)")]
    fn new(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = GivenSettings::new(py, settings);
        given.check_names(&py.get_type::<Self>())?;
        let text = |name, default: &str| Ok::<_, PyErr>(given.read(name)?.unwrap_or_else(|| default.to_owned()));
        let inner = interface::Deployment::new(
            &text("header_prefix", "SVC")?,
            &text("main", "main")?,
            &text("zone", "zone")?,
            &text("prehash", "{timestamp}{method}{target}{body}")?,
            &text("signature_encoding", "base64")?,
        )?
        .with_windows(given.read("result_window")?.unwrap_or(10_000), given.read("log_window")?.unwrap_or(1_000))?
        .with_max_page_size(given.optional("max_page_size")?)?
        .with_signed(given.read("signed")?.unwrap_or(true));
        Ok(Self { inner })
    }

    #[getter]
    fn prehash(&self) -> &str {
        self.inner.prehash_template()
    }

    #[getter]
    fn signature_encoding(&self) -> &'static str {
        self.inner.signature_encoding().as_str()
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
    let deployment = py.get_type::<Deployment>().call((), Some(&arguments));
    let deployment = deployment.map_err(|error| Error::config(VARIABLE, format!("is invalid: {}", error.value(py))))?;
    Ok(deployment.cast_into::<Deployment>()?.get().clone())
}
