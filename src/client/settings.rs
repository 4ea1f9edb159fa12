//! The settings of a client, checked.

use std::path::PathBuf;
use std::time::Duration;

use url::{Host, ParseError, Url};

use super::concurrency::Concurrency;
use super::credentials::{Credentials, Secret};
use super::error::{Error, Suspicion};
use super::proxy::Proxy;
use super::rate_controller::RateLimit;
use crate::cache::Cache;
use crate::cassette::Cassette;
use crate::columns::DecimalPolicy;
use crate::interface::{Chain, Deployment, foreign_character};
use crate::message::Message;

/// Default limit of a response: no page of records is longer.
pub const MAX_RESPONSE_BYTES: i64 = 64 << 20;

/// Longest time limit, which clocks can add.
const MAX_SECONDS: Duration = Duration::from_secs(366 * 86_400);
/// More connections than a rate of a thousand requests a second needs at 250 ms each.
const MAX_CONCURRENCY: i64 = 256;
/// One request per day.
const MIN_RATE: f64 = 1.0 / 86_400.0;

/// Unchecked settings.
#[derive(Clone, Debug)]
pub struct SettingsInput {
    pub base_url: String,
    pub credentials: Credentials,
    pub main_chain: String,
    pub zone_chain: String,
    pub deployment: Deployment,
    pub timeout: f64,
    pub deadline: Option<f64>,
    pub max_retries: i64,
    pub rate_limit: RateLimit,
    pub concurrency: Concurrency<i64>,
    pub max_requests: Option<i64>,
    pub strict: bool,
    pub numbers: Option<DecimalPolicy>,
    pub max_response_bytes: i64,
    pub proxy: Option<String>,
    pub ca_bundle: Option<PathBuf>,
    pub cassette: Option<Cassette>,
    pub cache: Option<Cache>,
    pub missing: Option<(&'static str, Message)>,
}

impl SettingsInput {
    /// The least that a client needs: single requests, sent once, at any rate.
    pub fn minimal(base_url: &str, credentials: Credentials) -> Self {
        Self {
            base_url: base_url.into(),
            credentials,
            main_chain: "MAIN".into(),
            zone_chain: "ZONE_CHAIN".into(),
            deployment: Deployment::default(),
            timeout: 30.0,
            deadline: None,
            max_retries: 0,
            rate_limit: RateLimit::Unlimited,
            concurrency: Concurrency::Fixed(1),
            max_requests: None,
            strict: false,
            numbers: None,
            max_response_bytes: 1 << 20,
            proxy: None,
            ca_bundle: None,
            cassette: None,
            cache: None,
            missing: None,
        }
    }
}

/// Changes of the settings that apply to requests and results, not to connections.
#[derive(Clone, Debug, Default)]
pub struct RequestOptions {
    pub timeout: Option<f64>,
    pub deadline: Option<Option<f64>>,
    pub max_retries: Option<i64>,
    pub rate_limit: Option<RateLimit>,
    pub max_requests: Option<Option<i64>>,
    pub concurrency: Option<Concurrency<i64>>,
    pub strict: Option<bool>,
    pub numbers: Option<Option<DecimalPolicy>>,
    pub cache: Option<Option<Cache>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Scheme and authority.
    pub origin: Url,
    /// Path prefix of the declared paths: empty, or with a slash in front and none at the end.
    pub prefix: String,
    pub is_loopback: bool,
    pub credentials: Credentials,
    pub main_chain: String,
    pub zone_chain: String,
    pub deployment: Deployment,
    pub timeout: Duration,
    pub deadline: Option<Duration>,
    pub max_retries: u32,
    pub rate_limit: RateLimit,
    pub concurrency: Concurrency,
    /// Most requests that the client may send.
    pub max_requests: Option<u64>,
    pub strict: bool,
    /// Type of amounts where a conversion or export names none; `None` is the default of each.
    pub numbers: Option<DecimalPolicy>,
    pub max_response_bytes: usize,
    pub proxy: Option<Proxy>,
    pub ca_bundle: Option<PathBuf>,
    pub cassette: Option<Cassette>,
    /// Results that were read before.
    pub cache: Option<Cache>,
    /// A missing setting that only unrecorded requests need, and the problem to raise for one.
    pub missing: Option<(&'static str, Message)>,
}

impl Settings {
    /// The first secret that has more around it than it should.
    pub fn doubtful_secret(&self) -> Option<Suspicion> {
        let Credentials { api_key, secret_key, passphrase } = &self.credentials;
        let secrets = [("api_key", api_key), ("secret_key", secret_key), ("passphrase", passphrase)];
        secrets.into_iter().find_map(|(setting, secret)| Some(Suspicion::Secret(setting, doubt(secret)?)))
    }

    pub fn new(given: SettingsInput) -> Result<Self, Error> {
        let url = base_url(&given.base_url)?;
        for (setting, secret) in [
            ("api_key", &given.credentials.api_key),
            ("secret_key", &given.credentials.secret_key),
            ("passphrase", &given.credentials.passphrase),
        ] {
            check_secret(setting, secret)?;
        }
        for (setting, chain) in [("main_chain", &given.main_chain), ("zone_chain", &given.zone_chain)] {
            if chain.is_empty() {
                return Err(Error::config(setting, "must not be empty; pass the short name of the chain"));
            }
            if let Some(found) = foreign_character(chain) {
                return Err(Error::config(setting, format!("must be the short name of a chain; {found}")));
            }
        }
        let proxy = given.proxy.map(|address| Proxy::parse("proxy", &address)).transpose()?;
        if let Some(proxy) = &proxy {
            proxy.check_origin(&url)?;
        }
        Ok(Self {
            origin: Url::parse(&url.origin().ascii_serialization()).expect("the origin of a URL is one"),
            prefix: url.path().trim_end_matches('/').to_owned(),
            is_loopback: is_loopback(&url),
            credentials: given.credentials,
            main_chain: given.main_chain,
            zone_chain: given.zone_chain,
            deployment: given.deployment,
            timeout: seconds("timeout", given.timeout)?,
            deadline: deadline(given.deadline)?,
            max_retries: max_retries(given.max_retries)?,
            rate_limit: rate_limit(given.rate_limit)?,
            concurrency: concurrency(given.concurrency, given.cassette.is_some())?,
            max_requests: max_requests(given.max_requests)?,
            strict: given.strict,
            numbers: given.numbers,
            max_response_bytes: within("max_response_bytes", given.max_response_bytes, 1, i32::MAX.into())?,
            proxy,
            ca_bundle: given.ca_bundle,
            cassette: given.cassette,
            cache: given.cache,
            missing: given.missing,
        })
    }

    /// The settings with these changes.
    pub fn with_options(&self, options: RequestOptions) -> Result<Self, Error> {
        let mut settings = self.clone();
        if let Some(given) = options.timeout {
            settings.timeout = seconds("timeout", given)?;
        }
        if let Some(given) = options.deadline {
            settings.deadline = deadline(given)?;
        }
        if let Some(given) = options.max_retries {
            settings.max_retries = max_retries(given)?;
        }
        if let Some(given) = options.rate_limit {
            settings.rate_limit = rate_limit(given)?;
        }
        if let Some(given) = options.max_requests {
            settings.max_requests = max_requests(given)?;
        }
        if let Some(given) = options.concurrency {
            settings.concurrency = concurrency(given, settings.cassette.is_some())?;
        }
        settings.strict = options.strict.unwrap_or(settings.strict);
        settings.numbers = options.numbers.unwrap_or(settings.numbers);
        settings.cache = options.cache.unwrap_or(settings.cache);
        Ok(settings)
    }

    pub fn base_url(&self) -> String {
        format!("{}{}", self.origin.as_str().trim_end_matches('/'), self.prefix)
    }

    pub fn chain(&self, chain: Chain) -> &str {
        match chain {
            Chain::Main => &self.main_chain,
            Chain::Zone => &self.zone_chain,
        }
    }
}

fn base_url(text: &str) -> Result<Url, Error> {
    let url = Url::parse(text).map_err(|error| {
        let wanted = match error {
            ParseError::IdnaError if !text.is_ascii() => {
                "must have its host name in ASCII, such as https://xn--bcher-kva.example"
            }
            _ => "must be a URL such as https://www.example.com",
        };
        Error::config("base_url", format!("{wanted}{}", got_address(text)))
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        let problem = Message::new("must not contain a user name or password; credentials are ").parameter("api_key");
        let problem = problem.text(", ").parameter("secret_key").text(" and ").parameter("passphrase");
        return Err(Error::config("base_url", problem));
    }
    let problem = if url.query().is_some() || url.fragment().is_some() {
        "must not contain a query or fragment; pass scheme, host and path only"
    } else {
        match url.scheme() {
            "https" => return Ok(url),
            "http" if is_loopback(&url) => return Ok(url),
            "http" => {
                "must use https: plain http would reveal the key to the network and is accepted for loopback only"
            }
            // Also localhost:8080, whose scheme is localhost.
            _ => {
                return Err(Error::config(
                    "base_url",
                    format!("must begin with https://, or http:// for loopback{}", got_address(text)),
                ));
            }
        }
    };
    Err(Error::config("base_url", problem))
}

/// The end of a message about what was given as a URL, if it looks like one or like a host: it may be a secret that was
/// pasted into the wrong place, or have a password before an @.
fn got_address(text: &str) -> String {
    let is_host = text.len() <= 64
        && text.chars().all(|char| char.is_ascii_alphanumeric() || ".-:".contains(char))
        && (text.contains('.') || text.starts_with("localhost"));
    let is_address = !text.contains('@') && (is_host || text.contains("://"));
    if is_address { format!("; got {text:?}") } else { String::new() }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        // Not `*.localhost`: some resolvers ask the network for it.
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The reason to doubt a secret that was rejected: files of settings often leave quotes or blanks around values, and
/// examples have placeholders.
fn doubt(secret: &Secret) -> Option<&'static str> {
    let text = secret.expose();
    let has_quotes = ['"', '\''].iter().any(|quote| text.starts_with(*quote) && text.ends_with(*quote));
    if has_quotes && text.len() > 1 {
        Some("has quotes around it")
    } else if text.trim() != text {
        Some("has white space around it")
    } else if text.starts_with('<') && text.ends_with('>') {
        Some("is a placeholder in angle brackets")
    } else {
        None
    }
}

/// Checks that a secret fits into a header: not empty, and without control characters.
pub(super) fn check_secret(setting: &'static str, secret: &Secret) -> Result<(), Error> {
    if secret.expose().is_empty() {
        return Err(Error::config(setting, "must not be empty"));
    }
    if secret.expose().chars().any(char::is_control) {
        return Err(Error::config(setting, "must not contain control characters, such as a trailing line break"));
    }
    Ok(())
}

fn within<T: TryFrom<i64>>(setting: &'static str, value: i64, min: i64, max: i64) -> Result<T, Error> {
    let within = Some(value).filter(|value| (min..=max).contains(value)).and_then(|value| T::try_from(value).ok());
    within.ok_or_else(|| Error::config(setting, format!("({value}) must be between {min} and {max}")))
}

fn deadline(value: Option<f64>) -> Result<Option<Duration>, Error> {
    value.map(|value| seconds("deadline", value)).transpose()
}

/// With a cassette, one request is in flight: prefetched requests that are dropped would be recorded by chance, and so
/// replay by chance.
fn concurrency(given: Concurrency<i64>, has_cassette: bool) -> Result<Concurrency, Error> {
    let concurrency = match given {
        Concurrency::Fixed(fixed) => Concurrency::Fixed(within("concurrency", fixed, 1, MAX_CONCURRENCY)?),
        Concurrency::Auto => Concurrency::Auto,
    };
    Ok(if has_cassette { Concurrency::Fixed(1) } else { concurrency })
}

fn max_retries(value: i64) -> Result<u32, Error> {
    within("max_retries", value, 0, u32::MAX.into())
}

fn max_requests(value: Option<i64>) -> Result<Option<u64>, Error> {
    let Some(value) = value else { return Ok(None) };
    match u64::try_from(value) {
        Ok(positive) if positive > 0 => Ok(Some(positive)),
        Ok(_) | Err(_) => Err(Error::config("max_requests", format!("({value}) must be at least 1"))),
    }
}

fn rate_limit(limit: RateLimit) -> Result<RateLimit, Error> {
    match limit {
        RateLimit::PerSecond(rate) if !(MIN_RATE..=1e9).contains(&rate) => {
            let problem = format!("({rate}) must be between 1/86400 and 1e9 requests per second");
            Err(Error::config("rate_limit", problem))
        }
        limit => Ok(limit),
    }
}

fn seconds(setting: &'static str, value: f64) -> Result<Duration, Error> {
    let duration =
        Duration::try_from_secs_f64(value).ok().filter(|duration| !duration.is_zero() && *duration <= MAX_SECONDS);
    duration.ok_or_else(|| {
        Error::config(
            setting,
            format!("({value}) must be a number of seconds above 0 and at most {} (366 days)", MAX_SECONDS.as_secs()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_loopback_only() {
        for url in ["https://x.example", "http://127.0.0.1:8080/a/", "http://localhost", "http://[::1]:1"] {
            assert!(base_url(url).is_ok(), "{url}");
        }
        for url in [
            "http://x.example",
            "http://127.0.0.1.x.example",
            "ftp://x",
            "x.example",
            "",
            "https://u:p@x.example",
            "https://x.example/?a=1",
            "http://localhost.x.example",
            "http://x.localhost",
        ] {
            assert!(base_url(url).is_err(), "{url}");
        }
    }
}
