//! Lists that end before what is known: at the result window, or where the API has forgotten records.

use super::world::{Chain, Change, Run, Stepped, spec};
use crate::client::Error;
use crate::query::follow::spec::Forgets;
use crate::query::follow::state::{FollowState, OldestKnown};
use crate::query::follow::{Changes, FollowSpec, HeadSource, Poll, Ranges, Start};

fn finish(run: &mut Run, chain: &Chain) -> Result<(), Error> {
    while run.step(chain)? != Stepped::Finished {}
    Ok(())
}

fn once(spec: FollowSpec) -> FollowSpec {
    FollowSpec { poll: Poll::Once, ..spec }
}

/// A follower that has caught up, and a chain that grew by more than the result window since then.
fn behind(ranges: Ranges, changes: Changes) -> (Run, Chain) {
    let mut chain = Chain::new(20, 1);
    chain.window = 10;
    let spec = FollowSpec { ranges, max_rows: 50, ..once(spec(changes, 2, 5)) };
    let mut run = Run::new(spec, Start::Now);
    finish(&mut run, &chain).unwrap();
    (0..40).for_each(|_| chain.apply(Change::Grow));
    run.restart();
    (run, chain)
}

#[test]
fn heights_beyond_the_window_are_read_by_height() {
    for ranges in [Ranges::List, Ranges::ByHeight] {
        for changes in [Changes::Held, Changes::Undone] {
            let (mut run, chain) = behind(ranges, changes);
            finish(&mut run, &chain).unwrap();
            let above = if changes == Changes::Held { 17 } else { 18 };
            assert_eq!(run.consumer, run.expected(above));
            assert_eq!(run.follower.state().unwrap().delivered_to(), if changes == Changes::Held { 57 } else { 58 });
        }
    }
}

#[test]
fn the_beginning_beyond_the_window_is_the_first_block() {
    let mut chain = Chain::new(1_060, 1);
    chain.forget(1_000);
    chain.window = 10;
    let spec = FollowSpec { ranges: Ranges::ByHeight, ..once(spec(Changes::Held, 2, 5)) };
    let mut run = Run::new(spec, Start::Height(0));
    finish(&mut run, &chain).unwrap();
    assert_eq!(run.consumer.len(), 58);
    assert!(run.requests < 10, "{} requests", run.requests);
}

#[test]
fn the_first_records_of_a_list_that_forgets_may_change_near_the_head() {
    for change in [Change::Late(2), Change::Reorganize(3), Change::Shrink(3)] {
        let mut chain = Chain::new(8, 1);
        // The list begins with the third block from the head.
        chain.forget(5);
        let spec = FollowSpec {
            forgets: Forgets::LastYear { heights: 0 },
            head: HeadSource::Chain,
            ..once(spec(Changes::Undone, 4, 10))
        };
        let mut run = Run::new(spec, Start::Height(0));
        finish(&mut run, &chain).unwrap();
        assert_eq!(run.consumer.len(), 2);
        chain.apply(change);
        (0..2).for_each(|_| chain.apply(Change::Grow));
        run.restart();
        finish(&mut run, &chain).unwrap();
        assert_eq!((run.consumer.clone(), run.undos), (run.expected(-1), 1), "{change:?}");
    }
}

#[test]
fn the_first_record_of_a_height_may_be_listed_late() {
    for page_size in 1..6 {
        let mut chain = Chain::new(10, 1);
        (0..4).for_each(|_| chain.apply(Change::GrowEmpty));
        (0..2).for_each(|_| chain.apply(Change::Grow));
        let mut run = Run::new(once(spec(Changes::Undone, 4, page_size)), Start::Height(0));
        finish(&mut run, &chain).unwrap();
        chain.apply(Change::Late(2));
        chain.apply(Change::Grow);
        run.restart();
        finish(&mut run, &chain).unwrap();
        assert_eq!((run.consumer.clone(), run.undos), (run.expected(-1), 1), "pages of {page_size}");
    }
}

/// A follower that has delivered a list with records of the last heights only. The list forgets old records, but none of the
/// newest `heights`.
fn young(records: usize, page_size: u64, changes: Changes, heights: i64) -> (Run, Chain) {
    let mut chain = Chain::new(20, 1);
    chain.forget(20 - records);
    let spec = FollowSpec {
        head: HeadSource::Chain,
        forgets: Forgets::LastYear { heights },
        ..once(spec(changes, 6, page_size))
    };
    let mut run = Run::new(spec, Start::Height(0));
    finish(&mut run, &chain).unwrap();
    run.restart();
    (run, chain)
}

#[test]
fn records_that_a_reorganization_removed_from_a_list_that_forgets_are_undone() {
    for records in 2..=6 {
        for removed in 1..=records {
            // The highest record, at height 18, is within the settle distance, or within the heights of a year.
            for (grown, year) in [(0, 0), (1, 0), (2, 0), (3, 0), (30, 50)] {
                for page_size in [1, 5, 10] {
                    let (mut run, mut chain) = young(records, page_size, Changes::Undone, year);
                    assert_eq!(run.consumer.len(), records - 1);
                    chain.apply(Change::Remove(removed));
                    (0..grown).for_each(|_| chain.apply(Change::GrowEmpty));
                    finish(&mut run, &chain).unwrap();
                    let left = (20 - records as i64)..(20 - removed as i64);
                    let heights: Vec<_> = run.consumer.iter().map(|(height, _)| *height).collect();
                    assert_eq!(heights, left.collect::<Vec<_>>(), "{records} {removed} {grown} {page_size}");
                }
            }
        }
    }
}

#[test]
fn records_that_left_a_list_with_age_are_not_undone() {
    for changes in [Changes::Held, Changes::Undone] {
        let (mut run, mut chain) = young(12, 5, changes, 0);
        let before = run.consumer.clone();
        (0..20).for_each(|_| chain.apply(Change::GrowEmpty));
        chain.forget(20);
        finish(&mut run, &chain).unwrap();
        assert_eq!((run.undos, &run.consumer), (0, &before), "{changes:?}");
        assert!(!before.is_empty());
    }
}

#[test]
fn a_window_that_ends_within_the_settle_distance_is_an_error() {
    let mut chain = Chain::new(10, 1);
    chain.window = 6;
    let spec = FollowSpec { ranges: Ranges::ByHeight, ..once(spec(Changes::Undone, 12, 3)) };
    let followed = finish(&mut Run::new(spec, Start::Height(0)), &chain);
    let Err(Error::Gap { first, last, problem, .. }) = followed else { panic!("{followed:?}") };
    assert_eq!((first, last), (0, 4));
    assert!(problem.to_string().contains("the API's result window begins with height 5; pass a smaller"), "{problem}");
}

#[test]
fn a_gap_that_cannot_be_filled_names_its_heights() {
    let (mut run, chain) = behind(Ranges::None, Changes::Held);
    let Err(Error::Gap { first, last, .. }) = finish(&mut run, &chain) else { panic!("no gap") };
    // Ten records can be paged through. The last of them is of height 53, which may have more.
    assert_eq!((first, last), (18, 53));
    assert!(run.consumer.is_empty());
}

#[test]
fn records_that_the_api_has_forgotten_are_a_gap() {
    let mut chain = Chain::new(10, 1);
    let spec = FollowSpec { forgets: Forgets::LastYear { heights: 0 }, ..once(spec(Changes::Held, 2, 5)) };
    let mut run = Run::new(spec, Start::Height(0));
    finish(&mut run, &chain).unwrap();
    assert_eq!(run.consumer.len(), 8);
    (0..10).for_each(|_| chain.apply(Change::Grow));
    chain.forget(14);
    run.restart();
    let Err(Error::Gap { first, last, .. }) = finish(&mut run, &chain) else { panic!("no gap") };
    assert_eq!((first, last), (8, 13));
}

#[test]
fn a_change_below_all_that_is_remembered_is_an_error() {
    let mut chain = Chain::new(30, 1);
    let spec = FollowSpec { remembered: 2, ..once(spec(Changes::Undone, 2, 5)) };
    let mut run = Run::new(spec, Start::Height(0));
    finish(&mut run, &chain).unwrap();
    chain.apply(Change::Reorganize(12));
    run.restart();
    let Err(Error::Reorganization { height, .. }) = finish(&mut run, &chain) else { panic!("no error") };
    assert_eq!(height, 25);
}

#[test]
fn a_reorganization_is_undone_where_heights_are_read_one_by_one() {
    let mut chain = Chain::new(30, 1);
    chain.window = 10;
    let spec = FollowSpec { ranges: Ranges::ByHeight, ..once(spec(Changes::Undone, 2, 5)) };
    let mut run = Run::new(spec, Start::Height(0));
    finish(&mut run, &chain).unwrap();
    chain.apply(Change::Reorganize(5));
    (0..20).for_each(|_| chain.apply(Change::Grow));
    run.restart();
    finish(&mut run, &chain).unwrap();
    assert_eq!(run.consumer, run.expected(-1));
    assert_eq!((run.undos, run.follower.state().unwrap().delivered_to()), (1, 49));
}

#[test]
fn heights_below_the_first_known_one_are_not_read_one_by_one() {
    let mut chain = Chain::new(1_005, 1);
    chain.forget(1_000);
    let spec = FollowSpec { ranges: Ranges::ByHeight, ..once(spec(Changes::Undone, 2, 5)) };
    let mut run = Run::new(spec, Start::Height(0));
    finish(&mut run, &chain).unwrap();
    chain.window = 10;
    chain.apply(Change::Reorganize(2));
    (0..20).for_each(|_| chain.apply(Change::Grow));
    run.restart();
    let mut lowest = i64::MAX;
    loop {
        if let Ok(crate::query::follow::Request::Range { low, .. }) =
            run.follower.clone().next_request(std::time::Duration::ZERO)
        {
            lowest = lowest.min(low);
        }
        if run.step(&chain).unwrap() == Stepped::Finished {
            break;
        }
    }
    assert_eq!((run.undos, lowest), (1, 1_000));
    assert_eq!(run.consumer, run.expected(-1));
}

#[test]
fn an_export_is_followed_within_its_last_height() {
    for late in [false, true] {
        let mut chain = Chain::new(10, 3);
        let list = chain.list();
        // An export that met the newest block while it was being listed.
        let newest: Vec<_> = list.iter().skip(1).map(|row| (row.key, row.height.unwrap())).collect();
        let state = FollowState::of_export(&newest, OldestKnown::Forgotten(2)).unwrap();
        (0..4).for_each(|_| chain.apply(Change::Grow));
        if late {
            chain.apply(Change::Late(5));
        }
        let mut run = Run::new(once(spec(Changes::Held, 2, 50)), Start::After(state));
        let followed = finish(&mut run, &chain);
        if late {
            assert!(matches!(followed, Err(Error::Reorganization { height: 8, .. })), "{followed:?}");
            continue;
        }
        followed.unwrap();
        let has = |key: u64| newest.iter().any(|(other, _)| *other == key);
        let expected: Vec<_> = run.expected(-1).into_iter().filter(|(_, key)| !has(*key)).collect();
        assert_eq!(run.consumer, expected);
        assert_eq!(run.consumer[0].0, 9);
    }
}

#[test]
fn a_sparse_list_settles_by_the_head_of_the_chain() {
    let mut chain = Chain::new(10, 1);
    let spec = FollowSpec { head: HeadSource::Chain, ..spec(Changes::Held, 3, 5) };
    let mut run = Run::new(spec, Start::Now);
    chain.apply(Change::Grow);
    (0..3).for_each(|_| chain.apply(Change::GrowEmpty));
    let wait = |run: &mut Run, chain: &Chain| while run.step(chain).unwrap() != Stepped::Waited {};
    wait(&mut run, &chain);
    assert_eq!(run.follower.state().unwrap().delivered_to(), 10);
    chain.apply(Change::Grow);
    wait(&mut run, &chain);
    assert!(run.consumer.is_empty());
    // No further record comes, and yet the last one settles.
    (0..3).for_each(|_| chain.apply(Change::GrowEmpty));
    wait(&mut run, &chain);
    assert_eq!(run.consumer.iter().map(|(height, _)| *height).collect::<Vec<_>>(), [14]);
    let before = run.requests;
    wait(&mut run, &chain);
    assert_eq!(run.requests - before, 1);
}

/// A follower that undoes changes and has caught up with eight heights of two records each.
fn caught_up(ranges: Ranges, page_size: u64) -> (Run, Chain) {
    let mut chain = Chain::new(8, 2);
    // Ranges are read where a reading down would hold more than these.
    let max_rows = if ranges == Ranges::None { 50 } else { 3 };
    let spec = FollowSpec { ranges, max_rows, ..once(spec(Changes::Undone, 12, page_size)) };
    let mut run = Run::new(spec, Start::Height(0));
    finish(&mut run, &chain).unwrap();
    (0..2).for_each(|_| chain.grow(2));
    run.restart();
    (run, chain)
}

#[test]
fn records_that_are_gone_below_the_same_blocks_are_not_undone() {
    for ranges in [Ranges::None, Ranges::List, Ranges::ByHeight] {
        for page_size in [3, 20] {
            for lost in 1..=2 {
                for height in 0..6 {
                    let (mut run, mut chain) = caught_up(ranges, page_size);
                    let before = run.consumer.clone();
                    chain.lose(height, lost);
                    let ended = finish(&mut run, &chain);
                    let Err(Error::Drift { problem, .. }) = ended else { panic!("{ranges:?}, {height}: {ended:?}") };
                    assert!(problem.to_string().contains(&format!("heights {height} to {height} lack")), "{problem}");
                    assert_eq!((run.undos, &run.consumer), (0, &before), "{ranges:?}, {height}");
                }
            }
        }
    }
}

#[test]
fn a_round_without_the_records_of_a_height_is_repeated() {
    let (mut run, mut chain) = caught_up(Ranges::None, 50);
    let whole = chain.clone();
    chain.lose(3, 2);
    assert!(finish(&mut run, &chain).is_err());
    run.follower.repeat();
    finish(&mut run, &whole).unwrap();
    assert_eq!((run.undos, run.consumer.clone()), (0, run.expected(-1)));
}

#[test]
fn a_block_that_is_replaced_below_the_same_blocks_is_no_reorganization() {
    let (mut run, mut chain) = caught_up(Ranges::None, 50);
    chain.replace(3);
    assert!(matches!(finish(&mut run, &chain), Err(Error::Drift { .. })));
    assert_eq!(run.undos, 0);
}

#[test]
fn a_record_that_is_listed_late_below_the_same_blocks_is_an_undo() {
    let (mut run, mut chain) = caught_up(Ranges::None, 50);
    chain.apply(Change::Late(6));
    finish(&mut run, &chain).unwrap();
    assert_eq!((run.undos, run.consumer.clone()), (1, run.expected(-1)));
}
