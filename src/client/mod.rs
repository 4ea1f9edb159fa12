//! One signed GET that survives the network: signing, pacing, retrying, and telling what went wrong. Knows one page at
//! a time; which pages there are is the query's to know.

mod credentials;
mod error;
mod exchange;
mod pace;
mod process;
mod retry;
mod settings;
mod sign;
mod transport;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use reqwest::header::{DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

pub use credentials::{Credentials, Secret};
pub use error::{Class, Error, Phase, Refusal};
pub use pace::{PaceState, RateLimit};
pub use process::runtime;
pub use settings::{Given, Settings};
pub use sign::{signature, timestamp};

use crate::decode::{self, Decoder, Page};
use crate::interface::{ENDPOINTS, Endpoint};
use exchange::Exchange;
use pace::Pacer;
use process::PerProcess;
use retry::{Policy, Verdict};

/// The client. Clones share everything.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    headers: Headers,
    decoders: Vec<Decoder>,
    connections: PerProcess<reqwest::Client>,
    pacer: Arc<Pacer>,
    /// Milliseconds to add to the local clock, once the service has shown that it is wrong.
    clock_offset: AtomicI64,
}

/// Names and unchanging values of the headers.
struct Headers {
    key: (HeaderName, HeaderValue),
    passphrase: (HeaderName, HeaderValue),
    sign: HeaderName,
    timestamp: HeaderName,
}

/// A page, and what it took to get it.
#[derive(Debug)]
pub struct Fetched {
    pub page: Page,
    pub attempts: u32,
    pub bytes: usize,
}

/// A failed attempt.
struct Attempt {
    error: Error,
    retry: retry::Failure,
    /// The service's clock minus ours, in milliseconds.
    skew: Option<i64>,
    /// It came from a cassette.
    replayed: bool,
}

impl Client {
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let deployment = &settings.deployment;
        let name = |what| {
            let refused = |_| Error::config("header_prefix", "does not make a header name");
            HeaderName::from_bytes(deployment.header(what).as_bytes()).map_err(refused)
        };
        let value = |setting, secret: &Secret| {
            let refused = |_| Error::config(setting, "has a character that a header cannot hold");
            let mut value = HeaderValue::from_bytes(secret.expose().as_bytes()).map_err(refused)?;
            value.set_sensitive(true);
            Ok::<_, Error>(value)
        };
        let headers = Headers {
            key: (name("KEY")?, value("api_key", &settings.credentials.api_key)?),
            passphrase: (name("PASSPHRASE")?, value("passphrase", &settings.credentials.passphrase)?),
            sign: name("SIGN")?,
            timestamp: name("TIMESTAMP")?,
        };
        let decoders = ENDPOINTS.iter().map(|endpoint| Decoder::new(endpoint, deployment)).collect();
        let pacer = Pacer::shared(settings.rate_limit, &settings.origin, settings.credentials.api_key.expose());
        let inner =
            Inner { settings, headers, decoders, connections: PerProcess::new(), pacer, clock_offset: 0.into() };
        let client = Self { inner: Arc::new(inner) };
        // Made now, so that a bad certificate file is told where it was given.
        if !client.only_replays() {
            client.connections()?;
        }
        Ok(client)
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub fn pace(&self) -> PaceState {
        self.inner.pacer.state()
    }

    /// Lets go of idle connections; the next request opens new ones.
    pub fn close(&self) {
        self.inner.connections.clear();
    }

    fn connections(&self) -> Result<reqwest::Client, Error> {
        self.inner.connections.get(|| transport::connections(&self.inner.settings))
    }

    /// The target of a call: path and query, as it is signed and sent.
    pub fn target<'a>(&self, endpoint: &Endpoint, params: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
        let settings = &self.inner.settings;
        sign::target(&format!("{}{}", settings.prefix, settings.deployment.words(endpoint.path)), params)
    }

    /// Asks for one page until it comes, or until asking again is no use. `rows` is how many records are expected.
    pub async fn get(&self, endpoint: &'static Endpoint, target: &str, rows: usize) -> Result<Fetched, Error> {
        let settings = &self.inner.settings;
        let policy = Policy { max_retries: settings.max_retries, deadline: settings.deadline };
        let started = Instant::now();
        let (mut attempts, mut corrected) = (0, false);
        loop {
            let attempt = self.attempt(endpoint, target, rows, attempts + 1);
            let failed = match settings.deadline.map(|deadline| deadline.saturating_sub(started.elapsed())) {
                None => attempt.await,
                Some(left) => match tokio::time::timeout(left, attempt).await {
                    Ok(result) => result,
                    Err(_) => {
                        self.record_out_of_time(target)?;
                        return Err(self.out_of_time(endpoint, attempts + 1));
                    }
                },
            };
            let failed = match failed {
                Ok(fetched) => return Ok(fetched),
                Err(failed) => failed,
            };
            attempts += 1;
            // Where the recording gave up, so does its replay.
            if failed.replayed && self.is_played_out(target) {
                return Err(failed.error);
            }
            // A rejected timestamp is mended by the service's own clock, once.
            if let (Error::Service(refusal), Some(skew), false) = (&failed.error, failed.skew, corrected)
                && refusal.class == Class::ClockSkew
            {
                corrected = true;
                if !failed.replayed {
                    self.inner.clock_offset.store(skew, Ordering::Relaxed);
                }
                continue;
            }
            // A replay takes no time.
            let policy = if failed.replayed { Policy { deadline: None, ..policy } } else { policy };
            match policy.verdict(failed.retry, attempts, started.elapsed(), fastrand::f64()) {
                Verdict::GiveUp => return Err(failed.error),
                Verdict::RetryAfter(_) if failed.replayed => {}
                Verdict::RetryAfter(pause) => tokio::time::sleep(pause).await,
            }
        }
    }

    fn out_of_time(&self, endpoint: &'static Endpoint, attempts: u32) -> Error {
        let seconds = self.inner.settings.deadline.unwrap_or_default().as_secs_f64();
        let problem = format!("not done within the deadline of {seconds} s; try again later, or set a longer one");
        Error::Timeout { endpoint: endpoint.name, phase: Phase::Deadline, problem, attempts }
    }

    async fn attempt(
        &self,
        endpoint: &'static Endpoint,
        target: &str,
        rows: usize,
        attempts: u32,
    ) -> Result<Fetched, Attempt> {
        let inner = &*self.inner;
        let settings = &inner.settings;
        let Exchange { outcome, signature, sent, replayed } = self.exchange(target).await.map_err(Attempt::hopeless)?;
        let answer = outcome.map_err(|failure| Attempt::unanswered(endpoint, failure, attempts, replayed))?;
        let mask = |text: &str| settings.credentials.mask_text(text, &signature);
        let (code, msg) = if answer.status == 200 {
            let decoder = &inner.decoders[index(endpoint)];
            match decoder.decode(&answer.body, rows) {
                Ok(decode::Answer::Page(page)) => {
                    if !replayed {
                        inner.pacer.succeeded(Instant::now());
                    }
                    return Ok(Fetched { page, attempts, bytes: answer.body.len() });
                }
                Ok(decode::Answer::Refused { code, msg }) => (Some(code), msg),
                Err(error) => {
                    let masked = settings.credentials.mask(&answer.body, &signature);
                    let error_text = Error::Format {
                        endpoint: endpoint.name,
                        path: mask(&error.path()),
                        problem: error.problem.clone(),
                        excerpt: error.excerpt(&masked),
                    };
                    let retry = retry::Failure { retryable: error.broken, retry_after: None };
                    return Err(Attempt { error: error_text, retry, skew: None, replayed });
                }
            }
        } else {
            decode::refusal(&answer.body).map_or((None, String::new()), |(code, msg)| (Some(code), msg))
        };
        let (class, retryable) = Class::of(answer.status, code.as_deref());
        let asked = answer.header(RETRY_AFTER).and_then(|value| retry::retry_after(value, SystemTime::now()));
        if class == Class::RateLimit && !replayed {
            inner.pacer.throttled(sent, Instant::now(), asked);
        }
        let skew = answer.header(DATE).and_then(|date| httpdate::parse_http_date(date).ok()).map(skew);
        let refusal = Refusal {
            class,
            endpoint: endpoint.name,
            status: answer.status,
            code: code.map(|code| shorten(&mask(&code))),
            msg: shorten(&mask(&msg)),
            attempts,
            retry_after: asked,
            clock_ahead: skew.filter(|_| class == Class::ClockSkew).map(|skew| -skew),
        };
        let retry = retry::Failure { retryable, retry_after: asked };
        Err(Attempt { error: Error::Service(Box::new(refusal)), retry, skew, replayed })
    }
}

impl Headers {
    fn of(&self, timestamp: &str, signature: &str) -> HeaderMap {
        let ascii = |text: &str| HeaderValue::from_str(text).expect("digits, letters and base64 are header text");
        let mut headers = HeaderMap::with_capacity(6);
        headers.insert(self.key.0.clone(), self.key.1.clone());
        headers.insert(self.passphrase.0.clone(), self.passphrase.1.clone());
        let mut signature = ascii(signature);
        signature.set_sensitive(true);
        headers.insert(self.sign.clone(), signature);
        headers.insert(self.timestamp.clone(), ascii(timestamp));
        headers
    }
}

impl Attempt {
    fn hopeless(error: Error) -> Self {
        Self { error, retry: retry::Failure::default(), skew: None, replayed: false }
    }

    fn unanswered(endpoint: &Endpoint, failure: transport::Failure, attempts: u32, replayed: bool) -> Self {
        let transport::Failure { phase, problem, timed_out, retryable } = failure;
        let endpoint = endpoint.name;
        let error = if timed_out {
            Error::Timeout { endpoint, phase, problem, attempts }
        } else {
            Error::Transport { endpoint, phase, problem, attempts }
        };
        Self { error, retry: retry::Failure { retryable, retry_after: None }, skew: None, replayed }
    }
}

/// The service's clock minus ours, in milliseconds; half a second is the mean of what a header of whole seconds cuts.
fn skew(date: SystemTime) -> i64 {
    let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (since(date) + Duration::from_millis(500)).as_millis() as i64 - since(SystemTime::now()).as_millis() as i64
}

fn index(endpoint: &'static Endpoint) -> usize {
    ENDPOINTS.iter().position(|other| std::ptr::eq(other, endpoint)).expect("endpoints are the declared ones")
}

/// A message on one line that does not fill a log.
fn shorten(text: &str) -> String {
    let one_line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    if one_line.len() < text.len() { one_line + "…" } else { one_line }
}
