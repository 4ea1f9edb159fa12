//! Correction of clock skew, which is measured from the `Date` of responses: a signature is valid for about 30 seconds.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use http::header::DATE;

use super::error::MIN_CORRECTION_MS;
use super::transport::Response;

/// The offset that is added to the local clock, in milliseconds.
#[derive(Debug, Default)]
pub struct Clock {
    offset: AtomicI64,
    corrected: AtomicBool,
}

impl Clock {
    pub fn offset(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// Corrects the offset after a timestamp made with the offset `used` was rejected by a service whose clock is `skew`
    /// ahead. True if signing again is worthwhile: after the first correction, only if the clocks have drifted again.
    pub fn apply_skew(&self, used: i64, skew: i64) -> bool {
        // Another request may have corrected it while this one was in flight.
        if self.offset() != used {
            return true;
        }
        if self.corrected.swap(true, Ordering::Relaxed) && (skew - used).abs() < MIN_CORRECTION_MS {
            return false;
        }
        self.offset.store(skew, Ordering::Relaxed);
        true
    }
}

/// The skew of the clock that a response shows.
pub fn of_response(response: &Response, now: SystemTime) -> Option<i64> {
    response.header(DATE).and_then(|date| skew(date, now))
}

/// The service's clock minus the local one, in milliseconds. Half a second is the mean of what whole seconds cut off.
fn skew(date: &str, now: SystemTime) -> Option<i64> {
    let service = since_epoch(httpdate::parse_http_date(date).ok()?) + Duration::from_millis(500);
    Some(service.as_millis() as i64 - since_epoch(now).as_millis() as i64)
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_is_corrected_once_and_again_after_a_jump() {
        let clock = Clock::default();
        // (offset used, skew measured, sign again, offset afterwards)
        for (used, skew, again, offset) in [
            (0, 3_600_000, true, 3_600_000),
            (0, 3_599_000, true, 3_600_000),
            (3_600_000, 3_599_500, false, 3_600_000),
            (3_600_000, 200, true, 200),
            (200, 300, false, 200),
        ] {
            assert_eq!((clock.apply_skew(used, skew), clock.offset()), (again, offset), "{used} {skew}");
        }
        // A clock that agrees is corrected once, since tolerances differ.
        let right = Clock::default();
        assert!(right.apply_skew(0, 100) && !right.apply_skew(100, 100));
    }

    #[test]
    fn the_skew_is_signed() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(skew("Sun, 06 Nov 1994 09:49:37 GMT", now), Some(3_600_500));
        assert_eq!(skew("Sun, 06 Nov 1994 07:49:37 GMT", now), Some(-3_599_500));
        assert_eq!(skew("yesterday", now), None);
    }
}
