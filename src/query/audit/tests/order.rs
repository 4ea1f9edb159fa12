//! Heights that show another order than that of the returned records.

use super::*;

#[test]
fn record_above_the_one_before_it_contradicts_a_page_in_descending_order() {
    let single = |page| PageRequest { page, ..PageRequest::first(1) };
    let read = |heights_of_ones: &[i64]| {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        for (page, height) in (1..).zip(heights_of_ones) {
            take_as(&mut audit, single(page), &heights(&[*height]), 9, None, 0..1).unwrap();
        }
        audit
    };
    let shown = |audit: &mut ListAudit, rows: &[i64]| {
        take_as(audit, PageRequest { page: 2, ..PageRequest::first(3) }, &heights(rows), 9, None, 0..0)
    };
    let error = shown(&mut read(&[4, 5]), &[5, 4, 3]).unwrap_err();
    assert_eq!(error, "a page begins at height 5, below records of height 4");
    // In whatever order the responses come.
    let mut fallen = ListAudit::new(LIST, 0, &[]);
    shown(&mut fallen, &[7, 4, 3]).unwrap();
    take_as(&mut fallen, single(1), &heights(&[4]), 9, None, 0..1).unwrap();
    assert!(take_as(&mut fallen, single(2), &heights(&[7]), 9, None, 0..1).is_err());
    // Nothing shows that the list is in the order of heights, or the records are.
    shown(&mut read(&[4, 5]), &[5, 4, 6]).unwrap();
    shown(&mut read(&[4, 5]), &[5, 5, 5]).unwrap();
    shown(&mut read(&[5, 4, 4]), &[5, 4, 3]).unwrap();
}

#[test]
fn record_that_was_above_a_returned_one_does_not_follow_it() {
    let subject = Subject { has_unique_keys: true, ..LIST };
    for (next, is_right) in [(&[0, 9][..], true), (&[3, 0], false), (&[4, 0], false), (&[9, 2], false)] {
        let mut audit = ListAudit::new(subject, 0, &[]);
        take_as(&mut audit, PageRequest::first(3), &keys(&[4, 2, 1]), 9, None, 1..3).unwrap();
        take_as(&mut audit, PageRequest::first(3), &keys(&[4, 3, 2]), 9, None, 0..0).unwrap();
        let taken = take_as(&mut audit, PageRequest::first(3), &keys(next), 9, None, 0..1);
        assert_eq!(taken.is_ok(), is_right, "{next:?}");
    }
}

#[test]
fn record_above_those_of_an_earlier_run_may_be_one_of_them() {
    let read = |height, rows: &[i64]| {
        let mut audit = ListAudit::new(LIST, 3, &[9, 8, 7]).below(height);
        take(&mut audit, 2, &heights(rows), 3).unwrap();
        doubts(&audit)
    };
    assert!(read(Some(7), &[6, 11, 5]).contains("above the last one of an earlier run"));
    assert_eq!(read(Some(7), &[6, 4, 5]), "");
    assert_eq!(read(Some(7), &[7, 6, 5]), "");
    // The list is not in the order of heights.
    assert_eq!(read(None, &[6, 11, 5]), "");
}

#[test]
fn record_that_is_listed_again_at_another_height_is_a_reason_if_the_others_are_in_order() {
    let read = |subject, rows: &[i64]| {
        let mut audit = ListAudit::new(subject, 0, &[]);
        take(&mut audit, 1, &heights(rows), 1).unwrap();
        doubts(&audit)
    };
    for rows in [&[9, 8, 9, 7][..], &[9, 8, 9], &[9, 6, 8, 7, 6], &[7, 9, 8, 7]] {
        assert!(read(LIST, rows).contains("lists again at another place"), "{rows:?}");
    }
    // Equal records beside each other, and pages in no order.
    for rows in [&[9, 9, 8][..], &[9, 8, 8, 7], &[9, 7, 8], &[9, 7, 8, 9], &[7, 8, 9], &[8, 8]] {
        assert_eq!(read(LIST, rows), "", "{rows:?}");
    }
    // The copy is not in the result, or the list is in no order of heights.
    assert_eq!(read(Subject { wanted: Some(2), ..LIST }, &[9, 8, 9, 7]), "");
    assert_eq!(read(Subject { order: Order::Ranked, ..LIST }, &[9, 8, 9, 7]), "");
}

#[test]
fn a_height_has_one_block() {
    let read = |first: &[(u64, i64, u64)], second: &[(u64, i64, u64)]| {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        take(&mut audit, 1, &Page(first.to_vec()), 2).unwrap();
        take(&mut audit, 2, &Page(second.to_vec()), 2).unwrap();
        doubts(&audit)
    };
    let first = [(1, 9, 90), (2, 8, 80)];
    assert!(read(&first, &[(3, 8, 81), (4, 7, 70)]).contains("height 8 are of two blocks"));
    assert_eq!(read(&first, &[(3, 8, 80), (4, 7, 70)]), "");
    assert_eq!(read(&first, &[(3, 7, 70)]), "");
    // One response has records of both blocks.
    assert!(read(&first, &[(3, 8, 81), (4, 8, 80)]).contains("height 8 are of two blocks: a response"));
    assert!(read(&[(1, 9, 90), (2, 9, 91)], &[(3, 8, 80)]).contains("height 9 are of two blocks: a response"));
}

#[test]
fn a_transaction_has_one_height() {
    let read = |has_blocks, rows: &[(u64, i64, u64)]| {
        let mut audit = ListAudit::new(Subject { has_blocks, ..LIST }, 0, &[]);
        take(&mut audit, 1, &Page(vec![(1, 9, 90), (2, 8, 80)]), 2)?;
        take(&mut audit, 2, &Page(rows.to_vec()), 2)?;
        Ok(doubts(&audit))
    };
    let moved = [(2, 7, 70), (3, 6, 60)];
    assert_eq!(read(false, &moved), Err("a transaction was received at two heights".to_owned()));
    assert!(read(true, &moved).unwrap().contains("A transaction is in two blocks, of the heights 7 and 8"));
    for has_blocks in [false, true] {
        // A transaction may have several records.
        assert_eq!(read(has_blocks, &[(2, 8, 80), (3, 7, 70)]).as_deref(), Ok(""));
    }
}

#[test]
fn hash_of_all_records_identifies_no_transaction() {
    let mut audit = ListAudit::new(Subject { has_blocks: true, ..LIST }, 0, &[]);
    take(&mut audit, 1, &Page(vec![(1, 9, 90), (1, 8, 80)]), 1).unwrap();
    assert_eq!(doubts(&audit), "");
}

#[test]
fn block_with_two_heights_is_a_reason_unless_all_records_have_its_hash() {
    let page =
        |rows: &[(i64, u64)]| Page(rows.iter().map(|(height, block)| (*height as u64, *height, *block)).collect());
    for (rows, is_doubtful) in [
        (&[(9, 90), (8, 80), (7, 90)][..], true),
        (&[(9, 90), (8, 80), (7, 70)], false),
        // A service that does not know the hashes.
        (&[(9, 5), (8, 5), (7, 5)], false),
        // Both sides of a fork.
        (&[(9, 90), (8, 80), (8, 81)], false),
    ] {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        take(&mut audit, 1, &page(rows), 1).unwrap();
        assert_eq!(doubts(&audit).contains("two heights, 9 and 7"), is_doubtful, "{rows:?}");
    }
}

#[test]
fn chain_has_one_block_below_each() {
    let page = |rows: &[(i64, u64)]| Page(rows.iter().map(|(height, key)| (*key, *height, *key)).collect());
    for (shown, is_contradiction) in [
        (&[(8, 80), (7, 71)][..], true),
        (&[(8, 80), (7, 70)], false),
        // The chain was reorganized.
        (&[(8, 81), (7, 71)], false),
        // Blocks from the first to the last one.
        (&[(7, 70), (8, 81)], false),
    ] {
        let mut audit = ListAudit::new(BLOCKS, 0, &[]);
        take(&mut audit, 1, &page(&[(9, 90), (8, 80), (7, 70)]), 2).unwrap();
        let again = PageRequest { page: 1, ..PageRequest::first(2) };
        let outcome = take_as(&mut audit, again, &page(shown), 3, None, 0..0);
        assert_eq!(outcome.is_err(), is_contradiction, "{shown:?} {outcome:?}");
    }
}

#[test]
fn block_at_the_beginning_of_a_page_is_the_one_that_a_response_showed_below_the_last_one() {
    let page = |rows: &[(i64, u64)]| Page(rows.iter().map(|(height, key)| (*key, *height, *key)).collect());
    for (next, is_contradiction) in
        [([(7, 71), (6, 61)], true), ([(7, 70), (6, 60)], false), ([(6, 61), (5, 51)], false)]
    {
        let mut audit = ListAudit::new(BLOCKS, 0, &[]);
        take(&mut audit, 1, &page(&[(9, 90), (8, 80)]), 2).unwrap();
        // The place of this response was not known.
        let shown = page(&[(9, 90), (8, 80), (7, 70)]);
        take_as(&mut audit, PageRequest::first(3), &shown, 2, None, 0..0).unwrap();
        assert_eq!(take(&mut audit, 2, &page(&next), 2).is_err(), is_contradiction, "{next:?}");
    }
}

#[test]
fn record_that_a_response_shows_between_two_returned_ones_of_a_list_with_equal_ones_is_missed() {
    for (shown, is_missed) in
        [(&[9, 8, 7][..], true), (&[9, 8, 6], false), (&[10, 9, 7], false), (&[9, 7, 6], false), (&[8, 7, 6], false)]
    {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        take(&mut audit, 1, &heights(&[9, 9, 7]), 3).unwrap();
        let outcome = take_as(&mut audit, PageRequest::first(3), &heights(shown), 3, None, 0..0);
        assert_eq!(outcome.is_err(), is_missed, "{shown:?} {outcome:?}");
    }
    // Without block hashes, a reorganization may have replaced one record and kept the others of its height.
    let mut audit = ListAudit::new(Subject { has_blocks: false, ..LIST }, 0, &[]);
    let without_hash = |heights: &[i64]| WithoutHash(heights.to_vec());
    let mut take = |rows: &[i64], returned| {
        let rows = without_hash(rows);
        let response = Response { rows: &rows, page: None, limit: Some(3), total_pages: Some(2), total: None };
        audit.on_response(
            &PageRequest::first(3),
            &response,
            &AcceptedRows { rows: returned, kept: None, seen: ReaderState::default() },
        )
    };
    take(&[9, 9, 7], 0..3).unwrap();
    take(&[9, 8, 7], 0..0).unwrap();
}

#[test]
fn page_that_begins_above_a_page_of_one_height_is_a_contradiction_where_heights_fall() {
    let read = |pages: &[&[i64]]| {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        (1..).zip(pages).try_for_each(|(page, rows)| take(&mut audit, page, &heights(rows), 9))
    };
    let error = read(&[&[7, 7, 7], &[9, 8, 6]]).unwrap_err();
    assert_eq!(error, "a page begins at height 9, below records of height 7");
    assert!(read(&[&[7, 7, 7], &[9, 9, 9], &[8, 7, 6]]).is_err());
    // Nothing shows an order.
    read(&[&[7, 7, 7], &[9, 9, 9], &[8, 8, 8]]).unwrap();
    read(&[&[7, 7, 7], &[7, 6, 5], &[5, 5, 5], &[5, 4, 3]]).unwrap();
}

/// Blocks with a letter each.
fn blocks(rows: &[(i64, char)]) -> Page {
    Page(rows.iter().map(|(height, hash)| (*height as u64 * 1_000 + *hash as u64, *height, 0)).collect())
}

#[test]
fn block_has_the_block_below_it_that_a_discarded_reading_received() {
    let read_again = |rejected: bool, rows: &[(i64, char)]| {
        let mut discarded = ListAudit::new(BLOCKS, 0, &[]);
        let page = blocks(&[(9, 'a'), (8, 'a'), (7, 'a')]);
        if rejected {
            let response = Response { rows: &page, page: None, limit: None, total_pages: None, total: None };
            discarded.on_rejected(&PageRequest::first(3), &response, None);
        } else {
            take(&mut discarded, 1, &page, 2).unwrap();
        }
        let mut audit = ListAudit::new(BLOCKS, 0, &[]).after_discarded(discarded);
        take(&mut audit, 1, &blocks(rows), 2)
    };
    for rejected in [false, true] {
        let error = read_again(rejected, &[(9, 'a'), (8, 'b')]).unwrap_err();
        assert_eq!(error, "block 8 is another one than before, below the same block");
        assert!(read_again(rejected, &[(9, 'c'), (8, 'a'), (7, 'b')]).is_err());
        // A reorganization replaces all blocks above the first one that it replaces.
        read_again(rejected, &[(9, 'b'), (8, 'b'), (7, 'a')]).unwrap();
        read_again(rejected, &[(10, 'a'), (9, 'a'), (8, 'a')]).unwrap();
    }
}

#[test]
fn first_record_that_is_gone_while_its_block_is_there_contradicts_the_list() {
    let shown = |top: &[(u64, i64, u64)], page: u64, drift: i64| {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        take(&mut audit, 1, &Page(vec![(1, 9, 90), (2, 9, 90), (3, 8, 80)]), 2).unwrap();
        let rows = Page(top.to_vec());
        let request = PageRequest { page, ..PageRequest::first(3) };
        let response = Response { rows: &rows, page: None, limit: None, total_pages: None, total: None };
        let seen = ReaderState { drift, ..ReaderState::default() };
        audit.on_response(&request, &response, &AcceptedRows { rows: 0..0, kept: None, seen })
    };
    assert!(shown(&[(2, 9, 90), (3, 8, 80)], 1, -1).unwrap_err().contains("others of their block are"));
    // The whole block was replaced, or the list has grown.
    shown(&[(3, 8, 80), (4, 7, 70)], 1, -2).unwrap();
    shown(&[(5, 9, 91), (3, 8, 80)], 1, -1).unwrap();
    shown(&[(2, 9, 90), (3, 8, 80)], 2, 2).unwrap();
    shown(&[(1, 9, 90), (2, 9, 90)], 1, 0).unwrap();
}
