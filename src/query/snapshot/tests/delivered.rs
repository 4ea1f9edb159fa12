//! The delivered records, and where a page overlaps them.

use super::super::delivered::{Delivered, SharedRows};

#[test]
fn latest_keys_are_kept_with_their_number() {
    let mut delivered = Delivered::of(vec![1, 2, 1]);
    for (next, kept) in [(3, [2, 1, 3]), (4, [1, 3, 4]), (5, [3, 4, 5])] {
        delivered.push([next].into_iter(), 3);
        assert_eq!(delivered.keys(), kept);
    }
    assert_eq!((delivered.base(), delivered.end(), delivered.last()), (3, 6, Some(5)));
    delivered.push([6, 7].into_iter(), 0);
    assert_eq!((delivered.end(), delivered.keys().len()), (8, 3));
}

#[test]
fn boundary_is_the_first_record_of_the_latest_run() {
    for (keys, boundary, record) in [
        (&[][..], None, None),
        (&[1, 1], None, None),
        (&[1, 2], Some(2), Some((1, 2))),
        (&[1, 2, 2], Some(3), Some((1, 2))),
    ] {
        let delivered = Delivered::of(keys.to_vec());
        assert_eq!((delivered.boundary(), delivered.boundary_record()), (boundary, record), "{keys:?}");
    }
}

#[test]
fn overlap_is_certain_by_two_different_keys_or_by_one_that_occurs_once() {
    for (keys, page, offset, shared) in [
        ([1, 2, 3], [2, 3, 4], 1, SharedRows::Distinct),
        ([1, 2, 3], [3, 4, 5], 2, SharedRows::Unique),
        ([1, 2, 3], [3, 3, 5], 2, SharedRows::Repeated),
        ([1, 3, 3], [3, 4, 5], 2, SharedRows::Repeated),
        // The page begins above the records whose keys are known.
        ([1, 2, 3], [9, 1, 2], -1, SharedRows::Distinct),
    ] {
        let overlaps: Vec<_> = Delivered::of(keys.to_vec()).overlaps(&page, usize::MAX).collect();
        assert_eq!(overlaps, [(offset, shared)], "{keys:?} {page:?}");
    }
}

#[test]
fn records_above_the_overlap_may_have_been_replaced() {
    for (min_equal, expected) in [(3, None), (2, Some((0, SharedRows::Distinct))), (1, Some((0, SharedRows::Distinct)))]
    {
        let overlap = Delivered::of(vec![1, 2, 3]).overlaps(&[9, 2, 3, 4], min_equal).next();
        assert_eq!(overlap, expected, "{min_equal}");
    }
    assert_eq!(Delivered::of(vec![1, 2, 3]).overlaps(&[8, 9, 3], 1).next(), Some((0, SharedRows::Unique)));
}

#[test]
fn records_of_a_checkpoint_include_two_different_ones_unless_too_many_are_equal() {
    for (keys, latest) in [
        (&[4, 3, 2, 1][..], &[2, 1][..]),
        (&[3, 2, 2, 2], &[3, 2, 2, 2]),
        (&[3, 2], &[3, 2]),
        (&[4, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3], &[3; 16]),
    ] {
        let delivered = Delivered::of(keys.to_vec()).latest(2);
        assert_eq!((delivered.keys(), delivered.end()), (latest, keys.len() as u64));
    }
}
