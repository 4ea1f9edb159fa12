//! One signed GET that survives the network: signing, pacing, retrying, and telling what went wrong. Knows one page at
//! a time; which pages there are is the query's to know.

mod clock;
mod credentials;
mod error;
mod exchange;
pub mod log;
mod pace;
pub mod process;
mod retry;
mod settings;
mod sign;
mod transport;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

pub use credentials::{Credentials, Secret};
pub use error::{Class, Error, Phase, Refusal};
pub use pace::{PaceState, RateLimit};
pub use process::runtime;
pub use settings::{Given, MAX_BODY, Settings};
pub use sign::{signature, timestamp};

use crate::decode::{self, Decoder, Page};
use crate::interface::{ENDPOINTS, Endpoint};
use clock::Clock;
use exchange::Exchange;
use log::Level;
use pace::Pacer;
use process::PerProcess;
use retry::{Budget, Policy, Verdict};

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
    pacer: PerProcess<Arc<Pacer>>,
    budget: Budget,
    clock: Clock,
}

/// Names and unchanging values of the headers.
struct Headers {
    key: (HeaderName, HeaderValue),
    passphrase: (HeaderName, HeaderValue),
    sign: HeaderName,
    timestamp: HeaderName,
}

/// What an answer should hold.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// How many records, for the buffers.
    pub rows: usize,
    /// The page of a list, and the records before it.
    pub page: u64,
    pub before: u64,
    /// Whether the service said before that there are records: an answer without any is then a throttle in disguise.
    pub promised: bool,
}

impl Expected {
    /// Whether a page without records contradicts what the service says of the list.
    fn is_denied_by(&self, page: &Page) -> bool {
        let goes_on = page.total.is_some_and(|total| total > self.before)
            || page.total_pages.is_some_and(|pages| pages > 1 && pages >= self.page);
        page.columns.rows() == 0 && (self.promised || goes_on)
    }
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
    /// The clock's offset that was signed with, and the service's clock minus ours.
    skew: Option<(i64, i64)>,
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
        let inner = Inner {
            settings,
            headers,
            decoders,
            connections: PerProcess::new(),
            pacer: PerProcess::new(),
            budget: Budget::new(),
            clock: Clock::default(),
        };
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
        self.pacer().state()
    }

    fn pacer(&self) -> Arc<Pacer> {
        let settings = &self.inner.settings;
        let shared =
            || Pacer::shared(settings.rate_limit, settings.origin.as_str(), settings.credentials.api_key.expose());
        let Ok(pacer) = self.inner.pacer.get(|| Ok::<_, Infallible>(shared()));
        pacer
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

    /// Asks for one page until it comes, or until asking again is no use.
    pub async fn get(&self, endpoint: &'static Endpoint, target: &str, expected: Expected) -> Result<Fetched, Error> {
        let settings = &self.inner.settings;
        let policy = Policy { max_retries: settings.max_retries, deadline: settings.deadline };
        let started = Instant::now();
        let (mut attempts, mut signed_anew) = (0, false);
        loop {
            let attempt = self.attempt(endpoint, target, expected, attempts + 1);
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
            let Attempt { error, retry, skew, replayed } = match failed {
                Ok(fetched) => {
                    self.inner.budget.earn();
                    return Ok(fetched);
                }
                Err(failed) => failed,
            };
            attempts += 1;
            // Where the recording gave up, so does its replay.
            if replayed && self.is_played_out(target) {
                return Err(error);
            }
            // A rejected timestamp is mended by the service's own clock.
            if let Some((used, skew)) = skew
                && !signed_anew
                && (replayed || self.inner.clock.correct(used, skew))
            {
                signed_anew = true;
                log::emit(Level::Warning, || format!("{error}; signing anew by the service's clock"));
                continue;
            }
            // A replay takes no time, and costs the service nothing.
            let policy = if replayed { Policy { deadline: None, ..policy } } else { policy };
            let Verdict::RetryAfter(pause) = policy.verdict(retry, attempts, started.elapsed(), fastrand::f64()) else {
                return Err(error);
            };
            if replayed {
                continue;
            }
            if !self.inner.budget.spend() {
                log::emit(Level::Warning, || format!("{error}; too much failed lately to try again"));
                return Err(error);
            }
            // Throttles are the pacer's daily bread.
            let level = if error.is_throttle() { Level::Info } else { Level::Warning };
            log::emit(level, || format!("{error}; trying again in {:.3} s", pause.as_secs_f64()));
            tokio::time::sleep(pause).await;
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
        expected: Expected,
        attempts: u32,
    ) -> Result<Fetched, Attempt> {
        let inner = &*self.inner;
        let Exchange { outcome, signature, offset, waited, sent, replayed } =
            self.exchange(target).await.map_err(Attempt::hopeless)?;
        let told = |outcome: &str| {
            let (waited, elapsed) = (waited.as_secs_f64(), sent.elapsed().as_secs_f64());
            let from = if replayed { " replayed" } else { "" };
            format!("GET {target} attempt={attempts} {outcome} wait={waited:.3} elapsed={elapsed:.3}{from}")
        };
        let answer = outcome.map_err(|failure| {
            log::emit(Level::Debug, || told(&format!("phase={} error={:?}", failure.phase, failure.problem)));
            Attempt::unanswered(endpoint, failure, attempts, replayed)
        })?;
        let mask = |text: &[u8]| inner.settings.credentials.mask(text, &signature);
        let judged = self.judge(endpoint, &answer, expected, attempts, &mask);
        log::emit(Level::Debug, || {
            let code = match &judged {
                Err(Error::Service(refusal)) => refusal.code.as_deref().unwrap_or("-"),
                Err(Error::Format { .. }) => "-",
                _ => "0",
            };
            told(&format!("status={} code={code} bytes={}", answer.status, answer.body.len()))
        });
        let error = match judged {
            Ok(page) => {
                if !replayed {
                    self.pacer().succeeded(sent);
                }
                return Ok(Fetched { page, attempts, bytes: answer.body.len() });
            }
            Err(error) => error,
        };
        let asked = error.retry_after();
        if error.is_throttle() && !replayed {
            self.pacer().throttled(sent, asked);
        }
        let skewed = matches!(&error, Error::Service(refusal) if refusal.class == Class::ClockSkew);
        let skew = answer.skew().filter(|_| skewed).map(|skew| (offset, skew));
        let retry = retry::Failure { retryable: error.retryable(), retry_after: asked };
        Err(Attempt { error, retry, skew, replayed })
    }

    /// What an answer is: the page that was asked for, or what stands in its way.
    fn judge(
        &self,
        endpoint: &'static Endpoint,
        answer: &transport::Answer,
        expected: Expected,
        attempts: u32,
        mask: &impl Fn(&[u8]) -> Vec<u8>,
    ) -> Result<Page, Error> {
        let one_line = |text: &str| shorten(&String::from_utf8_lossy(&mask(&text.as_bytes()[..text.len().min(ECHO)])));
        let (code, msg) = if answer.status == 200 {
            match self.inner.decoders[index(endpoint)].decode(&answer.body, expected.rows) {
                Ok(decode::Answer::Page(page)) => {
                    if expected.is_denied_by(&page) {
                        let problem = format!(
                            "page {} came back empty although the list goes on; try again later",
                            expected.page
                        );
                        return Err(Error::Empty { endpoint: endpoint.name, problem, attempts });
                    }
                    return Ok(page);
                }
                Ok(decode::Answer::Refused { code, msg }) => (Some(code), msg),
                Err(error) => {
                    return Err(Error::Format {
                        endpoint: endpoint.name,
                        path: error.path(),
                        problem: error.problem.clone(),
                        excerpt: error.excerpt(&answer.body, mask),
                        retryable: error.broken,
                    });
                }
            }
        } else {
            decode::refusal(&answer.body).map_or((None, String::new()), |(code, msg)| (Some(code), msg))
        };
        let (class, _) = Class::of(answer.status, code.as_deref());
        Err(Error::Service(Box::new(Refusal {
            class,
            endpoint: endpoint.name,
            status: answer.status,
            code: code.map(|code| one_line(&code)),
            msg: one_line(&msg),
            attempts,
            retry_after: answer.header(RETRY_AFTER).and_then(|value| retry::retry_after(value, SystemTime::now())),
            clock_ahead: answer.skew().filter(|_| class == Class::ClockSkew).map(|skew| -skew),
        })))
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
            Error::Transport { endpoint, phase, problem, attempts, retryable }
        };
        Self { error, retry: retry::Failure { retryable, retry_after: None }, skew: None, replayed }
    }
}

fn index(endpoint: &'static Endpoint) -> usize {
    ENDPOINTS.iter().position(|other| std::ptr::eq(other, endpoint)).expect("endpoints are the declared ones")
}

/// Of a message no more is searched for secrets, and much less is shown.
const ECHO: usize = 32 << 10;

/// A message on one line that does not fill a log.
fn shorten(text: &str) -> String {
    let one_line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    if one_line.len() < text.len() { one_line + "…" } else { one_line }
}
