//! `AutoConcurrency`: how many requests are in flight together, from what responses show. Decisions are pure; time comes
//! from outside.
//!
//! By Little's law, requests in flight are rate × latency: fewer leave some of the allowed rate unused, and more wait for
//! the rate limiter. As long as no limit of the service is known, a window bounds them, which grows once in each round trip.
//! A longer latency is no reason for fewer: later pages of a list may take longer, however many are in flight.

use tokio::time::Instant;

/// The `concurrency` setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency<N = usize> {
    Auto,
    Fixed(N),
}

impl Concurrency {
    /// Most requests that may ever be in flight.
    pub fn max(self) -> usize {
        match self {
            Self::Auto => MAX_IN_FLIGHT,
            Self::Fixed(requests) => requests,
        }
    }
}

/// Least requests in flight: one is answered while the other is under way.
const MIN_IN_FLIGHT: usize = 2;
/// Most requests in flight. Each has a connection, and its response is held until those before it have arrived.
const MAX_IN_FLIGHT: usize = 64;
/// The window of the first round trip.
const FIRST_WINDOW: usize = 24;
/// Factor by which the window grows. Twice as many would take a round trip more, which lists of some hundred pages at a
/// latency of seconds do not make up for.
const GROWTH: usize = 3;
/// Factor on window ÷ latency, the rate by which a window is sent in a part of a round trip and not at once. A service with a
/// limit then throttles fewer of its requests before the client knows of the first.
const RATE_FACTOR: f64 = 1.5;
/// Factor on rate × latency, so that requests that arrive early find others waiting.
const HEADROOM: f64 = 1.25;
/// Weight of one response in the latency.
const WEIGHT: f64 = 0.25;
/// Share of the size of responses that remains after a smaller one.
const SIZE_DECAY: f64 = 0.9;
/// Bytes of the responses that are in flight, by the size of earlier ones.
const MAX_HELD: f64 = (32 << 20) as f64;

/// Rate that a rate limiter allows.
#[derive(Clone, Copy, Debug)]
pub struct AllowedRate {
    /// Requests per second; infinite without a limit.
    pub rate: f64,
    /// True if the rate is that of the caller or of the service, not one that has not met a limit yet.
    pub is_limit: bool,
}

#[derive(Debug)]
pub struct AutoConcurrency {
    /// Mean time of a response, in seconds, once there was one.
    latency: Option<f64>,
    /// Size of the larger responses of late, in bytes.
    size: f64,
    window: usize,
    /// Time since which requests are sent by this window.
    window_since: Option<Instant>,
}

impl AutoConcurrency {
    /// Requests in flight while no latency is known, and least of them while no limit of the service is.
    pub const FIRST: usize = 4;

    pub fn new() -> Self {
        Self { latency: None, size: 0.0, window: FIRST_WINDOW, window_since: None }
    }

    /// Requests that may be in flight.
    pub fn limit(&self, allowed: AllowedRate) -> usize {
        let Some(latency) = self.latency else { return Self::FIRST };
        let min = if allowed.is_limit { MIN_IN_FLIGHT } else { Self::FIRST };
        let held = (MAX_HELD / self.size.max(1.0)) as usize;
        let max = self.window.min(held.max(Self::FIRST)).max(min);
        if allowed.rate.is_infinite() {
            return max;
        }
        ((allowed.rate * latency * HEADROOM) as usize + 1).clamp(min, max)
    }

    /// Greatest rate that a window needs, in requests per second.
    pub fn max_rate(&self) -> f64 {
        self.latency.map_or(f64::INFINITY, |latency| RATE_FACTOR * self.window as f64 / latency)
    }

    /// Records a good response to a request sent at `sent`.
    pub fn succeeded(&mut self, sent: Instant, now: Instant, bytes: usize, allowed: AllowedRate) {
        let seconds = now.saturating_duration_since(sent).as_secs_f64();
        if self.latency.is_none() && allowed.is_limit {
            self.window = MAX_IN_FLIGHT;
        }
        self.latency = Some(self.latency.map_or(seconds, |mean| mean + (seconds - mean) * WEIGHT));
        self.size = (bytes as f64).max(self.size * SIZE_DECAY);
        match self.window_since {
            Some(since) if sent < since => {}
            Some(_) => self.set_window((self.window * GROWTH).min(MAX_IN_FLIGHT), now),
            None => self.window_since = Some(now),
        }
    }

    fn set_window(&mut self, window: usize, now: Instant) {
        self.window = window;
        self.window_since = Some(now);
    }

    /// Records a throttled response to a request sent at `sent`. If it shows the limit, that takes the place of the window.
    pub fn throttled(&mut self, sent: Instant, now: Instant, allowed: AllowedRate) {
        if allowed.is_limit { self.window = MAX_IN_FLIGHT } else { self.overloaded(sent, now) }
    }

    /// Records a failure that a service has under load, of a request sent at `sent`.
    pub fn overloaded(&mut self, sent: Instant, now: Instant) {
        if self.window_since.is_none_or(|since| sent >= since) {
            self.set_window((self.window / 2).max(Self::FIRST), now);
        }
    }
}

#[cfg(test)]
mod tests;
