//! What is asked again, and after how long. Pure: time and chance come from outside.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const BASE: Duration = Duration::from_millis(250);
const CAP: Duration = Duration::from_secs(20);
/// A service that asks for longer is not obeyed, or one bad header would stop a night's job.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Retries that a client may be in arrears.
const BUDGET: u32 = 100;

#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub max_retries: u32,
    /// For one request with all its attempts.
    pub deadline: Option<Duration>,
}

/// What a failed attempt says about another one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failure {
    pub retryable: bool,
    pub retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    RetryAfter(Duration),
    GiveUp,
}

impl Policy {
    /// `attempts` were made within `elapsed`; `chance` is uniform in 0..1. Full jitter, so that clients which failed
    /// together do not come back together.
    pub fn verdict(&self, failure: Failure, attempts: u32, elapsed: Duration, chance: f64) -> Verdict {
        if !failure.retryable || attempts > self.max_retries {
            return Verdict::GiveUp;
        }
        let ceiling = CAP.min(BASE.saturating_mul(1 << (attempts - 1).min(16)));
        let asked = failure.retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        let wait = ceiling.mul_f64(chance).max(asked);
        match self.deadline {
            Some(deadline) if elapsed + wait >= deadline => Verdict::GiveUp,
            _ => Verdict::RetryAfter(wait),
        }
    }
}

/// How many retries a client has left. A retry takes one and a good answer gives one back, so that a service of which
/// half the answers fail is still asked again, while one that is down is not asked six times as often as it would be.
#[derive(Debug)]
pub struct Budget(AtomicU32);

impl Budget {
    pub const fn new() -> Self {
        Self(AtomicU32::new(BUDGET))
    }

    /// Takes a retry, if one is left.
    pub fn spend(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    pub fn earn(&self) {
        let more = |left| (left < BUDGET).then_some(left + 1);
        // At its full height it stays as it is.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

/// The header's value: seconds, or a date.
pub fn retry_after(value: &str, now: std::time::SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    httpdate::parse_http_date(value).ok().map(|then| then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const POLICY: Policy = Policy { max_retries: 3, deadline: Some(Duration::from_secs(120)) };

    fn verdict(retry_after: Option<u64>, attempts: u32, elapsed: u64, chance: f64) -> Verdict {
        let failure = Failure { retryable: true, retry_after: retry_after.map(Duration::from_secs) };
        POLICY.verdict(failure, attempts, SECOND * elapsed as u32, chance)
    }

    #[test]
    fn waits_grow_are_jittered_and_end() {
        let after = |milliseconds| Verdict::RetryAfter(Duration::from_millis(milliseconds));
        assert_eq!(verdict(None, 1, 0, 0.0), after(0));
        assert_eq!(verdict(None, 1, 0, 1.0), after(250));
        assert_eq!(verdict(None, 3, 0, 1.0), after(1_000));
        assert_eq!(verdict(None, 4, 0, 0.0), Verdict::GiveUp);
        let patient = Policy { max_retries: 100, deadline: None };
        let failure = Failure { retryable: true, retry_after: None };
        assert_eq!(patient.verdict(failure, 90, SECOND, 1.0), Verdict::RetryAfter(CAP));
    }

    #[test]
    fn the_service_is_obeyed_within_reason() {
        assert_eq!(verdict(Some(7), 1, 0, 0.5), Verdict::RetryAfter(SECOND * 7));
        assert_eq!(verdict(Some(9_999), 1, 0, 0.5), Verdict::RetryAfter(LONGEST_RETRY_AFTER));
        assert_eq!(verdict(Some(7), 1, 115, 0.5), Verdict::GiveUp);
        assert_eq!(POLICY.verdict(Failure::default(), 1, SECOND, 0.5), Verdict::GiveUp);
    }

    #[test]
    fn a_budget_bears_a_storm_and_not_an_outage() {
        let storm = Budget::new();
        for attempt in 0..100_000_u32 {
            // One attempt in three fails, each for a retry.
            if attempt % 3 == 0 { assert!(storm.spend(), "{attempt}") } else { storm.earn() }
        }
        let outage = Budget::new();
        assert_eq!((0..10_000).filter(|_| outage.spend()).count(), BUDGET as usize);
        outage.earn();
        assert!(outage.spend() && !outage.spend());
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = std::time::UNIX_EPOCH + SECOND * 784_111_777;
        assert_eq!(retry_after(" 3 ", now), Some(SECOND * 3));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:47 GMT", now), Some(SECOND * 10));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:30 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("-1", now), None);
        assert_eq!(retry_after("soon", now), None);
    }
}
