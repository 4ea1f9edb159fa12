//! The way of a request: its fault, who asks, how often, what for, and the answer on its way out.

use std::convert::Infallible;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, RETRY_AFTER};
use axum::http::{HeaderValue, Method, Response, StatusCode};
use axum::routing::any;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{StreamExt, stream};

use super::answer::{View, envelope};
use super::check::check;
use super::connection::Tear;
use super::faults::{Due, FaultKind, Faults};
use super::journal::{Journal, RequestEntry};
use super::parameters::Parameters;
use super::refusal::Refusal;
use super::settings::Settings;
use super::store::Store;
use super::throttle::Throttle;
use crate::cassette;

/// A dripping body comes in this many pieces.
const DRIPS: u32 = 20;

/// For a part of a body to leave before its connection breaks.
const FLUSH: Duration = Duration::from_millis(20);

/// What all requests share.
#[derive(Debug)]
pub struct State {
    pub settings: Settings,
    pub requests: AtomicU64,
    pub journal: Mutex<Journal>,
    pub faults: Mutex<Faults>,
    pub growth: AtomicU32,
    /// Answered requests for lists, and the records that came by the clock alone.
    lists: AtomicU64,
    clocked: Mutex<(Instant, u64)>,
    /// How far the service's clock is ahead.
    pub clock_ms: AtomicI64,
    pub throttle: Mutex<Option<Throttle>>,
    pub store: Mutex<Store>,
    views: Vec<View>,
}

impl State {
    pub fn new(settings: Settings, store: Store) -> Self {
        Self {
            requests: AtomicU64::new(0),
            journal: Mutex::default(),
            faults: Mutex::new(Faults::new(settings.faults.clone())),
            views: View::all(&settings.deployment),
            store: Mutex::new(store),
            growth: settings.growth.into(),
            lists: AtomicU64::new(0),
            clocked: Mutex::new((Instant::now(), 0)),
            clock_ms: AtomicI64::new(0),
            throttle: Mutex::new(settings.rate_limit.map(|rate| Throttle::new(rate, Instant::now()))),
            settings,
        }
    }

    /// Records that have come by the clock since this was asked last.
    fn due(&self, now: Instant) -> u32 {
        let Some(rate) = self.settings.growth_rate else { return 0 };
        let (started, come) = &mut *lock(&self.clocked);
        let due = (now.saturating_duration_since(*started).as_secs_f64() * rate) as u64 - *come;
        *come += due;
        u32::try_from(due).unwrap_or(u32::MAX)
    }

    /// Whether that is the path of an endpoint.
    pub fn serves(&self, path: &str) -> bool {
        self.views.iter().any(|view| self.settings.deployment.words(view.endpoint.path) == path)
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One route for each declared endpoint; all else is answered too, with an error.
pub fn router(state: Arc<State>) -> Router {
    let mut router = Router::new();
    for (place, view) in state.views.iter().enumerate() {
        let state = state.clone();
        let path = state.settings.deployment.words(view.endpoint.path);
        router = router.route(&path, any(move |tear, request| handle(state.clone(), Some(place), tear, request)));
    }
    router.fallback(move |tear, request| handle(state.clone(), None, tear, request))
}

/// An answer before it is sent.
struct Answer {
    status: u16,
    code: String,
    body: Bytes,
    content_type: &'static str,
    retry_after: Option<f64>,
    /// Filler sent before the body's end, in MiB.
    filler: u64,
}

impl Answer {
    fn json(status: u16, code: &str, body: impl Into<Bytes>) -> Self {
        let content_type = "application/json";
        Self { status, code: code.into(), body: body.into(), content_type, retry_after: None, filler: 0 }
    }

    fn refusal(refusal: &Refusal) -> Self {
        Self::json(refusal.status, refusal.code, envelope(refusal.code, &refusal.msg))
    }
}

async fn handle(
    state: Arc<State>,
    place: Option<usize>,
    ConnectInfo(tear): ConnectInfo<Tear>,
    request: Request,
) -> Response<Body> {
    state.requests.fetch_add(1, Ordering::Relaxed);
    let due = lock(&state.faults).befall(request.uri().path());
    if !due.stall.is_zero() {
        tokio::time::sleep(due.stall).await;
    }
    let now = Utc::now() + TimeDelta::milliseconds(due.clock_ms + state.clock_ms.load(Ordering::Relaxed));
    let mut entry = RequestEntry {
        method: request.method().to_string(),
        path: request.uri().path().into(),
        query: request.uri().query().unwrap_or_default().into(),
        status: 0,
        code: String::new(),
    };
    let answer = match &due.answer {
        Some(kind) => fault_answer(kind),
        None => match admit(&state, place, &request, now) {
            Ok(place) => look_up(state.clone(), place, Asked::of(&request)).await,
            Err(refusal) => Answer::refusal(&refusal),
        },
    };
    if due.delivery == Some(FaultKind::Reset) {
        tear.pull();
    } else {
        entry.status = answer.status;
        entry.code.clone_from(&answer.code);
    }
    lock(&state.journal).add(entry);
    deliver(answer, &due, now)
}

/// Everything a request must pass before anything is looked up.
fn admit(state: &State, place: Option<usize>, request: &Request, now: DateTime<Utc>) -> Result<usize, Refusal> {
    let place = place.ok_or_else(|| Refusal::new("50404", "No such URL"))?;
    if request.method() != Method::GET {
        return Err(Refusal::new("50405", format!("{} is not supported, GET is", request.method())));
    }
    // As it came: put together anew, it might no longer be what was signed.
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    check(request.headers(), request.method().as_str(), target, now, &state.settings)?;
    if let Some(throttle) = &mut *lock(&state.throttle)
        && !throttle.admit(Instant::now())
    {
        return Err(Refusal::new("50011", "Too many requests"));
    }
    Ok(place)
}

/// Of an admitted request, what is looked up.
struct Asked {
    request: cassette::Request,
    query: String,
}

impl Asked {
    fn of(request: &Request) -> Self {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        Self { request: cassette::Request::get(target), query: request.uri().query().unwrap_or_default().into() }
    }
}

/// The database blocks, so it is asked aside from the runtime's own threads.
async fn look_up(state: Arc<State>, place: usize, asked: Asked) -> Answer {
    let asked = tokio::task::spawn_blocking(move || -> rusqlite::Result<Answer> {
        let view = &state.views[place];
        let mut store = lock(&state.store);
        if let Some(body) = store.recorded(&asked.request)? {
            let code = serde_json::from_slice(&body).map(|Coded { code }| code).unwrap_or_default();
            return Ok(Answer::json(200, &code, body));
        }
        let parameters = match Parameters::read(&asked.query, view.endpoint, &state.settings) {
            Ok(parameters) => parameters,
            Err(refusal) => return Ok(Answer::refusal(&refusal)),
        };
        let is_list = view.endpoint.page_size_max().is_some();
        let due = state.due(Instant::now());
        if is_list && due > 0 {
            store.grow(due, Some(&parameters))?;
        }
        let body = view.body(&mut store, &parameters, &state.settings)?;
        let found = if body.found { Some(&parameters) } else { None };
        let growth = state.growth.load(Ordering::Relaxed);
        if growth > 0 && is_list {
            store.grow(growth, found)?;
        }
        if let Some((every, depth)) = state.settings.reorg.filter(|_| is_list)
            && (state.lists.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
        {
            store.reorganize(depth, found)?;
        }
        Ok(Answer::json(200, "0", body.text))
    });
    match asked.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => Answer::refusal(&Refusal::new("50026", format!("System error: {error}"))),
        Err(_) => Answer::refusal(&Refusal::new("50026", "System error")),
    }
}

/// The code of a recorded answer, for the journal.
#[derive(serde::Deserialize)]
struct Coded {
    code: String,
}

fn fault_answer(kind: &FaultKind) -> Answer {
    match kind {
        FaultKind::Status { status, code: None } => Answer::json(*status, "", ""),
        FaultKind::Status { status, code: Some(code) } => Answer::json(*status, code, envelope(code, "fault")),
        FaultKind::Code { code, msg } => Answer::json(200, code, envelope(code, msg)),
        FaultKind::Throttle { retry_after } => {
            let answer = Answer::refusal(&Refusal::new("50011", "Too many requests"));
            Answer { retry_after: *retry_after, ..answer }
        }
        FaultKind::Html { status } => {
            let page = "<!DOCTYPE html>\n<html><head><title>Error</title></head><body><h1>Error</h1></body></html>\n";
            Answer { content_type: "text/html; charset=utf-8", ..Answer::json(*status, "", page) }
        }
        FaultKind::Huge { mib } => Answer { filler: *mib, ..Answer::json(200, "0", "\",\"data\":[]}") },
        _ => Answer::json(200, "0", envelope("0", "")),
    }
}

fn deliver(answer: Answer, due: &Due, now: DateTime<Utc>) -> Response<Body> {
    let length = answer.body.len();
    let (announced, body) = if answer.filler > 0 {
        huge(answer.filler, answer.body)
    } else {
        match &due.delivery {
            // Announced in full, and then not sent.
            Some(FaultKind::Cut { bytes }) => {
                let kept = bytes.unwrap_or(length / 2).min(length.saturating_sub(1));
                (length as u64, cut(answer.body.slice(..kept)))
            }
            Some(FaultKind::Drip { seconds }) => (length as u64, drip(answer.body, *seconds)),
            _ => (length as u64, Body::from(answer.body)),
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    headers.insert(CONTENT_LENGTH, announced.into());
    if let Ok(date) = HeaderValue::from_str(&now.format("%a, %d %b %Y %H:%M:%S GMT").to_string()) {
        headers.insert(DATE, date);
    }
    if let Some(Ok(after)) = answer.retry_after.map(|after| HeaderValue::from_str(&after.to_string())) {
        headers.insert(RETRY_AFTER, after);
    }
    response
}

fn cut(kept: Bytes) -> Body {
    let broken = stream::once(async {
        // Until then the server has sent what it has; given the error at once, it would drop that unsent.
        tokio::time::sleep(FLUSH).await;
        Err(std::io::Error::from(std::io::ErrorKind::ConnectionAborted))
    });
    Body::from_stream(stream::iter([Ok(kept)]).chain(broken))
}

fn drip(body: Bytes, seconds: f64) -> Body {
    let piece = body.len().div_ceil(DRIPS as usize).max(1);
    let pause = Duration::from_secs_f64(seconds) / DRIPS;
    let pieces = stream::unfold(body, move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        tokio::time::sleep(pause).await;
        let next = rest.split_to(piece.min(rest.len()));
        Some((Ok::<_, Infallible>(next), rest))
    });
    Body::from_stream(pieces)
}

/// An answer whose message never seems to end; made as it is sent, so that it takes no memory here.
fn huge(mib: u64, end: Bytes) -> (u64, Body) {
    let start = Bytes::from_static(b"{\"code\":\"0\",\"msg\":\"");
    let block = Bytes::from(vec![b' '; 1 << 20]);
    let length = (start.len() + end.len()) as u64 + mib * block.len() as u64;
    let blocks = stream::iter(0..mib).map(move |_| block.clone());
    let parts = stream::iter([start]).chain(blocks).chain(stream::iter([end]));
    (length, Body::from_stream(parts.map(Ok::<_, Infallible>)))
}
