//! The service without a socket, a thread or a clock: a simulation calls it, and decides what happens on the way.

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::routes::{ServiceState, lock, reply_now};
use super::settings::{ServiceError, Settings};
use super::store::Store;

#[derive(Debug)]
pub struct InProcess {
    state: ServiceState,
}

/// A response before it is sent.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub body: Bytes,
    /// Seconds.
    pub retry_after: Option<f64>,
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
        let reply = reply_now(&self.state, &request, now);
        Reply { status: reply.status, body: reply.body, retry_after: reply.retry_after }
    }

    /// The body of a list with all of its records, for a target without paging. Counts as no request.
    pub fn whole_list(&self, target: &str) -> Option<String> {
        self.state.whole_list(target)
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
