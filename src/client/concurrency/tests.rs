use std::time::Duration;

use super::*;

const UNTHROTTLED: AllowedRate = AllowedRate { rate: f64::INFINITY, is_limit: false };

fn limit_of(rate: f64) -> AllowedRate {
    AllowedRate { rate, is_limit: true }
}

/// Rounds of as many requests as are allowed, whose latency depends on the number of requests in a round and before it.
fn windows(rounds: usize, latency: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    let mut auto = AutoConcurrency::new();
    let mut now = Instant::now();
    let mut before = 0;
    let mut windows = Vec::new();
    for round in 0..rounds {
        let requests = if round == 0 { 1 } else { auto.limit(UNTHROTTLED) };
        windows.push(requests);
        let sent = now;
        for request in 0..requests {
            let seconds = latency(requests, before + request);
            now = now.max(sent + Duration::from_secs_f64(seconds));
            auto.succeeded(sent, sent + Duration::from_secs_f64(seconds), 1, UNTHROTTLED);
        }
        before += requests;
        now += Duration::from_millis(1);
    }
    windows
}

#[test]
fn requests_in_flight_are_rate_times_latency_between_bounds() {
    for (rate, seconds, min, max) in
        [(20.0, 1.0, 25, 27), (3.0, 3.0, 11, 13), (3.0, 0.005, 2, 2), (100.0, 3.0, 64, 64), (20.0, 0.1, 3, 4)]
    {
        let mut auto = AutoConcurrency::new();
        let sent = Instant::now();
        auto.succeeded(sent, sent + Duration::from_secs_f64(seconds), 1, limit_of(rate));
        let limit = auto.limit(limit_of(rate));
        assert!((min..=max).contains(&limit), "{rate}/s, {seconds} s: {limit}");
    }
}

#[test]
fn window_grows_while_no_limit_is_known() {
    assert_eq!(windows(3, |_, _| 1.0), [1, 24, 64]);
}

#[test]
fn window_grows_although_later_pages_take_longer() {
    let windows = windows(8, |_, page| 0.05 + 0.01 * page as f64);
    assert_eq!(windows.last(), Some(&64), "{windows:?}");
}

#[test]
fn few_large_responses_are_held() {
    let mut auto = AutoConcurrency::new();
    let sent = Instant::now();
    let later = sent + Duration::from_secs(1);
    auto.succeeded(sent, later, 8 << 20, UNTHROTTLED);
    assert_eq!(auto.limit(UNTHROTTLED), 4);
    for _ in 0..100 {
        auto.succeeded(sent, later, 1 << 10, UNTHROTTLED);
    }
    assert!(auto.limit(UNTHROTTLED) >= 24);
}

#[test]
fn failures_under_load_halve_the_window_once_in_a_round() {
    let mut auto = AutoConcurrency::new();
    let sent = Instant::now();
    let later = sent + Duration::from_secs(1);
    auto.succeeded(sent, later, 1, UNTHROTTLED);
    for _ in 0..5 {
        auto.overloaded(later, later + Duration::from_secs(1));
    }
    assert_eq!(auto.limit(UNTHROTTLED), 12);
}
