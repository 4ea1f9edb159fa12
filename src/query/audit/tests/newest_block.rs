//! Records of the newest block that a discarded reading of the list has received. Those that a response shows above the returned
//! ones may be newer, unless they were received before.

use super::*;

const BELOW: (u64, i64, u64) = (3, 8, 8);

/// A reading that takes the place of one that received these rows, and returned them or not.
fn after(rows: &Page, returned: std::ops::Range<usize>) -> ListAudit {
    let mut discarded = ListAudit::new(LIST, 0, &[]);
    take_as(&mut discarded, PageRequest::first(3), rows, 1, None, returned).unwrap();
    ListAudit::new(LIST, 0, &[]).after_discarded(discarded)
}

fn read(audit: &mut ListAudit, rows: &Page) {
    take(audit, 1, rows, 1).unwrap();
    while audit.is_open(&WHOLE) {
        look(audit, rows, 1).unwrap();
    }
}

#[test]
fn first_record_that_a_discarded_reading_returned_is_missed_among_others_of_its_block() {
    for (top, is_missed) in [((1, 9, 9), true), ((2, 9, 9), false), ((1, 9, 7), false)] {
        let mut audit = after(&Page(vec![top, BELOW]), 0..2);
        read(&mut audit, &Page(vec![(2, 9, 9), BELOW]));
        assert_eq!(audit.on_end(&WHOLE).is_err(), is_missed, "{top:?}");
    }
}

#[test]
fn blocks_that_a_discarded_reading_returned_are_not_missed() {
    let mut discarded = ListAudit::new(BLOCKS, 0, &[]);
    take(&mut discarded, 1, &heights(&[9, 8, 7]), 1).unwrap();
    let mut audit = ListAudit::new(BLOCKS, 0, &[]).after_discarded(discarded);
    take(&mut audit, 1, &heights(&[9, 8, 7]), 1).unwrap();
    assert_eq!(audit.on_end(&WHOLE), Ok(()));
}

#[test]
fn record_that_a_discarded_reading_received_is_missed_among_others_of_its_block() {
    let rows = Page(vec![(1, 9, 9), (2, 9, 9), BELOW]);
    let returned = Page(vec![(2, 9, 9), BELOW]);
    let mut audit = after(&rows, 0..0);
    take(&mut audit, 1, &returned, 1).unwrap();
    assert!(audit.is_open(&WHOLE));
    assert!(look(&mut audit, &rows, 1).is_err());

    let mut gone = after(&rows, 0..0);
    read(&mut gone, &returned);
    assert!(doubts(&gone).contains("height 9"), "{}", doubts(&gone));
}

#[test]
fn record_that_was_received_before_the_first_page_was_requested_is_missed_among_others_of_its_block() {
    for (taken_before, is_missed) in [(1, true), (0, false)] {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        // No record is above it or below it that shows its place.
        take_as(&mut audit, PageRequest::first(1), &Page(vec![(1, 9, 9)]), 3, None, 0..0).unwrap();
        let rows = Page(vec![(2, 9, 9), BELOW]);
        let response = Response { rows: &rows, page: None, limit: None, total_pages: Some(1), total: None };
        let seen = ReaderState { taken_before, ..ReaderState::default() };
        let returned = AcceptedRows { rows: 0..2, kept: None, seen };
        audit.on_response(&PageRequest::first(3), &response, &returned).unwrap();
        assert_eq!(doubts(&audit).contains("showed a record of height 9"), is_missed, "{}", doubts(&audit));
    }
}

#[test]
fn record_directly_above_a_returned_one_is_newer_only_if_that_is_the_first_one() {
    let unique = Subject { has_unique_keys: true, ..LIST };
    for (subject, below, is_missed) in [(unique, 2, true), (unique, 1, false), (LIST, 2, false)] {
        let mut audit = ListAudit::new(subject, 0, &[]);
        take(&mut audit, 1, &Page(vec![(1, 9, 9), (2, 9, 9), BELOW]), 1).unwrap();
        take_as(&mut audit, PageRequest::first(3), &Page(vec![(5, 9, 9), (below, 9, 9)]), 1, None, 0..0).unwrap();
        assert_eq!(audit.is_open(&WHOLE), is_missed, "{subject:?} {below}");
    }
}

#[test]
fn record_above_one_that_contradicts_the_arguments_may_be_newer() {
    let mut audit = ListAudit::new(Subject { has_unique_keys: true, ..LIST }, 0, &[]);
    let rows = Page(vec![(1, 9, 9), (2, 9, 9), BELOW]);
    let response = Response { rows: &rows, page: None, limit: None, total_pages: Some(1), total: None };
    let returned = AcceptedRows { rows: 0..3, kept: Some(&[1, 2]), seen: ReaderState::default() };
    audit.on_response(&PageRequest::first(3), &response, &returned).unwrap();
    take_as(&mut audit, PageRequest::first(3), &Page(vec![(5, 9, 9), (1, 9, 9)]), 1, None, 0..0).unwrap();
    assert!(!audit.is_open(&WHOLE));
}

#[test]
fn record_that_is_first_received_after_others_of_its_block_may_be_newer() {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &Page(vec![(2, 9, 9), BELOW]), 1).unwrap();
    take_as(&mut audit, PageRequest::first(3), &Page(vec![(1, 9, 9), (2, 9, 9), BELOW]), 1, None, 0..0).unwrap();
    assert!(!audit.is_open(&WHOLE));
    assert_eq!((audit.on_end(&WHOLE), doubts(&audit)), (Ok(()), String::new()));
}

#[test]
fn list_without_records_is_not_whole_if_a_response_had_some() {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take_as(&mut audit, PageRequest::first(3), &keys(&[1]), 1, None, 0..0).unwrap();
    assert_eq!(audit.on_end(&WHOLE), Err("the list became empty while it was read".into()));
}
