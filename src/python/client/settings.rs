//! Settings of a client as the caller gives them, and those of the environment in their place.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use super::cache::{GivenCache, cache_of_environment};
use super::cassette::Cassette;
use super::credentials::NO_CREDENTIALS;
use super::deployment::Deployment;
use crate::client::{Concurrency, Credentials, Error, RateLimit, Secret, Settings, SettingsInput, variables};
use crate::columns::DecimalPolicy;
use crate::interface;
use crate::message::{Hint, Message, variable};
use crate::python::base::arguments::{DeferredArg, Readable, named};

/// Base URL of a client that only replays: a name that is never resolved.
const NO_URL: &str = "https://cassette.invalid";

/// Variables that are read before there is a client, where an error could not be raised.
const READ_EARLIER: [&str; 2] = ["CHAINFRAME_BLOCK_NETWORK", "CHAINFRAME_LOG"];

/// Settings as the caller gave them.
pub struct GivenSettings {
    pub base_url: Option<DeferredArg<String>>,
    pub api_key: Option<DeferredArg<String>>,
    pub secret_key: Option<DeferredArg<String>>,
    pub passphrase: Option<DeferredArg<String>>,
    pub main_chain: Option<DeferredArg<String>>,
    pub zone_chain: Option<DeferredArg<String>>,
    pub timeout: DeferredArg<f64>,
    pub deadline: Option<DeferredArg<f64>>,
    pub max_retries: DeferredArg<i64>,
    pub rate_limit: DeferredArg<Option<RateLimit>>,
    pub max_requests: Option<DeferredArg<i64>>,
    pub concurrency: DeferredArg<Option<Concurrency<i64>>>,
    pub strict: DeferredArg<bool>,
    pub numbers: Option<DeferredArg<DecimalPolicy>>,
    pub max_response_bytes: DeferredArg<i64>,
    pub proxy: Option<DeferredArg<String>>,
    pub ca_bundle: Option<DeferredArg<PathBuf>>,
    pub cache: Option<GivenCache>,
}

impl GivenSettings {
    /// Checks the settings. `is_issued` is true if a callable issues the credentials.
    pub fn check(
        self,
        deployment: interface::Deployment,
        cassette: Option<&Cassette>,
        is_issued: bool,
    ) -> Result<Settings, Error> {
        for name in READ_EARLIER {
            variables::read(name, name)?;
        }
        if is_issued && (self.api_key.is_some() || self.secret_key.is_some() || self.passphrase.is_some()) {
            let problem = Message::new("replaces ").parameter("api_key").text(", ").parameter("secret_key");
            let problem = problem.text(" and ").parameter("passphrase").text("; pass either");
            return Err(Error::config("credentials", problem));
        }
        let mut needed = Needed { cassette, is_issued, is_signed: deployment.signed(), missing: None };
        Settings::new(SettingsInput {
            base_url: needed.setting("base_url", self.base_url, NO_URL)?,
            credentials: Credentials {
                api_key: needed.secret("api_key", self.api_key)?,
                secret_key: needed.signing_secret("secret_key", self.secret_key)?,
                passphrase: needed.signing_secret("passphrase", self.passphrase)?,
            },
            main_chain: setting("main_chain", self.main_chain)?.unwrap_or_else(|| "MAIN".into()),
            zone_chain: setting("zone_chain", self.zone_chain)?.unwrap_or_else(|| "ZONE_CHAIN".into()),
            deployment,
            timeout: self.timeout.named("timeout")?,
            deadline: named("deadline", self.deadline)?,
            max_retries: self.max_retries.named("max_retries")?,
            rate_limit: match self.rate_limit.named("rate_limit")? {
                Some(given) => given,
                None => rate_limit_of_environment()?.unwrap_or(RateLimit::Auto),
            },
            max_requests: match self.max_requests {
                Some(given) => Some(given.named("max_requests")?),
                None => max_requests_of_environment()?,
            },
            concurrency: match self.concurrency.named("concurrency")? {
                Some(given) => given,
                None => concurrency_of_environment()?.unwrap_or(Concurrency::Auto),
            },
            strict: self.strict.named("strict")?,
            numbers: match self.numbers {
                Some(given) => Some(given.named("numbers")?),
                None => numbers_of_environment()?,
            },
            max_response_bytes: self.max_response_bytes.named("max_response_bytes")?,
            proxy: named("proxy", self.proxy)?,
            ca_bundle: named("ca_bundle", self.ca_bundle)?,
            cassette: cassette.map(|cassette| cassette.inner.clone()),
            cache: match self.cache {
                Some(given) => Some(given.checked()?),
                None => cache_of_environment()?,
            },
            missing: needed.missing,
        })
    }
}

/// Settings that requests need. A replay sends none, and has stand-ins in their place: a cassette that may also record
/// reports the first missing setting when a request has to be sent.
struct Needed<'a> {
    cassette: Option<&'a Cassette>,
    is_issued: bool,
    is_signed: bool,
    missing: Option<(&'static str, Message)>,
}

impl Needed<'_> {
    fn setting(
        &mut self,
        name: &'static str,
        given: Option<DeferredArg<String>>,
        stand_in: &str,
    ) -> Result<String, Error> {
        if let Some(found) = setting(name, given)? {
            return Ok(found);
        }
        let problem = is_missing(name, self.cassette);
        if !self.cassette.is_some_and(|Cassette { inner }| !inner.can_record() || inner.may_replay()) {
            return Err(Error::config(name, problem));
        }
        self.missing.get_or_insert((name, problem));
        Ok(stand_in.to_owned())
    }

    fn secret(&mut self, name: &'static str, given: Option<DeferredArg<String>>) -> Result<Secret, Error> {
        if self.is_issued {
            return Ok(Secret::new(NO_CREDENTIALS.into()));
        }
        self.setting(name, given, NO_CREDENTIALS).map(Secret::new)
    }

    /// A secret that a deployment without signatures does not need.
    fn signing_secret(&mut self, name: &'static str, given: Option<DeferredArg<String>>) -> Result<Secret, Error> {
        match setting(name, given)? {
            None if !self.is_signed => Ok(Secret::new(NO_CREDENTIALS.into())),
            given => self.secret(name, given.map(|given| DeferredArg(Ok(given)))),
        }
    }
}

/// The argument, or the environment's variable.
fn setting(name: &'static str, given: Option<DeferredArg<String>>) -> Result<Option<String>, Error> {
    match given {
        Some(given) => given.named(name).map(Some),
        None => variables::read(name, &variable(name)),
    }
}

/// A setting is missing that is needed to send requests, and so to record them.
fn is_missing(name: &str, cassette: Option<&Cassette>) -> Message {
    let missing = format!("is missing{}", misnamed(name));
    let problem = match cassette.map(|Cassette { inner }| (inner.path().display(), inner.may_replay())) {
        None => missing,
        Some((path, false)) => format!("{missing}: {path} has nothing to replay, so requests would be sent"),
        Some((path, true)) => format!("{missing}: {path} does not have the request, so it would be sent"),
    };
    Message::new(problem).hint(Hint::PassSetting(name.to_owned()))
}

/// A variable of the environment that may be meant for a setting, in brackets: one whose name is not quite right.
fn misnamed(setting: &str) -> String {
    const PREFIX: &str = "CHAINFRAME_";
    const SETTINGS: [(&str, &[&str]); 6] = [
        ("base_url", &["URL", "HOST", "ENDPOINT"]),
        ("api_key", &["KEY", "TOKEN"]),
        ("secret_key", &["SECRET"]),
        ("passphrase", &["PASS"]),
        ("main_chain", &["CHAIN"]),
        ("zone_chain", &["CHAIN"]),
    ];
    let words = SETTINGS.iter().find(|(name, _)| *name == setting).map_or(&[][..], |(_, words)| words);
    let variables = std::env::vars_os().filter_map(|(variable, _)| variable.into_string().ok());
    let meant = variables.filter(|variable| {
        let Some(name) = variable.strip_prefix(PREFIX) else { return false };
        let is_of_another = SETTINGS.iter().any(|(setting, _)| name.eq_ignore_ascii_case(setting));
        // The word "secret" says more than the word "key".
        let is_secret = setting == "api_key" && name.contains("SECRET");
        !is_of_another && !is_secret && words.iter().any(|word| name.contains(word))
    });
    meant.min().map_or_else(String::new, |variable| format!(" ({variable} is set, which no setting reads)"))
}

/// The value of a setting; raises if it has another type.
pub fn setting_of<T: Readable>(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<T> {
    let given = DeferredArg(T::read(value).map_err(|_| T::problem(value)));
    Ok(given.named(name)?)
}

/// The value of a setting that may be None.
pub fn optional_setting_of<T: Readable>(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Option<T>> {
    if value.is_none() { Ok(None) } else { setting_of(value, name).map(Some) }
}

/// None means no limit.
impl Readable for RateLimit {
    const EXPECTED: &'static str = "must be \"auto\", a number (requests per second) or None";

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self::Unlimited);
        }
        if given.is_instance_of::<PyBool>() {
            return Err(PyTypeError::new_err(Self::EXPECTED));
        }
        match given.cast::<PyString>() {
            Ok(text) if text == "auto" => Ok(Self::Auto),
            _ => given.extract().map(Self::PerSecond),
        }
    }
}

impl Readable for Concurrency<i64> {
    const EXPECTED: &'static str = "must be \"auto\" or an integer from 1 to 256";

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if given.is_instance_of::<PyBool>() {
            return Err(PyTypeError::new_err(Self::EXPECTED));
        }
        match given.cast::<PyString>() {
            Ok(text) if text == "auto" => Ok(Self::Auto),
            _ => given.extract().map(Self::Fixed),
        }
    }
}

/// A rate limit that may be left to the environment.
impl Readable for Option<RateLimit> {
    const EXPECTED: &'static str = RateLimit::EXPECTED;

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        RateLimit::read(given).map(Some)
    }
}

/// A concurrency that may be left to the environment.
impl Readable for Option<Concurrency<i64>> {
    const EXPECTED: &'static str = Concurrency::EXPECTED;

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        Concurrency::read(given).map(Some)
    }
}

impl Readable for Py<Deployment> {
    const EXPECTED: &'static str = "must be a Deployment";

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(given.extract()?)
    }
}

impl Readable for Py<Cassette> {
    const EXPECTED: &'static str = "must be a chainframe.testing.Cassette, such as Cassette(\"calls.jsonl\")";

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(given.extract()?)
    }
}

/// A setting of the environment, if its variable is set.
fn of_environment<T>(
    name: &'static str,
    expected: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Error> {
    let Some(text) = variables::read(name, name)? else { return Ok(None) };
    parse(&text).map(Some).ok_or_else(|| Error::config(name, format!("{expected}; got {text:?}")))
}

fn rate_limit_of_environment() -> Result<Option<RateLimit>, Error> {
    of_environment("CHAINFRAME_RATE_LIMIT", "must be auto, none or requests per second", |text| match text {
        "auto" => Some(RateLimit::Auto),
        "none" => Some(RateLimit::Unlimited),
        rate => rate.parse().ok().map(RateLimit::PerSecond),
    })
}

fn concurrency_of_environment() -> Result<Option<Concurrency<i64>>, Error> {
    of_environment("CHAINFRAME_CONCURRENCY", "must be auto or an integer", |text| match text {
        "auto" => Some(Concurrency::Auto),
        requests => requests.parse().ok().map(Concurrency::Fixed),
    })
}

fn max_requests_of_environment() -> Result<Option<i64>, Error> {
    of_environment("CHAINFRAME_MAX_REQUESTS", "must be an integer", |text| text.parse().ok())
}

fn numbers_of_environment() -> Result<Option<DecimalPolicy>, Error> {
    of_environment("CHAINFRAME_NUMBERS", "must be decimal, float or string", |text| {
        DecimalPolicy::NAMES.iter().find(|(name, _)| *name == text).map(|(_, policy)| *policy)
    })
}
