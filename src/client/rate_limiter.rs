//! `RateLimiter`: the queue of requests that wait for a permit. `auto` limiters are shared by all clients of one key at one
//! service.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::concurrency::AllowedRate;
use super::rate_controller::{RateController, RateLimit};
use crate::process::{self, PerProcess};

/// The state of a rate limiter at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimiterState {
    /// Requests per second, or `None` while requests are not limited.
    pub rate: Option<f64>,
    /// Number of requests that wait for a permit.
    pub waiting: usize,
    /// Number of throttled responses so far.
    pub throttled: u64,
    /// Time until the next request may be sent.
    pub pause: Duration,
}

#[derive(Debug)]
pub struct RateLimiter {
    controller: Mutex<RateController>,
    /// Held by the first request in the queue. A request that stops waiting leaves its place to the next one.
    queue: tokio::sync::Mutex<()>,
    waiting: AtomicUsize,
}

/// Counts a request as waiting for as long as it lives.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RateLimiter {
    pub fn new(limit: RateLimit) -> Self {
        Self {
            controller: Mutex::new(RateController::new(limit)),
            queue: tokio::sync::Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, RateController> {
        process::lock(&self.controller)
    }

    /// Waits until the next request may be sent and returns how long that took.
    pub async fn acquire(&self) -> Duration {
        if self.lock().is_unlimited() {
            return Duration::ZERO;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        let queued = Instant::now();
        let _first = self.queue.lock().await;
        loop {
            // Checked again after every sleep: a throttle may have come meanwhile.
            let pause = self.lock().try_acquire(Instant::now());
            if pause.is_zero() {
                return queued.elapsed();
            }
            tokio::time::sleep(pause).await;
        }
    }

    pub fn succeeded(&self, sent: Instant) {
        self.lock().succeeded(sent, Instant::now());
    }

    /// Bounds the rate as long as no limit is known.
    pub fn bound_rate(&self, rate: f64) {
        self.lock().bound_rate(rate);
    }

    pub fn throttled(&self, sent: Instant, retry_after: Option<Duration>) {
        self.lock().throttled(sent, Instant::now(), retry_after);
    }

    /// Records a response that may be a throttle, until it is cleared or confirmed.
    pub fn suspect(&self, sent: Instant) {
        self.lock().suspect(sent, Instant::now());
    }

    pub fn clear_suspicion(&self) {
        self.lock().clear_suspicion();
    }

    pub fn confirm_suspicion(&self, sent: Instant) {
        self.lock().confirm_suspicion(sent, Instant::now());
    }

    /// Time until that many requests are admitted, if all of them succeed.
    pub fn time_to_admit(&self, requests: u64) -> Duration {
        let seconds = self.lock().seconds_to_admit(requests, Instant::now());
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// The rate by which requests in flight are measured out.
    pub fn allowed(&self) -> AllowedRate {
        self.lock().allowed()
    }

    pub fn state(&self) -> RateLimiterState {
        let controller = self.lock();
        let now = Instant::now();
        let limited = !controller.is_unlimited();
        RateLimiterState {
            rate: limited.then_some(controller.rate),
            waiting: self.waiting.load(Ordering::Relaxed),
            throttled: controller.throttled,
            pause: if limited { controller.next_permit_at(now).saturating_duration_since(now) } else { Duration::ZERO },
        }
    }
}

/// The `auto` limiters of one process, or of one simulation.
#[derive(Clone, Default)]
pub enum SharedLimiters {
    #[default]
    OfProcess,
    Own(Limiters),
}

/// By a hash of the service's origin and the key: keys themselves are not kept.
type Limiters = Arc<Mutex<HashMap<u64, Arc<RateLimiter>>>>;

impl SharedLimiters {
    /// The limiter of that key at that service; one with a fixed rate belongs to the client alone.
    pub fn get(&self, limit: RateLimit, origin: &str, api_key: &str) -> Arc<RateLimiter> {
        static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        // A lock that another thread held during a fork would stay locked in the child.
        static OF_PROCESS: PerProcess<Limiters> = PerProcess::new();
        if limit != RateLimit::Auto {
            return Arc::new(RateLimiter::new(limit));
        }
        let limiters = match self {
            Self::OfProcess => OF_PROCESS.get_with(Limiters::default),
            Self::Own(limiters) => limiters.clone(),
        };
        let id = HASHER.hash_one((origin, api_key));
        let mut limiters = process::lock(&limiters);
        limiters.entry(id).or_insert_with(|| Arc::new(RateLimiter::new(limit))).clone()
    }
}

#[cfg(test)]
mod tests;
