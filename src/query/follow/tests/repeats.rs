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
