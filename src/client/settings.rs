//! The settings of a client, checked.

use std::path::PathBuf;
use std::time::Duration;

use url::{Host, Url};

use super::credentials::{Credentials, Secret};
use super::error::Error;
use super::pace::RateLimit;
use crate::cassette::Cassette;
use crate::interface::{Chain, Deployment};

/// An answer longer than this is no page of records, unless a caller knows better.
pub const MAX_BODY: usize = 64 << 20;

/// Longer is for ever, and more than clocks can add.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);
const MOST_IN_FLIGHT: i64 = 256;
/// A request a day.
const LEAST_RATE: f64 = 1.0 / 86_400.0;

/// What a caller gives, unchecked.
#[derive(Clone, Debug)]
pub struct Given {
    pub base_url: String,
    pub credentials: Credentials,
    pub main_chain: String,
    pub zone_chain: String,
    pub deployment: Deployment,
    pub timeout: f64,
    pub deadline: Option<f64>,
    pub max_retries: i64,
    pub rate_limit: RateLimit,
    pub concurrency: i64,
    pub strict: bool,
    pub max_body: i64,
    pub proxy: Option<String>,
    pub ca_bundle: Option<PathBuf>,
    pub cassette: Option<Cassette>,
    pub missing: Option<(&'static str, String)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Scheme and authority, without a slash at the end.
    pub origin: Url,
    /// What stands before the declared paths: empty, or a path with a slash in front and none at the end.
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
    pub concurrency: usize,
    pub strict: bool,
    pub max_body: usize,
    pub proxy: Option<String>,
    pub ca_bundle: Option<PathBuf>,
    pub cassette: Option<Cassette>,
    /// A setting that only a request which was not recorded needs, and what is said when one comes.
    pub missing: Option<(&'static str, String)>,
}

impl Settings {
    pub fn new(given: Given) -> Result<Self, Error> {
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
                return Err(Error::config(setting, "is empty; give the chain's short name"));
            }
        }
        if let RateLimit::PerSecond(rate) = given.rate_limit
            && !(LEAST_RATE..=1e9).contains(&rate)
        {
            let problem = format!("{rate} requests a second is not within {LEAST_RATE} to 1e9; None is no limit");
            return Err(Error::config("rate_limit", problem));
        }
        if let Some(proxy) = &given.proxy {
            // The address may hold a password, so it is not shown.
            reqwest::Proxy::all(proxy).map_err(|_| Error::config("proxy", "is not the address of a proxy"))?;
        }
        let concurrency = within("concurrency", given.concurrency, 1, MOST_IN_FLIGHT)?;
        Ok(Self {
            origin: Url::parse(&url.origin().ascii_serialization()).expect("the origin of a URL is one"),
            prefix: url.path().trim_end_matches('/').to_owned(),
            is_loopback: is_loopback(&url),
            credentials: given.credentials,
            main_chain: given.main_chain,
            zone_chain: given.zone_chain,
            deployment: given.deployment,
            timeout: seconds("timeout", given.timeout)?,
            deadline: given.deadline.map(|deadline| seconds("deadline", deadline)).transpose()?,
            max_retries: within("max_retries", given.max_retries, 0, u32::MAX.into())?,
            rate_limit: given.rate_limit,
            // What is asked ahead and dropped would be recorded or not, by chance, and so would replay or not.
            concurrency: if given.cassette.is_some() { 1 } else { concurrency },
            strict: given.strict,
            max_body: within("max_body", given.max_body, 1, i32::MAX.into())?,
            proxy: given.proxy,
            ca_bundle: given.ca_bundle,
            cassette: given.cassette,
            missing: given.missing,
        })
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
    let refuse = |problem: &str| Err(Error::config("base_url", problem));
    let Ok(url) = Url::parse(text) else {
        return refuse("is not a URL; give one such as https://www.example.com");
    };
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("holds a user name or password; give credentials as api_key, secret_key and passphrase");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return refuse("has a query or a fragment; give scheme, host and path only");
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => refuse("is plain http, which would show the key to the network; use https (http is for loopback)"),
        _ => refuse("is neither https nor http to loopback"),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Secrets travel as headers, which hold neither control characters nor nothing.
fn check_secret(setting: &'static str, secret: &Secret) -> Result<(), Error> {
    if secret.expose().is_empty() {
        return Err(Error::config(setting, "is empty"));
    }
    if secret.expose().chars().any(char::is_control) {
        return Err(Error::config(setting, "has a control character, such as a line break at its end"));
    }
    Ok(())
}

fn within<T: TryFrom<i64>>(setting: &'static str, value: i64, least: i64, most: i64) -> Result<T, Error> {
    let within = Some(value).filter(|value| (least..=most).contains(value)).and_then(|value| T::try_from(value).ok());
    within.ok_or_else(|| Error::config(setting, format!("{value} is not within {least} to {most}")))
}

fn seconds(setting: &'static str, value: f64) -> Result<Duration, Error> {
    let duration =
        Duration::try_from_secs_f64(value).ok().filter(|duration| !duration.is_zero() && *duration <= LONGEST);
    duration
        .ok_or_else(|| Error::config(setting, format!("{value} is not a number of seconds above 0, of a year at most")))
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
        ] {
            assert!(base_url(url).is_err(), "{url}");
        }
    }
}
