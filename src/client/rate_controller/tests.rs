//! The rate controller by a table, and against services that count in several ways, with a clock that is a number.

use std::collections::{BinaryHeap, VecDeque};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn numeric_rate_spaces_requests_evenly() {
    let (mut controller, start) = (RateController::new(RateLimit::PerSecond(4.0)), Instant::now() + SECOND);
    let mut left = Vec::new();
    for at in 0..1_800 {
        if controller.try_acquire(start + milliseconds(at)).is_zero() {
            left.push(at);
        }
    }
    assert_eq!(left, [0, 240, 490, 740, 990, 1240, 1490, 1740]);
    // An hour without a request earns no burst.
    let later = start + SECOND * 3_600;
    assert!(controller.try_acquire(later).is_zero());
    assert_eq!(controller.try_acquire(later), milliseconds(240));
    controller.throttled(later, later, Some(SECOND));
    assert_eq!(controller.rate, 4.0);
}

#[test]
fn auto_halves_once_for_requests_that_were_throttled_together() {
    let (mut controller, start) = (RateController::new(RateLimit::Auto), Instant::now() + SECOND);
    assert!(controller.try_acquire(start).is_zero());
    let first = start + SECOND;
    for _ in 0..3 {
        controller.throttled(start, first, None);
    }
    assert_eq!((controller.rate, controller.throttled), (MIN_DELIVERED / 2.0, 3));
    // So soon after it is still the same full window of the service's.
    controller.throttled(first + milliseconds(500), first + milliseconds(600), None);
    assert_eq!(controller.rate, MIN_DELIVERED / 2.0);
    controller.throttled(first + SECOND * 2, first + SECOND * 3, None);
    assert_eq!(controller.rate, MIN_DELIVERED / 4.0);
}

#[test]
fn retry_after_pauses_all_requests_up_to_a_maximum() {
    let start = Instant::now() + SECOND;
    for (retry_after, pause) in
        [(None, THROTTLE_PAUSE), (Some(milliseconds(1)), THROTTLE_PAUSE), (Some(SECOND * 7), SECOND * 7)]
    {
        let mut controller = RateController::new(RateLimit::Auto);
        controller.throttled(start, start, retry_after);
        assert_eq!(controller.try_acquire(start), pause, "{retry_after:?}");
    }
    let mut controller = RateController::new(RateLimit::Auto);
    controller.throttled(start, start, Some(SECOND * 86_400));
    assert_eq!(controller.try_acquire(start), MAX_RETRY_AFTER);
}

#[test]
fn auto_stops_limiting_a_service_that_never_throttles() {
    let (mut controller, now) = (RateController::new(RateLimit::Auto), Instant::now());
    for _ in 0..200 {
        controller.succeeded(now, now);
    }
    assert!(controller.is_unlimited());
    assert_eq!(controller.try_acquire(now), Duration::ZERO);
    // Then what got through is the measure of the cut, not what might have.
    controller.throttled(now, now + milliseconds(900), None);
    assert_eq!(controller.rate, 100.0);
}

#[test]
fn suspected_throttle_counts_until_it_is_cleared() {
    let (start, second) = (Instant::now(), SECOND);
    let state = |controller: &RateController| (controller.rate, controller.throttled);
    for limit in [RateLimit::Auto, RateLimit::PerSecond(5.0)] {
        let mut controller = RateController::new(limit);
        controller.try_acquire(start);
        let before = state(&controller);
        controller.suspect(start, start + second);
        assert_eq!(controller.throttled, 1);
        assert_eq!(controller.rate < before.0, limit == RateLimit::Auto);
        // Another suspicion does not lower the rate again.
        let suspected = state(&controller);
        controller.suspect(start + second * 2, start + second * 3);
        assert_eq!(state(&controller), suspected);
        controller.clear_suspicion();
        assert_eq!(state(&controller), before);
        controller.clear_suspicion();
        assert_eq!(state(&controller), before);
        // A throttle is not taken back, whether it was suspected before or not.
        for is_suspected in [true, false] {
            let throttled = controller.throttled;
            if is_suspected {
                controller.suspect(start + second * 5, start + second * 6);
            }
            controller.confirm_suspicion(start + second * 5, start + second * 6);
            let after = state(&controller);
            controller.clear_suspicion();
            assert_eq!(state(&controller), after);
            assert_eq!(controller.throttled, throttled + 1);
        }
    }
}

/// Algorithm by which a server limits requests.
#[derive(Clone, Copy, Debug)]
enum Counts {
    /// A sliding window of one second. `counts_rejected` is true if rejected requests count too.
    Sliding {
        counts_rejected: bool,
    },
    /// A window for each second of the server's clock.
    Fixed,
    /// A token bucket of this capacity.
    Bucket {
        holds: f64,
    },
    /// No limit: one request in ten is throttled at random.
    Nothing,
    Unlimited,
}

struct Service {
    counts: Counts,
    seen: VecDeque<f64>,
    tokens: f64,
    at: f64,
    rng: fastrand::Rng,
}

const ALLOWED: f64 = 8.0;

impl Service {
    fn new(counts: Counts) -> Self {
        let tokens = if let Counts::Bucket { holds } = counts { holds } else { 0.0 };
        Self { counts, seen: VecDeque::new(), tokens, at: 0.0, rng: fastrand::Rng::with_seed(3) }
    }

    fn admits(&mut self, now: f64) -> bool {
        match self.counts {
            Counts::Sliding { counts_rejected } => {
                self.seen.retain(|at| *at > now - 1.0);
                let admits = (self.seen.len() as f64) < ALLOWED;
                if admits || counts_rejected {
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
            Counts::Nothing => self.rng.f64() > 0.1,
            Counts::Unlimited => true,
            Counts::Bucket { holds } => {
                self.tokens = holds.min(self.tokens + (now - self.at) * ALLOWED);
                self.at = now;
                let admits = self.tokens >= 1.0;
                self.tokens -= f64::from(u8::from(admits));
                admits
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Response { sent: u64, good: bool },
    Retry,
    Gate,
}

/// A simulated run of `requests` requests, the first alone and then `workers` at a time, as a list is read.
#[derive(Clone, Debug)]
struct Run {
    limit: RateLimit,
    counts: Counts,
    requests: u64,
    seconds: u64,
    workers: u64,
    /// Mean response time in milliseconds.
    latency: u64,
    retry_after: Option<Duration>,
}

/// Accepted and throttled responses, and microseconds of the longest pause and of the run.
struct Outcome {
    good: f64,
    throttled: f64,
    silence: u64,
    elapsed: u64,
}

impl Run {
    fn new(counts: Counts, seconds: u64, workers: u64, latency: u64) -> Self {
        Self { limit: RateLimit::Auto, counts, requests: u64::MAX, seconds, workers, latency, retry_after: None }
    }

    fn outcome(&self) -> Outcome {
        let Self { limit, counts, requests, seconds, workers, latency, retry_after } = self.clone();
        let latency = latency * 1_000;
        let (mut controller, mut service) = (RateController::new(limit), Service::new(counts));
        let start = Instant::now() + SECOND;
        let at = |micros: u64| start + Duration::from_micros(micros);
        let mut rng = fastrand::Rng::with_seed(7);
        let mut events = BinaryHeap::new();
        let (mut now, mut waiting, mut gate) = (0, 1, None);
        let (mut good_responses, mut throttled, mut last, mut silence) = (0, 0, 0, 0);
        let (mut left, mut ahead) = (requests - 1, workers - 1);
        loop {
            while waiting > 0 {
                let pause = controller.try_acquire(at(now));
                if !pause.is_zero() {
                    let opens = now + pause.as_micros() as u64 + 1;
                    if gate.is_none_or(|gate| gate <= now || opens < gate) {
                        gate = Some(opens);
                        events.push((std::cmp::Reverse(opens), Event::Gate));
                    }
                    break;
                }
                waiting -= 1;
                let mut after = |low: f64, high: f64| (latency as f64 * (low + (high - low) * rng.f64())) as u64;
                let good = service.admits((now + after(0.3, 0.7)) as f64 / 1e6);
                let arrives = now + after(0.8, 1.2);
                events.push((std::cmp::Reverse(arrives), Event::Response { sent: now, good }));
            }
            let next = events.pop().filter(|(std::cmp::Reverse(then), _)| *then <= seconds * 1_000_000);
            let Some((std::cmp::Reverse(then), event)) = next else {
                let (good, throttled) = (good_responses as f64, f64::from(throttled));
                return Outcome { good, throttled, silence, elapsed: now };
            };
            now = now.max(then);
            match event {
                Event::Response { sent, good: true } => {
                    good_responses += 1;
                    (silence, last) = (silence.max(now - last), now);
                    controller.succeeded(at(sent), at(now));
                    let next = (1 + std::mem::take(&mut ahead)).min(left);
                    (waiting, left) = (waiting + next, left - next);
                }
                Event::Response { sent, good: false } => {
                    throttled += 1;
                    controller.throttled(at(sent), at(now), retry_after);
                    events.push((std::cmp::Reverse(now + (rng.f64() * 250_000.0) as u64), Event::Retry));
                }
                Event::Retry => waiting += 1,
                Event::Gate => {}
            }
        }
    }
}

#[test]
fn auto_uses_most_of_the_limit_with_few_throttles() {
    let mut runs = 0;
    for counts in [
        Counts::Sliding { counts_rejected: false },
        Counts::Sliding { counts_rejected: true },
        Counts::Fixed,
        Counts::Bucket { holds: ALLOWED },
    ] {
        for (seconds, workers, latency) in [20, 40, 300].iter().flat_map(|seconds| {
            [(4, 2), (4, 50), (4, 200), (8, 50), (16, 200)].map(|(workers, latency)| (*seconds, workers, latency))
        }) {
            for retry_after in [None, Some(milliseconds(50))] {
                let run = Run { retry_after, ..Run::new(counts, seconds, workers, latency) };
                let Outcome { good, throttled, silence, .. } = run.outcome();
                // Far away, a whole round of requests is in flight before the first throttle is known.
                let (share, round) = if latency > 50 { (0.74, workers) } else { (0.78, 0) };

                assert!(good > share * ALLOWED * seconds as f64, "{run:?}: {good}");
                assert!(throttled < 0.05 * (good + throttled) + round as f64, "{run:?}: {good} {throttled}");
                assert!(silence < 3_000_000, "{run:?}: {silence}");
                runs += 1;
            }
        }
    }
    assert_eq!(runs, 120);
}

#[test]
fn auto_throttles_few_requests_of_a_short_run() {
    for (counts, workers, max_throttled) in [
        (Counts::Bucket { holds: ALLOWED }, 8, 0.05),
        (Counts::Bucket { holds: ALLOWED }, 4, 0.06),
        (Counts::Sliding { counts_rejected: true }, 8, 0.05),
        (Counts::Sliding { counts_rejected: true }, 4, 0.05),
        (Counts::Fixed, 8, 0.06),
        (Counts::Fixed, 4, 0.06),
    ] {
        let run = Run { requests: 100, ..Run::new(counts, 3_600, workers, 50) };
        let Outcome { good, throttled, elapsed, .. } = run.outcome();
        assert!(throttled < max_throttled * (good + throttled), "{run:?}: {throttled}");
        assert!(good > 0.75 * ALLOWED * elapsed as f64 / 1e6, "{run:?}: {elapsed}");
    }
}

#[test]
fn auto_takes_the_limit_from_an_accepted_burst() {
    for counts in [Counts::Sliding { counts_rejected: true }, Counts::Fixed, Counts::Bucket { holds: ALLOWED }] {
        for requests in [20, 40, 80] {
            let run = Run { requests, ..Run::new(counts, 3_600, 8, 50) };
            let Outcome { good, throttled, elapsed, .. } = run.outcome();
            assert!(good > 0.82 * ALLOWED * elapsed as f64 / 1e6, "{run:?}: {elapsed}");
            assert!(throttled < 5.0, "{run:?}: {throttled}");
        }
    }
}

#[test]
fn auto_hardly_delays_a_service_that_does_not_throttle() {
    let elapsed = |limit, requests, workers, latency| {
        let run = Run { limit, requests, ..Run::new(Counts::Unlimited, 3_600, workers, latency) };
        run.outcome().elapsed as f64
    };
    for (requests, workers, latency, max_slowdown) in [
        (1, 8, 50, 1.01),
        (5, 4, 50, 1.1),
        (5, 8, 50, 1.1),
        (5, 8, 2, 1.1),
        (20, 8, 50, 1.7),
        (80, 4, 50, 1.1),
        (80, 8, 50, 1.25),
        (80, 8, 200, 1.05),
        (1_000, 8, 50, 1.03),
    ] {
        let slowdown = elapsed(RateLimit::Auto, requests, workers, latency)
            / elapsed(RateLimit::Unlimited, requests, workers, latency);
        assert!(slowdown <= max_slowdown, "{requests} requests, {workers} x {latency} ms: {slowdown}");
    }
}

#[test]
fn time_of_an_unthrottled_run_is_foreseen() {
    for (limit, requests) in [
        (RateLimit::Auto, 1),
        (RateLimit::Auto, 20),
        (RateLimit::Auto, 80),
        (RateLimit::PerSecond(30.0), 80),
        (RateLimit::Unlimited, 80),
    ] {
        // Enough at once that only the limiter delays them.
        let run = Run { limit, requests, ..Run::new(Counts::Unlimited, 3_600, 80, 2) };
        let (elapsed, foreseen) =
            (run.outcome().elapsed as f64 / 1e6, RateController::new(limit).seconds_to_admit(requests, Instant::now()));
        assert!((foreseen - elapsed).abs() < 0.05 + 0.2 * elapsed, "{run:?}: {elapsed} {foreseen}");
    }
}

#[test]
fn time_of_a_throttled_run_is_foreseen() {
    let (mut controller, start) = (RateController::new(RateLimit::Auto), Instant::now() + SECOND);
    controller.try_acquire(start);
    for response in 0..8 {
        controller.succeeded(start, start + milliseconds(response * 100));
    }
    let now = start + milliseconds(900);
    controller.throttled(start + milliseconds(100), now, None);
    assert!((controller.seconds_to_admit(72, now) - 10.4).abs() < 0.01, "{}", controller.seconds_to_admit(72, now));
    let mut young = RateController::new(RateLimit::Auto);
    young.try_acquire(start);
    young.throttled(start, start, None);
    assert!(young.seconds_to_admit(10_000, start) < 10.0);
}

#[test]
fn auto_finds_a_limit_without_burst() {
    let Outcome { good, throttled, silence, .. } = Run::new(Counts::Bucket { holds: 2.0 }, 120, 4, 50).outcome();
    assert!(good > 0.75 * ALLOWED * 120.0 && throttled < 0.05 * (good + throttled), "{good} {throttled}");
    assert!(silence < 3_000_000, "{silence}");
}

#[test]
fn random_throttles_do_not_stop_requests() {
    for seconds in [60, 600] {
        let Outcome { good, silence, .. } = Run::new(Counts::Nothing, seconds, 4, 50).outcome();
        assert!(good > seconds as f64 && silence < 10_000_000, "{seconds} s: {good} {silence}");
    }
}

#[test]
fn auto_raises_the_rate_after_a_limit_is_lifted() {
    let (mut controller, start) = (RateController::new(RateLimit::Auto), Instant::now() + SECOND);
    controller.try_acquire(start);
    controller.throttled(start + SECOND, start + SECOND, None);
    for response in 1..2_000 {
        let now = start + SECOND + milliseconds(response * 100);
        controller.succeeded(now, now);
    }
    assert!(controller.rate > 10.0 * MIN_DELIVERED, "{}", controller.rate);
}
