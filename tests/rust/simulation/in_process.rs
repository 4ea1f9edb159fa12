//! The service without a socket, a thread or a clock: the simulation calls it, and decides what happens on the way. It is a module
//! of `service::routes`, whose parts it uses.

use super::*;
use crate::service::settings::ServiceError;

#[derive(Debug)]
pub struct InProcess {
    state: ServiceState,
}

impl InProcess {
    pub fn new(settings: Settings) -> Result<Self, ServiceError> {
        settings.check(true)?;
        let store = Store::open(&settings)?;
        Ok(Self { state: ServiceState::new(settings, store, None) })
    }

    /// The response to a GET that arrives at that time of the service's clock. Signature, rate limit and parameters are
    /// checked as for any other request.
    pub fn get(&self, target: &str, headers: HeaderMap, now: DateTime<Utc>) -> Reply {
        let mut request = Request::new(Body::empty());
        *request.headers_mut() = headers;
        match target.parse() {
            Ok(uri) => *request.uri_mut() = uri,
            Err(_) => return Reply { status: 400, body: Bytes::new(), retry_after: None },
        }
        let state = &self.state;
        state.request_log.count();
        let reply = match admit(state, state.position(request.uri().path()), &request, now) {
            Ok(endpoint) => look_up_now(state, endpoint, &LookUp::of(&request)),
            Err(refusal) => refusal.into(),
        };
        Reply { status: reply.status, body: reply.body, retry_after: reply.retry_after }
    }

    /// The body of a list with all of its records, for a target without paging. Counts as no request.
    pub fn whole_list(&self, target: &str) -> Option<String> {
        let state = &self.state;
        let (path, query) = target.split_once('?')?;
        let renderer = &state.renderers[state.position(path)?];
        let parameters = Parameters::read(query, renderer.endpoint, &state.settings).ok()?;
        let parameters = Parameters { page: 1, limit: 1 << 40, ..parameters };
        let deployment = state.settings.deployment.clone();
        let log_window = deployment.log_window();
        // No list is that long.
        let deployment = deployment.with_windows(1 << 40, log_window).ok()?;
        let settings = Settings { deployment, ..state.settings.clone() };
        let mut regular = Quirks::default();
        let mut turn = regular.next();
        let body = lock(&state.store).read(|store| renderer.body(store, &parameters, &settings, &mut turn));
        body.ok().map(|body| body.text)
    }

    /// Adds records at the head of the lists.
    pub fn grow(&self, records: u32) -> Result<(), ServiceError> {
        Ok(lock(&self.state.store).grow(records, None)?)
    }

    /// Replaces the newest heights of both chains.
    pub fn reorganize(&self, depth: u32) -> Result<(), ServiceError> {
        Ok(lock(&self.state.store).reorganize(depth)?)
    }
}

/// A response before it is sent.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub body: Bytes,
    /// Seconds.
    pub retry_after: Option<f64>,
}
