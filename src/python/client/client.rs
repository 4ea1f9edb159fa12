//! `Client`: settings from arguments and the environment, and the calls.

use std::future::ready;

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::cache::{Cache, given_cache};
use super::callables::{CallableSetting, Callables};
use super::cassette::Cassette;
use super::deployment::{_environment_deployment, Deployment};
use super::origin::origin;
use super::rate_limit_state::RateLimitState;
use super::settings::checked;
use super::shared_cassette::environment_cassette;
use super::usage::Usage;
use crate::client::{self, Environment, RequestOptions};
use crate::columns::DecimalPolicy;
use crate::interface::ENDPOINTS;
use crate::python::base::arguments;
use crate::python::base::asyncio::{Coroutine, coroutine};
use crate::python::base::given::{GivenSettings, optional_setting_of, setting_of};
use crate::python::base::hash_of;
use crate::python::base::log;
use crate::python::base::once::MadeOnce;
use crate::python::query::progress::ProgressMode;

type Any<'py> = Option<Bound<'py, PyAny>>;

#[doc = doc!(Client)]
#[pyclass(frozen, weakref, dict, module = "chainframe")]
pub struct Client {
    pub inner: client::Client,
    pub progress: ProgressMode,
    pub callables: Callables,
    /// Facts that responses have shown of the API, for filters of datasets.
    learned: MadeOnce<PyDict>,
}

/// Raises if a progress bar is asked for and its extra is missing.
fn check_progress(py: Python<'_>, progress: ProgressMode) -> PyResult<()> {
    if progress == ProgressMode::Always {
        py.import("chainframe.progress")?.call_method0("require_tqdm")?;
    }
    Ok(())
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (*positional, **settings), text_signature = "(*, base_url=None, api_key=None, secret_key=None, \
        passphrase=None, main_chain=None, zone_chain=None, deployment=None, timeout=30.0, deadline=120.0, max_retries=5, \
        rate_limit='auto', max_requests=None, concurrency='auto', strict=False, numbers=None, max_response_bytes=67108864, \
        proxy=None, ca_bundle=None, cassette=None, progress='auto', on_attempt=None, credentials=None, cache=None)")]
    fn new(py: Python<'_>, positional: &Bound<'_, PyTuple>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = GivenSettings::new(py, settings);
        given.check_names(&py.get_type::<Self>())?;
        if !positional.is_empty() {
            return Err(PyTypeError::new_err("Client() takes its settings by keyword: Client(base_url=...)"));
        }
        let callables = Callables {
            on_attempt: CallableSetting::new("on_attempt", given.get("on_attempt")?)?,
            credentials: CallableSetting::new("credentials", given.get("credentials")?)?,
        };
        let cassette = match given.optional::<Py<Cassette>>("cassette")? {
            None => environment_cassette(py)?,
            Some(cassette) => Some(cassette.get().clone()),
        };
        let deployment = match given.optional::<Py<Deployment>>("deployment")? {
            None => _environment_deployment(py)?.inner,
            Some(deployment) => deployment.get().inner.clone(),
        };
        let environment = callables.environment(py, deployment.signed())?;
        let environment = Environment { origin: origin(py), ..environment };
        let progress = given.item("progress")?.map_or(Ok(ProgressMode::Auto), |mode| mode.extract())?;
        check_progress(py, progress)?;
        let is_issued = callables.credentials.callable().is_some();
        let settings = checked(&given, deployment, cassette.as_ref(), is_issued)?;
        let inner = client::Client::with_environment(settings, environment)?;
        Self::of(py, inner, progress, callables)
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        let calls: Vec<_> = ENDPOINTS.iter().map(|endpoint| endpoint.name).collect();
        let advice = arguments::renamed(slf, name, &calls)?;
        Err(arguments::no_attribute(slf, name, &advice))
    }

    #[doc = doc!(Client.base_url)]
    #[getter]
    fn base_url(&self) -> String {
        self.inner.settings().base_url()
    }

    #[doc = doc!(Client.main_chain)]
    #[getter]
    fn main_chain(&self) -> &str {
        &self.inner.settings().main_chain
    }

    #[doc = doc!(Client.zone_chain)]
    #[getter]
    fn zone_chain(&self) -> &str {
        &self.inner.settings().zone_chain
    }

    #[doc = doc!(Client.deployment)]
    #[getter]
    pub(super) fn deployment(&self) -> Deployment {
        Deployment { inner: self.inner.settings().deployment.clone() }
    }

    #[doc = doc!(Client.numbers)]
    #[getter]
    pub(super) fn numbers(&self) -> Option<&'static str> {
        self.inner.settings().numbers.map(DecimalPolicy::name)
    }

    #[doc = doc!(Client.cache)]
    #[getter]
    pub(super) fn cache(&self) -> Option<Cache> {
        self.inner.settings().cache.clone().map(|inner| Cache { inner })
    }

    #[doc = doc!(Client.rate_limit_state)]
    #[getter]
    fn rate_limit_state(&self) -> RateLimitState {
        RateLimitState { inner: self.inner.rate_limiter_state() }
    }

    #[doc = doc!(Client.usage)]
    #[getter]
    fn usage(&self) -> Usage {
        Usage { inner: self.inner.usage() }
    }

    #[doc = doc!(Client.with_options)]
    #[pyo3(signature = (**options), text_signature = "($self, *, timeout=..., deadline=..., max_retries=..., \
        rate_limit=..., max_requests=..., concurrency=..., strict=..., numbers=..., cache=..., progress=...)")]
    fn with_options<'py>(
        slf: Py<Self>,
        py: Python<'py>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        let mut changes = RequestOptions::default();
        let mut progress = slf.get().progress;
        for (name, value) in options.into_iter().flatten() {
            let name: String = name.extract()?;
            match name.as_str() {
                "timeout" => changes.timeout = Some(setting_of(&value, "timeout")?),
                "deadline" => changes.deadline = Some(optional_setting_of(&value, "deadline")?),
                "max_retries" => changes.max_retries = Some(setting_of(&value, "max_retries")?),
                "rate_limit" => changes.rate_limit = Some(setting_of(&value, "rate_limit")?),
                "max_requests" => changes.max_requests = Some(optional_setting_of(&value, "max_requests")?),
                "concurrency" => changes.concurrency = Some(setting_of(&value, "concurrency")?),
                "strict" => changes.strict = Some(setting_of(&value, "strict")?),
                "numbers" => changes.numbers = Some(optional_setting_of(&value, "numbers")?),
                "cache" => {
                    let given = (!value.is_none()).then(|| given_cache(&value));
                    changes.cache = Some(given.transpose()?);
                }
                "progress" => progress = value.extract()?,
                _ => return Err(arguments::unexpected(slf.bind(py).getattr("with_options")?.as_any(), &name)),
            }
        }
        check_progress(py, progress)?;
        let inner = slf.get().inner.with_options(changes)?;
        let callables = slf.get().callables.derived(py, slf.clone_ref(py).as_any());
        let derived = Bound::new(py, Self::of(py, inner, progress, callables)?)?;
        // Methods that a test has replaced stay replaced.
        derived.getattr("__dict__")?.call_method1("update", (slf.bind(py).getattr("__dict__")?,))?;
        Ok(derived)
    }

    #[doc = doc!(Client.close)]
    fn close(&self) {
        self.inner.close();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(&self, kind: Any<'_>, error: Any<'_>, traceback: Any<'_>) {
        let _ = (kind, error, traceback);
        self.close();
    }

    fn __aenter__(slf: Py<Self>) -> Coroutine {
        coroutine("Client.__aenter__", slf.get().inner.clone(), move |_| {
            Ok((ready(()), move |_: Python<'_>, ()| Ok(slf.into_any())))
        })
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __aexit__(slf: Py<Self>, kind: Any<'_>, error: Any<'_>, traceback: Any<'_>) -> Coroutine {
        let _ = (kind, error, traceback);
        coroutine("Client.__aexit__", slf.get().inner.clone(), move |_| {
            slf.get().close();
            Ok((ready(()), |py: Python<'_>, ()| Ok(py.None())))
        })
    }

    /// Clients are equal when they would ask the same service in the same way.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.inner.is_equivalent(&other.get().inner))
    }

    fn __hash__(&self) -> u64 {
        hash_of(self.base_url())
    }

    /// Methods can be replaced, as test doubles do; a name of something else is a mistake.
    fn __setattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let is_method = slf.get_type().getattr_opt(name)?.is_some_and(|own| own.is_callable());
        if !is_method || name.to_str()?.starts_with('_') {
            return Err(PyAttributeError::new_err(format!(
                "cannot set {name}: only methods of a Client can be replaced"
            )));
        }
        slf.getattr("__dict__")?.set_item(name, value)
    }

    fn __delattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        let deleted = slf.getattr("__dict__")?.del_item(name);
        deleted.map_err(|_| PyAttributeError::new_err(format!("{name} was not replaced")))
    }

    #[getter]
    fn _learned(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        self.learned.get(py, || Ok::<_, PyErr>(PyDict::new(py))).map(|learned| learned.clone().unbind())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callables.traverse(&visit)
    }

    fn __clear__(&self) {
        self.callables.clear();
    }
}

impl Client {
    pub(super) fn of(
        py: Python<'_>,
        inner: client::Client,
        progress: ProgressMode,
        callables: Callables,
    ) -> PyResult<Self> {
        // Imports what requests need: a module that another thread is importing during a fork stays locked in the child.
        log::refresh(py)?;
        Ok(Self { inner, progress, callables, learned: MadeOnce::new() })
    }
}
