//! Rounds that are repeated, since the list changed while it was read.

use std::time::Duration;

use super::world::{Chain, Change, MAX_STEPS, Run, Stepped, spec};
use crate::query::follow::{Changes, FollowSpec, HeadSource, Poll, Request, Start};

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
fn after_discarded(chain: &Chain, changes: Changes) -> Run {
    let spec = FollowSpec { poll: Poll::Once, ..spec(changes, 2, 5) };
    let mut run = Run::new(spec, Start::Height(0));
    let has_read = (0..MAX_STEPS).any(|_| {
        run.step(chain).unwrap();
        matches!(run.follower.next_request(Duration::ZERO), Ok(Request::Verify))
    });
    assert!(has_read);
    run.follower.repeat();
    run
}

#[test]
fn round_that_lacks_records_of_a_discarded_one_says_of_which_heights() {
    let chain = Chain::new(20, 2);
    for (lost, lacking) in
        [(&[][..], None), (&[5], Some((5, 5))), (&[3, 9, 7], Some((3, 9))), (&[0], Some((0, 0))), (&[18, 19], None)]
    {
        for changes in [Changes::Held, Changes::Undone] {
            let mut part = chain.clone();
            lost.iter().for_each(|height| part.lose(*height, 1));
            let mut run = after_discarded(&chain, changes);
            run.step_to(&part, Stepped::Finished);
            assert_eq!(run.consumer, run.expected(-1), "{lost:?} {changes:?}");
            // Without `settle`, all heights but the newest are delivered, which shows no chain.
            let lacking = if lost == [18, 19] && changes == Changes::Undone { Some((18, 18)) } else { lacking };
            assert_eq!(run.follower.take_lacking(), lacking, "{lost:?} {changes:?}");
            assert_eq!(run.follower.take_lacking(), None);
        }
    }
}

#[test]
fn round_after_a_discarded_one_may_have_other_blocks_and_late_records() {
    for depth in 1..=20 {
        for late in 0..4 {
            let mut chain = Chain::new(20, 2);
            for changes in [Changes::Held, Changes::Undone] {
                let mut run = after_discarded(&chain, changes);
                chain.apply(Change::Reorganize(depth));
                (0..late).for_each(|below| chain.apply(Change::Late(below * 5)));
                run.step_to(&chain, Stepped::Finished);
                assert_eq!(run.consumer, run.expected(-1), "{depth} {late} {changes:?}");
                assert_eq!(run.follower.take_lacking(), None, "{depth} {late} {changes:?}");
            }
        }
    }
}
