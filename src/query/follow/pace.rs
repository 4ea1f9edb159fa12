//! `Pace`: the interval between rounds, by the observed rate of new heights.

use std::time::Duration;

use super::spec::Poll;

/// Shortest interval: a follower of a fast chain takes one request each second from the rate limit of its account.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Longest interval: a list that was stable for hours is noticed to grow within a minute.
const MAX_INTERVAL: Duration = Duration::from_secs(60);
/// Interval before a rate was observed.
const FIRST_INTERVAL: Duration = Duration::from_secs(2);
/// Growth of the interval when nothing is new.
const BACKOFF: f64 = 1.25;
/// Weight of the latest observation.
const WEIGHT: f64 = 0.3;

/// Times are durations since following began.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// The head when it last moved, and the time of that round.
    last: Option<(i64, Duration)>,
    /// Time that one height takes, in seconds.
    per_height: Option<f64>,
    interval: Option<f64>,
}

impl Pace {
    /// Takes the head of a round.
    pub fn observe(&mut self, head: i64, now: Duration) {
        match self.last {
            Some((before, at)) if head > before => {
                let observed = now.saturating_sub(at).as_secs_f64() / (head - before) as f64;
                let average = self.per_height.map_or(observed, |known| known + WEIGHT * (observed - known));
                self.per_height = Some(average);
                self.interval = Some(average);
                self.last = Some((head, now));
            }
            Some((before, _)) if head == before => {
                let interval = self.interval.unwrap_or(FIRST_INTERVAL.as_secs_f64()) * BACKOFF;
                self.interval = Some(interval.min(MAX_INTERVAL.as_secs_f64()));
            }
            _ => self.last = Some((head, now)),
        }
    }

    /// Time to the next round.
    pub fn interval(&self, poll: Poll) -> Duration {
        match poll {
            Poll::Every(interval) => interval,
            Poll::Once => Duration::ZERO,
            Poll::Auto => {
                let interval = self.interval.map_or(FIRST_INTERVAL, Duration::from_secs_f64);
                interval.clamp(MIN_INTERVAL, MAX_INTERVAL)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals in seconds while the head moves by one height every `period` seconds.
    fn followed(period: f64, rounds: usize) -> Vec<f64> {
        let (mut pace, mut now, mut intervals) = (Pace::default(), 0.0, Vec::new());
        for _ in 0..rounds {
            pace.observe((now / period) as i64, Duration::from_secs_f64(now));
            intervals.push(pace.interval(Poll::Auto).as_secs_f64());
            now += intervals[intervals.len() - 1];
        }
        intervals
    }

    #[test]
    fn the_interval_follows_the_rate() {
        for (period, low, high) in [(0.1, 1.0, 1.0), (3.0, 2.0, 5.0), (12.0, 8.0, 20.0), (600.0, 60.0, 60.0)] {
            let late: Vec<f64> = followed(period, 400).split_off(200);
            let mean = late.iter().sum::<f64>() / late.len() as f64;
            assert!((low..=high).contains(&mean), "{mean} s for a height every {period} s");
        }
    }

    #[test]
    fn a_quiet_list_is_requested_once_a_minute() {
        let mut pace = Pace::default();
        pace.observe(7, Duration::ZERO);
        pace.observe(8, Duration::from_secs(1));
        for second in 2..40 {
            pace.observe(8, Duration::from_secs(second));
        }
        assert_eq!(pace.interval(Poll::Auto), MAX_INTERVAL);
        assert_eq!(pace.interval(Poll::Every(Duration::from_millis(5))), Duration::from_millis(5));
    }
}
