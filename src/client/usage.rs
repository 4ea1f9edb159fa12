//! `Usage`: the requests and responses of a client so far, with all clients that derive from it.

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
