//! How fast requests leave: a fixed rate, or one that finds what the service bears. Shared by all clients of one key.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The `rate_limit` setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateLimit {
    Auto,
    PerSecond(f64),
    Unlimited,
}

/// Requests a second at first, and how it grows with every answer until the first throttle: about a second later the
/// service, not the pacer, is the bound.
const FIRST: f64 = 16.0;
const GROWTH: f64 = 1.05;
/// Above this rate a pause between requests is shorter than a timer can measure.
const UNBOUND: f64 = 1_000.0;
/// After a throttle the rate creeps up by this many requests a second, per second.
const CREEP: f64 = 0.25;
const LEAST: f64 = 0.2;
/// Requests that may leave at once before the rate binds, so that small queries are not slowed.
const BURST: f64 = 4.0;

#[derive(Debug)]
pub struct Pacer {
    state: Mutex<State>,
    auto: bool,
}

#[derive(Debug)]
struct State {
    rate: f64,
    next: Option<Instant>,
    throttled: Option<Instant>,
    throttles: u64,
}

/// What a pacer does at the moment.
#[derive(Clone, Copy, Debug)]
pub struct PaceState {
    pub requests_per_second: Option<f64>,
    pub throttles: u64,
}

impl Pacer {
    pub fn new(limit: RateLimit) -> Self {
        let rate = match limit {
            RateLimit::Auto => FIRST,
            RateLimit::PerSecond(rate) => rate,
            RateLimit::Unlimited => f64::INFINITY,
        };
        let state = State { rate, next: None, throttled: None, throttles: 0 };
        Self { state: Mutex::new(state), auto: limit == RateLimit::Auto }
    }

    /// The pacer of that key at that service; one with a set rate is the client's own.
    pub fn shared(limit: RateLimit, base_url: &str, api_key: &str) -> Arc<Self> {
        static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        static SHARED: LazyLock<Mutex<HashMap<u64, Arc<Pacer>>>> = LazyLock::new(Mutex::default);
        if limit != RateLimit::Auto {
            return Arc::new(Self::new(limit));
        }
        // Keys are not kept, only their hash under a seed of this process.
        let id = HASHER.hash_one((base_url, api_key));
        let mut pacers = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        pacers.entry(id).or_insert_with(|| Arc::new(Self::new(limit))).clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the next request has to wait; its place is taken by asking.
    fn reserve(&self, now: Instant) -> Duration {
        let mut state = self.lock();
        if self.auto && state.throttled.is_none() && state.rate > UNBOUND || state.rate.is_infinite() {
            return Duration::ZERO;
        }
        let burst = if self.auto && state.throttled.is_none() { BURST } else { 0.0 };
        let earliest = now - Duration::from_secs_f64(burst / state.rate).min(Duration::from_secs(1));
        let slot = state.next.map_or(earliest, |next| next.max(earliest));
        state.next = Some(slot + Duration::from_secs_f64(1.0 / state.rate));
        slot.saturating_duration_since(now)
    }

    pub async fn wait(&self) {
        let pause = self.reserve(Instant::now());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }

    pub fn succeeded(&self, now: Instant) {
        if !self.auto {
            return;
        }
        let mut state = self.lock();
        match state.throttled {
            None => state.rate = (state.rate * GROWTH).min(UNBOUND * 2.0),
            // At `rate` answers a second this adds up to CREEP a second.
            Some(then) if now > then => state.rate += CREEP / state.rate.max(1.0),
            Some(_) => {}
        }
    }

    /// A request sent at `sent` was throttled. Requests that were under way together count once.
    pub fn throttled(&self, sent: Instant, now: Instant, retry_after: Option<Duration>) {
        let mut state = self.lock();
        state.throttles += 1;
        if !self.auto || state.throttled.is_some_and(|then| sent <= then) {
            return;
        }
        state.throttled = Some(now);
        state.rate = (state.rate.min(UNBOUND) / 2.0).max(LEAST);
        let pause = retry_after.unwrap_or_default().min(Duration::from_secs(60));
        state.next = Some(now + pause.max(Duration::from_secs_f64(1.0 / state.rate)));
    }

    pub fn state(&self) -> PaceState {
        let state = self.lock();
        let bound = state.rate.is_finite() && !(self.auto && state.throttled.is_none() && state.rate > UNBOUND);
        PaceState { requests_per_second: bound.then_some(state.rate), throttles: state.throttles }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_rate_spaces_requests_evenly() {
        let (pacer, now) = (Pacer::new(RateLimit::PerSecond(4.0)), Instant::now());
        let waits: Vec<u128> = (0..4).map(|_| pacer.reserve(now).as_millis()).collect();
        assert_eq!(waits, [0, 250, 500, 750]);
        let later = now + Duration::from_secs(60);
        assert_eq!(pacer.reserve(later).as_millis(), 0);
        assert_eq!(pacer.reserve(later).as_millis(), 250);
    }

    #[test]
    fn auto_halves_once_for_requests_that_were_throttled_together() {
        let (pacer, start) = (Pacer::new(RateLimit::Auto), Instant::now());
        let now = start + Duration::from_secs(1);
        pacer.throttled(start, now, None);
        pacer.throttled(start, now, None);
        assert_eq!(pacer.state().requests_per_second, Some(FIRST / 2.0));
        assert_eq!(pacer.state().throttles, 2);
        pacer.throttled(now + Duration::from_millis(1), now + Duration::from_secs(1), None);
        assert_eq!(pacer.state().requests_per_second, Some(FIRST / 4.0));
    }

    #[test]
    fn auto_stops_pacing_a_service_that_never_throttles() {
        let (pacer, now) = (Pacer::new(RateLimit::Auto), Instant::now());
        for _ in 0..200 {
            pacer.succeeded(now);
        }
        assert_eq!(pacer.state().requests_per_second, None);
        assert_eq!(pacer.reserve(now), Duration::ZERO);
    }

    #[test]
    fn one_key_has_one_pacer() {
        let shared = |key| Pacer::shared(RateLimit::Auto, "http://127.0.0.1:1", key);
        assert!(Arc::ptr_eq(&shared("a"), &shared("a")));
        assert!(!Arc::ptr_eq(&shared("a"), &shared("b")));
    }
}
