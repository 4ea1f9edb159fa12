//! The delivered records, and where a page overlaps them.

use super::super::delivered::{Delivered, Shared, latest_runs};

fn delivered(max_keys: usize, keys: &[u64]) -> Delivered {
    let mut delivered = Delivered::new(max_keys);
    delivered.push(keys.iter().copied());
    delivered
}

#[test]
fn latest_keys_are_kept_with_their_number() {
    let mut delivered = delivered(3, &[1, 2, 1]);
    for (next, kept, has_first) in [(3, [2, 1, 3], true), (4, [1, 3, 4], true), (5, [3, 4, 5], false)] {
        delivered.push([next].into_iter());
        assert_eq!((delivered.keys().collect::<Vec<_>>(), delivered.contains(1)), (kept.to_vec(), has_first));
    }
    assert_eq!((delivered.base(), delivered.end()), (3, 6));
}

#[test]
fn boundary_is_the_first_record_of_the_latest_run() {
    for (keys, boundary, record) in [
        (&[][..], None, None),
        (&[1, 1], None, None),
        (&[1, 2], Some(2), Some((1, 2))),
        (&[1, 2, 2], Some(3), Some((1, 2))),
    ] {
        let delivered = delivered(8, keys);
        assert_eq!((delivered.boundary(), delivered.boundary_record()), (boundary, record), "{keys:?}");
    }
}

#[test]
fn overlap_is_certain_by_two_different_keys_or_by_one_that_occurs_once() {
    for (keys, page, offset, shared) in [
        ([1, 2, 3], [2, 3, 4], 1, Shared::Distinct),
        ([1, 2, 3], [3, 4, 5], 2, Shared::Unique),
        ([1, 2, 3], [3, 3, 5], 2, Shared::Repeated),
        ([1, 3, 3], [3, 4, 5], 2, Shared::Repeated),
    ] {
        let overlaps: Vec<_> = delivered(8, &keys).overlaps(&page).collect();
        assert_eq!(overlaps, [(offset, shared)], "{keys:?} {page:?}");
    }
}

#[test]
fn latest_runs_have_two_different_keys() {
    let runs = |keys: &[u64]| latest_runs(keys.iter().map(|key| (*key, 1)), 2);
    assert_eq!(runs(&[3, 2, 2, 1]), [(2, 2), (3, 1)]);
    assert_eq!(runs(&[5, 5, 5, 4, 3]), [(4, 1), (5, 3)]);
}
