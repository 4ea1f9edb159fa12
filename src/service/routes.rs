//! Handling of a request: faults, authentication, rate limit, lookup, and delivery of the response.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, Response};
use axum::routing::{any, get};
use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use super::check::check;
use super::connection::ConnectionHandle;
use super::error_response::ErrorResponse;
use super::fault::FaultKind;
use super::faults::Faults;
use super::parameters::Parameters;
use super::quirks::Quirks;
use super::render::{Renderer, envelope};
use super::reply::Reply;
use super::request_log::{Redaction, RequestEntry, RequestLog};
use super::settings::{Compression, Credentials, Respond, Settings};
use super::store::LookUpError;
use super::store::Store;
use super::throttle::Throttle;
use crate::cassette;
use crate::interface::{Names, openapi};
use crate::virtual_time::VirtualTime;

// The service of the simulation, which calls it without a socket.
#[cfg(test)]
#[path = "../../tests/rust/simulation/in_process.rs"]
pub mod in_process;

/// State shared by all requests.
pub struct ServiceState {
    pub settings: Settings,
    pub request_log: Arc<RequestLog>,
    pub faults: Mutex<Faults>,
    pub quirks: Mutex<Quirks>,
    pub respond: Mutex<Option<Respond>>,
    /// Problems of that function, in the order of the requests.
    pub respond_errors: Mutex<Vec<String>>,
    pub growth: AtomicU32,
    /// Requests between reorganizations, and heights that each of them replaces.
    pub reorg: Mutex<Option<(u64, u32)>>,
    /// Number of responses to requests for lists.
    lists: AtomicU64,
    time_growth: Mutex<(Instant, u64)>,
    /// Milliseconds that the service's clock is ahead.
    pub clock_ms: AtomicI64,
    /// The time of a simulated service; `None` is the system's.
    pub virtual_time: Option<Arc<VirtualTime>>,
    /// True if a simulated service was stopped.
    pub is_stopped: AtomicBool,
    pub throttle: Mutex<Option<Throttle>>,
    pub store: Mutex<Store>,
    renderers: Vec<Renderer>,
}

impl fmt::Debug for ServiceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceState").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn redaction(Settings { deployment, credentials, .. }: &Settings) -> Redaction {
    let headers = ["KEY", "PASSPHRASE", "SIGN"].map(|what| deployment.header(what));
    let Credentials { api_key, secret_key, passphrase } = credentials.clone();
    Redaction::new(headers.into(), vec![api_key, secret_key, passphrase])
}

impl ServiceState {
    pub fn new(settings: Settings, store: Store, virtual_time: Option<Arc<VirtualTime>>) -> Self {
        let _time = virtual_time.as_ref().map(|time| time.enter());
        let now = Instant::now();
        Self {
            request_log: Arc::new(RequestLog::new(redaction(&settings))),
            faults: Mutex::new(Faults::new(settings.faults.clone())),
            quirks: Mutex::new(Quirks::new(settings.quirks.clone())),
            respond: Mutex::default(),
            respond_errors: Mutex::default(),
            renderers: Renderer::all(&settings.deployment),
            store: Mutex::new(store),
            growth: settings.growth.into(),
            reorg: Mutex::new(settings.reorg),
            lists: AtomicU64::new(0),
            time_growth: Mutex::new((now, 0)),
            clock_ms: AtomicI64::new(0),
            throttle: Mutex::new(settings.rate_limit.map(|rate| Throttle::new(rate, now))),
            settings,
            virtual_time: virtual_time.clone(),
            is_stopped: AtomicBool::new(false),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a server on a socket has the system's time")]
    fn now(&self) -> DateTime<Utc> {
        self.virtual_time.as_ref().map_or_else(Utc::now, |time| time.now().into())
    }

    /// Number of records that `growth_rate` adds since the last call.
    fn due(&self, now: Instant) -> u32 {
        let Some(rate) = self.settings.growth_rate else { return 0 };
        let (started, added) = &mut *lock(&self.time_growth);
        let due = (now.saturating_duration_since(*started).as_secs_f64() * rate) as u64 - *added;
        *added += due;
        u32::try_from(due).unwrap_or(u32::MAX)
    }

    /// True if that is the path of an endpoint.
    pub fn serves(&self, path: &str) -> bool {
        self.position(path).is_some()
    }

    pub(super) fn position(&self, path: &str) -> Option<usize> {
        self.renderers.iter().position(|renderer| self.settings.deployment.expand(renderer.endpoint.path) == path)
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One route for each declared endpoint and one for the description of them all; any other path is an error response.
/// The description needs no signature and is not logged.
pub fn router(state: Arc<ServiceState>) -> Router {
    let mut router = Router::new();
    for (endpoint, renderer) in state.renderers.iter().enumerate() {
        let state = state.clone();
        let path = state.settings.deployment.expand(renderer.endpoint.path);
        router = router
            .route(&path, any(move |connection, request| handle(state.clone(), Some(endpoint), connection, request)));
    }
    let description = openapi(&state.settings.deployment, names(&state.settings)).to_string();
    let description = ([(CONTENT_TYPE, "application/json")], Bytes::from(description));
    let router = router.route("/openapi.json", get(move || std::future::ready(description.clone())));
    router.fallback(move |connection, request| handle(state.clone(), None, connection, request))
}

fn names(settings: &Settings) -> Names<'_> {
    Names { main_chain: &settings.main_chain, zone_chain: &settings.zone_chain, base_url: "/" }
}

pub(super) async fn handle(
    state: Arc<ServiceState>,
    endpoint: Option<usize>,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    request: Request,
) -> Response<Body> {
    connection.set_dispatched();
    state.request_log.count();
    let due = lock(&state.faults).match_request(request.uri().path());
    if !due.delay.is_zero() {
        tokio::time::sleep(due.delay).await;
    }
    let time = state.now();
    let now = time + TimeDelta::milliseconds(due.clock_ms + state.clock_ms.load(Ordering::Relaxed));
    let mut entry = RequestEntry {
        time,
        faults: due.kinds.clone(),
        method: request.method().to_string(),
        path: request.uri().path().into(),
        query: request.uri().query().unwrap_or_default().into(),
        headers: RequestEntry::headers_of(request.headers()),
        ..RequestEntry::default()
    };
    let wants_gzip = state.settings.compression == Some(Compression::Gzip) && accepts_gzip(request.headers());
    let responded = match &due.response {
        None if due.unreachable.is_none() => respond(&state, &entry).await,
        _ => Ok(None),
    };
    let due = due.with(responded.as_ref().ok().cloned().flatten());
    let reply = match (&responded, &due.response) {
        (Err(problem), _) => {
            lock(&state.respond_errors).push(problem.clone());
            Reply::error_response(&ErrorResponse::new("50026", problem.clone()))
        }
        (Ok(_), Some(kind)) => Reply::of_fault(kind),
        (Ok(_), None) => match admit(&state, endpoint, &request, now) {
            Ok(endpoint) => look_up(state.clone(), endpoint, LookUp::of(&request)).await,
            Err(refusal) => refusal.into(),
        },
    };
    if due.delivery == Some(FaultKind::Reset) || due.unreachable.is_some() {
        connection.abort();
    } else {
        entry.status = reply.status;
        entry.code.clone_from(&reply.code);
    }
    state.request_log.add(entry);
    let mut response = (if wants_gzip { reply.compressed() } else { reply }).deliver(&due, now);
    response.extensions_mut().insert(due.unreachable);
    response
}

/// The user's response to a request, if there is one.
async fn respond(state: &ServiceState, entry: &RequestEntry) -> Result<Option<FaultKind>, String> {
    let Some(respond) = lock(&state.respond).clone() else { return Ok(None) };
    let entry = state.request_log.redacted(entry.clone());
    if state.virtual_time.is_some() {
        return respond(&entry);
    }
    let given = tokio::task::spawn_blocking(move || respond(&entry)).await;
    match given.unwrap_or_else(|error| Err(error.to_string()))? {
        Some(kind @ FaultKind::Unreachable(_)) => Err(format!(
            "respond returned the kind {:?}, which needs simulated=True: a server is connected before it has a request",
            kind.name()
        )),
        kind => Ok(kind),
    }
}

/// True if `Accept-Encoding` names gzip with a weight other than 0.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let named = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight: f64 = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse().ok()).unwrap_or(0.0);
        name.trim().eq_ignore_ascii_case("gzip") && weight > 0.0
    })
}

/// A request that is not looked up.
enum Refusal {
    Error(ErrorResponse),
    Throttled { by_empty_data: bool },
}

impl From<ErrorResponse> for Refusal {
    fn from(error_response: ErrorResponse) -> Self {
        Self::Error(error_response)
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Error(error_response) => Self::error_response(&error_response),
            Refusal::Throttled { by_empty_data: true } => Self::json(200, "0", envelope("0", "")),
            Refusal::Throttled { by_empty_data: false } => {
                Self::error_response(&ErrorResponse::new("50011", "Too many requests"))
            }
        }
    }
}

/// Everything a request must pass before anything is looked up.
fn admit(
    state: &ServiceState,
    endpoint: Option<usize>,
    request: &Request,
    now: DateTime<Utc>,
) -> Result<usize, Refusal> {
    let endpoint = endpoint.ok_or_else(|| ErrorResponse::new("50404", "No such URL"))?;
    if request.method() != Method::GET {
        let msg = format!("{} is not supported, GET is", request.method());
        return Err(ErrorResponse { status: 405, ..ErrorResponse::new("50404", msg) }.into());
    }
    // As received: put together again, it might differ from what was signed.
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    check(request.headers(), request.method().as_str(), target, now, &state.settings)?;
    if let Some(throttle) = &mut *lock(&state.throttle)
        && !throttle.admit(Instant::now())
    {
        return Err(Refusal::Throttled { by_empty_data: lock(&state.quirks).throttles_by_empty_data() });
    }
    Ok(endpoint)
}

/// The lookup of an admitted request.
struct LookUp {
    request: cassette::Request,
    query: String,
}

impl LookUp {
    fn of(request: &Request) -> Self {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        Self { request: cassette::Request::get(target), query: request.uri().query().unwrap_or_default().into() }
    }
}

/// Looks up on a thread for blocking work, which a query of the database is.
async fn look_up(state: Arc<ServiceState>, endpoint: usize, request: LookUp) -> Reply {
    if state.virtual_time.is_some() {
        // In the order of the requests.
        return look_up_now(&state, endpoint, &request);
    }
    let reply = tokio::task::spawn_blocking(move || look_up_now(&state, endpoint, &request));
    reply.await.unwrap_or_else(|_| Reply::error_response(&ErrorResponse::new("50026", "System error")))
}

fn look_up_now(state: &ServiceState, endpoint: usize, request: &LookUp) -> Reply {
    try_look_up(state, endpoint, request)
        .unwrap_or_else(|error| Reply::error_response(&ErrorResponse::new("50026", format!("System error: {error}"))))
}

/// The reply to a request; the lists that it shows have grown, or were reorganized, by what is due now.
fn try_look_up(state: &ServiceState, endpoint: usize, request: &LookUp) -> Result<Reply, rusqlite::Error> {
    let renderer = &state.renderers[endpoint];
    let mut store = lock(&state.store);
    store.refresh()?;
    if let Some(body) = store.recorded(&request.request)? {
        let code = serde_json::from_slice(&body).map(|Coded { code }| code).unwrap_or_default();
        return Ok(Reply::json(200, &code, body));
    }
    let parameters = match Parameters::read(&request.query, renderer.endpoint, &state.settings) {
        Ok(parameters) => parameters,
        Err(error_response) => return Ok(Reply::error_response(&error_response)),
    };
    let mut quirks = lock(&state.quirks);
    let mut turn = quirks.next();
    let parameters = turn.effective(parameters);
    let is_list = renderer.endpoint.page_size_max().is_some();
    let due = state.due(Instant::now());
    if is_list && due > 0 {
        store.grow(due, Some(&parameters))?;
    }
    let body = match store.read(|store| renderer.body(store, &parameters, &state.settings, &mut turn)) {
        Ok(body) => body,
        Err(LookUpError::Database(error)) => return Err(error),
        Err(LookUpError::NotHeld) => {
            let msg = store.user_data().explain_miss(&request.request);
            return Ok(Reply::error_response(&ErrorResponse::new("50044", msg)));
        }
    };
    let found = if body.found { Some(&parameters) } else { None };
    let growth = state.growth.load(Ordering::Relaxed);
    if growth > 0 && is_list {
        store.grow(growth, found)?;
    }
    if is_list
        && let Some((every, depth)) = *lock(&state.reorg)
        && (state.lists.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
    {
        store.reorganize(depth)?;
    }
    Ok(Reply::json(200, "0", body.text))
}

/// The code of a recorded reply, for the request_log.
#[derive(serde::Deserialize)]
struct Coded {
    code: String,
}
