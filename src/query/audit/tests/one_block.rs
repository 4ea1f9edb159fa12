//! Lists of one block, which end with a look at their first page.

use super::*;

#[test]
fn list_of_one_block_ends_with_a_look_at_its_first_page() {
    // The look has all five records on one page, so that a sixth is a page more.
    for (first, pages, is_same) in [
        (&[1, 2, 3, 4, 5][..], 1, true),
        (&[2, 1, 3, 4, 5], 1, false),
        (&[1, 2, 6, 4, 5], 1, false),
        // The look shows records of later pages as well.
        (&[1, 2, 3, 4, 6], 1, false),
        (&[1, 2, 3, 5, 4], 1, false),
        (&[1, 2], 1, false),
        (&[], 1, false),
        (&[1, 2, 3, 4, 5], 2, false),
        // The service has pages of one size.
        (&[1, 2, 3], 2, true),
    ] {
        let mut audit = ListAudit::new(ONE_BLOCK, 0, &[]);
        take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
        take(&mut audit, 2, &keys(&[4, 5]), 2).unwrap();
        assert_eq!(look(&mut audit, &keys(first), pages).is_ok(), is_same, "{first:?} {pages}");
        assert!(!audit.is_open(&WHOLE));
    }
}

#[test]
fn one_block_with_small_pages_is_looked_at_for_its_length() {
    let read = |rows: &[u64]| {
        let mut audit = ListAudit::new(ONE_BLOCK, 0, &[]);
        take(&mut audit, 1, &keys(&[1, 2]), 2).unwrap();
        take(&mut audit, 2, &keys(rows), 2).unwrap();
        audit
    };
    let end = End { page_rows: 2, ..WHOLE };
    let look = |audit: &mut ListAudit, rows: &Page, pages| {
        let request = audit.next_request(&end).expect("something is to be proven");
        take_as(audit, request, rows, pages, None, 0..0)
    };
    let mut whole = read(&[3, 4]);
    look(&mut whole, &keys(&[1, 2]), 2).unwrap();
    look(&mut whole, &keys(&[1]), 4).unwrap();
    assert!(!whole.is_open(&end));
    // The pages are counted as if they had three records, or lack some.
    for rows in [&[3, 4][..], &[3]] {
        let mut short = read(rows);
        look(&mut short, &keys(&[1, 2]), 2).unwrap();
        assert!(look(&mut short, &keys(&[1]), 5).unwrap_err().contains("another number of records"));
    }
    // The service has pages of one size: what follows the last full one?
    for (below, is_end) in [(&[][..], true), (&[5, 6], false)] {
        let mut fixed = read(&[3, 4]);
        look(&mut fixed, &keys(&[1, 2]), 2).unwrap();
        look(&mut fixed, &keys(&[1, 2]), 5).unwrap();
        assert_eq!(look(&mut fixed, &keys(below), 2).is_ok(), is_end, "{below:?}");
    }
}

#[test]
fn only_page_that_is_full_by_a_small_size_is_looked_beyond() {
    let end = End { page_rows: 2, ..WHOLE };
    for (total, rows, is_open) in [(None, &[1, 2][..], true), (Some(2), &[1, 2], false), (None, &[1], false)] {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        take_as(&mut audit, PageRequest::first(3), &keys(rows), 1, total, 0..rows.len()).unwrap();
        assert_eq!(audit.is_open(&end), is_open, "{total:?} {rows:?}");
    }
}

#[test]
fn one_block_that_is_continued_at_its_end_is_looked_at_as_well() {
    let first_page = || vec![(0, 1), (1, 2)];
    for (first, is_same) in [(&[1, 2, 3, 4][..], true), (&[2, 1, 3, 4], false), (&[1, 2, 9, 4], false)] {
        let mut audit = ListAudit::new(ONE_BLOCK, 4, &[3, 4]).after_first_page(first_page(), 0);
        look(&mut audit, &keys(&[4]), 2).unwrap();
        assert_eq!(look(&mut audit, &keys(first), 1).is_ok(), is_same, "{first:?}");
        assert!(!audit.is_open(&WHOLE));
    }
}

#[test]
fn records_after_a_cursor_are_compared_with_a_look_that_shows_them() {
    for (shown, is_same) in [(&[1, 2, 3, 4][..], true), (&[1, 2, 4, 3], false), (&[1, 2, 3, 9], false)] {
        let mut audit = ListAudit::new(ONE_BLOCK, 2, &[2]).after_first_page(vec![(0, 1), (1, 2)], 0);
        take_as(&mut audit, PageRequest { page: 2, ..PageRequest::first(2) }, &keys(&[3, 4]), 2, None, 0..2).unwrap();
        look(&mut audit, &keys(&[1, 2]), 2).unwrap();
        assert_eq!(look(&mut audit, &keys(shown), 1).is_ok(), is_same, "{shown:?}");
    }
}

#[test]
fn resumed_list_of_one_block_is_compared_with_the_records_before_its_cursor() {
    for (shown, is_same) in [
        (&[4, 5, 6][..], true),
        (&[3, 5, 6], false),
        (&[9, 9, 9], false),
        // Records after the cursor are on its page as well.
        (&[4, 6, 5], false),
        (&[4, 5, 9], false),
    ] {
        let mut audit = ListAudit::new(ONE_BLOCK, 4, &[3, 4]);
        take(&mut audit, 2, &keys(&[5, 6]), 3).unwrap();
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
    take_as(&mut audit, whole, &keys(&[3, 1, 2]), 1, None, 0..0).unwrap_err();
    assert_eq!(audit.on_end(&WHOLE).unwrap_err(), "the list has more records than were returned");
}

#[test]
fn record_of_a_block_that_only_a_discarded_reading_received_is_a_contradiction() {
    let read = |rows: &[u64], block: u64| {
        let mut audit = ListAudit::new(ONE_BLOCK, 0, &[]);
        take(&mut audit, 1, &Page(rows.iter().map(|key| (*key, 7, block)).collect()), 1).unwrap();
        audit
    };
    for (rows, block, is_same) in [(&[2, 3][..], 1, false), (&[1, 2, 3], 1, true), (&[2, 3], 2, true)] {
        let audit = read(rows, block).after_discarded(read(&[1, 2, 3], 1));
        assert_eq!(audit.on_end(&WHOLE).is_ok(), is_same, "{rows:?} {block}");
        // A reading in between received nothing of the block.
        let between = read(&[8], 9).after_discarded(read(&[1, 2, 3], 1));
        assert_eq!(read(rows, block).after_discarded(between).on_end(&WHOLE).is_ok(), is_same, "{rows:?} {block}");
    }
}

#[test]
fn latest_records_before_a_cursor_may_be_on_several_pages() {
    for (shown, is_same) in [(&[4][..], true), (&[3], false), (&[], false)] {
        let mut audit = ListAudit::new(ONE_BLOCK, 4, &[1, 2, 3, 4]).after_first_page(vec![(0, 1)], 0);
        assert_eq!(look(&mut audit, &keys(shown), 2).is_ok(), is_same, "{shown:?}");
    }
}
