//! Settings of a client as the caller gives them, and those of the environment in their place.

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::cache::{cache_of_environment, given_cache};
use super::cassette::Cassette;
use super::credentials::NO_CREDENTIALS;
use super::deployment::Deployment;
use crate::client::{
    Concurrency, Credentials, Error, MAX_RESPONSE_BYTES, RateLimit, Secret, Settings, SettingsInput, variables,
};
use crate::columns::DecimalPolicy;
use crate::interface;
use crate::message::{Hint, Message, variable};
use crate::python::base::arguments::Readable;
use crate::python::base::given::GivenSettings;
use crate::python::base::paths::setting_path;

/// Base URL of a client that only replays: a name that is never resolved.
const NO_URL: &str = "https://cassette.invalid";

/// Variables that are read before there is a client, where an error could not be raised.
const READ_EARLIER: [&str; 2] = ["CHAINFRAME_BLOCK_NETWORK", "CHAINFRAME_LOG"];

/// Checks the settings of a client. `is_issued` is true if a callable issues the credentials.
pub fn checked(
    given: &GivenSettings<'_>,
    deployment: interface::Deployment,
    cassette: Option<&Cassette>,
    is_issued: bool,
) -> PyResult<Settings> {
    for name in READ_EARLIER {
        variables::read(name, name)?;
    }
    let [api_key, secret_key, passphrase] = ["api_key", "secret_key", "passphrase"].map(|name| given.get(name));
    if is_issued && (api_key?.is_some() || secret_key?.is_some() || passphrase?.is_some()) {
        let problem = Message::new("replaces ").parameter("api_key").text(", ").parameter("secret_key");
        let problem = problem.text(" and ").parameter("passphrase").text("; pass either");
        return Err(Error::config("credentials", problem).into());
    }
    let mut needed = Needed { cassette, is_issued, is_signed: deployment.signed(), missing: None };
    Ok(Settings::new(SettingsInput {
        base_url: needed.setting("base_url", given.optional("base_url")?, NO_URL)?,
        credentials: Credentials {
            api_key: needed.secret("api_key", given.optional("api_key")?)?,
            secret_key: needed.signing_secret("secret_key", given.optional("secret_key")?)?,
            passphrase: needed.signing_secret("passphrase", given.optional("passphrase")?)?,
        },
        main_chain: setting("main_chain", given.optional("main_chain")?)?.unwrap_or_else(|| "MAIN".into()),
        zone_chain: setting("zone_chain", given.optional("zone_chain")?)?.unwrap_or_else(|| "ZONE_CHAIN".into()),
        deployment,
        timeout: given.read("timeout")?.unwrap_or(30.0),
        deadline: if given.item("deadline")?.is_some() { given.optional("deadline")? } else { Some(120.0) },
        max_retries: given.read("max_retries")?.unwrap_or(5),
        rate_limit: or_else(given.read("rate_limit")?, rate_limit_of_environment)?.unwrap_or(RateLimit::Auto),
        max_requests: or_else(given.optional("max_requests")?, max_requests_of_environment)?,
        concurrency: or_else(given.read("concurrency")?, concurrency_of_environment)?.unwrap_or(Concurrency::Auto),
        strict: given.read("strict")?.unwrap_or(false),
        numbers: or_else(given.optional("numbers")?, numbers_of_environment)?,
        max_response_bytes: given.read("max_response_bytes")?.unwrap_or(MAX_RESPONSE_BYTES),
        proxy: given.optional("proxy")?,
        ca_bundle: given.get("ca_bundle")?.map(|path| setting_path(&path, "ca_bundle")).transpose()?,
        cassette: cassette.map(|cassette| cassette.inner.clone()),
        cache: match given.get("cache")? {
            Some(value) => Some(given_cache(&value)?),
            None => cache_of_environment()?,
        },
        missing: needed.missing,
    })?)
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
    fn setting(&mut self, name: &'static str, given: Option<String>, stand_in: &str) -> Result<String, Error> {
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

    fn secret(&mut self, name: &'static str, given: Option<String>) -> Result<Secret, Error> {
        if self.is_issued {
            return Ok(Secret::new(NO_CREDENTIALS.into()));
        }
        self.setting(name, given, NO_CREDENTIALS).map(Secret::new)
    }

    /// A secret that a deployment without signatures does not need.
    fn signing_secret(&mut self, name: &'static str, given: Option<String>) -> Result<Secret, Error> {
        match setting(name, given)? {
            None if !self.is_signed => Ok(Secret::new(NO_CREDENTIALS.into())),
            given => self.secret(name, given),
        }
    }
}

/// The argument, or the setting of the environment.
fn or_else<T>(given: Option<T>, of_environment: impl FnOnce() -> Result<Option<T>, Error>) -> Result<Option<T>, Error> {
    if given.is_some() { Ok(given) } else { of_environment() }
}

fn setting(name: &'static str, given: Option<String>) -> Result<Option<String>, Error> {
    or_else(given, || variables::read(name, &variable(name)))
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

/// None means no limit.
impl Readable for RateLimit {
    const EXPECTED: &'static str = "must be \"auto\", a number (requests per second) or None";

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self::Unlimited);
        }
        if is_auto(given) { Ok(Self::Auto) } else { f64::read(given).map(Self::PerSecond) }
    }
}

impl Readable for Concurrency<i64> {
    const EXPECTED: &'static str = "must be \"auto\" or an integer from 1 to 256";

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if is_auto(given) { Ok(Self::Auto) } else { i64::read(given).map(Self::Fixed) }
    }
}

fn is_auto(given: &Bound<'_, PyAny>) -> bool {
    given.cast::<PyString>().is_ok_and(|text| text == "auto")
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
