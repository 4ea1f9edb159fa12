//! `Account`: the credentials that requests are signed with. They are those of the settings, or are asked for: before they
//! expire, and once after the service rejects them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::Mutex;

use super::credentials::{Credentials, Secret};
use super::error::Error;
use super::settings::{Settings, check_secret};
use crate::interface::Deployment;
use crate::process::PerProcess;

/// Time before they expire at which credentials are replaced: longer than a request is under way, as a rule.
const MARGIN: Duration = Duration::from_secs(60);
/// Replaced credentials that are still redacted in what the service sends.
const KEPT: usize = 8;

/// Credentials, and the time up to which they are valid.
#[derive(Clone, Debug)]
pub struct Issued {
    pub credentials: Credentials,
    pub expires: Option<SystemTime>,
}

/// Issues the credentials of one account.
pub trait CredentialSource: Send + Sync {
    /// Asks for credentials. The core awaits them in a task, which must not be blocked meanwhile.
    fn issue(&self) -> BoxFuture<'static, Result<Issued, Error>>;

    /// True if this thread issues the credentials: a request that waits for them would wait for itself.
    fn is_issuing_here(&self) -> bool {
        false
    }

    /// Name of the account, whatever its credentials are.
    fn account(&self) -> &str;
}

/// Credentials in use.
pub(super) struct Current {
    pub credentials: Credentials,
    expires: Option<SystemTime>,
    key: HeaderValue,
    passphrase: HeaderValue,
    /// Number of times that credentials were asked for before.
    pub generation: u64,
    /// Those before, of which the service may still send something.
    replaced: VecDeque<Credentials>,
}

pub(super) struct Account {
    names: HeaderNames,
    source: Option<Arc<dyn CredentialSource>>,
    current: ArcSwapOption<Current>,
    /// Held by the task that asks.
    asking: PerProcess<Arc<Mutex<()>>>,
}

struct HeaderNames {
    key: HeaderName,
    passphrase: HeaderName,
    sign: HeaderName,
    timestamp: HeaderName,
}

impl Account {
    pub fn new(settings: &Settings, source: Option<Arc<dyn CredentialSource>>) -> Result<Self, Error> {
        let names = HeaderNames::new(&settings.deployment)?;
        let issued = Issued { credentials: settings.credentials.clone(), expires: None };
        let given = if source.is_some() { None } else { Some(Arc::new(Current::new(issued, None)?)) };
        Ok(Self { names, source, current: ArcSwapOption::new(given), asking: PerProcess::new() })
    }

    /// Name that the rate limiters of one account have in common.
    pub fn name<'a>(&'a self, settings: &'a Settings) -> &'a str {
        self.source.as_ref().map_or(settings.credentials.api_key.expose(), |source| source.account())
    }

    pub fn is_renewable(&self) -> bool {
        self.source.is_some()
    }

    /// The credentials that were used last, if any were.
    pub fn latest(&self) -> Option<Arc<Current>> {
        self.current.load_full()
    }

    /// The credentials to use now.
    pub async fn usable(&self, now: SystemTime) -> Result<Arc<Current>, Error> {
        match self.latest() {
            Some(current) if current.is_valid_at(now + MARGIN) => Ok(current),
            stale => match self.renewed(stale.as_ref().map(|stale| stale.generation)).await {
                Ok(current) => Ok(current),
                // They are still valid: it is asked again before the next request.
                Err(error) => stale.filter(|stale| stale.is_valid_at(now)).ok_or(error),
            },
        }
    }

    /// Other credentials than those of a generation. Requests that need them at the same time ask once.
    pub async fn renewed(&self, generation: Option<u64>) -> Result<Arc<Current>, Error> {
        let asking = self.asking.get_with(Arc::default);
        let _asking = asking.lock().await;
        let latest = self.latest();
        if let Some(latest) = latest.as_ref().filter(|latest| Some(latest.generation) != generation) {
            return Ok(latest.clone());
        }
        let source = self.source.as_ref().ok_or_else(|| Error::Internal("credentials are fixed".into()))?;
        let current = Arc::new(Current::new(source.issue().await?, latest.as_deref())?);
        self.current.store(Some(current.clone()));
        Ok(current)
    }

    /// The headers of one request: of a deployment that wants no signature, its key alone.
    pub fn headers(&self, current: &Current, timestamp: &str, signature: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(6);
        headers.insert(self.names.key.clone(), current.key.clone());
        let Some(signature) = signature else { return headers };
        headers.insert(self.names.passphrase.clone(), current.passphrase.clone());
        let mut signature = header_value(signature);
        signature.set_sensitive(true);
        headers.insert(self.names.sign.clone(), signature);
        headers.insert(self.names.timestamp.clone(), header_value(timestamp));
        headers
    }

    /// The bytes with every occurrence of a secret or of `signature` overwritten.
    pub fn redact(&self, text: &[u8], signature: &str) -> Vec<u8> {
        let Some(latest) = self.latest() else { return text.to_vec() };
        latest.all().fold(text.to_vec(), |text, credentials| credentials.redact(&text, signature))
    }

    /// The data of a response with its secrets overwritten, apart from short ones, which are data.
    pub fn redact_data(&self, text: &[u8], signature: &str) -> Vec<u8> {
        let Some(latest) = self.latest() else { return text.to_vec() };
        latest.all().fold(text.to_vec(), |text, credentials| credentials.redact_data(&text, signature))
    }

    /// True if a text is a secret, or holds one that is too long for chance.
    pub fn is_shown_by(&self, text: &str) -> bool {
        self.latest().is_some_and(|latest| latest.all().any(|credentials| credentials.is_shown_by(text)))
    }
}

impl Current {
    fn new(Issued { credentials, expires }: Issued, before: Option<&Self>) -> Result<Self, Error> {
        let key = secret_value("api_key", &credentials.api_key)?;
        let passphrase = secret_value("passphrase", &credentials.passphrase)?;
        check_secret("secret_key", &credentials.secret_key)?;
        let mut replaced = before.map(|before| before.replaced.clone()).unwrap_or_default();
        replaced.extend(before.map(|before| before.credentials.clone()));
        replaced.retain(|other| *other != credentials);
        replaced.drain(..replaced.len().saturating_sub(KEPT));
        let generation = before.map_or(0, |before| before.generation + 1);
        Ok(Self { credentials, expires, key, passphrase, generation, replaced })
    }

    /// The credentials, and those before them.
    fn all(&self) -> impl Iterator<Item = &Credentials> {
        self.replaced.iter().chain([&self.credentials])
    }

    fn is_valid_at(&self, time: SystemTime) -> bool {
        self.expires.is_none_or(|expires| time < expires)
    }
}

impl HeaderNames {
    fn new(deployment: &Deployment) -> Result<Self, Error> {
        Ok(Self {
            key: header_name(deployment, "KEY")?,
            passphrase: header_name(deployment, "PASSPHRASE")?,
            sign: header_name(deployment, "SIGN")?,
            timestamp: header_name(deployment, "TIMESTAMP")?,
        })
    }
}

fn header_name(deployment: &Deployment, suffix: &str) -> Result<HeaderName, Error> {
    let name = HeaderName::from_bytes(deployment.header(suffix).as_bytes());
    name.map_err(|_| Error::config("header_prefix", "must be part of a valid header name"))
}

fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digits, letters and base64 fit into a header")
}

fn secret_value(setting: &'static str, secret: &Secret) -> Result<HeaderValue, Error> {
    check_secret(setting, secret)?;
    match HeaderValue::from_bytes(secret.expose().as_bytes()) {
        Ok(mut value) => {
            value.set_sensitive(true);
            Ok(value)
        }
        Err(_) => Err(Error::config(setting, "must contain only characters that are valid in a header")),
    }
}

#[cfg(test)]
mod tests;
