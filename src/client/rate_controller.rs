//! `RateController`: a fixed rate, or one that finds what the service allows. Decisions are pure; time comes from outside.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::concurrency::AllowedRate;
use super::retry::MAX_RETRY_AFTER;

/// The `rate_limit` setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateLimit {
    Auto,
    PerSecond(f64),
    Unlimited,
}

/// Requests per second at first.
const INITIAL_RATE: f64 = 16.0;
/// Factor by which every good response raises the rate until the service throttles for the first time: some fifteen
/// responses make the concurrency, not the limiter, the bottleneck, and few requests are in flight before them.
const SLOW_START_FACTOR: f64 = 1.15;
/// Factor by which every good response raises the rate after a throttle that did not show the limit.
const CAUTIOUS_FACTOR: f64 = 1.06;
/// Above this rate the service, not the limiter, is the bottleneck.
const MAX_LIMITED_RATE: f64 = 1_000.0;
/// Rate that throttles do not push below: with a request in five seconds, the end of a throttle is noticed.
const MIN_RATE: f64 = 0.2;
/// Rate that is taken to be delivered at least when the service throttles, if fewer requests than `MIN_SENT` show what it
/// delivers.
const MIN_DELIVERED: f64 = 5.0;
const MIN_SENT: usize = 6;
/// Requests that may be sent at once before the first throttle, so that small queries are not slowed down.
const BURST_SIZE: f64 = 6.0;
/// A throttle this soon after the first request is due to the burst. It says nothing about the rate if fewer requests than
/// the burst were accepted.
const STARTUP_GRACE: Duration = Duration::from_millis(500);
/// Period over which services count requests, as a rule.
const WINDOW: Duration = Duration::from_secs(1);
/// Period before a throttled request over which the delivered rate is measured: a service that allows bursts delivers more
/// than its limit in one window.
const MEASURED: Duration = Duration::from_millis(1_500);
/// Time from the first request to the one that follows a throttled burst: the service has forgotten the burst by then.
const BURST_PAUSE: Duration = Duration::from_millis(1_200);
/// Throttles within this time of a decrease have the same cause and trigger no other.
const CONGESTION_EPOCH: Duration = Duration::from_secs(1);
/// Pause after a throttle, in which the service's window empties.
const THROTTLE_PAUSE: Duration = Duration::from_millis(400);
/// Fraction of the throttled rate that a halved rate regains within `RECOVERY_SECS`. Beyond it, the rate rises by
/// `ADDITIVE_INCREASE` of the limit per second, and by `ADDITIVE_ACCEL` more in each further second, so that a limit that
/// was lifted is noticed.
const RECOVERY_TARGET: f64 = 0.9;
const RECOVERY_SECS: f64 = 1.0;
const ADDITIVE_INCREASE: f64 = 0.004;
const ADDITIVE_ACCEL: f64 = 0.002;
/// Fraction of the limit that remains at least after a further throttle.
const MIN_LIMIT_KEPT: f64 = 0.8;
/// Timers fire late; requests may make up for this much of it.
const TIMER_SLACK: Duration = Duration::from_millis(10);

/// The decisions of a rate limiter.
#[derive(Debug)]
pub struct RateController {
    pub rate: f64,
    /// State of an automatic rate; a fixed one has none.
    auto: Option<Auto>,
    /// Earliest time of the next request, apart from a burst.
    pub next: Option<Instant>,
    pub throttled: u64,
    /// State before responses that may have been throttles, unless one was.
    before_suspicion: Option<BeforeSuspicion>,
}

/// State that is restored if a suspected throttle was none.
#[derive(Clone, Copy, Debug)]
struct BeforeSuspicion {
    rate: f64,
    search: Option<Search>,
    throttled: u64,
}

#[derive(Debug, Default)]
struct Auto {
    started: Option<Instant>,
    search: Search,
    sent: SentRequests,
}

/// Progress of the search for the limit of the service. `decreased` is the time of the last decrease of the rate.
#[derive(Clone, Copy, Debug, Default)]
enum Search {
    /// Without a throttle: every good response raises the rate.
    #[default]
    SlowStart,
    /// After a throttle that did not show the limit: every good response raises the rate, by a smaller factor.
    Cautious { decreased: Instant },
    /// After a throttle that showed the limit.
    Limited { decreased: Instant, limit: Limit },
}

impl Search {
    fn decreased(&self) -> Option<Instant> {
        match self {
            Self::SlowStart => None,
            Self::Cautious { decreased } | Self::Limited { decreased, .. } => Some(*decreased),
        }
    }

    fn limit(&self) -> Option<Limit> {
        if let Self::Limited { limit, .. } = self { Some(*limit) } else { None }
    }
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    /// The rate that was throttled, in requests per second.
    rate: f64,
    /// Time of the last increase.
    raised: Instant,
    /// Start of the additive increase.
    probing_since: Instant,
    /// Time at which the throttled request was sent.
    throttled_at: Instant,
}

impl Limit {
    /// Seconds since the last increase, of which this is the next one.
    fn seconds_since_raised(&mut self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.raised).as_secs_f64().min(1.0);
        self.raised = now;
        since
    }
}

/// Times at which the latest requests were sent that were accepted or throttled. The latency of the responses does not
/// matter: a service counts requests as they come.
#[derive(Debug, Default)]
struct SentRequests {
    accepted: VecDeque<Instant>,
    throttled: VecDeque<Instant>,
}

impl SentRequests {
    fn push(requests: &mut VecDeque<Instant>, sent: Instant) {
        requests.push_back(sent);
        if requests.len() > MAX_LIMITED_RATE as usize {
            requests.pop_front();
        }
    }

    /// Accepted requests per second up to a time, of a limiter that was this old then.
    fn rate(&self, until: Instant, age: Duration) -> f64 {
        let is_measured = |sent: &&Instant| **sent <= until && until.saturating_duration_since(**sent) < MEASURED;
        let first = self.accepted.iter().filter(is_measured).min();
        let accepted = self.accepted.iter().filter(is_measured).count();
        let throttled = self.throttled.iter().filter(is_measured).count();
        // A burst after a pause may have the requests of a window more.
        let since_first = first.map_or(MEASURED, |first| until.saturating_duration_since(*first) + WINDOW);
        let rate = accepted as f64 / age.min(since_first).clamp(WINDOW, MEASURED).as_secs_f64();
        if accepted + throttled < MIN_SENT { rate.max(MIN_DELIVERED) } else { rate }
    }
}

impl RateController {
    pub fn new(limit: RateLimit) -> Self {
        let (rate, auto) = match limit {
            RateLimit::Auto => (INITIAL_RATE, Some(Auto::default())),
            RateLimit::PerSecond(rate) => (rate, None),
            RateLimit::Unlimited => (f64::INFINITY, None),
        };
        Self { rate, auto, next: None, throttled: 0, before_suspicion: None }
    }

    pub fn is_unlimited(&self) -> bool {
        self.rate.is_infinite() || self.auto.is_some() && self.limit().is_none() && self.rate > MAX_LIMITED_RATE
    }

    fn limit(&self) -> Option<Limit> {
        self.auto.as_ref().and_then(|auto| auto.search.limit())
    }

    /// The rate that is allowed once the rate has recovered from a throttle.
    pub fn allowed(&self) -> AllowedRate {
        let limit = self.limit();
        let rate = if self.is_unlimited() { f64::INFINITY } else { self.rate };
        AllowedRate {
            rate: limit.map_or(rate, |limit| rate.max(limit.rate)),
            is_limit: limit.is_some() || self.auto.is_none() && rate.is_finite(),
        }
    }

    /// Earliest time of the next request.
    pub fn next_permit_at(&self, now: Instant) -> Instant {
        let burst = match &self.auto {
            Some(Auto { search: Search::SlowStart, .. }) => Duration::from_secs_f64(BURST_SIZE / self.rate),
            _ => TIMER_SLACK,
        };
        let earliest = now.checked_sub(burst).unwrap_or(now);
        self.next.map_or(earliest, |next| next.max(earliest))
    }

    /// Takes a permit and returns zero, or returns the time to wait for the next one.
    pub fn try_acquire(&mut self, now: Instant) -> Duration {
        if self.is_unlimited() {
            return Duration::ZERO;
        }
        self.recover(now);
        let permit = self.next_permit_at(now);
        if permit <= now {
            self.next = Some(permit + Duration::from_secs_f64(1.0 / self.rate));
            if let Some(auto) = &mut self.auto {
                auto.started.get_or_insert(now);
            }
        }
        permit.saturating_duration_since(now)
    }

    /// Seconds until that many requests are admitted, if all of them succeed.
    pub fn seconds_to_admit(&self, requests: u64, now: Instant) -> f64 {
        if self.is_unlimited() || requests == 0 {
            return 0.0;
        }
        let requests = requests as f64;
        let pause = self.next_permit_at(now).saturating_duration_since(now).as_secs_f64();
        let Some(auto) = &self.auto else { return pause + (requests - 1.0) / self.rate };
        match &auto.search {
            Search::Limited { limit, .. } => pause + requests / self.rate.max(limit.rate * RECOVERY_TARGET),
            // Every response raises the rate by a factor, so that the sum converges.
            Search::Cautious { .. } => pause + sum_of_gaps(self.rate, CAUTIOUS_FACTOR, requests),
            Search::SlowStart => {
                let rate = self.rate * SLOW_START_FACTOR.powf(BURST_SIZE);
                sum_of_gaps(rate, SLOW_START_FACTOR, (requests - BURST_SIZE).max(0.0))
            }
        }
    }

    /// Records a good response to a request sent at `sent`.
    pub fn succeeded(&mut self, sent: Instant, now: Instant) {
        let Some(auto) = &mut self.auto else { return };
        SentRequests::push(&mut auto.sent.accepted, sent);
        let (decreased, limit) = match &mut auto.search {
            Search::SlowStart => return self.raise_by(SLOW_START_FACTOR),
            Search::Cautious { decreased } if sent <= *decreased => return,
            Search::Cautious { .. } => return self.raise_by(CAUTIOUS_FACTOR),
            Search::Limited { decreased, limit } => (*decreased, limit),
        };
        if sent <= decreased {
            // Requests that were sent before the throttled one may be answered after it.
            if sent <= limit.throttled_at {
                let age = limit.throttled_at.saturating_duration_since(auto.started.unwrap_or(sent));
                limit.rate = limit.rate.max(auto.sent.rate(limit.throttled_at, age));
            }
            return;
        }
        if self.rate < limit.rate * RECOVERY_TARGET {
            return self.recover(now);
        }
        let since = limit.seconds_since_raised(now);
        let probing = now.saturating_duration_since(limit.probing_since).as_secs_f64();
        self.rate =
            (self.rate + limit.rate * (ADDITIVE_INCREASE + ADDITIVE_ACCEL * probing) * since).min(MAX_LIMITED_RATE);
    }

    fn raise_by(&mut self, factor: f64) {
        self.rate = (self.rate * factor).min(MAX_LIMITED_RATE * 2.0);
    }

    /// Bounds the rate as long as no limit is known, to one that is enough.
    pub fn bound_rate(&mut self, rate: f64) {
        if self.auto.is_some() && self.limit().is_none() {
            self.rate = self.rate.min(rate.max(INITIAL_RATE));
        }
    }

    /// Raises a halved rate by the time that has passed, since responses may take seconds.
    fn recover(&mut self, now: Instant) {
        let Some(Auto { search: Search::Limited { limit, .. }, .. }) = &mut self.auto else { return };
        let knee = limit.rate * RECOVERY_TARGET;
        if self.rate < knee {
            let since = limit.seconds_since_raised(now);
            self.rate = knee.min(self.rate + limit.rate / 2.0 * since / RECOVERY_SECS);
            limit.probing_since = now;
        }
    }

    /// Records a throttled response to a request sent at `sent`. The rate is halved once for requests that were in flight
    /// together.
    pub fn throttled(&mut self, sent: Instant, now: Instant, retry_after: Option<Duration>) {
        self.before_suspicion = None;
        self.throttled += 1;
        let Some(auto) = &mut self.auto else { return };
        SentRequests::push(&mut auto.sent.throttled, sent);
        let decreased = auto.search.decreased();
        if decreased.is_some_and(|decreased| sent <= decreased) {
            return;
        }
        if decreased.is_none_or(|decreased| sent > decreased + CONGESTION_EPOCH) {
            self.decrease(sent, now);
        }
        let pause = THROTTLE_PAUSE.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER));
        self.next = self.next.max(Some(now + pause));
    }

    /// Halves the rate, from what the service has delivered before a throttled request: the current rate may never have been
    /// reached.
    fn decrease(&mut self, sent: Instant, now: Instant) {
        let Some(auto) = &mut self.auto else { return };
        let known = auto.search.limit();
        let age = auto.started.map_or(Duration::ZERO, |started| sent.saturating_duration_since(started));
        self.rate = self.rate.min(auto.sent.rate(sent, age));
        let burst = auto.started.filter(|started| known.is_none() && now <= *started + STARTUP_GRACE);
        if let Some(started) = burst {
            self.next = self.next.max(Some(started + BURST_PAUSE));
        }
        // A service that accepted the burst has shown how many requests it allows in a window.
        auto.search = if burst.is_none() || self.rate >= BURST_SIZE {
            // A throttle during recovery may be transient: the assumed limit falls, but not that far.
            let rate = self.rate.max(known.map_or(0.0, |limit| limit.rate * MIN_LIMIT_KEPT));
            let limit = Limit { rate, raised: now, probing_since: now, throttled_at: sent };
            Search::Limited { decreased: now, limit }
        } else {
            Search::Cautious { decreased: now }
        };
        self.rate = (self.rate / 2.0).max(MIN_RATE);
    }
}

// An empty response may be a throttle: it counts as one until another response shows that it was none.
impl RateController {
    /// Records a response that may be a throttle.
    pub fn suspect(&mut self, sent: Instant, now: Instant) {
        // The rate is halved already. The repetitions that decide about a suspicion would each halve it again.
        if self.before_suspicion.is_some() {
            return;
        }
        let before = BeforeSuspicion {
            rate: self.rate,
            search: self.auto.as_ref().map(|auto| auto.search),
            throttled: self.throttled,
        };
        self.throttled(sent, now, None);
        self.before_suspicion = Some(before);
    }

    /// Takes back the effect of suspected throttles: one of them was none.
    pub fn clear_suspicion(&mut self) {
        let Some(before) = self.before_suspicion.take() else { return };
        // The time of the next request stays: others were admitted since.
        self.throttled = before.throttled;
        if let (Some(auto), Some(search)) = (&mut self.auto, before.search) {
            auto.search = search;
            self.rate = self.rate.max(before.rate);
        }
    }

    /// Records that the suspected response to a request sent at `sent` was a throttle.
    pub fn confirm_suspicion(&mut self, sent: Instant, now: Instant) {
        if self.before_suspicion.take().is_none() {
            self.throttled(sent, now, None);
        }
    }
}

/// Seconds between the first request and the last of `requests`, each of which raises the rate by a factor.
fn sum_of_gaps(rate: f64, factor: f64, requests: f64) -> f64 {
    let gap = 1.0 / factor;
    (1.0 - gap.powf(requests)) / (1.0 - gap) / rate
}

#[cfg(test)]
mod tests;
