//! Long runs: what a follower holds does not grow, and a round without news is one request.

use std::time::Duration;

use super::world::{Chain, Change, Run, Stepped, spec};
use crate::query::follow::fingerprint::RowFacts;
use crate::query::follow::reading::Reading;
use crate::query::follow::{
    Changes, FollowSpec, FollowState, Follower, HeadSource, OldestKnown, Poll, Ranges, Request, Start, Stop,
};

/// Heights that are followed.
const HEIGHTS: i64 = 10_000_000;

/// A list of one record per height, of which nothing is stored. Every 500th round replaces the newest three heights.
fn row(height: i64, fork: u64) -> RowFacts {
    let key = height as u64 * 1_000 + fork;
    RowFacts { height: Some(height), key, block: key, chain: key, content: key }
}

#[test]
fn what_a_follower_holds_does_not_grow() {
    let spec = spec(Changes::Undone, 12, 100);
    let (max_heights, mut follower) = (spec.remembered + 12, Follower::new(spec, Start::Now));
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
        assert!(follower.state().is_none_or(|state| state.len() <= max_heights));
        assert!(follower.rows_held() <= 400, "{} rows", follower.rows_held());
        // All that a cursor has.
        let bytes = |state| serde_json::to_string(state).unwrap().len();
        assert!(requests % 1_000 > 0 || follower.state().is_none_or(|state| bytes(state) < 8_000));
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
            run.step_to(&chain, Stepped::Waited);
        }
        let before = run.requests;
        for _ in 0..5 {
            run.step_to(&chain, Stepped::Waited);
        }
        assert_eq!(run.requests - before, 5);
        assert!(run.consumer.len() > 20);
    }
}

/// Requests of each of the next rounds, without news.
fn rounds(run: &mut Run, chain: &Chain, rounds: usize) -> Vec<u64> {
    let mut round = || {
        let before = run.requests;
        run.step_to(chain, Stepped::Waited);
        run.requests - before
    };
    (0..rounds).map(|_| round()).collect()
}

#[test]
fn the_first_round_requests_the_head_once_and_then_the_list() {
    let spec = |changes| FollowSpec { head: HeadSource::Chain, ..spec(changes, 3, 10) };
    for (changes, start) in
        [(Changes::Undone, Start::Height(0)), (Changes::Held, Start::Height(0)), (Changes::Held, Start::Now)]
    {
        let mut run = Run::new(spec(changes), start);
        assert_eq!(rounds(&mut run, &Chain::new(8, 1), 1), [2], "the head, and the only page");
    }
    let mut run = Run::new(spec(Changes::Held), Start::Height(0));
    assert_eq!(rounds(&mut run, &Chain::new(8, 0), 3), [2, 1, 1], "a list without records needs no head again");
}

#[test]
fn a_round_without_news_is_one_request_while_records_wait_for_a_higher_block() {
    for changes in [Changes::Held, Changes::Undone] {
        let mut chain = Chain::new(40, 1);
        let spec = FollowSpec { head: HeadSource::Chain, ..spec(changes, 3, 10) };
        let mut run = Run::new(spec, Start::Now);
        rounds(&mut run, &chain, 1);
        (0..5).for_each(|_| chain.apply(Change::Grow));
        rounds(&mut run, &chain, 1);
        let delivered = run.consumer.len();
        assert_eq!(rounds(&mut run, &chain, 6), [1; 6], "{changes:?}");
        if changes == Changes::Held {
            // Height 42 is settled, and the next two are held back still.
            chain.apply(Change::GrowEmpty);
            assert_eq!(rounds(&mut run, &chain, 1), [2]);
            assert_eq!(rounds(&mut run, &chain, 4), [1; 4]);
        }
        assert!(run.consumer.len() >= delivered);
        (0..4).for_each(|_| chain.apply(Change::GrowEmpty));
        rounds(&mut run, &chain, 1);
        assert_eq!(run.consumer.last().map(|(height, _)| *height), Some(44), "{changes:?}");
        assert_eq!(rounds(&mut run, &chain, 4), [1; 4], "{changes:?}");
    }
}

#[test]
fn heights_that_are_not_settled_yet_cost_one_request_a_round() {
    let mut chain = Chain::new(40, 1);
    let spec = FollowSpec { head: HeadSource::Chain, ..spec(Changes::Held, 8, 10) };
    let mut run = Run::new(spec, Start::Now);
    (0..9).for_each(|_| chain.apply(Change::GrowEmpty));
    chain.apply(Change::Grow);
    rounds(&mut run, &chain, 1);
    for _ in 0..7 {
        chain.apply(Change::GrowEmpty);
        assert_eq!(rounds(&mut run, &chain, 1), [1]);
        assert!(run.consumer.is_empty());
    }
    chain.apply(Change::GrowEmpty);
    while run.consumer.is_empty() {
        assert!(rounds(&mut run, &chain, 1)[0] < 4);
    }
    assert_eq!(run.consumer[0].0, 49);
}

#[test]
fn a_late_record_is_noticed_within_two_rounds_of_a_chain_that_stands_still() {
    let mut chain = Chain::new(40, 1);
    let mut run = Run::new(FollowSpec { head: HeadSource::Chain, ..spec(Changes::Undone, 3, 10) }, Start::Height(0));
    rounds(&mut run, &chain, 1);
    assert_eq!(run.consumer.len(), 39);
    chain.apply(Change::Late(1));
    rounds(&mut run, &chain, 2);
    assert_eq!((run.consumer.len(), run.undos), (40, 1));
}

#[test]
fn a_late_record_is_noticed_by_another_process_once_it_is_settled() {
    let mut chain = Chain::new(30, 1);
    (0..9).for_each(|_| chain.apply(Change::GrowEmpty));
    chain.apply(Change::Grow);
    let spec = FollowSpec { head: HeadSource::Chain, poll: Poll::Once, ..spec(Changes::Held, 8, 10) };
    let mut run = Run::new(spec, Start::Height(0));
    run.step_to(&chain, Stepped::Finished);
    assert_eq!(run.consumer.last().map(|(height, _)| *height), Some(29));
    // Above the delivered heights, and below the record of height 39, which is held back.
    chain.apply(Change::Late(5));
    (0..3).for_each(|_| chain.apply(Change::GrowEmpty));
    run.restart();
    run.step_to(&chain, Stepped::Finished);
    assert_eq!(run.consumer.last().map(|(height, _)| *height), Some(34));
}

#[test]
fn another_process_without_news_sends_one_request() {
    for (changes, ranges) in
        [(Changes::Held, Ranges::None), (Changes::Undone, Ranges::None), (Changes::Held, Ranges::List)]
    {
        let chain = Chain::new(40, 1);
        let max_rows = if ranges == Ranges::None { 10_000 } else { 12 };
        for head in [HeadSource::List, HeadSource::Chain] {
            let spec = FollowSpec { head, ranges, max_rows, poll: Poll::Once, ..spec(changes, 3, 10) };
            let mut run = Run::new(spec, Start::Height(0));
            run.step_to(&chain, Stepped::Finished);
            assert!(run.consumer.len() > 30);
            let before = run.requests;
            run.restart();
            run.step_to(&chain, Stepped::Finished);
            assert_eq!(run.requests - before, 1, "{changes:?}, {head:?}, {ranges:?}");
        }
    }
}

/// The positions of 10,000 lists are one cursor.
#[test]
fn few_heights_are_remembered_of_a_list_that_has_records_of_few() {
    let rows: Vec<RowFacts> = (1..=40).rev().map(|index| row(index * 10, 0)).collect();
    let mut state = FollowState::start_after(-1);
    state.deliver(&Reading::range(0, 400, &rows, None), 400, 12, 8);
    assert_eq!((state.len(), state.from(0), state.highest()), (10, Some(310), Some(400)));
    assert_eq!(state.oldest_known(), OldestKnown::Forgotten(300));
    let json = serde_json::to_string(&state).unwrap();
    assert!(json.len() < 330, "{json}");
}
