//! Records that several lists of a set have.

use crate::query::audit::{InCommon, Reach, SharedBlock};

fn new(height: i64, hash: u64) -> Option<SharedBlock> {
    Some(SharedBlock { height, hash, is_old: false })
}

/// The height of a record is its key; those that are even belong to both lists. A list of another fork has other blocks from
/// some height on.
fn add(in_common: &mut InCommon, list: u32, heights: &[i64], fork: i64) {
    for height in heights {
        let block = if *height < fork { *height } else { -height };
        let others = if height % 2 == 0 { vec![1 - list] } else { vec![] };
        in_common.add(list, block as u64, new(*height, block as u64), &others);
    }
}

fn lacking(first: &[i64], second: &[i64], fork: i64) -> Vec<(i64, u32)> {
    let mut in_common = InCommon::default();
    add(&mut in_common, 0, first, 100);
    add(&mut in_common, 1, second, fork);
    in_common.lacking(|_| Reach::LowestRecord)
}

/// A record of height 5 of the first list, which the other two should have, between blocks of all three.
fn of_three_lists() -> InCommon {
    let mut in_common = InCommon::default();
    for list in 0..3 {
        in_common.add(list, 9, new(9, 9), &[]);
        in_common.add(list, 1, new(1, 1), &[]);
    }
    in_common.add(0, 5, new(5, 5), &[1, 2]);
    in_common
}

#[test]
fn a_record_that_one_list_lacks_between_blocks_of_both_is_missing() {
    assert_eq!(lacking(&[9, 8, 6, 4, 3], &[9, 8, 4, 1], 100), [(6, 1)]);
    assert_eq!(lacking(&[9, 8, 4], &[9, 8, 6, 4, 1], 100), [(6, 0)]);
    assert_eq!(lacking(&[8, 6, 4, 2], &[8, 1], 100), [(2, 1)]);
    assert_eq!(lacking(&[9, 8, 6, 4], &[9, 8, 6, 4, 1], 100), []);
}

#[test]
fn each_list_that_lacks_a_record_is_named_with_the_lowest_height() {
    let mut in_common = of_three_lists();
    assert_eq!(in_common.lacking(|_| Reach::LowestRecord), [(5, 1), (5, 2)]);
    in_common.add(1, 3, new(3, 3), &[2]);
    assert_eq!(in_common.lacking(|_| Reach::LowestRecord), [(3, 2), (5, 1)]);
}

#[test]
fn a_list_that_was_read_before_or_after_the_other_one_lacks_nothing() {
    // The list has grown.
    assert_eq!(lacking(&[12, 10, 8, 6], &[8, 6], 100), []);
    assert_eq!(lacking(&[6, 4, 3], &[4, 3], 100), []);
    // Other blocks have taken the place of those from 6 on.
    assert_eq!(lacking(&[9, 8, 6, 4, 3], &[9, 5, 4, 3], 6), []);
    // The API no longer returns what is older.
    assert_eq!(lacking(&[9, 8, 6, 4, 2], &[9, 8, 6, 4], 100), []);
}

#[test]
fn a_list_that_has_all_its_records_lacks_those_below_its_lowest_one() {
    let mut in_common = InCommon::default();
    add(&mut in_common, 0, &[9, 8, 6, 4, 2], 100);
    add(&mut in_common, 1, &[9, 8, 6], 100);
    assert_eq!(in_common.lacking(|_| Reach::End), [(2, 1)]);
    // The first list, of which older records may be missing, shows them all the same.
    assert_eq!(in_common.lacking(|list| if list == 1 { Reach::End } else { Reach::LowestRecord }), [(2, 1)]);
    assert_eq!(in_common.lacking(|list| if list == 0 { Reach::End } else { Reach::LowestRecord }), []);
}

#[test]
fn a_list_that_shows_an_old_block_lacks_those_of_its_records_that_another_list_shows() {
    for (hash, is_old, expected) in [(5, true, vec![(5, 1)]), (5, false, vec![]), (55, true, vec![])] {
        let mut in_common = InCommon::default();
        in_common.add(0, 50, Some(SharedBlock { height: 5, hash: 5, is_old }), &[1]);
        in_common.add(1, 51, Some(SharedBlock { height: 5, hash, is_old }), &[]);
        assert_eq!(in_common.lacking(|_| Reach::End), expected, "{hash} {is_old}");
        assert_eq!(in_common.lacking(|_| Reach::LowestRecord), []);
    }
}

#[test]
fn a_list_that_is_continued_within_an_old_block_does_not_lack_its_records() {
    let block = |height: i64| Some(SharedBlock { height, hash: height as u64, is_old: true });
    for (top, expected) in [(5, vec![]), (6, vec![(5, 1)])] {
        let mut in_common = InCommon::default();
        in_common.continue_list(1);
        for list in [0, 1] {
            in_common.add(list, 60, block(top), &[]);
        }
        in_common.add(0, 50, block(5), &[1]);
        assert_eq!(in_common.lacking(|_| Reach::End), expected);
    }
}

#[test]
fn a_list_that_was_not_read_here_lacks_nothing_and_proves_nothing() {
    let in_common = of_three_lists();
    let all_but = |unread| move |list| if list == unread { Reach::Nowhere } else { Reach::LowestRecord };
    assert_eq!(in_common.lacking(all_but(1)), [(5, 2)]);
    assert_eq!(in_common.lacking(all_but(0)), []);
}

#[test]
fn a_list_that_shows_the_record_in_another_place_or_without_one_does_not_lack_it() {
    for place in [None, new(4, 4), new(5, 55)] {
        for others in [[0, 2].as_slice(), &[]] {
            let mut in_common = of_three_lists();
            in_common.add(1, 5, place, others);
            // It is not known where the third list should have it.
            assert_eq!(in_common.lacking(|_| Reach::LowestRecord), []);
        }
    }
}

#[test]
fn a_list_that_may_still_change_lacks_nothing_near_its_highest_block() {
    for (distance, expected) in [(4, vec![(5, 1)]), (5, vec![])] {
        let mut in_common = InCommon::of_lists_that_change(distance);
        add(&mut in_common, 0, &[10, 9, 5, 1], 100);
        add(&mut in_common, 1, &[9, 1], 100);
        in_common.add(0, 5, new(5, 5), &[1]);
        assert_eq!(in_common.lacking(|_| Reach::LowestRecord), expected);
    }
}

#[test]
fn records_of_a_list_that_has_changed_above_a_height_prove_nothing() {
    for (after, expected) in [(3, vec![]), (7, vec![]), (9, vec![(6, 1)])] {
        let mut in_common = InCommon::default();
        add(&mut in_common, 0, &[9, 8, 6, 3], 100);
        add(&mut in_common, 1, &[9, 8, 3], 100);
        in_common.forget(0, after);
        assert_eq!(in_common.lacking(|_| Reach::LowestRecord), expected);
        // The list shows the same as before again.
        let above: Vec<i64> = [9, 8, 6].into_iter().filter(|height| *height > after).collect();
        add(&mut in_common, 0, &above, 100);
        assert_eq!(in_common.lacking(|_| Reach::LowestRecord), [(6, 1)]);
    }
}

#[test]
fn as_many_records_as_are_kept_fill_the_comparison() {
    let mut in_common = InCommon::default();
    let mut records = 0;
    while in_common.has_room(1) {
        in_common.add(0, records, None, &[]);
        records += 1;
    }
    assert_eq!(records, 57_344);
}
