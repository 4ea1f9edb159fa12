//! Lists of which an earlier run returned records.

use super::*;
use crate::query::audit::Latest;
use crate::query::audit::unreturned::UnreturnedRecord;
use crate::query::snapshot::ListCheckpoint;

/// The records of a page, each a key, all of one height and block.
fn of_height(height: i64, keys: impl IntoIterator<Item = u64>) -> Page {
    Page(keys.into_iter().map(|key| (key, height, height as u64)).collect())
}

/// The audit of a list of which an earlier run returned 12 records, the last ten of height 7.
fn continued() -> ListAudit {
    let mut latest = Latest::default();
    latest.push(&of_height(8, 1..=2), 0..2);
    latest.push(&of_height(7, 3..=12), 0..10);
    ListAudit::new(LIST, 12, latest.keys()).below(Some(7)).after_block(Some((7, 7)))
}

#[test]
fn latest_keys_are_those_of_the_last_height_and_a_few_others() {
    let mut latest = Latest::default();
    latest.push(&of_height(9, 1..=300), 0..300);
    assert_eq!(latest.keys(), Vec::from_iter(45..=300));
    latest.push(&of_height(8, 301..=303), 0..3);
    assert_eq!(latest.keys(), Vec::from_iter(296..=303));
    // The next run continues at the same height.
    let mut resumed = Latest::of_earlier_run(latest.keys());
    resumed.push(&of_height(8, 304..=320), 0..17);
    assert_eq!(resumed.keys().last_chunk::<20>(), Vec::from_iter(301..=320).first_chunk());
}

#[test]
fn keys_of_one_of_many_lists_are_few_and_say_so() {
    let shared = |count: u64, lists| {
        let keys = Latest::of_one_list(Vec::from_iter(1..=count), lists);
        let has_all = Latest::of_earlier_run(&keys).has_all_of_height(1_000);
        (keys.first().copied(), keys.len(), has_all)
    };
    assert_eq!(shared(100, 2), (Some(1), 100, true));
    assert_eq!(shared(129, 2), (Some(123), 7, false));
    assert_eq!((shared(8, 400), shared(9, 400)), ((Some(1), 8, true), (Some(3), 7, false)));
}

#[test]
fn record_of_the_last_height_that_is_received_again_after_a_cursor_is_noticed() {
    let read = |again| {
        let mut audit = continued();
        take(&mut audit, 4, &of_height(7, [13, again]), 5).unwrap();
        (audit.is_open(&WHOLE), doubts(&audit).contains("equal records that are too far apart"))
    };
    assert_eq!((read(14), read(10), read(3)), ((false, false), (true, false), (false, true)));
}

#[test]
fn record_that_a_response_shows_below_one_before_a_cursor_is_looked_for() {
    let shown = |audit: &mut ListAudit| {
        take_as(audit, PageRequest::first(6), &of_height(7, [5, 99, 6]), 3, None, 0..0).unwrap();
        take(audit, 5, &of_height(7, [13, 14]), 5).unwrap();
    };
    let mut audit = continued();
    shown(&mut audit);
    assert!(look(&mut audit, &of_height(7, [5, 99, 6]), 3).unwrap_err().contains("records follow the last one"));
    // A cursor with too few keys does not show whether an earlier run returned it.
    let mut audit = ListAudit::new(LIST, 900, &Vec::from_iter(5..=260)).below(Some(7));
    shown(&mut audit);
    assert!(!audit.is_open(&WHOLE));
}

#[test]
fn record_after_a_cursor_of_another_block_of_the_same_height_is_a_reason() {
    for (height, block, is_fork) in [(7, 7, false), (7, 70, true), (6, 60, false)] {
        let mut audit = continued();
        take(&mut audit, 5, &Page(vec![(13, height, block)]), 5).unwrap();
        assert_eq!(doubts(&audit).contains("of two blocks"), is_fork, "{height} {block}");
    }
    let mut block = ListAudit::new(ONE_BLOCK, 3, &[1, 2, 3]).after_block(Some((7, 1)));
    let error = take(&mut block, 2, &Page(vec![(4, 7, 2)]), 2).unwrap_err();
    assert!(error.contains("two block hashes"), "{error}");
}

#[test]
fn record_of_the_last_height_of_an_earlier_run_is_missed() {
    let read = |mut audit: ListAudit, key| {
        take_as(&mut audit, PageRequest::first(1), &of_height(7, [key]), 3, None, 0..0).unwrap();
        take(&mut audit, 5, &of_height(6, [13, 14]), 5).unwrap();
        doubts(&audit).contains("with the others of its block")
    };
    assert!(read(continued(), 99) && !read(continued(), 5));
    // All records that were returned are of one height: the list may have a newer one of it.
    let of_one_height = ListAudit::new(LIST, 3, &[3, 4, 5]).below(Some(7)).after_block(Some((7, 7)));
    assert!(!read(of_one_height, 99));
}

#[test]
fn record_below_the_height_of_an_earlier_run_is_missed_although_no_page_showed_the_order() {
    let cursor = |subject, height| {
        let mut earlier = ListAudit::new(subject, 0, &[]);
        let rows = of_height(height, 1..=3);
        take(&mut earlier, 1, &rows, 5).unwrap();
        earlier.audited_page(&PageRequest::first(3), Latest::default()).checkpoint(&rows, 3, 3)
    };
    for subject in [LIST, Subject { has_blocks: false, ..LIST }] {
        for (height, is_missed) in [(7, true), (6, false), (5, false)] {
            let at = cursor(subject, height);
            assert_eq!((at.height, at.block), (None, Some((height, height as u64))));
            let mut audit = ListAudit::resumed(subject, 3, &at, &ListCheckpoint::default());
            take_as(&mut audit, PageRequest::first(1), &of_height(6, [99]), 3, None, 0..0).unwrap();
            take(&mut audit, 2, &of_height(6, [4, 5]), 5).unwrap();
            take(&mut audit, 3, &of_height(5, [6]), 5).unwrap();
            assert_eq!(doubts(&audit).contains("with the others of its block"), is_missed, "{height}");
        }
    }
}

#[test]
fn list_that_is_continued_after_another_record_than_the_last_one_raises() {
    let mut earlier = ListAudit::new(LIST, 0, &[]);
    let rows = of_height(7, 1..=3);
    take(&mut earlier, 1, &rows, 5).unwrap();
    let at = earlier.audited_page(&PageRequest::first(3), Latest::default()).checkpoint(&rows, 3, 3);
    for (keys, is_right) in [("[1,2,3]", true), ("[3]", true), ("[]", true), ("[1,2,4]", false)] {
        let list = serde_json::from_str(&format!(r#"{{"delivered":{{"end":3,"keys":{keys}}}}}"#)).unwrap();
        let mut audit = ListAudit::resumed(LIST, 3, &at, &list);
        assert_eq!(take(&mut audit, 2, &of_height(6, [4, 5]), 2).is_ok(), is_right, "{keys}");
    }
}

#[test]
fn record_that_an_earlier_run_received_is_missed_among_others_of_its_block() {
    let earlier = |returned: std::ops::Range<usize>| {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        take_as(&mut audit, PageRequest::first(3), &of_height(7, [99]), 3, None, 0..0).unwrap();
        let rows = Page(vec![(1, 8, 8), (2, 8, 8), (99, 7, 7)]);
        take_as(&mut audit, PageRequest::first(3), &rows, 3, None, returned).unwrap();
        audit.open_records().unwrap()
    };
    let reads = |records: &[UnreturnedRecord], key| {
        let mut audit = continued().with_unreturned(records);
        take(&mut audit, 5, &Page(vec![(key, 7, 7), (14, 6, 6)]), 5).unwrap();
        !doubts(&audit).contains("a record of height 7 that was not returned")
    };
    assert!(!reads(&earlier(0..2), 13) && reads(&earlier(0..2), 99));
    assert_eq!(earlier(0..3), []);
    // The list may have newer records of the height, but an earlier run has received this one.
    let of_one_height = ListAudit::new(LIST, 3, &[3, 4, 5]).below(Some(7)).after_block(Some((7, 7)));
    let mut audit = of_one_height.with_unreturned(&earlier(0..2));
    take(&mut audit, 2, &Page(vec![(13, 7, 7), (14, 6, 6)]), 2).unwrap();
    assert!(doubts(&audit).contains("a record of height 7 that was not returned"), "{}", doubts(&audit));
}

#[test]
fn record_below_one_that_an_earlier_run_returned_is_looked_for() {
    let mut earlier = ListAudit::new(LIST, 0, &[]);
    take(&mut earlier, 1, &of_height(8, 1..=2), 5).unwrap();
    take_as(&mut earlier, PageRequest::first(3), &Page(vec![(1, 8, 8), (99, 8, 8), (2, 8, 8)]), 5, None, 0..0).unwrap();
    let pairs = earlier.open_pairs();
    assert_eq!((pairs.len(), pairs[0].is_below_one_before(1), pairs[0].is_below_one_before(0)), (1, true, false));
    // The upper record is far above the records whose keys the cursor has.
    let continued = || ListAudit::new(LIST, 900, &Vec::from_iter(3..=12)).below(Some(7)).with_pairs(&pairs);
    let looks = |shown: &Page| {
        let mut audit = continued();
        take(&mut audit, 300, &of_height(6, [13, 14]), 300).unwrap();
        assert_eq!(audit.next_request(&WHOLE).unwrap().page, 1);
        (look(&mut audit, shown, 300).is_err(), audit.is_open(&WHOLE), doubts(&audit).contains("of height 8 below one"))
    };
    assert_eq!(looks(&of_height(8, [1, 99])), (true, true, false));
    assert_eq!(looks(&of_height(8, [1, 2])), (false, false, true));
}

#[test]
fn records_between_two_that_an_earlier_run_returned_are_a_reason() {
    let read = |shown: &[u64]| {
        let first_page = vec![(0, 1), (1, 2), (99, 3)];
        let mut audit = ListAudit::new(LIST, 6, &[2, 4, 5, 6]).after_first_page(first_page, 0).below(Some(7));
        // The records 5 and 6 have one height.
        let rows = shown.iter().map(|key| (*key, 20 - (*key % 10).min(5) as i64, 1));
        take_as(&mut audit, PageRequest::first(20), &Page(rows.collect()), 3, None, shown.len()..shown.len()).unwrap();
        doubts(&audit).contains("between two that an earlier run returned")
    };
    // The cursor lacks the key of the third returned record.
    for (shown, is_contradicted) in [
        (&[1, 2, 13, 4, 5, 6][..], false),
        (&[10, 11, 1, 2, 13, 4, 5, 6], false),
        (&[1, 2, 4, 5, 6], false),
        (&[1, 2, 13, 23, 4, 5, 6], true),
        (&[1, 12, 13, 14, 5, 6], false),
        (&[1, 12, 13, 14, 15, 25, 6], true),
        (&[4, 14, 5], true),
        // A record of the same height may be equal to a returned one.
        (&[5, 15, 6], false),
        (&[5, 5, 6], false),
        // Two records have the key 4, and the offset of one of them is known.
        (&[1, 12, 13, 4, 4], false),
        (&[13, 4, 14], false),
    ] {
        assert_eq!(read(shown), is_contradicted, "{shown:?}");
    }
}

#[test]
fn record_that_may_be_newer_is_not_kept_for_the_next_run() {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &Page(vec![(1, 9, 9), (2, 8, 8)]), 2).unwrap();
    take_as(&mut audit, PageRequest::first(2), &Page(vec![(99, 9, 9), (98, 8, 8)]), 2, None, 0..0).unwrap();
    assert_eq!(audit.open_records().unwrap().len(), 1);
    let without_blocks = ListAudit::new(Subject { has_blocks: false, ..LIST }, 0, &[]);
    assert_eq!(without_blocks.open_records(), None);
}

#[test]
fn records_between_those_that_a_cursor_knows_apart_are_not_missed() {
    // The earlier run returned 1 twice, far above the latest records.
    let mut first = ListAudit::new(LIST, 0, &[]);
    take(&mut first, 1, &Page(vec![(8, 9, 9), (1, 9, 9)]), 5).unwrap();
    take(&mut first, 2, &Page(vec![(1, 9, 9), (2, 8, 8)]), 5).unwrap();
    let repeats = first.open_repeats().to_vec();
    assert!(!repeats.is_empty());
    let continued = || ListAudit::new(LIST, 12, &Vec::from_iter(5..=12)).below(Some(7));
    let shown = Page(vec![(1, 9, 9), (2, 8, 8), (12, 7, 7), (13, 6, 6)]);
    let read = |mut audit: ListAudit| take_as(&mut audit, PageRequest::first(4), &shown, 5, None, 3..4);
    read(continued().with_repeats(&repeats)).unwrap();
}

#[test]
fn growth_of_a_list_without_hashes_after_a_cursor_is_compared_with_its_first_page() {
    let subject = Subject { compares_growth: true, has_blocks: false, ..LIST };
    let read = |first_page: &[i64]| {
        let mut audit = ListAudit::new(subject, 3, &[9, 8, 7]).after_first_page(vec![(0, 9), (1, 8)], 0).below(Some(7));
        let mut show = |request: PageRequest, rows: &[i64], total: u64, returned| {
            let rows = WithoutHash(rows.to_vec());
            let response = Response { rows: &rows, page: None, limit: None, total_pages: Some(9), total: Some(total) };
            let seen = ReaderState { length: Some(4), ..ReaderState::default() };
            audit.on_response(&request, &response, &AcceptedRows { rows: returned, kept: None, seen }).unwrap();
            audit.next_request(&WHOLE).map(|request| (request.page, request.limit))
        };
        show(PageRequest { page: 2, ..PageRequest::first(3) }, &[6], 4, 0..1);
        // Another part of the service has three records more; none of them is above the first one.
        assert_eq!(show(PageRequest { page: 7, ..PageRequest::first(1) }, &[6], 7, 0..0), Some((4, 1)));
        assert_eq!(show(PageRequest::of_audit(4, 1), &[5], 7, 0..0), Some((1, 6)));
        assert_eq!(show(PageRequest::of_audit(1, 6), first_page, 7, 0..0), None);
        doubts(&audit).contains("none of the newest ones is new")
    };
    assert!(read(&[9, 8, 7]) && !read(&[20, 19, 18]));
}
