//! Sending of one attempt: it is admitted, then signed, sent and recorded, or replayed from a cassette.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::header::{DATE, HeaderMap, RETRY_AFTER};
use tokio::time::Instant;

use super::error::{Error, Phase};
use super::in_flight::InFlightPermit;
use super::log::{self, Level};
use super::transport::{Response, TransportError};
use super::{Client, clock, retry, sign};
use crate::cassette::{self, Cassette, Outcome, Request, Sender};
use crate::decode;
use crate::planted::Bug;
use crate::redaction::overwrite;

const OK: u16 = 200;
/// The status of a rejected timestamp.
const UNAUTHORIZED: u16 = 401;

/// The right to make one attempt.
pub(super) enum Admission {
    /// A recorded outcome, which needs no permit.
    Replayed(Outcome),
    /// A permit of the client, and the time that the queues took. The request is counted already.
    Permit { _permit: Option<InFlightPermit>, waited: Duration },
}

/// A request and its outcome.
pub(super) struct Interaction {
    pub outcome: Result<Response, TransportError>,
    /// The signature, which the response may echo; empty in a replay.
    pub signature: String,
    /// The clock offset that was signed with.
    pub offset: i64,
    /// Generation of the credentials that it was signed with.
    pub generation: Option<u64>,
    /// Time in the queues for a permit.
    pub waited: Duration,
    pub sent: Instant,
    pub replayed: bool,
}

impl Admission {
    pub fn waited(&self) -> Duration {
        if let Self::Permit { waited, .. } = self { *waited } else { Duration::ZERO }
    }
}

impl Client {
    /// True if nothing is ever sent.
    pub(super) fn only_replays(&self) -> bool {
        self.settings().cassette.as_ref().is_some_and(|cassette| !cassette.can_record())
    }

    /// The time of day.
    pub fn now(&self) -> SystemTime {
        (self.inner.shared.environment.wall_clock)()
    }

    /// Replays a recorded outcome, or waits until the client and the rate limiter allow one more request.
    pub(super) async fn admit(&self, target: &str, is_retry: bool) -> Result<Admission, Error> {
        let settings = self.settings();
        let origin = &self.inner.shared.environment.origin;
        if let Some(cassette) = &settings.cassette {
            if let Err(error) = cassette.check_open(origin.as_deref()) {
                self.note_sent(false);
                return Err(error.into());
            }
            let request = self.cassette_request(target);
            if let Some(outcome) = cassette.play(&request)? {
                self.inner.shared.usage.add_replay();
                return Ok(Admission::Replayed(outcome));
            }
            if settings.missing.is_none() {
                self.check_params(cassette, &request)?;
            }
        }
        if let Some((setting, problem)) = &settings.missing {
            return Err(Error::config(setting, problem.clone()));
        }
        cassette::check_network(|| self.cassette_request(target), settings.cassette.as_ref(), settings.is_loopback)?;
        self.inner.bounds.check(1)?;
        self.note_sent(settings.cassette.is_some());
        self.inner.shared.account.usable(self.now()).await?;
        let queued = Instant::now();
        // It comes first: a permit of the rate limiter is to be used at once.
        let permit = if Bug::PermitPerQuery.is_planted() { None } else { Some(self.in_flight().acquire().await) };
        let held_back = match is_retry && Bug::RetriesBypassRateLimit.is_planted() {
            true => Duration::ZERO,
            false => self.limiter().acquire().await,
        };
        // Nothing waits between here and the sending, so that each request that is counted is sent.
        self.inner.bounds.take()?;
        self.inner.shared.usage.add_request(is_retry, held_back);
        Ok(Admission::Permit { _permit: permit, waited: queued.elapsed() })
    }

    /// Counts a request, if the origin of the client is kept.
    fn note_sent(&self, is_recorded: bool) {
        let settings = self.settings();
        if let Some(origin) = self.inner.shared.environment.origin.clone() {
            let base_url = settings.base_url().into();
            let is_loopback = settings.is_loopback;
            cassette::note_sent(&Sender { origin, base_url, is_loopback, is_recorded });
        }
    }

    pub(super) async fn interact(&self, target: &str, admission: Admission) -> Result<Interaction, Error> {
        let (_permit, waited) = match admission {
            Admission::Permit { _permit, waited } => (_permit, waited),
            Admission::Replayed(outcome) => {
                let outcome = self.replayed(outcome);
                let sent = Instant::now();
                let signature = String::new();
                let waited = Duration::ZERO;
                return Ok(Interaction {
                    outcome,
                    signature,
                    offset: 0,
                    generation: None,
                    waited,
                    sent,
                    replayed: true,
                });
            }
        };
        let settings = self.settings();
        let offset = if Bug::SkewIgnored.is_planted() { 0 } else { self.inner.shared.clock.offset() };
        let now = DateTime::<Utc>::from(self.now());
        let timestamp = sign::timestamp(now + chrono::TimeDelta::milliseconds(offset));
        let account = &self.inner.shared.account;
        // Those that were valid when the request was admitted, or others since.
        let current = account.latest().ok_or_else(|| Error::Internal("a request without credentials".into()))?;
        let signature = sign::signature(&settings.deployment, &current.credentials.secret_key, &timestamp, target);
        let sent = Some(&*signature).filter(|_| settings.deployment.signed());
        let headers = account.headers(&current, &timestamp, sent);
        let generation = Some(current.generation);
        let transport = self.transport()?;
        let sent = Instant::now();
        let outcome = transport.get(target, headers, settings.timeout).await;
        let interaction = Interaction { outcome, signature, offset, generation, waited, sent, replayed: false };
        if let Some(cassette) = &settings.cassette {
            cassette.record(&self.cassette_request(target), self.recording_of(&interaction, &timestamp))?;
        }
        Ok(interaction)
    }

    /// Facts that the cassette has beside the requests, under a request that is never sent.
    pub fn replay_facts(&self, request: &Request) -> Result<Option<Bytes>, Error> {
        let cassette = self.settings().cassette.as_ref().filter(|cassette| cassette.has_next(request));
        let outcome = cassette.map(|cassette| cassette.play(request)).transpose()?.flatten();
        Ok(outcome.and_then(|outcome| match outcome {
            Outcome::Response(response) => Some(response.body),
            Outcome::Failure(_) => None,
        }))
    }

    /// Records facts beside the requests, if there is a cassette that records.
    pub fn record_facts(&self, request: &Request, body: Bytes) -> Result<(), Error> {
        match self.settings().cassette.as_ref().filter(|cassette| cassette.can_record()) {
            None => Ok(()),
            Some(cassette) => {
                self.check_params(cassette, request)?;
                Ok(cassette.record(request, Outcome::of_facts(body))?)
            }
        }
    }

    /// Sends a recorded request once more, a single time, and returns whatever the service responds.
    pub async fn send_recorded(&self, path: &str, params: &[(String, String)]) -> Result<Response, Error> {
        let params = params.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let target = sign::target(&format!("{}{path}", self.settings().prefix), params);
        let admission = self.admit(&target, false).await?;
        self.interact(&target, admission).await?.outcome.map_err(|error| Error::Transport {
            endpoint: "cassette",
            phase: error.phase,
            problem: error.problem,
            attempts: 1,
            retryable: error.retryable,
        })
    }

    /// A request is stored as it was sent, or it could not be found again: one with a secret in it is not sent.
    fn check_params(&self, cassette: &Cassette, request: &Request) -> Result<(), Error> {
        let account = &self.inner.shared.account;
        let shows = request.params.iter().find(|(_, value)| account.is_shown_by(value));
        let Some((name, _)) = shows else { return Ok(()) };
        let problem = format!("cannot store a request whose {name} contains a secret; send it without a cassette");
        Err(cassette::Error::File { path: cassette.path().to_owned(), problem }.into())
    }

    /// The part of an interaction that may be stored: nothing that the response echoes of the request.
    fn recording_of(&self, interaction: &Interaction, timestamp: &str) -> Outcome {
        let response = match &interaction.outcome {
            Ok(response) => response,
            Err(TransportError { phase, timed_out, retryable, .. }) => {
                let phase = phase.as_str().into();
                return Outcome::Failure(cassette::RecordedFailure {
                    phase,
                    timed_out: *timed_out,
                    retryable: *retryable,
                });
            }
        };
        let account = &self.inner.shared.account;
        // In records a short secret may be a part of any value.
        let is_data = response.status == OK && decode::code_and_msg(&response.body).0.as_deref() == Some("0");
        let mut body = if is_data {
            account.redact_data(&response.body, &interaction.signature)
        } else {
            account.redact(&response.body, &interaction.signature)
        };
        overwrite(&mut body, &[timestamp]);
        for host in self.hosts() {
            overwrite(&mut body, &[host]);
        }
        if is_data && body[..] != response.body[..] {
            log::emit(Level::Warning, || {
                "secrets or the host in the data of a recorded response were redacted: a replay will differ".into()
            });
        }
        let now = self.now();
        let retry_after = response.header(RETRY_AFTER).and_then(|value| retry::retry_after(value, now));
        let skew = clock::of_response(response, now).filter(|_| response.status == UNAUTHORIZED);
        Outcome::Response(cassette::RecordedResponse {
            status: response.status,
            // Either header may be a date, which would show when it was recorded.
            retry_after: retry_after.map(|after| (after.as_secs_f64() * 1e3).round() / 1e3),
            clock_skew: skew.map(|skew| (skew as f64 / 1e3).round() as i64),
            body: body.into(),
        })
    }

    /// The service's host with its port, and without.
    fn hosts(&self) -> [&str; 2] {
        let origin = &self.settings().origin;
        [origin.authority(), origin.host_str().unwrap_or_default()]
    }

    /// True if no recording of a replayed request is left: it was not repeated when it was recorded.
    pub(super) fn is_played_out(&self, target: &str) -> bool {
        self.settings().cassette.as_ref().is_some_and(|cassette| !cassette.has_next(&self.cassette_request(target)))
    }

    /// Records an attempt that the deadline ended.
    pub(super) fn record_deadline(&self, target: &str) -> Result<(), Error> {
        let Some(cassette) = self.settings().cassette.as_ref().filter(|cassette| cassette.can_record()) else {
            return Ok(());
        };
        let failure =
            cassette::RecordedFailure { phase: Phase::Deadline.as_str().into(), timed_out: true, retryable: false };
        Ok(cassette.record(&self.cassette_request(target), Outcome::Failure(failure))?)
    }

    /// The request as cassettes store it, wherever the service is.
    fn cassette_request(&self, target: &str) -> Request {
        Request::get(target.strip_prefix(self.settings().prefix.as_str()).unwrap_or(target))
    }

    fn replayed(&self, outcome: Outcome) -> Result<Response, TransportError> {
        match outcome {
            Outcome::Response(recorded) => {
                let mut headers = HeaderMap::new();
                let retry_after = recorded.retry_after.and_then(|seconds| seconds.to_string().parse().ok());
                let date = recorded.clock_skew.map(|seconds| shifted(self.now(), seconds));
                let date = date.and_then(|date| httpdate::fmt_http_date(date).parse().ok());
                headers.extend(retry_after.map(|value| (RETRY_AFTER, value)));
                headers.extend(date.map(|value| (DATE, value)));
                Ok(Response { status: recorded.status, headers, body: recorded.body })
            }
            Outcome::Failure(failure) => {
                let phase = Phase::of(&failure.phase);
                let problem = match (phase, failure.timed_out) {
                    (Phase::Deadline, _) => "deadline exceeded",
                    (_, true) => "no whole response within the timeout",
                    (Phase::Connect, false) => "no connection",
                    (Phase::Tls, false) => "no secure connection",
                    (Phase::Read, false) => "the connection ended without a response",
                    (Phase::Body, false) => "the response was truncated",
                };
                let error = TransportError::new(phase, format!("{problem} (recorded)"), failure.retryable);
                Err(TransportError { timed_out: failure.timed_out, ..error })
            }
        }
    }
}

/// A time moved by some seconds, unless that leaves the years of a `Date` header.
fn shifted(now: SystemTime, seconds: i64) -> SystemTime {
    let by = Duration::from_secs(seconds.unsigned_abs());
    let moved = if seconds < 0 { now.checked_sub(by) } else { now.checked_add(by) };
    moved.filter(|time| *time > SystemTime::UNIX_EPOCH && by < Duration::from_secs(1 << 36)).unwrap_or(now)
}
