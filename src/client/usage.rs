//! `Usage`: the requests and responses of a client so far, with all clients that derive from it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Attempts that were sent.
    pub requests: u64,
    /// Attempts among them that repeat another one.
    pub retries: u64,
    /// Responses that asked for fewer requests.
    pub throttled: u64,
    /// Attempts that a cassette answered. They are not sent.
    pub replayed: u64,
    /// Records that a cache had, and that were not requested.
    pub cached: u64,
    /// Bytes of response bodies without their content encoding.
    pub bytes: u64,
    /// Time for which requests were held back by the rate limiter, summed over the requests.
    pub waited: Duration,
}

/// The figures of a usage while they grow.
#[derive(Debug, Default)]
pub(super) struct UsageCounters {
    requests: AtomicU64,
    retries: AtomicU64,
    throttled: AtomicU64,
    replayed: AtomicU64,
    cached: AtomicU64,
    bytes: AtomicU64,
    waited_micros: AtomicU64,
}

impl UsageCounters {
    pub fn read(&self) -> Usage {
        Usage {
            requests: self.requests.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
            throttled: self.throttled.load(Ordering::Relaxed),
            replayed: self.replayed.load(Ordering::Relaxed),
            cached: self.cached.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            waited: Duration::from_micros(self.waited_micros.load(Ordering::Relaxed)),
        }
    }

    /// Adds a request that is sent now, after the rate limiter held it back.
    pub fn add_request(&self, is_retry: bool, waited: Duration) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.retries.fetch_add(is_retry.into(), Ordering::Relaxed);
        self.waited_micros.fetch_add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn add_replay(&self) {
        self.replayed.fetch_add(1, Ordering::Relaxed);
    }

    pub fn add_cached(&self, records: u64) {
        self.cached.fetch_add(records, Ordering::Relaxed);
    }

    pub fn add_response(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn add_throttle(&self) {
        self.throttled.fetch_add(1, Ordering::Relaxed);
    }
}

impl std::ops::Sub for Usage {
    type Output = Self;

    /// The usage since an earlier one.
    fn sub(self, earlier: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            retries: self.retries.saturating_sub(earlier.retries),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            replayed: self.replayed.saturating_sub(earlier.replayed),
            cached: self.cached.saturating_sub(earlier.cached),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}
