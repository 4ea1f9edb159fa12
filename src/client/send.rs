//! Sending of one attempt: it is admitted, then signed, sent and recorded, or replayed from a cassette.

use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::error::{Error, Phase};
use super::in_flight::InFlightPermit;
use super::transport::{Response, TransportError};
use super::{Client, sign};
use crate::cassette::{self, Outcome, Sender};
use crate::message::{Hint, Message};
use crate::planted::Bug;

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

impl Interaction {
    fn of_replay(outcome: Result<Response, TransportError>) -> Self {
        Self {
            outcome,
            signature: String::new(),
            offset: 0,
            generation: None,
            waited: Duration::ZERO,
            sent: Instant::now(),
            replayed: true,
        }
    }
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
                self.inner.shared.usage.lock().replayed += 1;
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
        self.in_deadline(self.inner.shared.account.usable(self.now())).await?;
        let queued = Instant::now();
        // It comes first: a permit of the rate limiter is to be used at once.
        let permit = if Bug::PermitPerQuery.is_planted() { None } else { Some(self.in_flight().acquire().await) };
        let held_back = if is_retry && Bug::RetriesBypassRateLimit.is_planted() {
            Duration::ZERO
        } else {
            self.limiter().acquire().await
        };
        // Nothing waits between here and the sending, so that each request that is counted is sent.
        self.inner.bounds.take()?;
        let mut usage = self.inner.shared.usage.lock();
        usage.requests += 1;
        usage.retries += u64::from(is_retry);
        usage.waited += held_back;
        Ok(Admission::Permit { _permit: permit, waited: queued.elapsed() })
    }

    /// Waits for credentials up to the deadline of a request. In a simulation, time does not pass while a callable of the
    /// caller issues them.
    pub(super) async fn in_deadline<T>(&self, asking: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let is_simulated = self.inner.shared.environment.virtual_time.is_some();
        let Some(deadline) = self.settings().deadline.filter(|_| !is_simulated) else { return asking.await };
        tokio::time::timeout(deadline, asking).await.unwrap_or_else(|_| {
            let problem = format!("not issued within the deadline of {} s", deadline.as_secs_f64());
            let problem = Message::new(problem).hint(Hint::raise(&["deadline"]));
            Err(Error::Timeout { endpoint: "credentials", phase: Phase::Deadline, problem, attempts: 0 })
        })
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

    /// The outcome of a request that was admitted.
    pub(super) async fn interact(&self, target: &str, admission: Admission) -> Result<Interaction, Error> {
        match admission {
            Admission::Replayed(outcome) => Ok(Interaction::of_replay(self.replayed(outcome))),
            Admission::Permit { _permit, waited } => self.send(target, waited).await,
        }
    }

    /// Signs a request, sends it, and records the outcome.
    async fn send(&self, target: &str, waited: Duration) -> Result<Interaction, Error> {
        let settings = self.settings();
        let offset = if Bug::SkewIgnored.is_planted() { 0 } else { self.inner.shared.clock.offset() };
        let now = DateTime::<Utc>::from(self.now());
        let timestamp = sign::timestamp(now + chrono::TimeDelta::milliseconds(offset));
        let account = &self.inner.shared.account;
        // Those that were valid when the request was admitted, or others since.
        let current = account.latest().ok_or_else(|| Error::Internal("a request without credentials".into()))?;
        let signature = sign::signature(&settings.deployment, &current.credentials.secret_key, &timestamp, target);
        let shown_signature = settings.deployment.signed().then_some(&*signature);
        let headers = account.headers(&current, &timestamp, shown_signature);
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
}
