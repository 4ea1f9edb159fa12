//! `Client::attempt`: one attempt of a request, whose outcome is classified and logged.

use std::time::Duration;

use tokio::time::Instant;

use super::empty::{BelievedEmpty, RepeatedPage};
use super::error::Error;
use super::get_request::{Expectation, GetRequest};
use super::log::{self, Level};
use super::observation::Observation;
use super::response::Unclassified;
use super::retry::Failure;
use super::send::{Admission, Interaction};
use super::transport::{Response, TransportError};
use super::{Client, clock};
use crate::decode::Page;
use crate::interface::{ApiErrorKind, Endpoint};
use crate::planted::Bug;
use crate::process;

/// A page, and what it took to get it.
#[derive(Debug)]
pub struct Fetched {
    pub page: Page,
    /// Set if the response was empty, and may have been a throttle.
    pub believed_empty: Option<BelievedEmpty>,
    /// Records that do not change, as control requests returned them before and now.
    pub repeated: Vec<RepeatedPage>,
    pub attempts: u32,
    pub bytes: usize,
    pub(super) sent: Instant,
    pub(super) replayed: bool,
    /// Duration of the last attempt, without the queue for a permit.
    pub elapsed: Duration,
    /// Time of the last attempt in that queue.
    pub waited: Duration,
}

/// The error of an attempt, and what it says of another one.
pub(super) struct FailedAttempt {
    pub error: Error,
    pub retry: Failure,
    /// The clock offset that was signed with, and the service's clock minus the local one.
    pub skew: Option<(i64, i64)>,
    /// Generation of the credentials, if these were rejected.
    pub rejected: Option<u64>,
    /// True if it was replayed from a cassette.
    pub replayed: bool,
    pub stale_connection: bool,
}

/// An attempt as the log shows it.
struct Event<'a> {
    target: &'a str,
    attempts: u32,
    waited: Duration,
    sent: Instant,
    replayed: bool,
}

impl Event<'_> {
    fn text(&self, outcome: &str) -> String {
        let Self { target, attempts, .. } = self;
        let waited = self.waited.as_secs_f64();
        let elapsed = self.sent.elapsed().as_secs_f64();
        let from = if self.replayed { " replayed" } else { "" };
        format!("GET {target} attempt={attempts} {outcome} wait={waited:.3} elapsed={elapsed:.3}{from}")
    }

    /// Notes a response in the report of the attempt and in the log.
    fn note_response(
        &self,
        response: &Response,
        classified: &Result<Page, Error>,
        observation: Option<&mut Observation>,
    ) {
        let status = response.status;
        let bytes = response.body.len();
        let code = match classified {
            Err(Error::Service(error)) => error.code.as_deref(),
            Err(Error::Format { .. }) => None,
            // A page, or an empty one that should have records: the service reported success.
            _ => Some("0"),
        };
        if let Some(Observation { report, .. }) = observation {
            report.status = Some(status);
            report.code = code.map(str::to_owned);
            report.bytes = bytes;
            report.error = None;
            report.replayed = self.replayed;
        }
        log::emit(Level::Debug, || self.text(&format!("status={status} code={} bytes={bytes}", code.unwrap_or("-"))));
    }

    fn fetched(&self, page: Page, bytes: usize) -> Fetched {
        Fetched {
            page,
            believed_empty: None,
            repeated: Vec::new(),
            attempts: self.attempts,
            bytes,
            sent: self.sent,
            replayed: self.replayed,
            elapsed: self.sent.elapsed(),
            waited: self.waited,
        }
    }
}

impl Client {
    /// Sends a request once, and tells the rate limiter, the account and the log what came of it.
    pub(super) async fn attempt(
        &self,
        request: &GetRequest,
        attempts: u32,
        admission: Admission,
        observation: &mut Option<Observation>,
    ) -> Result<Fetched, FailedAttempt> {
        let GetRequest { endpoint, target, expectation } = request;
        let interaction = self.interact(target, admission).await.map_err(|error| {
            if let Some(Observation { report, .. }) = &mut *observation {
                report.error = Some("cassette");
            }
            FailedAttempt::fatal(error)
        })?;
        let Interaction { outcome, signature, offset, generation, waited, sent, replayed } = interaction;
        let event = Event { target, attempts, waited, sent, replayed };
        let response =
            outcome.map_err(|error| self.on_transport_error(endpoint, error, &event, observation.as_mut()))?;
        let bytes = response.body.len();
        if !replayed {
            self.inner.shared.usage.lock().bytes += bytes as u64;
        }
        let unclassified = Unclassified {
            client: self,
            endpoint,
            response: &response,
            attempts,
            mask: |text: &[u8]| self.inner.shared.account.redact(text, &signature),
        };
        let classified = process::long_if(bytes, || unclassified.classify(*expectation));
        event.note_response(&response, &classified, observation.as_mut());
        match classified {
            Ok(page) => {
                if !replayed {
                    self.on_page_response(&page, *expectation, sent, bytes);
                }
                Ok(event.fetched(page, bytes))
            }
            Err(error) => {
                let retry = self.on_error_response(&error, sent, replayed);
                let skew = if is_of_kind(&error, ApiErrorKind::ClockSkew) {
                    clock::of_response(&response, self.now()).map(|skew| (offset, skew))
                } else {
                    None
                };
                let rejected = if is_rejection(&error) { generation } else { None };
                Err(FailedAttempt { error, retry, skew, rejected, replayed, stale_connection: false })
            }
        }
    }

    fn on_transport_error(
        &self,
        endpoint: &Endpoint,
        error: TransportError,
        event: &Event<'_>,
        observation: Option<&mut Observation>,
    ) -> FailedAttempt {
        if let Some(Observation { report, .. }) = observation {
            report.error = Some(error.phase.as_str());
            report.replayed = event.replayed;
        }
        if error.timed_out && !event.replayed {
            self.in_flight().overloaded(event.sent, self.limiter().allowed());
        }
        log::emit(Level::Debug, || event.text(&format!("phase={} error={:?}", error.phase, error.problem.to_string())));
        FailedAttempt::from_transport_error(endpoint, error, event.attempts, event.replayed)
    }

    /// Tells the rate limiter and the limit of requests in flight of a page. An empty one may be a throttle in disguise.
    fn on_page_response(&self, page: &Page, expectation: Expectation, sent: Instant, bytes: usize) {
        if !self.is_doubtful(expectation, page) {
            self.limiter().succeeded(sent);
            let in_flight = self.in_flight();
            in_flight.succeeded(sent, bytes, self.limiter().allowed());
            self.limiter().bound_rate(in_flight.max_rate());
        } else if !self.inner.shared.empty_responses.is_routine() {
            self.limiter().suspect(sent);
        }
    }

    /// Tells the rate limiter and the limit of requests in flight of a throttle. Returns what the error says of another
    /// attempt.
    fn on_error_response(&self, error: &Error, sent: Instant, replayed: bool) -> Failure {
        let retry_after = if Bug::RetryAfterIgnored.is_planted() { None } else { error.retry_after() };
        if error.is_throttle() && !replayed {
            self.inner.shared.usage.lock().throttled += 1;
            self.limiter().throttled(sent, retry_after);
            self.in_flight().throttled(sent, self.limiter().allowed());
        }
        Failure { retryable: error.retryable() || Bug::HopelessRetried.is_planted(), retry_after }
    }
}

impl FailedAttempt {
    /// An error that no other attempt can avoid.
    fn fatal(error: Error) -> Self {
        Self { error, retry: Failure::default(), skew: None, rejected: None, replayed: false, stale_connection: false }
    }

    fn from_transport_error(endpoint: &Endpoint, error: TransportError, attempts: u32, replayed: bool) -> Self {
        let TransportError { phase, problem, timed_out, retryable, stale_connection } = error;
        let endpoint = endpoint.name;
        let error = if timed_out {
            Error::Timeout { endpoint, phase, problem, attempts }
        } else {
            Error::Transport { endpoint, phase, problem, attempts, retryable }
        };
        let retry = Failure { retryable, retry_after: None };
        Self { error, retry, skew: None, rejected: None, replayed, stale_connection }
    }
}

/// True if the service does not accept the credentials.
pub(super) fn is_rejection(error: &Error) -> bool {
    is_of_kind(error, ApiErrorKind::Authentication)
}

fn is_of_kind(error: &Error, kind: ApiErrorKind) -> bool {
    matches!(error, Error::Service(error) if error.kind == kind)
}
