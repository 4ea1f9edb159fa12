//! How fast requests leave: a fixed rate, or one that finds what the service bears. Shared by all clients of one key.
//! What is decided is pure; time comes from outside.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::process::PerProcess;
use super::retry::LONGEST_RETRY_AFTER;

/// The `rate_limit` setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateLimit {
    Auto,
    PerSecond(f64),
    Unlimited,
}

/// What a pacer does at the moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaceState {
    /// Requests a second; none while nothing bounds them.
    pub rate: Option<f64>,
    /// Requests that wait for their turn.
    pub waiting: usize,
    /// Throttled answers so far.
    pub throttled: u64,
    /// Until the next request may leave.
    pub pause: Duration,
}

/// Requests a second at first, and what every answer multiplies them by until the service throttles.
const FIRST: f64 = 5.0;
const GROWTH: f64 = 1.08;
/// Above this rate the service, not the pacer, is the bound.
const UNBOUND: f64 = 1_000.0;
const LEAST: f64 = 0.2;
/// Requests that may leave at once before the first throttle, so that small queries are not slowed.
const BURST: f64 = 2.0;
/// A throttle this soon is about the burst and says nothing of the rate.
const YOUNG: Duration = Duration::from_millis(500);
/// Throttles within this time of a cut have its cause, and cause no other.
const EPOCH: Duration = Duration::from_secs(1);
/// After a throttle nothing leaves for as long: a window of the service's empties meanwhile.
const PAUSE: Duration = Duration::from_millis(400);
/// A halved rate is back at this part of what was throttled within `RECOVERY` seconds. Beyond, it creeps up by `CREEP` of
/// it in a second, and by so much more in each further one, so that a limit that was lifted is found out.
const KNEE: f64 = 0.9;
/// What a further throttle takes the limit down to at most.
const HOLD: f64 = 0.8;
const RECOVERY: f64 = 1.0;
const CREEP: f64 = 0.004;
const CREEP_GROWTH: f64 = 0.002;
/// Timers wake late; what is lost by it may be made up for.
const SLACK: Duration = Duration::from_millis(10);

/// The pure part of a pacer.
#[derive(Debug)]
struct Pace {
    rate: f64,
    /// How an automatic rate changes; a set one does not.
    auto: Option<Auto>,
    /// When the next request may leave, but for a burst.
    next: Option<Instant>,
    throttled: u64,
}

#[derive(Debug, Default)]
struct Auto {
    started: Option<Instant>,
    /// When the rate was last halved.
    cut: Option<Instant>,
    /// Once the limit of the service was met; before, the rate grows with every answer.
    limit: Option<Limit>,
    delivered: Meter,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    /// What was throttled, in requests a second.
    rate: f64,
    /// When the rate was last raised, and since when it creeps.
    raised: Instant,
    creeps_since: Instant,
}

/// Good answers of the second before this one, and of this one.
#[derive(Debug, Default)]
struct Meter {
    since: Option<Instant>,
    before: u32,
    now: u32,
}

impl Meter {
    fn count(&mut self, now: Instant, answers: u32) -> f64 {
        let since = *self.since.get_or_insert(now);
        match now.saturating_duration_since(since).as_secs() {
            0 => {}
            1 => (self.since, self.before, self.now) = (Some(since + Duration::from_secs(1)), self.now, 0),
            _ => (self.since, self.before, self.now) = (Some(now), 0, 0),
        }
        self.now += answers;
        f64::from(self.now.max(self.before))
    }
}

impl Pace {
    fn new(limit: RateLimit) -> Self {
        let (rate, auto) = match limit {
            RateLimit::Auto => (FIRST, Some(Auto::default())),
            RateLimit::PerSecond(rate) => (rate, None),
            RateLimit::Unlimited => (f64::INFINITY, None),
        };
        Self { rate, auto, next: None, throttled: 0 }
    }

    fn is_unbound(&self) -> bool {
        self.rate.is_infinite() || self.auto.as_ref().is_some_and(|auto| auto.limit.is_none()) && self.rate > UNBOUND
    }

    /// When the next request may leave.
    fn slot(&self, now: Instant) -> Instant {
        let burst = match &self.auto {
            Some(auto) if auto.cut.is_none() => Duration::from_secs_f64(BURST / self.rate),
            _ => SLACK,
        };
        let earliest = now.checked_sub(burst).unwrap_or(now);
        self.next.map_or(earliest, |next| next.max(earliest))
    }

    /// How long the next request has to wait. It leaves if that is nothing.
    fn take(&mut self, now: Instant) -> Duration {
        if self.is_unbound() {
            return Duration::ZERO;
        }
        let slot = self.slot(now);
        if slot <= now {
            self.next = Some(slot + Duration::from_secs_f64(1.0 / self.rate));
            if let Some(auto) = &mut self.auto {
                auto.started.get_or_insert(now);
            }
        }
        slot.saturating_duration_since(now)
    }

    /// A request sent at `sent` got a good answer.
    fn succeeded(&mut self, sent: Instant, now: Instant) {
        let Some(auto) = &mut self.auto else { return };
        auto.delivered.count(now, 1);
        if auto.cut.is_some_and(|cut| sent <= cut) {
            return;
        }
        let Some(limit) = &mut auto.limit else {
            self.rate = (self.rate * GROWTH).min(UNBOUND * 2.0);
            return;
        };
        let since = now.saturating_duration_since(limit.raised).as_secs_f64().min(1.0);
        limit.raised = now;
        let knee = limit.rate * KNEE;
        if self.rate < knee {
            self.rate = knee.min(self.rate + limit.rate / 2.0 * since / RECOVERY);
            limit.creeps_since = now;
        } else {
            let creeping = now.saturating_duration_since(limit.creeps_since).as_secs_f64();
            self.rate = (self.rate + limit.rate * (CREEP + CREEP_GROWTH * creeping) * since).min(UNBOUND);
        }
    }

    /// A request sent at `sent` was throttled: the rate halves, once for requests that were under way together.
    fn throttled(&mut self, sent: Instant, now: Instant, retry_after: Option<Duration>) {
        self.throttled += 1;
        let Some(auto) = &mut self.auto else { return };
        if auto.cut.is_some_and(|cut| sent <= cut) {
            return;
        }
        if auto.cut.is_none_or(|cut| sent > cut + EPOCH) {
            auto.cut = Some(now);
            if auto.limit.is_some() || auto.started.is_none_or(|started| now > started + YOUNG) {
                // What got through tells more than a rate that nobody may have made use of.
                self.rate = self.rate.min(auto.delivered.count(now, 0).max(FIRST));
                // A throttle on the way back up may be a whim: the limit is taken to be lower, but not that low.
                let rate = self.rate.max(auto.limit.map_or(0.0, |limit| limit.rate * HOLD));
                auto.limit = Some(Limit { rate, raised: now, creeps_since: now });
            }
            self.rate = (self.rate / 2.0).max(LEAST);
        }
        let pause = PAUSE.max(retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER));
        self.next = self.next.max(Some(now + pause));
    }
}

#[derive(Debug)]
pub struct Pacer {
    pace: Mutex<Pace>,
    /// Held by the request whose turn is next. Whoever gives up waiting leaves its turn to the one behind.
    turn: tokio::sync::Mutex<()>,
    waiting: AtomicUsize,
}

/// Counts a request as waiting while it is in scope.
struct Waiting<'p>(&'p AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pacer {
    pub fn new(limit: RateLimit) -> Self {
        Self { pace: Mutex::new(Pace::new(limit)), turn: tokio::sync::Mutex::default(), waiting: AtomicUsize::new(0) }
    }

    /// The pacer of that key at that service; one with a set rate is the client's own.
    pub fn shared(limit: RateLimit, origin: &str, api_key: &str) -> Arc<Self> {
        type Pacers = Arc<Mutex<HashMap<u64, Arc<Pacer>>>>;
        static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        // A lock that another thread held during a fork would stay locked in the child.
        static SHARED: PerProcess<Pacers> = PerProcess::new();
        if limit != RateLimit::Auto {
            return Arc::new(Self::new(limit));
        }
        let Ok(pacers) = SHARED.get(|| Ok::<_, Infallible>(Pacers::default()));
        // Keys are not kept, only their hash under a seed of this process.
        let id = HASHER.hash_one((origin, api_key));
        let mut pacers = pacers.lock().unwrap_or_else(PoisonError::into_inner);
        pacers.entry(id).or_insert_with(|| Arc::new(Self::new(limit))).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the next request may leave; how long that took.
    pub async fn wait(&self) -> Duration {
        if self.lock().is_unbound() {
            return Duration::ZERO;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        let asked = Instant::now();
        let _turn = self.turn.lock().await;
        loop {
            // Looked at again after every sleep: a throttle may have come meanwhile.
            let pause = self.lock().take(Instant::now());
            if pause.is_zero() {
                return asked.elapsed();
            }
            tokio::time::sleep(pause).await;
        }
    }

    pub fn succeeded(&self, sent: Instant) {
        self.lock().succeeded(sent, Instant::now());
    }

    pub fn throttled(&self, sent: Instant, retry_after: Option<Duration>) {
        self.lock().throttled(sent, Instant::now(), retry_after);
    }

    pub fn state(&self) -> PaceState {
        let (pace, now) = (self.lock(), Instant::now());
        let bound = !pace.is_unbound();
        PaceState {
            rate: bound.then_some(pace.rate),
            waiting: self.waiting.load(Ordering::Relaxed),
            throttled: pace.throttled,
            pause: if bound { pace.slot(now).saturating_duration_since(now) } else { Duration::ZERO },
        }
    }
}

#[cfg(test)]
mod tests;
