//! Growth that responses report, compared with the head of the list.

use super::*;

/// The audit of a list of 4 records, after pages of one record: the length that each reports, and its record.
fn growth_of(responses: &[(u64, u64)]) -> ListAudit {
    let mut audit = ListAudit::new(Subject { compares_growth: true, ..LIST }, 0, &[]);
    take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
    // The first of them shows the length.
    for (length, key) in [(4, 1)].iter().chain(responses) {
        let request = audit.next_request(&WHOLE).unwrap_or(PageRequest::first(1));
        let rows = keys(&[*key]);
        let response = Response { rows: &rows, page: None, limit: Some(1), total_pages: Some(*length), total: None };
        let seen = ReaderState { length: Some(4), ..ReaderState::default() };
        audit.on_response(&request, &response, &AcceptedRows { rows: 0..0, kept: None, seen }).unwrap();
    }
    assert!(!audit.is_open(&WHOLE));
    audit
}

#[test]
fn growth_without_newer_records_is_doubtful() {
    assert!(doubts(&growth_of(&[(6, 1)])).contains("more records"));
    assert!(!doubts(&growth_of(&[(4, 1)])).contains("more records"));
}

#[test]
fn growth_by_a_record_that_equals_one_of_the_first_page_is_not_doubtful() {
    for shows_both in [false, true] {
        let mut audit = ListAudit::new(Subject { compares_growth: true, ..LIST }, 0, &[]);
        take(&mut audit, 1, &keys(&[1, 2]), 1).unwrap();
        let seen = ReaderState { length: Some(2), ..ReaderState::default() };
        let mut show = |request: PageRequest, rows: &[u64], length| {
            let rows = keys(rows);
            let pages = Some(length).filter(|_| request.limit == 1).or(Some(1));
            let response =
                Response { rows: &rows, page: None, limit: Some(request.limit), total_pages: pages, total: None };
            audit.on_response(&request, &response, &AcceptedRows { rows: 0..0, kept: None, seen }).unwrap();
        };
        show(PageRequest::first(1), &[1], 2);
        if shows_both {
            show(PageRequest::first(6), &[1, 8, 9, 1, 2], 5);
        }
        show(PageRequest::first(1), &[1], 5);
        assert_eq!(doubts(&audit).contains("more records"), !shows_both);
    }
}

#[test]
fn growth_that_moves_the_first_record_is_confirmed() {
    assert!(!doubts(&growth_of(&[(6, 99), (6, 1)])).contains("more records"));
}

#[test]
fn growth_that_later_responses_do_not_report_is_looked_at_three_times() {
    assert!(doubts(&growth_of(&[(6, 99), (4, 3), (4, 3), (6, 3)])).contains("more records"));
    assert!(!doubts(&growth_of(&[(6, 99), (4, 3), (4, 3), (4, 3)])).contains("more records"));
}

#[test]
fn growth_that_shows_an_older_record_is_compared_with_the_first_page() {
    let rows = |rows: &[(u64, i64)]| Page(rows.iter().map(|(key, height)| (*key, *height, *key)).collect());
    // The list has 3 records, and is said to have 3 more: the fourth is not one of these.
    for (fourth, first_page, outcome) in [
        ((5, 5), &[(9, 9), (8, 8), (7, 7)][..], "none of the newest ones is new"),
        ((75, 7), &[(9, 9), (8, 8), (75, 7), (7, 7)], "is below a returned one"),
        // The chain was reorganized, from the second block on or from the oldest one.
        ((80, 8), &[(90, 9), (80, 8), (7, 7)], ""),
        ((80, 8), &[(90, 9), (80, 8), (70, 7)], ""),
        // The list has grown by more.
        ((12, 12), &[], ""),
    ] {
        let mut audit = ListAudit::new(Subject { compares_growth: true, ..LIST }, 0, &[]);
        let mut take = |request: PageRequest, rows: &Page, returned: usize| {
            let total_pages = Some(if request.limit == 1 { 6 } else { 1 });
            let response = Response { rows, page: None, limit: Some(request.limit), total_pages, total: None };
            let seen = ReaderState { length: Some(3), ..ReaderState::default() };
            audit.on_response(&request, &response, &AcceptedRows { rows: 0..returned, kept: None, seen })?;
            Ok::<_, String>(audit.next_request(&WHOLE).map(|request| (request.page, request.limit)))
        };
        assert_eq!(take(PageRequest::first(3), &heights(&[9, 8, 7]), 3), Ok(None));
        let probe = PageRequest { page: 4, purpose: Purpose::Probe, ..PageRequest::first(1) };
        assert_eq!(take(probe, &rows(&[fourth]), 0), Ok(Some((4, 1))));
        let mut result = take(PageRequest::of_audit(4, 1), &rows(&[fourth]), 0);
        if !first_page.is_empty() {
            assert_eq!(result, Ok(Some((1, 6))));
            result = take(PageRequest::of_audit(1, 6), &rows(first_page), 0);
        }
        let error = result.err().unwrap_or_default();
        assert!((error + &doubts(&audit)).contains(outcome), "{fourth:?} {first_page:?}");
        assert_eq!(outcome.contains("newest"), !doubts(&audit).is_empty(), "{fourth:?} {first_page:?}");
    }
}

#[test]
fn part_of_the_service_that_knows_no_growth_shows_no_older_record() {
    let mut audit = ListAudit::new(Subject { compares_growth: true, ..LIST }, 0, &[]);
    let mut take = |request: PageRequest, heights: &[i64], total_pages, returned| {
        let rows = self::heights(heights);
        let total_pages = Some(total_pages);
        let response = Response { rows: &rows, page: None, limit: Some(request.limit), total_pages, total: None };
        let seen = ReaderState { length: Some(4), ..ReaderState::default() };
        audit.on_response(&request, &response, &AcceptedRows { rows: 0..returned, kept: None, seen }).unwrap();
        audit.next_request(&WHOLE).map(|request| (request.page, request.limit))
    };
    assert_eq!(take(PageRequest::first(3), &[9, 8, 7], 2, 3), None);
    let probe = PageRequest { page: 4, purpose: Purpose::Probe, ..PageRequest::first(1) };
    assert_eq!(take(probe, &[6], 7, 0), Some((4, 1)));
    assert_eq!(take(PageRequest::of_audit(4, 1), &[6], 4, 0), Some((4, 1)));
    assert_eq!(take(PageRequest::of_audit(4, 1), &[6], 7, 0), Some((1, 6)));
}

#[test]
fn first_records_that_were_replaced_above_one_of_their_height_are_a_contradiction() {
    let by_height = Subject { compares_growth: true, has_blocks: false, ..LIST };
    for (subject, shown, total, is_contradiction) in [
        (by_height, [9, 2, 3], 5, true),
        (by_height, [1, 9, 3], 5, true),
        (by_height, [8, 9, 2], 6, true),
        (by_height, [1, 2, 3], 5, false),
        (by_height, [8, 1, 2], 6, false),
        // All of them were replaced, or none: the final look tells.
        (by_height, [7, 8, 9], 5, false),
        // A block that was replaced has another hash, and its records have other keys.
        (Subject { compares_growth: true, ..LIST }, [9, 2, 3], 5, false),
    ] {
        let mut audit = ListAudit::new(subject, 0, &[]);
        let mut show = |page, rows: &[u64], total, returned: std::ops::Range<usize>| {
            let rows = keys(rows);
            let request = PageRequest { page, ..PageRequest::first(3) };
            let response =
                Response { rows: &rows, page: None, limit: Some(3), total_pages: Some(2), total: Some(total) };
            let seen = ReaderState { length: Some(5), ..ReaderState::default() };
            audit.on_response(&request, &response, &AcceptedRows { rows: returned, kept: None, seen })
        };
        show(1, &[1, 2, 3], 5, 0..3).unwrap();
        show(2, &[4, 5], 5, 0..2).unwrap();
        assert_eq!(show(1, &shown, total, 0..0).is_err(), is_contradiction, "{shown:?}");
    }
    // The record above is of another height, which may have been replaced as a whole.
    let mut audit = ListAudit::new(by_height, 0, &[]);
    let mut show = |rows: &[(u64, i64, u64)], returned| {
        let rows = Page(rows.to_vec());
        let response = Response { rows: &rows, page: None, limit: Some(3), total_pages: Some(1), total: Some(2) };
        let seen = ReaderState { length: Some(2), ..ReaderState::default() };
        audit.on_response(&PageRequest::first(3), &response, &AcceptedRows { rows: returned, kept: None, seen })
    };
    show(&[(1, 8, 0), (2, 7, 0)], 0..2).unwrap();
    show(&[(9, 8, 0), (2, 7, 0)], 0..0).unwrap();
}
