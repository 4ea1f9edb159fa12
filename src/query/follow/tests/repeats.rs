//! Rounds that are repeated, since the list changed while it was read.

use std::time::Duration;

use super::world::{Chain, Change, MAX_STEPS, Run, Stepped, spec};
use crate::client::Error;
use crate::query::follow::{Changes, FollowSpec, Forgets, HeadSource, Poll, Request, Shown, Start};

#[test]
fn round_that_failed_is_read_again_although_it_has_shown_the_head() {
    for changes in [Changes::Held, Changes::Undone] {
        let spec = FollowSpec { head: HeadSource::Chain, poll: Poll::Once, ..spec(changes, 2, 5) };
        let mut chain = Chain::new(20, 1);
        let mut run = Run::new(spec, Start::Now);
        run.step_to(&chain, Stepped::Finished);
        (0..9).for_each(|_| chain.apply(Change::Grow));
        run.restart();
        let is_below_head = (0..MAX_STEPS).any(|_| {
            run.step(&chain).unwrap();
            matches!(run.follower.next_request(Duration::ZERO), Ok(Request::Older { .. }))
        });
        assert!(is_below_head);
        run.follower.repeat();
        run.step_to(&chain, Stepped::Finished);
        let above = if changes == Changes::Held { 17 } else { 18 };
        assert_eq!(run.consumer, run.expected(above), "{changes:?}");
        assert!(run.consumer.len() >= 9, "{changes:?}");
    }
}

/// A follower whose first round has read all of a chain, and is discarded.
fn after_discarded(chain: &Chain, changes: Changes, forgets: Forgets) -> Run {
    discarded(chain, FollowSpec { forgets, ..spec(changes, 2, 5) })
}

fn discarded(chain: &Chain, spec: FollowSpec) -> Run {
    let mut run = Run::new(FollowSpec { poll: Poll::Once, ..spec }, Start::Height(0));
    let has_read = (0..MAX_STEPS).any(|_| {
        run.step(chain).unwrap();
        matches!(run.follower.next_request(Duration::ZERO), Ok(Request::Verify))
    });
    assert!(has_read);
    run.follower.repeat();
    run
}

/// Steps to the end of a round, or to its error.
fn end_of_round(run: &mut Run, chain: &Chain) -> Result<(), Error> {
    for _ in 0..MAX_STEPS {
        if run.step(chain)? == Stepped::Finished {
            return Ok(());
        }
    }
    panic!("no end in {MAX_STEPS} steps")
}

/// The round that reads `part`, which lacks records, returns nothing, and the next one all records.
#[track_caller]
fn assert_discards(run: &mut Run, part: &Chain, whole: &Chain) {
    let error = end_of_round(run, part).unwrap_err();
    assert!(matches!(error, Error::Drift { .. }) && error.to_string().contains("lacks a record"), "{error}");
    assert!(run.consumer.is_empty());
    run.follower.repeat();
    run.step_to(whole, Stepped::Finished);
    assert_eq!(run.consumer, run.expected(-1));
}

#[test]
fn round_that_lacks_records_of_a_discarded_one_is_discarded() {
    let chain = Chain::new(20, 2);
    for lost in [&[5][..], &[3, 9, 7], &[0], &[17]] {
        for changes in [Changes::Held, Changes::Undone] {
            let mut part = chain.clone();
            lost.iter().for_each(|height| part.lose(*height, 1));
            let mut run = after_discarded(&chain, changes, Forgets::Never);
            assert_discards(&mut run, &part, &chain);
        }
    }
}

#[test]
fn round_that_lacks_a_record_which_it_was_shown_is_discarded() {
    let whole = Chain::new(20, 2);
    for lost in [0, 5, 17] {
        for changes in [Changes::Held, Changes::Undone] {
            let mut part = whole.clone();
            part.lose(lost, 1);
            let mut run = Run::new(FollowSpec { poll: Poll::Once, ..spec(changes, 2, 5) }, Start::Height(0));
            run.step(&part).unwrap();
            // The read of the list has discarded this response.
            run.follower.on_shown(vec![Shown { rows: whole.list(), is_first: true, count: None }]);
            assert_discards(&mut run, &part, &whole);
        }
    }
}

#[test]
fn round_that_counts_fewer_records_than_a_discarded_one_is_discarded() {
    let chain = Chain::new(20, 2);
    for height in 0..16 {
        let mut run = Run::new(FollowSpec { poll: Poll::Once, ..spec(Changes::Held, 2, 5) }, Start::Height(0));
        // The first page is all that this round has shown.
        run.step(&chain).unwrap();
        run.follower.repeat();
        let mut part = chain.clone();
        part.lose(height, 1);
        let error = end_of_round(&mut run, &part).unwrap_err();
        assert!(error.to_string().contains("than an earlier response counted"), "{height}: {error}");
        run.follower.repeat();
        run.follower.forget_discarded();
        run.step_to(&part, Stepped::Finished);
        assert_eq!(run.consumer, run.expected(-1), "{height}");
    }
}

#[test]
fn round_after_a_discarded_one_may_have_other_blocks_and_late_records() {
    for depth in 1..=20 {
        for late in 0..4 {
            let mut chain = Chain::new(20, 2);
            for changes in [Changes::Held, Changes::Undone] {
                for change in [Change::Reorganize(depth), Change::Shrink(depth)] {
                    let mut run = after_discarded(&chain, changes, Forgets::Never);
                    chain.apply(change);
                    (0..late).for_each(|below| chain.apply(Change::Late(below * 5)));
                    run.step_to(&chain, Stepped::Finished);
                    assert_eq!(run.consumer, run.expected(-1), "{depth} {late} {changes:?}");
                }
            }
        }
    }
}

#[test]
fn records_that_left_the_end_of_the_list_are_not_lacking() {
    for oldest in 1..16 {
        for changes in [Changes::Held, Changes::Undone] {
            let mut chain = Chain::new(20, 2);
            let mut run = after_discarded(&chain, changes, Forgets::LastYear { heights: 0 });
            chain.forget(oldest);
            chain.lose(oldest, 1);
            let mut part = chain.clone();
            part.lose(oldest + 1, 1);
            let error = end_of_round(&mut run, &part).unwrap_err();
            assert!(error.to_string().contains("lacks a record that an earlier response showed"), "{oldest}: {error}");
            run.follower.repeat();
            run.step_to(&chain, Stepped::Finished);
            assert_eq!(run.consumer, run.expected(-1), "{oldest} {changes:?}");
        }
    }
}

/// The specs of lists of which another list shows the head.
fn sparse(page_size: u64) -> impl Iterator<Item = FollowSpec> {
    let of = move |changes, forgets| FollowSpec { head: HeadSource::Chain, forgets, ..spec(changes, 2, page_size) };
    let all = [Changes::Held, Changes::Undone]
        .into_iter()
        .flat_map(|changes| [Forgets::Never, Forgets::LastYear { heights: 0 }].map(|forgets| (changes, forgets)));
    all.map(move |(changes, forgets)| of(changes, forgets))
}

#[test]
fn round_that_lacks_the_newest_record_which_a_response_showed_is_discarded() {
    let whole = Chain::new(20, 1);
    for lost in [15..18, 16..18, 17..18] {
        let mut part = whole.clone();
        lost.chain(18..20).for_each(|height| part.lose(height, 1));
        for spec in sparse(5) {
            let mut later = discarded(&whole, spec.clone());
            assert_discards(&mut later, &part, &whole);
            let mut at_once = Run::new(FollowSpec { poll: Poll::Once, ..spec }, Start::Height(0));
            while at_once.follower.rows_held() == 0 {
                at_once.step(&part).unwrap();
            }
            at_once.follower.on_shown(vec![Shown { rows: whole.list(), is_first: true, count: None }]);
            assert_discards(&mut at_once, &part, &whole);
        }
    }
}

#[test]
fn round_after_a_discarded_one_may_lack_records_that_were_not_settled() {
    for spec in sparse(5) {
        let chain = Chain::new(20, 1);
        for depth in 1..=2 {
            let mut changed = chain.clone();
            let mut run = discarded(&chain, spec.clone());
            changed.apply(Change::Remove(depth));
            (0..20).for_each(|_| changed.apply(Change::GrowEmpty));
            run.step_to(&changed, Stepped::Finished);
            assert_eq!(run.consumer, run.expected(-1), "{spec:?} {depth}");
        }
    }
}

#[test]
fn empty_list_of_which_a_discarded_round_showed_settled_records_is_discarded() {
    let chain = Chain::new(20, 1);
    let mut empty = chain.clone();
    empty.forget(20);
    let of_all_blocks = [Changes::Held, Changes::Undone].map(|changes| spec(changes, 2, 5));
    for spec in sparse(5).chain(of_all_blocks) {
        let mut run = discarded(&chain, spec);
        assert_discards(&mut run, &empty, &chain);
    }
}

#[test]
fn empty_list_of_which_a_discarded_round_showed_only_records_that_were_not_settled_is_believed() {
    let mut chain = Chain::new(20, 1);
    chain.forget(18);
    let mut empty = chain.clone();
    empty.apply(Change::Remove(2));
    (0..20).for_each(|_| empty.apply(Change::GrowEmpty));
    for spec in sparse(1) {
        let mut run = discarded(&chain, spec.clone());
        end_of_round(&mut run, &empty).unwrap_or_else(|error| panic!("{spec:?}: {error}"));
        assert!(run.consumer.is_empty());
    }
}
