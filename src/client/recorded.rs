//! Recordings of requests: the part of an outcome that a cassette may store, and the response that is replayed of it.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{DATE, HeaderMap, RETRY_AFTER};

use super::error::{Error, Phase};
use super::log::{self, Level};
use super::send::Interaction;
use super::transport::{Response, TransportError};
use super::{Client, clock, retry};
use crate::cassette::{self, Cassette, Outcome, Request};
use crate::decode;
use crate::redaction::overwrite;

const OK: u16 = 200;
/// The status of a rejected timestamp.
const UNAUTHORIZED: u16 = 401;

impl Client {
    /// The request as cassettes store it, wherever the service is.
    pub(super) fn cassette_request(&self, target: &str) -> Request {
        Request::get(target.strip_prefix(self.settings().prefix.as_str()).unwrap_or(target))
    }

    /// True if no recording of a replayed request is left: it was not repeated when it was recorded.
    pub(super) fn is_played_out(&self, target: &str) -> bool {
        self.settings().cassette.as_ref().is_some_and(|cassette| !cassette.has_next(&self.cassette_request(target)))
    }

    /// A request is stored as it was sent, or it could not be found again: one with a secret in it is not sent.
    pub(super) fn check_params(&self, cassette: &Cassette, request: &Request) -> Result<(), Error> {
        let account = &self.inner.shared.account;
        let shows = request.params.iter().find(|(_, value)| account.is_shown_by(value));
        let Some((name, _)) = shows else { return Ok(()) };
        let problem = format!("cannot store a request whose {name} contains a secret; send it without a cassette");
        Err(cassette::Error::File { path: cassette.path().to_owned(), problem }.into())
    }

    /// The part of an interaction that may be stored: nothing that the response echoes of the request.
    pub(super) fn recording_of(&self, interaction: &Interaction, timestamp: &str) -> Outcome {
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
        let retry_after = retry::of_response(response, now);
        let is_rejected = response.status == UNAUTHORIZED;
        let skew = if is_rejected { clock::of_response(response, now) } else { None };
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

    /// Records an attempt that the deadline ended.
    pub(super) fn record_deadline(&self, target: &str) -> Result<(), Error> {
        let Some(cassette) = self.settings().cassette.as_ref().filter(|cassette| cassette.can_record()) else {
            return Ok(());
        };
        let failure =
            cassette::RecordedFailure { phase: Phase::Deadline.as_str().into(), timed_out: true, retryable: false };
        Ok(cassette.record(&self.cassette_request(target), Outcome::Failure(failure))?)
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
        let cassette = self.settings().cassette.as_ref().filter(|cassette| cassette.can_record());
        let Some(cassette) = cassette else { return Ok(()) };
        self.check_params(cassette, request)?;
        Ok(cassette.record(request, Outcome::of_facts(body))?)
    }

    pub(super) fn replayed(&self, outcome: Outcome) -> Result<Response, TransportError> {
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
