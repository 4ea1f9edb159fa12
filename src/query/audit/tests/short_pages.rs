//! Beginnings of lists that have pages with fewer records than they say.

use super::*;

const BEGINNING: End = End { extent: Extent::Beginning, ..WHOLE };

/// The audit of three records of a longer list, whose first page has two of the three that it says.
fn read() -> ListAudit {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &keys(&[1, 2]), 4).unwrap();
    take(&mut audit, 2, &keys(&[3]), 4).unwrap();
    audit
}

/// Answers requests for one record, each with its position in the list as it is then. Four more records follow.
fn look_at(audit: &mut ListAudit, lists: &[&[u64]]) -> Result<(), String> {
    for list in lists {
        let request = audit.next_request(&BEGINNING).expect("something is to be proven");
        assert_eq!(request.limit, 1);
        let length = list.len() as u64 + 4;
        take_as(audit, request, &keys(&[list[request.page as usize - 1]]), length, None, 0..0)?;
    }
    assert!(!audit.is_open(&BEGINNING));
    Ok(())
}

#[test]
fn last_record_at_its_position_shows_that_none_was_left_out() {
    let mut small = read();
    look_at(&mut small, &[&[1, 2, 3, 4]]).unwrap();
    assert_eq!(doubts(&small), "");
    // The list has grown by two records, and by one more.
    let grown: &[u64] = &[9, 8, 1, 2, 3];
    look_at(&mut read(), &[grown, grown, grown]).unwrap();
    look_at(&mut read(), &[&[9, 1, 2, 3], grown, grown, grown]).unwrap();
}

#[test]
fn another_record_in_place_of_the_last_one_is_a_contradiction() {
    let is_left_out = |lists: &[&[u64]]| look_at(&mut read(), lists).unwrap_err().contains("lacks some of them");
    assert!(is_left_out(&[&[1, 2, 5, 3, 4]]));
    // The last record is further down, and the first one is where it was.
    let list: &[u64] = &[1, 5, 2, 3, 4];
    assert!(is_left_out(&[list, list, list]));
    let grown: &[u64] = &[9, 1, 5, 2, 3];
    assert!(is_left_out(&[grown, grown, grown]));
}

#[test]
fn service_without_pages_of_one_record_proves_nothing() {
    let mut fixed = read();
    let request = fixed.next_request(&BEGINNING).expect("something is to be proven");
    take_as(&mut fixed, request, &keys(&[3, 4]), 2, None, 0..0).unwrap();
    assert!(!fixed.is_open(&BEGINNING) && doubts(&fixed).contains("fewer records than they say"));
    let mut busy = read();
    (0..7).for_each(|_| {
        let request = busy.next_request(&BEGINNING).expect("something is to be proven");
        take_as(&mut busy, request, &keys(&[2]), 9, None, 0..0).unwrap();
    });
    assert!(!busy.is_open(&BEGINNING) && doubts(&busy).contains("fewer records than they say"));
}

#[test]
fn pages_of_the_size_that_they_say_need_no_look() {
    assert!(!read().is_open(&WHOLE));
    let mut full = ListAudit::new(LIST, 0, &[]);
    take(&mut full, 1, &keys(&[1, 2, 3]), 4).unwrap();
    let mut last = ListAudit::new(LIST, 0, &[]);
    take(&mut last, 1, &keys(&[1, 2]), 1).unwrap();
    let mut small = ListAudit::new(LIST, 0, &[]);
    let rows = keys(&[1, 2]);
    let response = Response { rows: &rows, page: Some(1), limit: Some(2), total_pages: Some(4), total: None };
    let returned = AcceptedRows { rows: 0..2, kept: None, seen: ReaderState::default() };
    small.on_response(&PageRequest::first(3), &response, &returned).unwrap();
    assert!([full, last, small].iter().all(|audit| !audit.is_open(&BEGINNING)));
}

#[test]
fn blocks_show_by_their_heights_that_none_was_left_out() {
    let mut blocks = ListAudit::new(BLOCKS, 0, &[]);
    take(&mut blocks, 1, &heights(&[9, 8]), 4).unwrap();
    take(&mut blocks, 2, &heights(&[7]), 4).unwrap();
    assert!(!blocks.is_open(&BEGINNING));
}

#[test]
fn first_page_without_its_newest_records_is_no_earlier_state_of_the_list() {
    for (again, rest, length, is_contradiction) in [
        (&[1, 2, 3][..], &[4, 5, 6][..], 6, true),
        (&[2, 3], &[4, 5, 6], 6, true),
        (&[1, 2, 3], &[4, 5, 6], 5, false),
        // All pages are smaller than they say.
        (&[1, 2], &[3, 4], 5, false),
    ] {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        let page = |page, limit| PageRequest { page, ..PageRequest::first(limit) };
        take_as(&mut audit, page(1, 3), &keys(&[2, 3]), 2, None, 0..0).unwrap();
        take_as(&mut audit, page(1, 1), &keys(&[1]), length, None, 0..0).unwrap();
        let skipped = usize::from(again[0] == 1);
        take_as(&mut audit, page(1, 3), &keys(again), 2, None, skipped..again.len()).unwrap();
        take_as(&mut audit, page(2, 3), &keys(rest), 2, None, 0..rest.len()).unwrap();
        assert_eq!(audit.on_end(&WHOLE).is_err(), is_contradiction, "{again:?} {rest:?} {length}");
    }
}

#[test]
fn newer_records_may_be_of_a_first_page_that_had_too_few() {
    let grown = End { drift: 1, ..BEGINNING };
    let problem =
        |audit: &ListAudit, end: &End| audit.on_end(end).err().unwrap_or_default().contains("may belong to it");
    // An earlier run has read the first page.
    for (short, rows, is_doubtful) in
        [(Some((3, 2)), &[1, 2, 3][..], true), (Some((3, 2)), &[2, 3], false), (None, &[1, 2, 3], false)]
    {
        let mut audit = ListAudit::new(LIST, 1, &[2]).after_short_page(short);
        let returned = rows.len() - 1..rows.len();
        take_as(&mut audit, PageRequest::first(3), &keys(rows), 4, None, returned).unwrap();
        assert_eq!(problem(&audit, &grown), is_doubtful, "{short:?} {rows:?}");
        assert!(!problem(&audit, &BEGINNING), "nothing seems to be newer");
    }
    // The records of a ranked list may have moved.
    let mut ranked = ListAudit::new(Subject { kind: ListKind::Ranked, order: Order::Ranked, ..LIST }, 0, &[]);
    take(&mut ranked, 1, &keys(&[1, 2]), 4).unwrap();
    assert!(!problem(&ranked, &BEGINNING));
    take(&mut ranked, 2, &keys(&[4, 5, 6]), 4).unwrap();
    assert!(problem(&ranked, &BEGINNING));
}

/// A page of three that has two records, of a list with four pages as it says; and the record that was returned last one place
/// further down.
#[test]
fn record_further_down_is_growth_only_where_the_numbers_allow_it() {
    let lacks_rows = |order, (pages, total), (length, counted): (u64, Option<u64>)| {
        let mut audit = ListAudit::new(Subject { order, ..LIST }, 0, &[]);
        take_as(&mut audit, PageRequest::first(3), &keys(&[1, 2]), pages, total, 0..2).unwrap();
        for key in [1, 2, 9] {
            let Some(request) = audit.next_request(&BEGINNING) else { continue };
            if take_as(&mut audit, request, &keys(&[key]), length, counted, 0..0).is_err() {
                return true;
            }
        }
        audit.on_end(&BEGINNING).is_err()
    };
    for order in [Order::NewestFirst, Order::Consecutive] {
        // Ten records take four pages of three, or five of two.
        assert!(lacks_rows(order, (4, Some(10)), (10, Some(10))));
        assert!(!lacks_rows(order, (5, Some(10)), (11, Some(11))));
    }
    // Four records take two pages of either size: the count has to grow.
    assert!(lacks_rows(Order::NewestFirst, (2, Some(4)), (4, Some(4))));
    assert!(!lacks_rows(Order::NewestFirst, (2, Some(4)), (5, Some(5))));
    // Without a count, a page of one record shows the length.
    assert!(lacks_rows(Order::NewestFirst, (4, None), (11, None)));
    assert!(!lacks_rows(Order::NewestFirst, (5, None), (11, None)));
}
