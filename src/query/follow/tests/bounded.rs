//! Long runs: what a follower holds does not grow, and a round without news is one request.

use std::time::Duration;

use super::world::{Chain, Change, Run, Stepped, spec};
use crate::query::follow::fingerprint::RowFacts;
use crate::query::follow::{Changes, Follower, Request, Start, Stop};

/// Heights that are followed.
const HEIGHTS: i64 = 10_000_000;

/// A list of one record per height, of which nothing is stored. Every 500th round replaces the newest three heights.
fn row(height: i64, fork: u64) -> RowFacts {
    let key = height as u64 * 1_000 + fork;
    RowFacts { height: Some(height), key, block: key, content: key }
}

#[test]
fn what_a_follower_holds_does_not_grow() {
    let spec = spec(Changes::Undone, 12, 100);
    let (most, mut follower) = (spec.remembered, Follower::new(spec, Start::Now));
    let (mut head, mut now, mut round, mut page) = (1_000_i64, Duration::ZERO, 0_u64, 0_i64);
    let (mut forked_at, mut fork, mut requests, mut events, mut undos) = (i64::MAX, 0, 0_u64, 0_u64, 0_u64);
    let end = head + HEIGHTS;
    while head < end {
        let found = match follower.next_request(now).unwrap() {
            Request::Wait(time) => {
                now += time;
                head += 60;
                round += 1;
                if round % 500 == 0 {
                    (forked_at, fork) = (head - 62, fork + 1);
                }
                continue;
            }
            request @ (Request::Newest | Request::Older { .. }) => {
                page = if request == Request::Newest { 0 } else { page + 1 };
                let top = head - page * 100;
                // Heights from the last reorganization on are those of its fork.
                let of = |height| row(height, if height >= forked_at { fork } else { fork.saturating_sub(1) });
                let rows: Vec<_> = (top - 99..=top).rev().map(of).collect();
                follower.on_page(&rows, Stop::Page(None)).unwrap()
            }
            Request::Verify => follower.on_verified().unwrap(),
            request => panic!("{request:?}"),
        };
        requests += 1;
        events += found.len() as u64;
        undos += found.iter().filter(|event| matches!(event.kind, super::super::EventKind::Undo { .. })).count() as u64;
        assert!(follower.memory().is_none_or(|memory| memory.len() <= most));
        assert!(follower.rows_held() <= 400, "{} rows", follower.rows_held());
        // All that a cursor has.
        let bytes = |memory| serde_json::to_string(memory).unwrap().len();
        assert!(requests % 1_000 > 0 || follower.memory().is_none_or(|memory| bytes(memory) < 8_000));
    }
    println!("{HEIGHTS} heights: {requests} requests, {events} events, {undos} undone");
    assert!(undos > 0 && events > requests / 2);
}

#[test]
fn a_round_without_news_is_one_request() {
    for changes in [Changes::Held, Changes::Undone] {
        let mut chain = Chain::new(40, 1);
        let mut run = Run::new(spec(changes, 3, 10), Start::Now);
        for _ in 0..20 {
            chain.apply(Change::Grow);
            while run.step(&chain).unwrap() != Stepped::Waited {}
        }
        let before = run.requests;
        for _ in 0..5 {
            while run.step(&chain).unwrap() != Stepped::Waited {}
        }
        assert_eq!(run.requests - before, 5);
        assert!(run.consumer.len() > 20);
    }
}
