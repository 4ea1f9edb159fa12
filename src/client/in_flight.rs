//! `InFlight`: the permits of the requests in flight, as many as the setting or `AutoConcurrency` allows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::process;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::concurrency::{AllowedRate, AutoConcurrency, Concurrency};

#[derive(Debug)]
pub struct InFlight {
    permits: Arc<Semaphore>,
    /// Requests that may be in flight.
    limit: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` for a fixed number.
    auto: Option<AutoConcurrency>,
    /// Permits that exist, with those in use.
    permits: usize,
}

/// The right to have a request in flight.
pub struct InFlightPermit {
    in_flight: Arc<InFlight>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let mut state = self.in_flight.lock();
        // A permit that is given back goes to the next request, so that one too many has to end here.
        if state.permits > self.in_flight.limit() {
            permit.forget();
            state.permits -= 1;
        }
    }
}

impl InFlight {
    pub fn new(concurrency: Concurrency) -> Self {
        let (auto, limit) = match concurrency {
            Concurrency::Auto => (Some(AutoConcurrency::new()), AutoConcurrency::FIRST),
            Concurrency::Fixed(limit) => (None, limit),
        };
        let permits = Arc::new(Semaphore::new(limit));
        Self { permits, limit: AtomicUsize::new(limit), state: Mutex::new(State { auto, permits: limit }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        process::lock(&self.state)
    }

    /// Requests that may be in flight.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Waits until one more request may be in flight.
    pub async fn acquire(self: &Arc<Self>) -> InFlightPermit {
        // The semaphore is never closed.
        let permit = self.permits.clone().acquire_owned().await.ok();
        InFlightPermit { in_flight: self.clone(), permit }
    }

    /// Records a good response to a request sent at `sent`.
    pub fn succeeded(&self, sent: Instant, bytes: usize, allowed: AllowedRate) {
        self.update(allowed, |auto| auto.succeeded(sent, Instant::now(), bytes, allowed));
    }

    /// Greatest rate that the requests in flight need, in requests per second; infinite for a fixed number.
    pub fn max_rate(&self) -> f64 {
        self.lock().auto.as_ref().map_or(f64::INFINITY, AutoConcurrency::max_rate)
    }

    /// Records a throttled response to a request sent at `sent`.
    pub fn throttled(&self, sent: Instant, allowed: AllowedRate) {
        self.update(allowed, |auto| auto.throttled(sent, Instant::now(), allowed));
    }

    /// Records a failure that a service has under load, of a request sent at `sent`.
    pub fn overloaded(&self, sent: Instant, allowed: AllowedRate) {
        self.update(allowed, |auto| auto.overloaded(sent, Instant::now()));
    }

    fn update(&self, allowed: AllowedRate, record: impl FnOnce(&mut AutoConcurrency)) {
        let mut state = self.lock();
        let Some(auto) = &mut state.auto else { return };
        record(auto);
        let limit = auto.limit(allowed);
        self.limit.store(limit, Ordering::Relaxed);
        if limit > state.permits {
            self.permits.add_permits(limit - state.permits);
            state.permits = limit;
        } else {
            // Those in use are taken back when they are given back.
            state.permits -= self.permits.forget_permits(state.permits - limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: AllowedRate = AllowedRate { rate: f64::INFINITY, is_limit: false };
    const SLOW: AllowedRate = AllowedRate { rate: 1.0, is_limit: true };

    #[tokio::test(start_paused = true)]
    async fn a_lower_limit_takes_back_permits_in_use_as_they_are_given_back() {
        let in_flight = Arc::new(InFlight::new(Concurrency::Auto));
        let sent = Instant::now();
        tokio::time::advance(std::time::Duration::from_millis(100)).await;
        in_flight.succeeded(sent, 1, FAST);
        let max = in_flight.limit();
        assert!(max > AutoConcurrency::FIRST);
        let mut held = Vec::new();
        for _ in 0..max {
            held.push(in_flight.acquire().await);
        }
        let waiting = tokio::spawn({
            let in_flight = in_flight.clone();
            async move { in_flight.acquire().await }
        });
        in_flight.succeeded(sent, 1, SLOW);
        let min = in_flight.limit();
        assert!(min < AutoConcurrency::FIRST);
        tokio::task::yield_now().await;

        held.truncate(min);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        held.pop();
        tokio::task::yield_now().await;
        assert!(waiting.is_finished());
        drop(held);
        waiting.await.unwrap();
        assert_eq!(in_flight.permits.available_permits(), min);
        assert_eq!(in_flight.lock().permits, min);
    }
}
