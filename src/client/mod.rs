//! One signed GET that survives the network: signing, rate limiting, retries and typed errors. This layer knows one page
//! at a time; the pages of a result are the business of `query`.
//!
//! `request` retries attempts; `send` admits, signs and sends one attempt, or replays it from a cassette; `response`
//! classifies its response. `transport` is the network, of which `http` is the real one; `connect` makes
//! its connections.

mod account;
mod attempt;
mod cache_checks;
mod clock;
mod concurrency;
mod connect;
mod credentials;
mod empty;
mod empty_again;
mod environment;
mod error;
mod get_request;
mod http;
mod in_flight;
pub mod log;
mod observation;
mod proxy;
mod rate_controller;
mod rate_limiter;
mod recorded;
mod request;
mod request_bound;
mod response;
mod retry;
mod route;
mod send;
mod settings;
mod sign;
mod tls;
mod transport;
mod usage;
pub mod variables;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::EnterGuard;

pub use crate::process::runtime;
pub use account::{CredentialSource, Issued};
pub use attempt::Fetched;
pub use cache_checks::CacheChecks;
pub use concurrency::Concurrency;
pub use credentials::{Credentials, Secret};
pub use empty::{Age, BelievedEmpty, EmptyResponses};
pub use environment::Environment;
pub use error::{ApiError, Error, Phase};
pub use get_request::{Expectation, GetRequest};
pub use observation::{AttemptReport, Observer};
pub use proxy::Proxy;
pub use rate_controller::RateLimit;
pub use rate_limiter::{RateLimiterState, SharedLimiters};
pub use route::Route;
pub use settings::{MAX_RESPONSE_BYTES, RequestOptions, Settings, SettingsInput};
pub use sign::{signature, timestamp};
pub use transport::{Response, Transport, TransportError};
pub use usage::Usage;

use crate::decode::Decoder;
use crate::interface::{ENDPOINTS, Endpoint};
use crate::process::{ForkSafeMutex, PerProcess};
use crate::virtual_time::VirtualTime;
use account::Account;
use clock::Clock;
use http::HttpTransport;
use in_flight::InFlight;
use rate_limiter::RateLimiter;
use request_bound::{RequestBound, RequestBounds};
use retry::Budget;

/// The client. Clones share everything.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    limiter: Arc<PerProcess<Arc<RateLimiter>>>,
    in_flight: Arc<PerProcess<Arc<InFlight>>>,
    bounds: RequestBounds,
    shared: Arc<Shared>,
}

/// State that clients with other options share.
struct Shared {
    environment: Environment,
    account: Account,
    decoders: Vec<Decoder>,
    http: PerProcess<Arc<HttpTransport>>,
    budget: Budget,
    empty_responses: Arc<EmptyResponses>,
    clock: Clock,
    usage: ForkSafeMutex<Usage>,
    cache_checks: CacheChecks,
}

impl Client {
    pub fn new(settings: Settings) -> Result<Self, Error> {
        Self::with_environment(settings, Environment::default())
    }

    pub fn with_environment(settings: Settings, environment: Environment) -> Result<Self, Error> {
        let account = Account::new(&settings, environment.credentials.clone())?;
        let decoders = ENDPOINTS.iter().map(|endpoint| Decoder::new(endpoint, &settings.deployment)).collect();
        let shared = Shared {
            environment,
            account,
            decoders,
            http: PerProcess::new(),
            budget: Budget::new(),
            empty_responses: Arc::default(),
            clock: Clock::default(),
            usage: ForkSafeMutex::default(),
            cache_checks: CacheChecks::default(),
        };
        let bounds = RequestBounds::default().and(settings.max_requests.map(RequestBound::new).transpose()?);
        let inner =
            Inner { settings, limiter: Arc::default(), in_flight: Arc::default(), bounds, shared: Arc::new(shared) };
        let client = Self { inner: Arc::new(inner) };
        // Made now, so that a bad certificate file or proxy is an error where it was given.
        if !client.only_replays() {
            client.transport()?;
        }
        Ok(client)
    }

    /// A client with other options that shares the connections, the clock, the retry budget, the usage, the bounds of
    /// requests and, unless its rate limit or its concurrency is another one, the rate limiter and the requests in flight.
    /// A bound of its own applies as well.
    pub fn with_options(&self, options: RequestOptions) -> Result<Self, Error> {
        let Inner { settings, limiter, in_flight, bounds, shared } = &*self.inner;
        let is_bounded = options.max_requests.is_some();
        let settings = settings.with_options(options)?;
        let own = is_bounded.then_some(settings.max_requests).flatten().map(RequestBound::new).transpose()?;
        let bounds = bounds.and(own);
        let given = self.settings();
        let limiter = if settings.rate_limit == given.rate_limit { limiter.clone() } else { Arc::default() };
        let in_flight = if settings.concurrency == given.concurrency { in_flight.clone() } else { Arc::default() };
        let inner = Inner { settings, limiter, in_flight, bounds, shared: shared.clone() };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// True if another client would ask the same service in the same way.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self.settings() == other.settings() && self.account_name() == other.account_name()
    }

    /// True if this thread issues the credentials of the client, for which each of its requests would wait.
    pub fn is_issuing_here(&self) -> bool {
        self.environment().credentials.as_ref().is_some_and(|source| source.is_issuing_here())
    }

    fn account_name(&self) -> &str {
        self.inner.shared.account.name(self.settings())
    }

    /// The surroundings, for another client in the same ones.
    pub fn environment(&self) -> &Environment {
        &self.inner.shared.environment
    }

    /// The time that passes for this client, if that is not the system's.
    pub fn virtual_time(&self) -> Option<&Arc<VirtualTime>> {
        self.environment().virtual_time.as_ref()
    }

    /// Makes the client's time that of the current thread until the guard is dropped.
    pub fn enter_time(&self) -> Option<EnterGuard<'_>> {
        self.virtual_time()?.enter()
    }

    pub fn rate_limiter_state(&self) -> RateLimiterState {
        let _entered = self.enter_time();
        self.limiter().state()
    }

    /// Figures of all requests so far, of this client and of those that share its connections.
    pub fn usage(&self) -> Usage {
        *self.inner.shared.usage.lock()
    }

    /// Counts records that the cache had.
    pub fn add_cached(&self, records: u64) {
        self.inner.shared.usage.lock().cached += records;
    }

    /// Blocks of the cache that this client has compared with the service.
    pub fn cache_checks(&self) -> &CacheChecks {
        &self.inner.shared.cache_checks
    }

    /// Requests that may still be sent, or `None` without a bound.
    pub fn requests_left(&self) -> Option<u64> {
        self.inner.bounds.left()
    }

    /// Fails if fewer than `needed` requests may still be sent. A cassette may answer some of them.
    pub fn check_requests(&self, needed: u64) -> Result<(), Error> {
        if self.settings().cassette.is_some() { Ok(()) } else { self.inner.bounds.check(needed) }
    }

    pub fn empty_responses(&self) -> &Arc<EmptyResponses> {
        &self.inner.shared.empty_responses
    }

    /// Time for which the rate limiter is expected to hold back that many requests.
    pub fn time_to_admit(&self, requests: u64) -> Duration {
        self.limiter().time_to_admit(requests)
    }

    fn limiter(&self) -> Arc<RateLimiter> {
        self.inner.limiter.get_with(|| {
            let limiters = &self.environment().limiters;
            let Settings { rate_limit, origin, .. } = self.settings();
            limiters.get(*rate_limit, origin.as_str(), self.account_name())
        })
    }

    /// The decoder of an endpoint's responses.
    pub fn decoder(&self, endpoint: &'static Endpoint) -> &Decoder {
        let index = ENDPOINTS.iter().position(|other| std::ptr::eq(other, endpoint));
        &self.inner.shared.decoders[index.expect("endpoints are the declared ones")]
    }

    /// Requests that may be in flight now, over all queries of the client.
    pub fn concurrency(&self) -> usize {
        self.in_flight().limit()
    }

    fn in_flight(&self) -> Arc<InFlight> {
        let concurrency = self.inner.settings.concurrency;
        self.inner.in_flight.get_with(|| Arc::new(InFlight::new(concurrency)))
    }

    /// Closes idle connections; the next request opens new ones.
    pub fn close(&self) {
        self.inner.shared.http.clear();
    }

    fn transport(&self) -> Result<Arc<dyn Transport>, Error> {
        match &self.inner.shared.environment.transport {
            Some(transport) => Ok(transport.clone()),
            None => Ok(self.inner.shared.http.get(|| HttpTransport::new(&self.inner.settings).map(Arc::new))?),
        }
    }

    /// The target of a call: path and query, as it is signed and sent.
    pub fn target<'a>(&self, endpoint: &Endpoint, params: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
        let settings = &self.inner.settings;
        sign::target(&format!("{}{}", settings.prefix, settings.deployment.expand(endpoint.path)), params)
    }
}
