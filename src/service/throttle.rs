//! The rate limit: a bucket that refills steadily and holds one second's worth of requests, at least one.

use tokio::time::Instant;

#[derive(Debug)]
pub struct Throttle {
    rate: f64,
    room: f64,
    at: Instant,
}

impl Throttle {
    pub fn new(rate: f64, now: Instant) -> Self {
        Self { rate, room: rate.max(1.0), at: now }
    }

    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Takes a request's share, unless the bucket is empty.
    pub fn admit(&mut self, now: Instant) -> bool {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.rate;
        self.at = now;
        self.room = (self.room + gained).min(self.rate.max(1.0));
        if self.room < 1.0 {
            return false;
        }
        self.room -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn bucket_refills_at_the_rate() {
        let start = Instant::now();
        let mut throttle = Throttle::new(2.0, start);
        let admitted = |throttle: &mut Throttle, at| (0..5).filter(|_| throttle.admit(at)).count();
        assert_eq!(admitted(&mut throttle, start), 2);
        assert_eq!(admitted(&mut throttle, start + Duration::from_millis(500)), 1);
        assert_eq!(admitted(&mut throttle, start + Duration::from_secs(60)), 2);
    }

    #[test]
    fn rate_below_one_admits_the_first_request() {
        let start = Instant::now();
        let mut throttle = Throttle::new(0.5, start);
        assert!(throttle.admit(start));
        assert!(!throttle.admit(start + Duration::from_secs(1)));
        assert!(throttle.admit(start + Duration::from_secs(2)));
    }
}
