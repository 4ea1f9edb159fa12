//! Lists of one block, which end with a look at their first page.

use super::*;

#[test]
fn list_of_one_block_ends_with_a_look_at_its_first_page() {
    for (first, pages, is_same) in [
        (&[1, 2, 3][..], 2, true),
        (&[2, 1, 3], 2, false),
        (&[1, 2, 4], 2, false),
        (&[1, 2], 2, false),
        (&[], 2, false),
        // The block has more records by now.
        (&[1, 2, 3], 3, false),
    ] {
        let mut audit = ListAudit::new(ONE_BLOCK, 0, &[]);
        take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
        take(&mut audit, 2, &keys(&[4, 5]), 2).unwrap();
        assert_eq!(look(&mut audit, &keys(first), pages).is_ok(), is_same, "{first:?} {pages}");
        assert!(!audit.is_open(&WHOLE));
    }
}

#[test]
fn resumed_list_of_one_block_is_compared_with_the_records_before_its_cursor() {
    for (shown, is_same) in [(&[2, 3, 4][..], true), (&[3, 2, 4], false), (&[9, 9, 9], false)] {
        let mut audit = ListAudit::new(ONE_BLOCK, 4, &[3, 4]);
        take(&mut audit, 3, &keys(&[5, 6]), 3).unwrap();
        assert_eq!(look(&mut audit, &keys(shown), 3).is_ok(), is_same, "{shown:?}");
    }
}

#[test]
fn response_with_more_records_than_the_list_of_one_block_is_a_contradiction() {
    let mut audit = ListAudit::new(ONE_BLOCK, 0, &[]);
    for (page, key) in [(1, 1), (2, 2)] {
        take(&mut audit, page, &keys(&[key]), 2).unwrap();
    }
    look(&mut audit, &keys(&[1]), 2).unwrap();
    audit.on_end(&WHOLE).unwrap();
    let whole = PageRequest { purpose: Purpose::Audit, ..PageRequest::first(6) };
    let below = take_as(&mut audit, whole, &keys(&[1, 2, 3]), 1, None, 0..0).unwrap_err();
    assert_eq!(below, "a record follows the last one of the list");
    take_as(&mut audit, whole, &keys(&[3, 1, 2]), 1, None, 0..0).unwrap();
    assert_eq!(audit.on_end(&WHOLE).unwrap_err(), "the list has more records than were returned");
}
