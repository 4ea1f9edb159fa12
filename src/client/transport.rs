//! The network as a client sees it: one signed GET in, a whole response or a typed failure out. `http` is the
//! real one; a simulation brings its own.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{HeaderMap, HeaderName};

use super::error::Phase;
use crate::message::{Hint, Message};

pub trait Transport: Send + Sync {
    /// Sends a GET for `target`, byte for byte, and reads the whole response within `timeout`.
    fn get<'a>(
        &'a self,
        target: &'a str,
        headers: HeaderMap,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Response, TransportError>>;
}

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    /// The body without its content encoding.
    pub body: Bytes,
}

impl Response {
    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// The reason why there is no response.
#[derive(Clone, Debug)]
pub struct TransportError {
    pub phase: Phase,
    pub problem: Message,
    pub timed_out: bool,
    pub retryable: bool,
    /// True if the server closed a kept-alive connection just as the request was sent on it. The request was most likely
    /// not processed, and another connection may carry it at once.
    pub stale_connection: bool,
}

impl TransportError {
    pub fn new(phase: Phase, problem: impl Into<Message>, retryable: bool) -> Self {
        Self { phase, problem: problem.into(), timed_out: false, retryable, stale_connection: false }
    }

    /// Not retried: the next response would be as long, and take as much to read.
    pub fn too_large(max: usize) -> Self {
        let name = "max_response_bytes";
        let problem = Message::new("response body exceeds ").parameter(name).text(format!(" ({max} bytes)"));
        Self::new(Phase::Body, problem.hint(Hint::raise(&[name])), false)
    }

    pub fn timed_out(phase: Phase, what: &str, timeout: Duration) -> Self {
        let problem = format!("{what} within {} s", timeout.as_secs_f64());
        let problem = Message::new(problem).hint(Hint::raise(&["timeout"]));
        Self { timed_out: true, ..Self::new(phase, problem, true) }
    }
}
