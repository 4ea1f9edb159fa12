//! The pacer by the table, and against services of several kinds with a clock that is a number.

use std::collections::{BinaryHeap, VecDeque};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn a_set_rate_spaces_requests_evenly() {
    let (mut pace, start) = (Pace::new(RateLimit::PerSecond(4.0)), Instant::now() + SECOND);
    let mut left = Vec::new();
    for at in 0..1_800 {
        if pace.take(start + milliseconds(at)).is_zero() {
            left.push(at);
        }
    }
    assert_eq!(left, [0, 240, 490, 740, 990, 1240, 1490, 1740]);
    // An hour without a request earns no burst.
    let later = start + SECOND * 3_600;
    assert!(pace.take(later).is_zero());
    assert_eq!(pace.take(later), milliseconds(240));
    pace.throttled(later, later, Some(SECOND));
    assert_eq!(pace.rate, 4.0);
}

#[test]
fn auto_halves_once_for_requests_that_were_throttled_together() {
    let (mut pace, start) = (Pace::new(RateLimit::Auto), Instant::now() + SECOND);
    assert!(pace.take(start).is_zero());
    let first = start + SECOND;
    for _ in 0..3 {
        pace.throttled(start, first, None);
    }
    assert_eq!((pace.rate, pace.throttled), (FIRST / 2.0, 3));
    // So soon after it is still the same full window of the service's.
    pace.throttled(first + milliseconds(500), first + milliseconds(600), None);
    assert_eq!(pace.rate, FIRST / 2.0);
    pace.throttled(first + SECOND * 2, first + SECOND * 3, None);
    assert_eq!(pace.rate, FIRST / 4.0);
}

#[test]
fn nothing_leaves_for_as_long_as_the_service_asks_within_reason() {
    let start = Instant::now() + SECOND;
    for (asked, pause) in [(None, PAUSE), (Some(milliseconds(1)), PAUSE), (Some(SECOND * 7), SECOND * 7)] {
        let mut pace = Pace::new(RateLimit::Auto);
        pace.throttled(start, start, asked);
        assert_eq!(pace.take(start), pause, "{asked:?}");
    }
    let mut pace = Pace::new(RateLimit::Auto);
    pace.throttled(start, start, Some(SECOND * 86_400));
    assert_eq!(pace.take(start), LONGEST_RETRY_AFTER);
}

#[test]
fn auto_stops_pacing_a_service_that_never_throttles() {
    let (mut pace, now) = (Pace::new(RateLimit::Auto), Instant::now());
    for _ in 0..200 {
        pace.succeeded(now, now);
    }
    assert!(pace.is_unbound());
    assert_eq!(pace.take(now), Duration::ZERO);
    // Then what got through is the measure of the cut, not what might have.
    pace.throttled(now, now + SECOND, None);
    assert_eq!(pace.rate, 100.0);
}

#[test]
fn one_key_has_one_pacer() {
    let shared = |key| Pacer::shared(RateLimit::Auto, "http://127.0.0.1:1", key);
    assert!(Arc::ptr_eq(&shared("a"), &shared("a")));
    assert!(!Arc::ptr_eq(&shared("a"), &shared("b")));
}

#[tokio::test]
async fn who_stops_waiting_takes_no_turn() {
    let pacer = Arc::new(Pacer::new(RateLimit::PerSecond(0.001)));
    pacer.wait().await;
    let next = pacer.lock().next;
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let pacer = pacer.clone();
            tokio::spawn(async move { pacer.wait().await })
        })
        .collect();
    while pacer.state().waiting < 3 {
        tokio::task::yield_now().await;
    }
    for task in waiting {
        task.abort();
        assert!(task.await.is_err());
    }
    assert_eq!(pacer.state().waiting, 0);
    assert_eq!(pacer.lock().next, next);
}

/// How a service counts.
#[derive(Clone, Copy, Debug)]
enum Counts {
    /// So many in any second; refused ones count too, or do not.
    Sliding { refused: bool },
    /// So many in a second of the service's clock.
    Fixed,
    /// A bucket that refills steadily and holds so many.
    Bucket { holds: f64 },
    /// Nothing: it throttles one in ten, however few they are.
    Nothing,
}

struct Service {
    counts: Counts,
    seen: VecDeque<f64>,
    room: f64,
    at: f64,
    dice: fastrand::Rng,
}

const ALLOWED: f64 = 8.0;

impl Service {
    fn new(counts: Counts) -> Self {
        let room = if let Counts::Bucket { holds } = counts { holds } else { 0.0 };
        Self { counts, seen: VecDeque::new(), room, at: 0.0, dice: fastrand::Rng::with_seed(3) }
    }

    fn admits(&mut self, now: f64) -> bool {
        match self.counts {
            Counts::Sliding { refused } => {
                self.seen.retain(|at| *at > now - 1.0);
                let admits = (self.seen.len() as f64) < ALLOWED;
                if admits || refused {
                    self.seen.push_back(now);
                }
                admits
            }
            Counts::Fixed => {
                // Its seconds do not begin with ours.
                self.seen.retain(|at| (*at + 0.37).floor() == (now + 0.37).floor());
                self.seen.push_back(now);
                self.seen.len() as f64 <= ALLOWED
            }
            Counts::Nothing => self.dice.f64() > 0.1,
            Counts::Bucket { holds } => {
                self.room = holds.min(self.room + (now - self.at) * ALLOWED);
                self.at = now;
                let admits = self.room >= 1.0;
                self.room -= f64::from(u8::from(admits));
                admits
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Answer { sent: u64, good: bool },
    Retry,
    Gate,
}

/// Good answers, throttled ones and the longest silence, in microseconds, of so many workers within so many seconds.
fn run(counts: Counts, seconds: u64, workers: u32, latency: u64, retry_after: Option<Duration>) -> (f64, f64, u64) {
    let (mut pace, mut service) = (Pace::new(RateLimit::Auto), Service::new(counts));
    let start = Instant::now() + SECOND;
    let at = |micros: u64| start + Duration::from_micros(micros);
    let mut dice = fastrand::Rng::with_seed(7);
    let mut events = BinaryHeap::new();
    let (mut now, mut waiting, mut gate) = (0, workers, None);
    let (mut good_answers, mut throttled, mut last, mut silence) = (0.0, 0.0, 0, 0);
    loop {
        while waiting > 0 {
            let pause = pace.take(at(now));
            if !pause.is_zero() {
                let opens = now + pause.as_micros() as u64 + 1;
                if gate.is_none_or(|gate| gate <= now || opens < gate) {
                    gate = Some(opens);
                    events.push((std::cmp::Reverse(opens), Event::Gate));
                }
                break;
            }
            waiting -= 1;
            let mut after = |low: f64, high: f64| (latency as f64 * (low + (high - low) * dice.f64())) as u64;
            let good = service.admits((now + after(0.3, 0.7)) as f64 / 1e6);
            let arrives = now + after(0.8, 1.2);
            events.push((std::cmp::Reverse(arrives), Event::Answer { sent: now, good }));
        }
        let Some((std::cmp::Reverse(then), event)) = events.pop() else { panic!("everything stands still") };
        if then > seconds * 1_000_000 {
            return (good_answers, throttled, silence);
        }
        now = now.max(then);
        match event {
            Event::Answer { sent, good: true } => {
                good_answers += 1.0;
                (silence, last) = (silence.max(now - last), now);
                pace.succeeded(at(sent), at(now));
                waiting += 1;
            }
            Event::Answer { sent, good: false } => {
                throttled += 1.0;
                pace.throttled(at(sent), at(now), retry_after);
                events.push((std::cmp::Reverse(now + (dice.f64() * 250_000.0) as u64), Event::Retry));
            }
            Event::Retry => waiting += 1,
            Event::Gate => {}
        }
    }
}

#[test]
fn most_of_what_a_service_allows_is_used_and_little_of_it_throttled() {
    let mut runs = 0;
    for counts in [
        Counts::Sliding { refused: false },
        Counts::Sliding { refused: true },
        Counts::Fixed,
        Counts::Bucket { holds: ALLOWED },
    ] {
        for (seconds, workers, latency) in [20, 40, 300].iter().flat_map(|seconds| {
            [(4, 2), (4, 50), (4, 200), (8, 50), (16, 200)].map(|(workers, latency)| (*seconds, workers, latency))
        }) {
            for retry_after in [None, Some(milliseconds(50))] {
                let (good, bad, silence) = run(counts, seconds, workers, latency * 1_000, retry_after);
                let case = format!("{counts:?} {seconds} s {workers} x {latency} ms {retry_after:?}: {good} {bad}");
                assert!(good > 0.78 * ALLOWED * seconds as f64, "{case}");
                assert!(bad < 0.05 * (good + bad), "{case}");
                assert!(silence < 3_000_000, "{case}: {silence}");
                runs += 1;
            }
        }
    }
    assert_eq!(runs, 120);
}

#[test]
fn a_service_without_a_burst_is_found_too() {
    let (good, bad, silence) = run(Counts::Bucket { holds: 2.0 }, 120, 4, 50_000, None);
    assert!(good > 0.75 * ALLOWED * 120.0 && bad < 0.05 * (good + bad) && silence < 3_000_000, "{good} {bad}");
}

#[test]
fn a_service_that_throttles_at_random_is_not_waited_for_for_ever() {
    for seconds in [60, 600] {
        let (good, _, silence) = run(Counts::Nothing, seconds, 4, 50_000, None);
        assert!(good > seconds as f64 && silence < 10_000_000, "{seconds} s: {good} {silence}");
    }
}

#[test]
fn a_limit_that_is_lifted_is_found_out() {
    let (mut pace, start) = (Pace::new(RateLimit::Auto), Instant::now() + SECOND);
    pace.take(start);
    pace.throttled(start + SECOND, start + SECOND, None);
    for answer in 1..2_000 {
        let now = start + SECOND + milliseconds(answer * 100);
        pace.succeeded(now, now);
    }
    assert!(pace.rate > 10.0 * FIRST, "{}", pace.rate);
}
