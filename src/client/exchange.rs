//! One exchange, with the service or with a cassette: paced, signed, sent and recorded, or played.

use std::time::{Duration, Instant, SystemTime};

use chrono::Utc;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use super::credentials::strike;
use super::error::{Error, Phase};
use super::log::{self, Level};
use super::settings::Settings;
use super::transport::{self, Answer, Failure};
use super::{Client, retry, sign};
use crate::cassette::{self, Cassette, Outcome, Request};
use crate::decode;

const OK: u16 = 200;
/// The status that may come of a wrong clock.
const UNAUTHORIZED: u16 = 401;

pub(super) struct Exchange {
    pub outcome: Result<Answer, Failure>,
    /// What the answer may echo; empty in a replay.
    pub signature: String,
    /// The clock's offset that was signed with.
    pub offset: i64,
    /// For its turn.
    pub waited: Duration,
    pub sent: Instant,
    pub replayed: bool,
}

impl Client {
    /// Whether nothing is ever sent.
    pub(super) fn only_replays(&self) -> bool {
        self.settings().cassette.as_ref().is_some_and(|cassette| !cassette.records())
    }

    pub(super) async fn exchange(&self, target: &str) -> Result<Exchange, Error> {
        let cassette = self.settings().cassette.as_ref().map(|cassette| (cassette, self.request(target)));
        if let Some((cassette, request)) = &cassette
            && let Some(outcome) = cassette.play(request)?
        {
            let outcome = replayed(outcome);
            let (signature, waited, sent) = (String::new(), Duration::ZERO, Instant::now());
            return Ok(Exchange { outcome, signature, offset: 0, waited, sent, replayed: true });
        }
        if let Some((setting, problem)) = &self.settings().missing {
            return Err(Error::config(setting, problem.as_str()));
        }
        if let Some((cassette, request)) = &cassette {
            self.check_params(cassette, request)?;
        }
        let waited = self.pacer().wait().await;
        let offset = self.inner.clock.offset();
        let timestamp = sign::timestamp(Utc::now() + chrono::TimeDelta::milliseconds(offset));
        let (outcome, signature, sent) = self.send(target, &timestamp).await?;
        let exchange = Exchange { outcome, signature, offset, waited, sent, replayed: false };
        if let Some((cassette, request)) = &cassette {
            cassette.record(request, self.recorded(&exchange, &timestamp))?;
        }
        Ok(exchange)
    }

    async fn send(&self, target: &str, timestamp: &str) -> Result<(Result<Answer, Failure>, String, Instant), Error> {
        let settings = self.settings();
        let connections = self.connections()?;
        let signature = sign::signature(&settings.deployment, &settings.credentials.secret_key, timestamp, target);
        let headers = self.inner.headers.of(timestamp, &signature);
        let sent = Instant::now();
        let Settings { origin, timeout, max_body, .. } = settings;
        let outcome = transport::get(&connections, origin, target, headers, *timeout, *max_body).await;
        Ok((outcome, signature, sent))
    }

    /// A request stands in the file as it was asked, or it could not be found again: with a secret in it, it is not sent.
    fn check_params(&self, cassette: &Cassette, request: &Request) -> Result<(), Error> {
        let credentials = &self.settings().credentials;
        let shows = request.params.iter().find(|(_, value)| credentials.is_shown_by(value));
        let Some((name, _)) = shows else { return Ok(()) };
        let problem = format!("cannot keep a request of which {name} is or holds a secret; ask it without a cassette");
        Err(cassette::Error::File { path: cassette.path().to_owned(), problem }.into())
    }

    /// What of an exchange may be written: nothing that it echoes of the request.
    fn recorded(&self, exchange: &Exchange, timestamp: &str) -> Outcome {
        let answer = match &exchange.outcome {
            Ok(answer) => answer,
            Err(Failure { phase, timed_out, retryable, .. }) => {
                let phase = phase.as_str().into();
                return Outcome::Failure(cassette::Failure { phase, timed_out: *timed_out, retryable: *retryable });
            }
        };
        let credentials = &self.settings().credentials;
        // Pages of proxies and refusals tell where they were sent, and by whom. In records a host may be the address of a
        // website, and a short secret anything.
        let is_data = answer.status == OK && decode::refusal(&answer.body).is_some_and(|(code, _)| code == "0");
        let mut body = if is_data {
            credentials.mask_in_data(&answer.body, &exchange.signature)
        } else {
            credentials.mask(&answer.body, &exchange.signature)
        };
        strike(&mut body, timestamp);
        if is_data && body[..] != answer.body[..] {
            log::emit(Level::Warning, || {
                "a recorded answer had the text of a secret in its data, which was struck out: a replay will differ"
                    .into()
            });
        }
        if !is_data {
            for host in self.hosts() {
                strike(&mut body, host);
            }
        }
        let seconds = |after: Duration| (after.as_secs_f64() * 1e3).round() / 1e3;
        let retry_after = answer.header(RETRY_AFTER).and_then(|value| retry::retry_after(value, SystemTime::now()));
        let skew = answer.skew().filter(|_| answer.status == UNAUTHORIZED);
        Outcome::Answer(cassette::Answer {
            status: answer.status,
            // Either header may be a date, which would tell when it was recorded.
            retry_after: retry_after.map(seconds),
            clock_ahead: skew.map(|skew| (skew as f64 / 1e3).round() as i64),
            body: body.into(),
        })
    }

    /// The service's host with its port, and without.
    fn hosts(&self) -> [&str; 2] {
        let origin = &self.settings().origin;
        [origin.authority(), origin.host_str().unwrap_or_default()]
    }

    /// Whether a request that was played will not be played again, and so was not asked again when it was recorded.
    pub(super) fn is_played_out(&self, target: &str) -> bool {
        self.settings().cassette.as_ref().is_some_and(|cassette| !cassette.has_next(&self.request(target)))
    }

    /// Records an attempt that the deadline ended.
    pub(super) fn record_out_of_time(&self, target: &str) -> Result<(), Error> {
        let Some(cassette) = self.settings().cassette.as_ref().filter(|cassette| cassette.records()) else {
            return Ok(());
        };
        let failure = cassette::Failure { phase: Phase::Deadline.as_str().into(), timed_out: true, retryable: false };
        Ok(cassette.record(&self.request(target), Outcome::Failure(failure))?)
    }

    /// As a cassette knows it, wherever the service is.
    fn request(&self, target: &str) -> Request {
        Request::get(target.strip_prefix(self.settings().prefix.as_str()).unwrap_or(target))
    }
}

fn replayed(outcome: Outcome) -> Result<Answer, Failure> {
    match outcome {
        Outcome::Answer(answer) => {
            let mut headers = HeaderMap::new();
            let retry_after = answer.retry_after.and_then(|seconds| seconds.to_string().parse().ok());
            let date = answer.clock_ahead.and_then(|seconds| httpdate::fmt_http_date(then(seconds)).parse().ok());
            headers.extend(retry_after.map(|value| (RETRY_AFTER, value)));
            headers.extend(date.map(|value| (DATE, value)));
            Ok(Answer { status: answer.status, headers, body: answer.body })
        }
        Outcome::Failure(failure) => {
            let phase = Phase::of(&failure.phase);
            let problem = match (phase, failure.timed_out) {
                (Phase::Deadline, _) => "not done within the deadline",
                (_, true) => "no whole answer within the time-out",
                (Phase::Connect, false) => "no connection",
                (Phase::Tls, false) => "no secure connection",
                (Phase::Read, false) => "the connection ended without an answer",
                (Phase::Body, false) => "the answer broke off",
            };
            let problem = format!("{problem}, as recorded");
            Err(Failure { phase, problem, timed_out: failure.timed_out, retryable: failure.retryable })
        }
    }
}

/// So many seconds from now, or before it.
fn then(seconds: i64) -> SystemTime {
    let (now, by) = (SystemTime::now(), Duration::from_secs(seconds.unsigned_abs()));
    let moved = if seconds < 0 { now.checked_sub(by) } else { now.checked_add(by) };
    // Beyond the years that a header can tell.
    moved.filter(|time| *time > SystemTime::UNIX_EPOCH && by < Duration::from_secs(1 << 36)).unwrap_or(now)
}
