//! The retry policy and the retry budget. Pure: time and randomness come from outside.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use http::header::{DATE, RETRY_AFTER};

use super::transport::Response;

/// Bound of the pause before the first retry, which doubles with each further one: longer than a lost connection takes to come
/// back, and no wait that a user would notice.
const BASE: Duration = Duration::from_millis(250);
/// Bound that no pause without a `Retry-After` exceeds: the client notices the end of an outage within it.
const CAP: Duration = Duration::from_secs(20);
/// Longest `Retry-After` that is followed: one bad header must not stop a nightly job.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Retries of a full budget.
const BUDGET: u32 = 100;

#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub max_retries: u32,
    /// Time limit of one request with all its attempts.
    pub deadline: Option<Duration>,
}

/// Properties of a failed attempt that determine whether another is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failure {
    pub retryable: bool,
    pub retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    RetryAfter(Duration),
    GiveUp,
}

impl Policy {
    /// Decides after `attempts` attempts that took `elapsed`; `jitter` is uniform in 0..1. Full jitter, so that clients
    /// which failed together do not retry together.
    pub fn decide(&self, failure: Failure, attempts: u32, elapsed: Duration, jitter: f64) -> RetryDecision {
        if !failure.retryable || attempts > self.max_retries {
            return RetryDecision::GiveUp;
        }
        let ceiling = CAP.min(BASE.saturating_mul(1 << (attempts - 1).min(16)));
        let retry_after = failure.retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
        let wait = ceiling.mul_f64(jitter).max(retry_after);
        match self.deadline {
            Some(deadline) if elapsed + wait >= deadline => RetryDecision::GiveUp,
            _ => RetryDecision::RetryAfter(wait),
        }
    }
}

/// The retries that a client has left. A retry withdraws one and a good response deposits one, so that requests to a
/// service which fails half of them are still retried, while an outage is not made worse by six times the requests.
#[derive(Debug)]
pub struct Budget(AtomicU32);

impl Budget {
    pub const fn new() -> Self {
        Self(AtomicU32::new(BUDGET))
    }

    /// Withdraws a retry if one is left.
    pub fn withdraw(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    pub fn deposit(&self) {
        // A full budget stays full.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            if left < BUDGET { Some(left + 1) } else { None }
        });
    }
}

/// The wait that a response asks for by seconds or by a date. A date is compared with that of the response, by the clock of
/// the service.
pub fn of_response(response: &Response, now: SystemTime) -> Option<Duration> {
    let value = response.header(RETRY_AFTER)?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let sent = response.header(DATE).and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(now);
    httpdate::parse_http_date(value).ok().map(|then| then.duration_since(sent).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const POLICY: Policy = Policy { max_retries: 3, deadline: Some(Duration::from_secs(120)) };

    fn decision(retry_after: Option<u64>, attempts: u32, elapsed: u64, jitter: f64) -> RetryDecision {
        let failure = Failure { retryable: true, retry_after: retry_after.map(Duration::from_secs) };
        POLICY.decide(failure, attempts, SECOND * elapsed as u32, jitter)
    }

    #[test]
    fn backoff_grows_with_jitter_and_ends() {
        let after = |milliseconds| RetryDecision::RetryAfter(Duration::from_millis(milliseconds));
        assert_eq!(decision(None, 1, 0, 0.0), after(0));
        assert_eq!(decision(None, 1, 0, 1.0), after(250));
        assert_eq!(decision(None, 3, 0, 1.0), after(1_000));
        assert_eq!(decision(None, 4, 0, 0.0), RetryDecision::GiveUp);
        let patient = Policy { max_retries: 100, deadline: None };
        let failure = Failure { retryable: true, retry_after: None };
        assert_eq!(patient.decide(failure, 90, SECOND, 1.0), RetryDecision::RetryAfter(CAP));
    }

    #[test]
    fn retry_after_is_followed_up_to_a_maximum() {
        assert_eq!(decision(Some(7), 1, 0, 0.5), RetryDecision::RetryAfter(SECOND * 7));
        assert_eq!(decision(Some(9_999), 1, 0, 0.5), RetryDecision::RetryAfter(MAX_RETRY_AFTER));
        assert_eq!(decision(Some(7), 1, 115, 0.5), RetryDecision::GiveUp);
        assert_eq!(POLICY.decide(Failure::default(), 1, SECOND, 0.5), RetryDecision::GiveUp);
    }

    #[test]
    fn retry_budget_allows_faults_but_not_an_outage() {
        let storm = Budget::new();
        for attempt in 0..100_000_u32 {
            // One attempt in three fails, each for a retry.
            if attempt % 3 == 0 { assert!(storm.withdraw(), "{attempt}") } else { storm.deposit() }
        }
        let outage = Budget::new();
        assert_eq!((0..10_000).filter(|_| outage.withdraw()).count(), BUDGET as usize);
        outage.deposit();
        assert!(outage.withdraw() && !outage.withdraw());
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after(" 3 ", None), Some(SECOND * 3));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:47 GMT", None), Some(SECOND * 10));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:30 GMT", None), Some(Duration::ZERO));
        assert_eq!(retry_after("-1", None), None);
        assert_eq!(retry_after("soon", None), None);
    }

    #[test]
    fn retry_after_as_a_date_is_by_the_clock_of_the_service() {
        for (date, seconds) in [("09:49:40", 7), ("07:49:40", 7), ("09:49:50", 0)] {
            let hour = &date[..2];
            let until = format!("Sun, 06 Nov 1994 {hour}:49:47 GMT");
            let wait = retry_after(&until, Some(&format!("Sun, 06 Nov 1994 {date} GMT")));
            assert_eq!(wait, Some(SECOND * seconds));
        }
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:47 GMT", Some("soon")), Some(SECOND * 10));
    }

    fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
        let mut headers = http::HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
        headers.extend(date.map(|date| (DATE, date.parse().unwrap())));
        let now = SystemTime::UNIX_EPOCH + SECOND * 784_111_777;
        of_response(&Response { status: 429, headers, body: bytes::Bytes::new() }, now)
    }
}
