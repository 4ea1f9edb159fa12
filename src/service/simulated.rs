//! The service in virtual time, without a socket: every request passes the same handler.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, Response, Uri};

use super::connection::ConnectionHandle;
use super::fault::Unreachable;
use super::routes::{ServiceState, handle};

/// The way to a simulated service.
#[derive(Clone, Debug)]
pub struct Simulated(pub(super) Arc<ServiceState>);

/// The reason why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoResponse {
    /// The service was stopped.
    Stopped,
    /// The connection was reset.
    Reset,
    /// There was no connection.
    Unreachable(Unreachable),
}

impl Simulated {
    /// The response to a GET as it arrives. Takes the time of faults.
    pub async fn get(&self, target: Uri, headers: HeaderMap) -> Result<Response<Body>, NoResponse> {
        if self.0.is_stopped.load(Ordering::Relaxed) {
            return Err(NoResponse::Stopped);
        }
        let mut request = Request::new(Body::empty());
        *request.headers_mut() = headers;
        *request.uri_mut() = target;
        let endpoint = self.0.position(request.uri().path());
        let connection = ConnectionHandle::default();
        let response = handle(self.0.clone(), endpoint, ConnectInfo(connection.clone()), request).await;
        match response.extensions().get::<Option<Unreachable>>() {
            Some(Some(reason)) => Err(NoResponse::Unreachable(*reason)),
            Some(None) | None => {
                if connection.is_aborted() {
                    Err(NoResponse::Reset)
                } else {
                    Ok(response)
                }
            }
        }
    }
}
