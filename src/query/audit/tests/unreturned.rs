//! Records that were received and not returned.

use super::*;

/// The audit of a list of which the records 1 to 3 were returned. Another response showed 4 and 5 below them.
fn audit_of_unreturned() -> ListAudit {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
    let request = PageRequest { page: 2, ..PageRequest::first(3) };
    take_as(&mut audit, request, &keys(&[4, 5]), 2, None, 0..1).unwrap();
    audit
}

#[test]
fn unreturned_record_is_requested_with_the_one_above_it() {
    // Records 4 and 5 have offsets 3 and 4.
    let request = audit_of_unreturned().next_request(&WHOLE).expect("a request");
    assert_eq!((3 / request.limit, 4 / request.limit), (request.page - 1, request.page - 1));
}

#[test]
fn unreturned_record_that_is_there_raises() {
    let looked = look(&mut audit_of_unreturned(), &keys(&[4, 5]), 2);
    assert!(looked.unwrap_err().contains("records follow the last one"));
}

#[test]
fn unreturned_record_that_was_deleted_is_dropped() {
    let mut audit = audit_of_unreturned();
    look(&mut audit, &keys(&[4]), 1).unwrap();
    assert!(!audit.is_open(&WHOLE));
}

#[test]
fn record_that_is_gone_below_a_returned_one_of_its_chain_is_a_reason() {
    let cases = [(4, true, true), (5, true, true), (6, true, false), (4, false, true), (6, false, true)];
    for (lowest, drops_oldest, is_doubted) in cases {
        let mut audit = ListAudit::new(Subject { drops_oldest, ..LIST }, 0, &[]);
        take(&mut audit, 1, &Page(vec![(1, 8, 8), (2, 6, 6), (3, lowest, 1)]), 1).unwrap();
        let request = PageRequest::first(3);
        take_as(&mut audit, request, &Page(vec![(2, 6, 6), (9, 5, 5)]), 1, None, 0..0).unwrap();
        look(&mut audit, &Page(vec![(2, 6, 6), (3, lowest, 1)]), 1).unwrap();
        assert!(!audit.is_open(&WHOLE));
        // A list of the last year that ends above the record has dropped it.
        let is_missed = doubts(&audit).contains("showed a record of height 5 below");
        assert_eq!(is_missed, is_doubted, "{lowest} {drops_oldest}");
    }
}

#[test]
fn record_that_only_a_discarded_reading_returned_below_one_of_its_chain_is_a_reason() {
    let mut discarded = ListAudit::new(LIST, 0, &[]);
    take(&mut discarded, 1, &Page(vec![(1, 8, 8), (2, 6, 6), (9, 5, 5)]), 2).unwrap();
    let mut audit = ListAudit::new(LIST, 0, &[]).after_discarded(discarded);
    let rows = Page(vec![(1, 8, 8), (2, 6, 6), (3, 4, 4)]);
    take(&mut audit, 1, &rows, 1).unwrap();
    look(&mut audit, &rows, 1).unwrap();
    assert!(!audit.is_open(&WHOLE));
    assert!(doubts(&audit).contains("showed a record of height 5 below"));
}

#[test]
fn record_that_a_discarded_reading_returned_of_a_block_is_a_reason() {
    let read = |mut audit: ListAudit, pages: [&[_]; 2]| {
        for (number, rows) in (1..).zip(pages) {
            take(&mut audit, number, &Page(rows.to_vec()), 2).unwrap();
        }
        audit
    };
    let first: &[_] = &[(1, 8, 8), (2, 7, 7), (4, 6, 6)];
    // The record is the first one of its page, below one of another block, or of its own.
    for (block, is_there) in [(5, true), (50, false)] {
        let discarded = read(ListAudit::new(LIST, 0, &[]), [first, &[(9, 5, 5), (10, 5, 5), (11, 4, 4)]]);
        let again = ListAudit::new(LIST, 0, &[]).after_discarded(discarded);
        let mut audit = read(again, [first, &[(10, 5, block), (11, 4, 4)]]);
        while audit.is_open(&WHOLE) {
            look(&mut audit, &Page([first, &[(10, 5, block), (11, 4, 4)]].concat()), 1).unwrap();
        }
        // A reorganization may have replaced the block.
        assert_eq!(doubts(&audit).contains("of height 5 that was not returned with the others of its block"), is_there);
    }
}

#[test]
fn list_of_which_a_discarded_reading_received_records_is_not_empty() {
    // The reader returns none of them before it knows the length.
    let mut discarded = ListAudit::new(LIST, 0, &[]);
    take_as(&mut discarded, PageRequest::first(3), &keys(&[1, 2, 3]), 2, None, 0..0).unwrap();
    let mut audit = ListAudit::new(LIST, 0, &[]).after_discarded(discarded);
    take(&mut audit, 1, &keys(&[]), 0).unwrap();
    while audit.is_open(&WHOLE) {
        look(&mut audit, &keys(&[]), 0).unwrap();
    }
    assert_eq!(audit.on_end(&WHOLE).unwrap_err(), "the list became empty while it was read");
}

#[test]
fn unreturned_record_whose_place_no_response_shows_raises() {
    let mut audit = audit_of_unreturned();
    (0..7).for_each(|_| look(&mut audit, &keys(&[8, 1, 2]), 2).unwrap());
    assert!(look(&mut audit, &keys(&[8, 1, 2]), 2).unwrap_err().contains("records follow the last one"));
}

#[test]
fn unreturned_record_whose_place_returned_ones_have_is_dropped() {
    let mut audit = audit_of_unreturned();
    for rows in [[1, 2], [3, 4], [1, 2]] {
        look(&mut audit, &keys(&rows), 9).unwrap();
    }
    // The end that was shown is not there any more.
    look(&mut audit, &keys(&[4]), 2).unwrap();
    assert!(!audit.is_open(&WHOLE));
}

#[test]
fn unreturned_record_that_is_further_down_raises() {
    let mut audit = audit_of_unreturned();
    look(&mut audit, &keys(&[1, 2, 3]), 9).unwrap();
    assert!(look(&mut audit, &keys(&[4, 5]), 9).unwrap_err().contains("records follow the last one"));
}

const BEGINNING: End = End { extent: Extent::Beginning, ..WHOLE };

#[test]
fn unreturned_record_below_the_wanted_beginning_is_not_looked_for() {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
    take_as(&mut audit, PageRequest::first(4), &keys(&[1, 2, 3, 4]), 2, None, 0..0).unwrap();
    assert!(audit.is_open(&WHOLE) && !audit.is_open(&BEGINNING));
    // More records were received than are wanted.
    let mut audit = ListAudit::new(Subject { wanted: Some(2), ..LIST }, 0, &[]);
    take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
    take_as(&mut audit, PageRequest::first(4), &keys(&[1, 2, 9, 3]), 2, None, 0..0).unwrap();
    assert!(!audit.is_open(&BEGINNING));
}

#[test]
fn unreturned_record_among_those_of_a_beginning_is_looked_for() {
    let read = || {
        let mut audit = ListAudit::new(Subject { wanted: Some(3), ..LIST }, 0, &[]);
        take(&mut audit, 1, &Page(vec![(1, 8, 8), (2, 6, 6), (3, 4, 4), (4, 3, 3)]), 2).unwrap();
        let shown = Page(vec![(2, 6, 6), (9, 5, 5), (3, 4, 4)]);
        take_as(&mut audit, PageRequest::first(3), &shown, 2, None, 0..0).unwrap();
        audit
    };
    let look = |audit: &mut ListAudit, rows: &[(u64, i64, u64)]| {
        let request = audit.next_request(&BEGINNING).expect("a request");
        take_as(audit, request, &Page(rows.to_vec()), 2, None, 0..0)
    };
    let shown = look(&mut read(), &[(1, 8, 8), (2, 6, 6), (9, 5, 5), (3, 4, 4)]).unwrap_err();
    assert_eq!(shown, "a record that responses showed between returned ones was not returned");
    // Records below the wanted ones need not be returned.
    let mut removed = read();
    look(&mut removed, &[(1, 8, 8), (2, 6, 6), (3, 4, 4), (7, 3, 3)]).unwrap();
    assert!(!removed.is_open(&BEGINNING));
    assert!(doubts(&removed).contains("showed a record of height 5 below"));
}

#[test]
fn record_below_an_equal_one_after_the_wanted_beginning_is_not_looked_for() {
    // The fifth record equals the first one, and the sixth is not wanted.
    let list = [(1, 8, 8), (2, 8, 8), (3, 8, 8), (4, 7, 7), (1, 8, 8), (5, 8, 8)];
    let wanted = Subject { wanted: Some(3), ..LIST };
    let shown = |audit: &mut ListAudit| {
        take_as(audit, PageRequest { page: 2, ..PageRequest::first(3) }, &Page(list[3..].to_vec()), 2, None, 0..0)
    };
    let mut audit = ListAudit::new(wanted, 0, &[]);
    shown(&mut audit).unwrap();
    take(&mut audit, 1, &Page(list[..3].to_vec()), 2).unwrap();
    assert!(!audit.is_open(&BEGINNING));
    let mut discarded = ListAudit::new(wanted, 0, &[]);
    shown(&mut discarded).unwrap();
    let mut audit = ListAudit::new(wanted, 0, &[]).after_discarded(discarded);
    take(&mut audit, 1, &Page(list[..3].to_vec()), 2).unwrap();
    assert!(!audit.is_open(&BEGINNING));
    // An earlier run has returned all that is wanted.
    let mut audit = ListAudit::new(wanted, 3, &[1, 2, 3]);
    take_as(&mut audit, PageRequest::first(6), &Page(list.to_vec()), 2, None, 3..4).unwrap();
    assert!(!audit.is_open(&BEGINNING));
    // A look for another record shows them.
    let mut audit = ListAudit::new(wanted, 0, &[]);
    take_as(&mut audit, PageRequest::first(3), &Page(vec![list[0], (9, 8, 8), list[1]]), 2, None, 0..0).unwrap();
    take(&mut audit, 1, &Page(list[..3].to_vec()), 2).unwrap();
    let request = audit.next_request(&BEGINNING).expect("a record followed the first one");
    take_as(&mut audit, request, &Page(list.to_vec()), 2, None, 0..0).unwrap();
    assert!(!audit.is_open(&BEGINNING));
}

#[test]
fn page_of_another_list_that_was_received_and_not_returned_is_looked_for() {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
    let request = PageRequest { page: 2, ..PageRequest::first(3) };
    take_as(&mut audit, request, &keys(&[4, 5, 6]), 2, None, 0..1).unwrap();
    take(&mut audit, 2, &keys(&[7, 8]), 2).unwrap();
    assert!(look(&mut audit, &keys(&[3, 4, 5]), 1).unwrap_err().contains("records follow the last one"));
}

#[test]
fn unreturned_record_among_returned_ones_is_looked_for() {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
    let request = PageRequest { page: 2, ..PageRequest::first(4) };
    take_as(&mut audit, request, &keys(&[2, 9, 3, 4]), 2, None, 3..4).unwrap();
    assert!(look(&mut audit, &keys(&[1, 2, 9, 3]), 2).unwrap_err().contains("records follow the last one"));
}

#[test]
fn newer_records_above_returned_ones_are_not_looked_for() {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
    take_as(&mut audit, PageRequest::first(6), &keys(&[8, 9, 1, 2, 3, 4]), 1, None, 5..6).unwrap();
    assert!(!audit.is_open(&WHOLE));
}

#[test]
fn records_that_another_list_showed_are_lacking_unless_an_earlier_run_may_have_returned_them() {
    let mut audit = ListAudit::new(ONE_BLOCK, 0, &[]);
    take(&mut audit, 1, &keys(&[1, 2]), 1).unwrap();
    assert!(!audit.lacks([1, 2].into_iter()) && audit.lacks([1, 3].into_iter()));
    assert!(!ListAudit::new(ONE_BLOCK, 9, &[1]).lacks([3].into_iter()));
}

#[test]
fn newer_records_below_a_newer_one_that_equals_a_returned_one_are_not_looked_for() {
    let list = [(1, 8, 8), (2, 8, 8), (3, 7, 7), (4, 6, 6)];
    // Record 1 comes again, and a new one below it.
    let grown = [&[(1, 8, 8), (9, 8, 8)], &list[..]].concat();
    let mut audit = ListAudit::new(Subject { wanted: Some(4), ..LIST }, 0, &[]);
    take(&mut audit, 1, &Page(list.to_vec()), 2).unwrap();
    take_as(&mut audit, PageRequest::first(6), &Page(grown.clone()), 2, None, 0..0).unwrap();
    assert!(!audit.is_open(&BEGINNING) && !audit.is_open(&WHOLE));
    // The look for another record shows them.
    take_as(&mut audit, PageRequest::first(6), &Page(vec![(3, 7, 7), (5, 7, 7), (4, 6, 6)]), 1, None, 0..0).unwrap();
    let request = audit.next_request(&BEGINNING).expect("record 5 may be missing");
    take_as(&mut audit, request, &Page(grown), 2, None, 0..0).unwrap();
    assert!(!audit.is_open(&BEGINNING));
    // A record of a lower height is not newer.
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &Page(list.to_vec()), 1).unwrap();
    let shown = Page(vec![(1, 8, 8), (1, 8, 8), (9, 7, 7)]);
    take_as(&mut audit, PageRequest::first(6), &shown, 1, None, 0..0).unwrap();
    assert!(audit.is_open(&WHOLE));
}

/// The audit of the records 1 to 4. A response between the pages began with record 9, above record 3.
fn audit_of_first_row(height: i64) -> ListAudit {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &Page(vec![(1, 9, 9), (2, 8, 8)]), 2).unwrap();
    take_as(&mut audit, PageRequest::first(2), &Page(vec![(9, height, 60), (3, 6, 60)]), 2, None, 0..0).unwrap();
    take(&mut audit, 2, &Page(vec![(3, 6, 60), (4, 5, 5)]), 2).unwrap();
    audit
}

#[test]
fn first_record_of_a_response_that_belongs_between_returned_ones_is_looked_for() {
    let mut audit = audit_of_first_row(6);
    let shown = look(&mut audit, &Page(vec![(1, 9, 9), (9, 6, 60), (3, 6, 60)]), 1);
    assert!(shown.unwrap_err().contains("a record that was not returned is below a returned one"));
    // Nothing is above it.
    let shown = look(&mut audit_of_first_row(6), &Page(vec![(9, 6, 60), (3, 6, 60)]), 1);
    assert!(shown.unwrap_err().contains("with the others of its block"));
    // The list does not show it any more, although it has the block.
    let mut audit = audit_of_first_row(6);
    look(&mut audit, &Page(vec![(2, 8, 8), (3, 6, 60)]), 1).unwrap();
    assert!(!audit.is_open(&WHOLE) && doubts(&audit).contains("showed a record of height 6 below"));
    // A newer one need not be returned.
    assert!(!audit_of_first_row(9).is_open(&WHOLE));
}

#[test]
fn first_record_of_a_response_between_two_of_the_same_chain_is_missed() {
    let of_block = |height, block| {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        take(&mut audit, 1, &Page(vec![(1, 9, 9), (2, 8, 8)]), 2).unwrap();
        let shown = Page(vec![(9, height, block), (3, 6, 6)]);
        take_as(&mut audit, PageRequest::first(2), &shown, 2, None, 0..0).unwrap();
        take(&mut audit, 2, &Page(vec![(3, 6, 6), (4, 5, 5)]), 2).unwrap();
        audit
    };
    let mut audit = of_block(7, 7);
    look(&mut audit, &Page(vec![(2, 8, 8), (3, 6, 6)]), 1).unwrap();
    assert!(doubts(&audit).contains("showed a record of height 7 below"));
    // A response that shows no record above says nothing of its chain.
    let mut audit = of_block(7, 7);
    look(&mut audit, &Page(vec![(5, 8, 80), (3, 6, 6)]), 1).unwrap();
    assert!(!audit.is_open(&WHOLE) && doubts(&audit).is_empty());
}

#[test]
fn record_of_a_response_that_contradicted_others_is_looked_for_by_the_next_reading() {
    let reject = |audit: &mut ListAudit, rows: &Page| {
        let response = Response { rows, page: None, limit: None, total_pages: None, total: None };
        audit.on_rejected(&PageRequest::first(3), &response, None);
    };
    let mut discarded = ListAudit::new(LIST, 0, &[]);
    reject(&mut discarded, &Page(vec![(1, 8, 8), (9, 7, 7), (2, 6, 6)]));
    let mut audit = ListAudit::new(LIST, 0, &[]).after_discarded(discarded);
    let rows = Page(vec![(1, 8, 8), (2, 6, 6)]);
    take(&mut audit, 1, &rows, 1).unwrap();
    look(&mut audit, &rows, 1).unwrap();
    assert!(doubts(&audit).contains("showed a record of height 7 below"));
    let mut discarded = ListAudit::new(ONE_BLOCK, 0, &[]);
    reject(&mut discarded, &keys(&[1, 2, 3]));
    let mut audit = ListAudit::new(ONE_BLOCK, 0, &[]).after_discarded(discarded);
    take(&mut audit, 1, &keys(&[1, 3]), 1).unwrap();
    assert!(audit.on_end(&WHOLE).unwrap_err().contains("received by a reading that was discarded"));
}

#[test]
fn record_of_the_last_height_that_a_discarded_reading_received_is_looked_for() {
    let wanted = Subject { wanted: Some(3), ..LIST };
    let read = || {
        let mut discarded = ListAudit::new(wanted, 0, &[]);
        take(&mut discarded, 1, &keys(&[1, 9, 2]), 2).unwrap();
        let mut audit = ListAudit::new(wanted, 0, &[]).after_discarded(discarded);
        take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
        audit
    };
    let look = |audit: &mut ListAudit, rows: &Page| {
        let request = audit.next_request(&BEGINNING).expect("a request");
        take_as(audit, request, rows, 2, None, 0..0)
    };
    assert!(look(&mut read(), &keys(&[1, 9, 2, 3])).unwrap_err().contains("between returned ones"));
    let mut gone = read();
    look(&mut gone, &keys(&[1, 2, 3, 4])).unwrap();
    assert!(!gone.is_open(&BEGINNING) && doubts(&gone).contains("showed a record of height 7 below"));
}

#[test]
fn record_of_a_response_that_contradicted_others_is_looked_for_after_the_end() {
    let mut discarded = ListAudit::new(LIST, 0, &[]);
    let rows = heights(&[6]);
    let response = Response { rows: &rows, page: None, limit: None, total_pages: None, total: None };
    discarded.on_rejected(&PageRequest { page: 2, ..PageRequest::first(3) }, &response, None);
    let mut audit = ListAudit::new(LIST, 0, &[]).after_discarded(discarded);
    take(&mut audit, 1, &heights(&[9, 8, 7]), 1).unwrap();
    assert!(look(&mut audit, &rows, 2).unwrap_err().contains("before records that an earlier response showed"));
}

#[test]
fn record_that_was_not_returned_with_the_others_of_its_block_is_missed() {
    let read = |subject| {
        let mut audit = ListAudit::new(subject, 0, &[]);
        take(&mut audit, 1, &Page(vec![(1, 9, 90), (2, 8, 80), (3, 7, 70)]), 1).unwrap();
        audit
    };
    let again = |subject, discarded: ListAudit| {
        let mut audit = ListAudit::new(subject, 0, &[]).after_discarded(discarded);
        take(&mut audit, 1, &Page(vec![(1, 9, 90), (2, 8, 80), (3, 7, 70)]), 1).unwrap();
        audit
    };
    let by_height = Subject { has_blocks: false, ..LIST };
    // The first and the last block may have other records; those of the first one are no newer than another reading. A block
    // that was replaced has other records.
    let cases = [
        ((9, 8, 80), true, true, true),
        ((9, 8, 81), false, true, false),
        ((9, 9, 90), false, false, true),
        ((9, 7, 70), false, false, false),
    ];
    for (row, is_missed, is_missed_by_height, is_missed_again) in cases {
        for (subject, is_missed) in [(LIST, is_missed), (by_height, is_missed_by_height)] {
            let shown = Page(vec![row]);
            let mut audit = read(subject);
            take_as(&mut audit, PageRequest::first(3), &shown, 1, None, 0..0).unwrap();
            assert_eq!(doubts(&audit).contains("with the others of its block"), is_missed, "{row:?}");
            let is_doubted_again = doubts(&again(subject, audit)).contains("with the others of its block");
            assert_eq!(is_doubted_again, subject.has_blocks && is_missed_again, "{row:?}");
            let looked = take_as(&mut read(subject), PageRequest::of_audit(1, 1), &shown, 1, None, 0..0);
            assert_eq!(looked.is_err(), is_missed, "{row:?}");
        }
    }
}
