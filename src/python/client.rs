//! `Client`: settings from arguments and the environment, and the nine calls.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};

use super::arguments::{self, Whole};
use super::cassette::{_environment_cassette, Cassette};
use super::deployment::Deployment;
use super::pace::RateLimitState;
use super::progress::Show;
use super::query::Query;
use super::{errors, html};
use crate::client::{self, Credentials, Error, Given, RateLimit, Secret, Settings};
use crate::interface::{self, endpoint};
use crate::query::Options;

/// Where a client that only replays is said to be: a name that never leads anywhere.
const NOWHERE: &str = "https://cassette.invalid";
/// What it has for credentials.
const NOBODY: &str = "no-credentials-for-a-replay";

type Any<'py> = Option<Bound<'py, PyAny>>;

#[pyclass(frozen, module = "chainframe")]
pub struct Client {
    pub inner: client::Client,
    pub progress: Show,
}

/// The argument, or the environment's variable, or the default.
fn setting(py: Python<'_>, name: &'static str, given: Option<String>, default: Option<&str>) -> PyResult<String> {
    let variable = errors::variable(name);
    let found = given.or_else(|| std::env::var(&variable).ok()).or_else(|| default.map(str::to_owned));
    found.ok_or_else(|| errors::raise(py, &Error::config(name, format!("is missing; pass {name}= or set {variable}"))))
}

fn rate_limit(given: &Bound<'_, PyAny>) -> Result<RateLimit, Error> {
    let refuse = || Error::config("rate_limit", "is neither \"auto\", nor a number of requests per second, nor None");
    if given.is_none() {
        return Ok(RateLimit::Unlimited);
    }
    if let Ok(text) = given.cast::<PyString>() {
        return if text == "auto" { Ok(RateLimit::Auto) } else { Err(refuse()) };
    }
    if given.is_instance_of::<PyBool>() {
        return Err(refuse());
    }
    given.extract().map(RateLimit::PerSecond).map_err(|_| refuse())
}

/// Named for requests, whose users have it set already. (`SSL_CERT_FILE` is read with the platform's certificates.)
fn ca_bundle_of_environment() -> Option<PathBuf> {
    std::env::var_os("REQUESTS_CA_BUNDLE").filter(|path| !path.is_empty()).map(PathBuf::from)
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (
        *, base_url=None, api_key=None, secret_key=None, passphrase=None, main_chain=None, zone_chain=None,
        deployment=None, timeout=30.0, deadline=Some(120.0), max_retries=Whole::of(5), rate_limit=Pace(Ok(RateLimit::Auto)),
        concurrency=Whole::of(4), strict=false, max_body=Whole::of(67_108_864), proxy=None, ca_bundle=None, cassette=None,
        progress=Show::Auto,
    ), text_signature = "(*, base_url=None, api_key=None, secret_key=None, passphrase=None, main_chain=None, \
        zone_chain=None, deployment=None, timeout=30.0, deadline=120.0, max_retries=5, rate_limit='auto', \
        concurrency=4, strict=False, max_body=67108864, proxy=None, ca_bundle=None, cassette=None, progress='auto')")]
    #[expect(clippy::too_many_arguments, reason = "the settings, all by keyword")]
    fn new(
        py: Python<'_>,
        base_url: Option<String>,
        api_key: Option<String>,
        secret_key: Option<String>,
        passphrase: Option<String>,
        main_chain: Option<String>,
        zone_chain: Option<String>,
        deployment: Option<&Bound<'_, Deployment>>,
        timeout: f64,
        deadline: Option<f64>,
        max_retries: Whole,
        rate_limit: Pace,
        concurrency: Whole,
        strict: bool,
        max_body: Whole,
        proxy: Option<String>,
        ca_bundle: Option<PathBuf>,
        cassette: Option<&Bound<'_, Cassette>>,
        progress: Show,
    ) -> PyResult<Self> {
        let cassette = match cassette {
            None => _environment_cassette(py, false)?,
            Some(given) => Some(given.get().clone()),
        };
        // Without a service to ask, nothing needs to be known of it.
        let replays = cassette.as_ref().is_some_and(|cassette| !cassette.inner.records());
        let secret = |name, given| setting(py, name, given, Some(NOBODY).filter(|_| replays)).map(Secret::new);
        let given = Given {
            base_url: setting(py, "base_url", base_url, Some(NOWHERE).filter(|_| replays))?,
            credentials: Credentials {
                api_key: secret("api_key", api_key)?,
                secret_key: secret("secret_key", secret_key)?,
                passphrase: secret("passphrase", passphrase)?,
            },
            main_chain: setting(py, "main_chain", main_chain, Some("MAIN"))?,
            zone_chain: setting(py, "zone_chain", zone_chain, Some("ZONE_CHAIN"))?,
            deployment: deployment.map_or_else(interface::Deployment::default, |given| given.get().inner.clone()),
            timeout,
            deadline,
            max_retries: 0,
            rate_limit: RateLimit::Auto,
            concurrency: 0,
            strict,
            max_body: 0,
            proxy,
            ca_bundle: ca_bundle.or_else(ca_bundle_of_environment),
            cassette: cassette.map(|cassette| cassette.inner),
        };
        let checked = move || {
            let max_retries = max_retries.setting("max_retries")?;
            let concurrency = concurrency.setting("concurrency")?;
            let max_body = max_body.setting("max_body")?;
            let rate_limit = rate_limit.0?;
            client::Client::new(Settings::new(Given { max_retries, rate_limit, concurrency, max_body, ..given })?)
        };
        if progress == Show::Always {
            // A missing extra is told where it was asked for.
            py.import("chainframe.progress")?.call_method0("need")?;
        }
        checked().map(|inner| Self { inner, progress }).map_err(|error| errors::raise(py, &error))
    }

    #[pyo3(signature = (
        *, protocol_type=None, token_contract_address=None, start_time=None, end_time=None, order_by=None,
        chain=None, page_size=None, max_items=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the call's parameters, all by keyword")]
    fn tokens(
        slf: &Bound<'_, Self>,
        protocol_type: Any<'_>,
        token_contract_address: Any<'_>,
        start_time: Any<'_>,
        end_time: Any<'_>,
        order_by: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [
            ("protocol_type", protocol_type),
            ("token_contract_address", token_contract_address),
            ("start_time", start_time),
            ("end_time", end_time),
            ("order_by", order_by),
        ];
        query(slf, "tokens", &args, (chain, page_size, max_items))
    }

    #[pyo3(signature = (
        token_contract_address, *, min_amount=None, max_amount=None, chain=None, page_size=None, max_items=None,
    ))]
    fn token_transfers(
        slf: &Bound<'_, Self>,
        token_contract_address: Any<'_>,
        min_amount: Any<'_>,
        max_amount: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [
            ("token_contract_address", token_contract_address),
            ("min_amount", min_amount),
            ("max_amount", max_amount),
        ];
        query(slf, "token_transfers", &args, (chain, page_size, max_items))
    }

    #[pyo3(signature = (
        *, tx_id=None, height=None, start_height=None, end_height=None, address=None, from_address=None,
        to_address=None, token_contract_address=None, chain=None, page_size=None, max_items=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the call's parameters, all by keyword")]
    fn cross_chain_transactions(
        slf: &Bound<'_, Self>,
        tx_id: Any<'_>,
        height: Any<'_>,
        start_height: Any<'_>,
        end_height: Any<'_>,
        address: Any<'_>,
        from_address: Any<'_>,
        to_address: Any<'_>,
        token_contract_address: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [
            ("tx_id", tx_id),
            ("height", height),
            ("start_height", start_height),
            ("end_height", end_height),
            ("address", address),
            ("from_address", from_address),
            ("to_address", to_address),
            ("token_contract_address", token_contract_address),
        ];
        query(slf, "cross_chain_transactions", &args, (chain, page_size, max_items))
    }

    #[pyo3(signature = (*, height=None, chain=None, page_size=None, max_items=None))]
    fn blocks(
        slf: &Bound<'_, Self>,
        height: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        query(slf, "blocks", &[("height", height)], (chain, page_size, max_items))
    }

    #[pyo3(signature = (
        address, *, start_height=None, end_height=None, direction=None, chain=None, page_size=None, max_items=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the call's parameters, nearly all by keyword")]
    fn address_transactions(
        slf: &Bound<'_, Self>,
        address: Any<'_>,
        start_height: Any<'_>,
        end_height: Any<'_>,
        direction: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [
            ("address", address),
            ("start_height", start_height),
            ("end_height", end_height),
            ("direction", direction),
        ];
        query(slf, "address_transactions", &args, (chain, page_size, max_items))
    }

    #[pyo3(signature = (*, min_amount=None, height=None, chain=None, page_size=None, max_items=None))]
    fn large_transactions(
        slf: &Bound<'_, Self>,
        min_amount: Any<'_>,
        height: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [("min_amount", min_amount), ("height", height)];
        query(slf, "large_transactions", &args, (chain, page_size, max_items))
    }

    #[pyo3(signature = (
        *, block_hash=None, height=None, start_height=None, end_height=None, chain=None, page_size=None, max_items=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the call's parameters, all by keyword")]
    fn transactions(
        slf: &Bound<'_, Self>,
        block_hash: Any<'_>,
        height: Any<'_>,
        start_height: Any<'_>,
        end_height: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [
            ("block_hash", block_hash),
            ("height", height),
            ("start_height", start_height),
            ("end_height", end_height),
        ];
        query(slf, "transactions", &args, (chain, page_size, max_items))
    }

    #[pyo3(signature = (tx_ids, *, chain=None))]
    fn transactions_by_hash(slf: &Bound<'_, Self>, tx_ids: Any<'_>, chain: Any<'_>) -> PyResult<Query> {
        query(slf, "transactions_by_hash", &[("tx_ids", tx_ids)], (chain, None, None))
    }

    #[pyo3(signature = (tx_ids, *, chain=None))]
    fn logs(slf: &Bound<'_, Self>, tx_ids: Any<'_>, chain: Any<'_>) -> PyResult<Query> {
        query(slf, "logs", &[("tx_ids", tx_ids)], (chain, None, None))
    }

    fn resume(slf: &Bound<'_, Self>, cursor: &Bound<'_, PyAny>) -> PyResult<Query> {
        match cursor.cast::<PyString>() {
            Ok(text) => Query::resume(slf, text.to_str()?),
            Err(_) => Err(errors::parameter(slf.py(), "cursor", "is not the text of a cursor")),
        }
    }

    #[getter]
    fn base_url(&self) -> String {
        self.inner.settings().base_url()
    }

    #[getter]
    fn main_chain(&self) -> &str {
        &self.inner.settings().main_chain
    }

    #[getter]
    fn zone_chain(&self) -> &str {
        &self.inner.settings().zone_chain
    }

    #[getter]
    fn deployment(&self) -> Deployment {
        Deployment { inner: self.inner.settings().deployment.clone() }
    }

    #[getter]
    fn rate_limit_state(&self) -> RateLimitState {
        RateLimitState { inner: self.inner.pace() }
    }

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

    fn __aenter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        super::bridge::coroutine(py, std::future::ready(()), move |_, ()| Ok(slf.into_any()))
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __aexit__(&self, py: Python<'_>, kind: Any<'_>, error: Any<'_>, traceback: Any<'_>) -> PyResult<Py<PyAny>> {
        let _ = (kind, error, traceback);
        self.close();
        super::bridge::coroutine(py, std::future::ready(()), |py, ()| Ok(py.None()))
    }

    /// Clients are equal when they would ask the same service in the same way.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.inner.settings() == other.get().inner.settings())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.base_url().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let settings = self.inner.settings();
        format!(
            "Client(base_url='{}', main_chain='{}', zone_chain='{}')",
            settings.base_url(),
            settings.main_chain,
            settings.zone_chain
        )
    }

    fn _repr_html_(&self) -> String {
        let settings = self.inner.settings();
        let rate = match (settings.rate_limit, self.inner.pace().rate) {
            (RateLimit::Auto, Some(rate)) => format!("auto, now {rate:.1} a second"),
            (RateLimit::Auto, None) => "auto, not held back".into(),
            (RateLimit::PerSecond(rate), _) => format!("{rate} a second"),
            (RateLimit::Unlimited, _) => "none".into(),
        };
        let deadline = settings.deadline.map_or("none".into(), |deadline| format!("{} s", deadline.as_secs_f64()));
        let facts = [
            ("main chain", settings.main_chain.clone()),
            ("zone chain", settings.zone_chain.clone()),
            ("rate limit", rate),
            ("concurrency", settings.concurrency.to_string()),
            ("timeout, deadline", format!("{} s, {deadline}", settings.timeout.as_secs_f64())),
            ("retries", settings.max_retries.to_string()),
            ("strict", if settings.strict { "True" } else { "False" }.into()),
        ];
        html::form("Client", &format!("of {}", settings.base_url()), &[html::pairs(&facts)])
    }

    /// A client is shared, not copied: a copy through pickling would have lost its secrets.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let settings = self.inner.settings();
        let given = PyDict::new(py);
        given.set_item("base_url", settings.base_url())?;
        given.set_item("main_chain", &settings.main_chain)?;
        given.set_item("zone_chain", &settings.zone_chain)?;
        given.set_item("deployment", self.deployment())?;
        given.set_item("timeout", settings.timeout.as_secs_f64())?;
        given.set_item("deadline", settings.deadline.map(|deadline| deadline.as_secs_f64()))?;
        given.set_item("max_retries", settings.max_retries)?;
        match settings.rate_limit {
            RateLimit::Auto => given.set_item("rate_limit", "auto")?,
            RateLimit::PerSecond(rate) => given.set_item("rate_limit", rate)?,
            RateLimit::Unlimited => given.set_item("rate_limit", py.None())?,
        }
        given.set_item("concurrency", settings.concurrency)?;
        given.set_item("strict", settings.strict)?;
        given.set_item("max_body", settings.max_body)?;
        // A proxy's address may hold a password.
        given.set_item("proxy", settings.proxy.as_ref().filter(|proxy| !proxy.contains('@')))?;
        given.set_item("ca_bundle", &settings.ca_bundle)?;
        given.set_item("cassette", settings.cassette.clone().map(|inner| Cassette { inner }))?;
        given.set_item("progress", self.progress.into_python(py))?;
        let restore = py.import("chainframe._native")?.getattr("_restore_client")?;
        Ok((restore, (given,).into_pyobject(py)?))
    }
}

/// The `rate_limit` argument, of which None means no limit. It is refused with the other settings, by our own error.
struct Pace(Result<RateLimit, Error>);

impl<'py> FromPyObject<'_, 'py> for Pace {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(rate_limit(&given)))
    }
}

fn query(
    slf: &Bound<'_, Client>,
    call: &'static str,
    args: &[(&'static str, Any<'_>)],
    (chain, page_size, max_items): (Any<'_>, Any<'_>, Any<'_>),
) -> PyResult<Query> {
    let py = slf.py();
    let endpoint = endpoint(call).ok_or_else(|| PyTypeError::new_err(format!("no call {call:?}")))?;
    let args = arguments::given(py, endpoint, args)?;
    let whole = |name: &str, value: Any<'_>| match value {
        None => Ok(None),
        Some(value) if value.is_instance_of::<PyBool>() => Err(errors::parameter(py, name, "is a bool")),
        Some(value) => {
            let whole = value.extract().map(Some);
            whole.map_err(|_| errors::parameter(py, name, "is not a whole number of 64 bits"))
        }
    };
    let chain = match chain {
        None => None,
        Some(chain) => Some(chain.extract().map_err(|_| errors::parameter(py, "chain", "is not text"))?),
    };
    let options = Options {
        chain,
        page_size: whole("page_size", page_size)?,
        max_items: whole("max_items", max_items)?,
        later: false,
    };
    Query::new(slf, call, args, options)
}

#[pyfunction]
pub fn _restore_client<'py>(given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    given.py().get_type::<Client>().call((), Some(given))
}

/// For `chainframe doctor`, which signs what is known.
#[pyfunction]
pub fn _signature(secret: String, timestamp: &str, target: &str) -> String {
    client::signature(&interface::Deployment::default(), &Secret::new(secret), timestamp, target)
}
