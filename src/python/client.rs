//! `Client`: settings from arguments and the environment, and the nine calls.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};

use super::arguments::{Given as Argument, Readable};
use super::cassette::{_environment_cassette, Cassette};
use super::deployment::Deployment;
use super::pace::RateLimitState;
use super::progress::Show;
use super::query::Query;
use super::{arguments, errors, html};
use crate::client::{self, Credentials, Error, Given, RateLimit, Secret, Settings};
use crate::interface::{self, endpoint};
use crate::query::Options;

/// Where a client that only replays is said to be: a name that never leads anywhere.
const NOWHERE: &str = "https://cassette.invalid";
/// What it has for credentials.
const NOBODY: &str = "no-credentials-for-a-replay";

type Any<'py> = Option<Bound<'py, PyAny>>;

#[doc = doc!(Client)]
#[pyclass(frozen, module = "chainframe")]
pub struct Client {
    pub inner: client::Client,
    pub progress: Show,
}

/// The argument, or the environment's variable.
fn setting(name: &'static str, given: Option<Argument<String>>) -> Result<Option<String>, Error> {
    given
        .map(|given| given.named(name))
        .transpose()
        .map(|given| given.or_else(|| std::env::var(errors::variable(name)).ok()))
}

fn is_missing(name: &str) -> String {
    format!("is missing; pass {name}= or set {}", errors::variable(name))
}

/// None means no limit.
impl Readable for RateLimit {
    const REFUSED: &'static str = "is neither \"auto\", nor a number of requests per second, nor None";

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self::Unlimited);
        }
        match given.cast::<PyString>() {
            Ok(text) if text == "auto" => Ok(Self::Auto),
            _ if given.is_instance_of::<PyBool>() => Err(PyTypeError::new_err(Self::REFUSED)),
            _ => given.extract().map(Self::PerSecond),
        }
    }
}

/// Named for requests, whose users have it set already. (`SSL_CERT_FILE` is read with the platform's certificates.)
fn ca_bundle_of_environment() -> Option<PathBuf> {
    std::env::var_os("REQUESTS_CA_BUNDLE").filter(|path| !path.is_empty()).map(PathBuf::from)
}

const fn or<T>(default: T) -> Argument<T> {
    Argument(Ok(default))
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (
        *, base_url=None, api_key=None, secret_key=None, passphrase=None, main_chain=None, zone_chain=None,
        deployment=None, timeout=or(30.0), deadline=Some(or(120.0)), max_retries=or(5), rate_limit=or(RateLimit::Auto),
        concurrency=or(4), strict=false, max_body=or(67_108_864), proxy=None, ca_bundle=None, cassette=None,
        progress=Show::Auto,
    ), text_signature = "(*, base_url=None, api_key=None, secret_key=None, passphrase=None, main_chain=None, \
        zone_chain=None, deployment=None, timeout=30.0, deadline=120.0, max_retries=5, rate_limit='auto', \
        concurrency=4, strict=False, max_body=67108864, proxy=None, ca_bundle=None, cassette=None, progress='auto')")]
    #[expect(clippy::too_many_arguments, reason = "the settings, all by keyword")]
    fn new(
        py: Python<'_>,
        base_url: Option<Argument<String>>,
        api_key: Option<Argument<String>>,
        secret_key: Option<Argument<String>>,
        passphrase: Option<Argument<String>>,
        main_chain: Option<Argument<String>>,
        zone_chain: Option<Argument<String>>,
        deployment: Option<&Bound<'_, Deployment>>,
        timeout: Argument<f64>,
        deadline: Option<Argument<f64>>,
        max_retries: Argument<i64>,
        rate_limit: Argument<RateLimit>,
        concurrency: Argument<i64>,
        strict: bool,
        max_body: Argument<i64>,
        proxy: Option<Argument<String>>,
        ca_bundle: Option<Argument<PathBuf>>,
        cassette: Option<&Bound<'_, Cassette>>,
        progress: Show,
    ) -> PyResult<Self> {
        let cassette = match cassette {
            None => _environment_cassette(py, false)?,
            Some(given) => Some(given.get().clone()),
        };
        // Without a service to ask, nothing needs to be known of it; and where all may have been recorded, not before
        // something turns out not to be.
        let held = cassette.as_ref().is_some_and(|Cassette { inner }| !inner.records() || inner.may_replay());
        let checked = move || {
            let missing = RefCell::new(None);
            let needed = |name, given, stand_in: &str| match setting(name, given)? {
                Some(found) => Ok(found),
                None if held => {
                    missing.borrow_mut().get_or_insert_with(|| (name, is_missing(name)));
                    Ok(stand_in.to_owned())
                }
                None => Err(Error::config(name, is_missing(name))),
            };
            let secret = |name, given| needed(name, given, NOBODY).map(Secret::new);
            client::Client::new(Settings::new(Given {
                base_url: needed("base_url", base_url, NOWHERE)?,
                credentials: Credentials {
                    api_key: secret("api_key", api_key)?,
                    secret_key: secret("secret_key", secret_key)?,
                    passphrase: secret("passphrase", passphrase)?,
                },
                main_chain: setting("main_chain", main_chain)?.unwrap_or_else(|| "MAIN".into()),
                zone_chain: setting("zone_chain", zone_chain)?.unwrap_or_else(|| "ZONE_CHAIN".into()),
                deployment: deployment.map_or_else(interface::Deployment::default, |given| given.get().inner.clone()),
                timeout: timeout.named("timeout")?,
                deadline: deadline.map(|deadline| deadline.named("deadline")).transpose()?,
                max_retries: max_retries.named("max_retries")?,
                rate_limit: rate_limit.named("rate_limit")?,
                concurrency: concurrency.named("concurrency")?,
                strict,
                max_body: max_body.named("max_body")?,
                proxy: proxy.map(|proxy| proxy.named("proxy")).transpose()?,
                ca_bundle: match ca_bundle {
                    Some(path) => Some(path.named("ca_bundle")?),
                    None => ca_bundle_of_environment(),
                },
                cassette: cassette.map(|cassette| cassette.inner),
                missing: missing.into_inner(),
            })?)
        };
        if progress == Show::Always {
            // A missing extra is told where it was asked for.
            py.import("chainframe.progress")?.call_method0("need")?;
        }
        checked().map(|inner| Self { inner, progress }).map_err(|error| errors::raise(py, &error))
    }

    #[doc = doc!(Client.tokens)]
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

    #[doc = doc!(Client.token_transfers)]
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

    #[doc = doc!(Client.cross_chain_transactions)]
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

    #[doc = doc!(Client.blocks)]
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

    #[doc = doc!(Client.address_transactions)]
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

    #[doc = doc!(Client.large_transactions)]
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

    #[doc = doc!(Client.transactions)]
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

    #[doc = doc!(Client.transactions_by_hash)]
    #[pyo3(signature = (tx_ids, *, chain=None))]
    fn transactions_by_hash(slf: &Bound<'_, Self>, tx_ids: Any<'_>, chain: Any<'_>) -> PyResult<Query> {
        query(slf, "transactions_by_hash", &[("tx_ids", tx_ids)], (chain, None, None))
    }

    #[doc = doc!(Client.logs)]
    #[pyo3(signature = (tx_ids, *, chain=None))]
    fn logs(slf: &Bound<'_, Self>, tx_ids: Any<'_>, chain: Any<'_>) -> PyResult<Query> {
        query(slf, "logs", &[("tx_ids", tx_ids)], (chain, None, None))
    }

    #[doc = doc!(Client.resume)]
    fn resume(slf: &Bound<'_, Self>, cursor: &Bound<'_, PyAny>) -> PyResult<Query> {
        match cursor.cast::<PyString>() {
            Ok(text) => {
                let text = arguments::text(text).map_err(|problem| errors::parameter(slf.py(), "cursor", problem))?;
                Query::resume(slf, &text)
            }
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

    #[doc = doc!(Client.rate_limit_state)]
    #[getter]
    fn rate_limit_state(&self) -> RateLimitState {
        RateLimitState { inner: self.inner.pace() }
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
        Some(value) => i64::read(&value).map(Some).map_err(|_| errors::parameter(py, name, i64::REFUSED)),
    };
    let chain = match chain {
        None => None,
        Some(chain) => Some(String::read(&chain).map_err(|_| errors::parameter(py, "chain", String::REFUSED))?),
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
