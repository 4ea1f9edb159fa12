//! The service's clock, told from its answers. Signatures live for about 30 seconds.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

/// A correction that would change less than this would mend nothing: a header's date is in whole seconds.
const WORTH: i64 = 5_000;

/// What to add to the local clock, in milliseconds.
#[derive(Debug, Default)]
pub struct Clock {
    offset: AtomicI64,
    corrected: AtomicBool,
}

impl Clock {
    pub fn offset(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// A timestamp made with the offset `used` was rejected, by a service whose clock is `skew` ahead of ours. Whether
    /// it is worth signing anew: after a first correction only if the clocks have come apart again.
    pub fn correct(&self, used: i64, skew: i64) -> bool {
        // Another request may have corrected it while this one was under way.
        if self.offset() != used {
            return true;
        }
        if self.corrected.swap(true, Ordering::Relaxed) && (skew - used).abs() < WORTH {
            return false;
        }
        self.offset.store(skew, Ordering::Relaxed);
        true
    }
}

/// The service's clock minus ours, in milliseconds; half a second is the mean of what a header of whole seconds cuts.
pub fn skew(date: &str, now: SystemTime) -> Option<i64> {
    let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let date = httpdate::parse_http_date(date).ok()?;
    Some((since(date) + Duration::from_millis(500)).as_millis() as i64 - since(now).as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_corrected_once_and_again_if_it_jumps() {
        let clock = Clock::default();
        // (offset used, skew told, whether to sign anew, offset afterwards)
        for (used, skew, again, offset) in [
            (0, 3_600_000, true, 3_600_000),
            (0, 3_599_000, true, 3_600_000),
            (3_600_000, 3_599_500, false, 3_600_000),
            (3_600_000, 200, true, 200),
            (200, 300, false, 200),
        ] {
            assert_eq!((clock.correct(used, skew), clock.offset()), (again, offset), "{used} {skew}");
        }
        // A clock that agrees is believed to be wrong once, since tolerances differ.
        let right = Clock::default();
        assert!(right.correct(0, 100) && !right.correct(100, 100));
    }

    #[test]
    fn the_skew_is_signed() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(skew("Sun, 06 Nov 1994 09:49:37 GMT", now), Some(3_600_500));
        assert_eq!(skew("Sun, 06 Nov 1994 07:49:37 GMT", now), Some(-3_599_500));
        assert_eq!(skew("yesterday", now), None);
    }
}
