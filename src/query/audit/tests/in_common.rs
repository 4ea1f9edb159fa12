//! Records that several lists of a set have.

use crate::query::audit::InCommon;

/// The height of a record is its key; those that are even belong to both lists. A list of another fork has other blocks from
/// some height on.
fn add(in_common: &mut InCommon, list: u32, heights: &[i64], fork: i64) {
    for height in heights {
        let block = if *height < fork { *height } else { -height };
        in_common.add_block(list, *height, block as u64);
        if height % 2 == 0 {
            in_common.add_record(list, block as u64, *height, vec![1 - list]);
        }
    }
}

fn lacking(first: &[i64], second: &[i64], fork: i64) -> Option<(i64, u32)> {
    let mut in_common = InCommon::default();
    add(&mut in_common, 0, first, 100);
    add(&mut in_common, 1, second, fork);
    in_common.lacking(|_| true)
}

#[test]
fn a_record_that_one_list_lacks_between_blocks_of_both_is_missing() {
    assert_eq!(lacking(&[9, 8, 6, 4, 3], &[9, 8, 4, 1], 100), Some((6, 1)));
    assert_eq!(lacking(&[9, 8, 4], &[9, 8, 6, 4, 1], 100), Some((6, 0)));
    assert_eq!(lacking(&[8, 6, 4, 2], &[8, 1], 100), Some((2, 1)));
    assert_eq!(lacking(&[9, 8, 6, 4], &[9, 8, 6, 4, 1], 100), None);
}

#[test]
fn a_list_that_was_read_before_or_after_the_other_one_lacks_nothing() {
    // The list has grown.
    assert_eq!(lacking(&[12, 10, 8, 6], &[8, 6], 100), None);
    assert_eq!(lacking(&[6, 4, 3], &[4, 3], 100), None);
    // Other blocks have taken the place of those from 6 on.
    assert_eq!(lacking(&[9, 8, 6, 4, 3], &[9, 5, 4, 3], 6), None);
    // The API no longer returns what is older.
    assert_eq!(lacking(&[9, 8, 6, 4, 2], &[9, 8, 6, 4], 100), None);
}

#[test]
fn a_list_that_is_not_known_lacks_nothing() {
    let mut in_common = InCommon::default();
    add(&mut in_common, 0, &[9, 8, 6, 4, 3], 100);
    add(&mut in_common, 1, &[9, 8, 4, 1], 100);
    assert_eq!(in_common.lacking(|list| list != 1), None);
}
