//! Reports of attempts for an observer outside the core. Without an active observer nothing is measured.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::Client;
use super::get_request::GetRequest;
use super::log::{self, Context};

/// One attempt of a request, sent or replayed, after its end.
#[derive(Clone, Debug)]
pub struct AttemptReport {
    pub endpoint: &'static str,
    /// URL without the query, which may hold addresses.
    pub url: String,
    /// 1 for the first attempt of the request.
    pub number: u32,
    pub started: SystemTime,
    /// Time in the queues of the client and the rate limiter before the attempt.
    pub waited: Duration,
    pub elapsed: Duration,
    pub status: Option<u16>,
    pub code: Option<String>,
    /// The phase that failed if there was no response, or "cancelled".
    pub error: Option<&'static str>,
    /// Size of the body without its content encoding.
    pub bytes: usize,
    pub replayed: bool,
    /// Requests per second that the rate limiter allows after the attempt; `None` without a limit.
    pub rate: Option<f64>,
}

pub trait Observer: Send + Sync {
    fn is_active(&self) -> bool;

    /// Takes a report. Called by the tasks of requests, so it must not wait.
    fn observe(&self, report: AttemptReport, context: Option<Context>);
}

/// An attempt in progress. It is reported when it is dropped, also by a task that is aborted.
pub(super) struct Observation {
    client: Client,
    sent: Instant,
    context: Option<Context>,
    pub report: AttemptReport,
}

impl Client {
    /// Begins the report of an attempt, if there is an active observer.
    pub(super) fn observe(&self, request: &GetRequest, number: u32, waited: Duration) -> Option<Observation> {
        self.inner.shared.environment.observer.as_ref().filter(|observer| observer.is_active())?;
        let settings = self.settings();
        let target = &request.target;
        let path = target.split_once('?').map_or(target.as_str(), |(path, _)| path);
        let report = AttemptReport {
            endpoint: request.endpoint.name,
            url: format!("{}{path}", settings.origin.as_str().trim_end_matches('/')),
            number,
            started: self.now(),
            waited,
            elapsed: Duration::ZERO,
            status: None,
            code: None,
            error: Some("cancelled"),
            bytes: 0,
            replayed: false,
            rate: None,
        };
        Some(Observation { client: self.clone(), sent: Instant::now(), context: log::context(), report })
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.report.elapsed = self.sent.elapsed();
        self.report.rate = self.client.rate_limiter_state().rate;
        if let Some(observer) = &self.client.inner.shared.environment.observer {
            observer.observe(self.report.clone(), self.context.take());
        }
    }
}
