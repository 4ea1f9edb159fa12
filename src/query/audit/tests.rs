//! The audit alone: responses that contradict each other, and honest ones.

mod blocks;
mod continued;
mod copies;
mod counted_places;
mod growth;
mod in_common;
mod newest_block;
mod one_block;
mod order;
mod repeats;
mod short_pages;
mod unreturned;

use super::subject::Extent;
use super::{AcceptedRows, End, ListAudit, ReaderState, Subject};
use crate::interface::Order;
use crate::query::snapshot::{ListKind, PageRequest, Purpose, Response, Rows};

/// Rows by key, height and block.
struct Page(Vec<(u64, i64, u64)>);

impl Rows for Page {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn key(&self, row: usize) -> u64 {
        self.0[row].0
    }

    fn height(&self, row: usize) -> Option<i64> {
        Some(self.0[row].1)
    }

    fn block(&self, row: usize) -> Option<u64> {
        Some(self.0[row].2)
    }

    fn transaction(&self, row: usize) -> Option<u64> {
        Some(self.0[row].0)
    }
}

/// Records of blocks whose hashes are not known, by their heights.
struct WithoutHash(Vec<i64>);

impl Rows for WithoutHash {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn key(&self, row: usize) -> u64 {
        self.0[row] as u64
    }

    fn height(&self, row: usize) -> Option<i64> {
        Some(self.0[row])
    }
}

const LIST: Subject = Subject {
    kind: ListKind::Growing,
    order: Order::NewestFirst,
    has_unique_keys: false,
    has_blocks: true,
    page_size: 3,
    max_page_size: 6,
    drops_oldest: false,
    compares_growth: false,
    wanted: None,
};
const BLOCKS: Subject = Subject { order: Order::Consecutive, has_unique_keys: true, ..LIST };
const ONE_BLOCK: Subject = Subject { kind: ListKind::Fixed, ..LIST };
const READ_ON: End = End { drift: 0, page_rows: 3, extent: Extent::Reachable };
const WHOLE: End = End { drift: 0, page_rows: 3, extent: Extent::Whole };

/// The reasons of an audit, one after another.
fn doubts(audit: &ListAudit) -> String {
    audit.doubts(&READ_ON).iter().map(ToString::to_string).collect()
}

/// Records of one block and one height.
fn keys(keys: &[u64]) -> Page {
    Page(keys.iter().map(|key| (*key, 7, 1)).collect())
}

/// Records with a height each.
fn heights(heights: &[i64]) -> Page {
    Page(heights.iter().map(|height| (*height as u64, *height, *height as u64)).collect())
}

fn take_as(
    audit: &mut ListAudit,
    request: PageRequest,
    rows: &Page,
    pages: u64,
    total: Option<u64>,
    returned: std::ops::Range<usize>,
) -> Result<(), String> {
    let response =
        Response { rows, page: Some(request.page), limit: Some(request.limit), total_pages: Some(pages), total };
    audit.note_records(&response);
    audit.on_response(&request, &response, &AcceptedRows { rows: returned, kept: None, seen: ReaderState::default() })
}

/// Gives a page to the audit, all of whose rows are returned.
fn take(audit: &mut ListAudit, page: u64, rows: &Page, pages: u64) -> Result<(), String> {
    take_as(audit, PageRequest { page, ..PageRequest::first(3) }, rows, pages, None, 0..rows.len())
}

/// Answers what the audit requests.
fn look(audit: &mut ListAudit, rows: &Page, pages: u64) -> Result<(), String> {
    let request = audit.next_request(&WHOLE).expect("something is to be proven");
    assert_eq!(request.purpose, Purpose::Audit);
    take_as(audit, request, rows, pages, None, 0..0)
}

#[test]
fn honest_lists_need_no_further_request() {
    let mut list = ListAudit::new(LIST, 0, &[]);
    take(&mut list, 1, &heights(&[9, 8, 7]), 2).unwrap();
    take(&mut list, 2, &heights(&[6, 5]), 2).unwrap();
    assert!(!list.is_open(&WHOLE) && list.next_request(&WHOLE).is_none());
    assert_eq!((list.on_end(&WHOLE), doubts(&list)), (Ok(()), String::new()));
    let mut block = ListAudit::new(ONE_BLOCK, 0, &[]);
    take(&mut block, 1, &keys(&[1, 2, 3]), 1).unwrap();
    assert!(!block.is_open(&WHOLE));
}

#[test]
fn response_that_names_another_page_is_a_contradiction() {
    let rows = keys(&[1]);
    let response = Response { rows: &rows, page: Some(1), limit: None, total_pages: None, total: None };
    let request = PageRequest { page: 2, ..PageRequest::first(3) };
    let returned = AcceptedRows { rows: 0..1, kept: None, seen: ReaderState::default() };
    let error = ListAudit::new(LIST, 0, &[]).on_response(&request, &response, &returned).unwrap_err();
    assert_eq!(error, "the response to page 2 says that it is page 1");
}

#[test]
fn records_on_a_page_beyond_the_last_are_a_contradiction() {
    let error = take(&mut ListAudit::new(LIST, 0, &[]), 4, &keys(&[1]), 3).unwrap_err();
    assert_eq!(error, "page 4 has records, but the API reports 3 pages");
    // Some services report 0 pages in place of none.
    take(&mut ListAudit::new(LIST, 0, &[]), 1, &keys(&[1]), 0).unwrap();
}

#[test]
fn unique_key_that_comes_again_is_a_contradiction() {
    for second in [[6, 5, 4], [7, 6, 5]] {
        let mut audit = ListAudit::new(BLOCKS, 0, &[]);
        take(&mut audit, 1, &heights(&[9, 8, 6]), 2).unwrap();
        assert!(take(&mut audit, 2, &heights(&second), 2).is_err(), "{second:?}");
    }
    let mut audit = ListAudit::new(Subject { order: Order::Ranked, ..BLOCKS }, 0, &[]);
    take(&mut audit, 1, &heights(&[5, 9, 7]), 2).unwrap();
    assert_eq!(take(&mut audit, 2, &heights(&[8, 9]), 2).unwrap_err(), "a record was received again");
}

#[test]
fn heights_that_no_block_has_are_counted() {
    let mut audit = ListAudit::new(BLOCKS, 0, &[]);
    take(&mut audit, 1, &heights(&[9, 8, 6]), 2).unwrap();
    assert!(doubts(&audit).contains("have gaps: 1 block is missing"));
    take(&mut audit, 2, &heights(&[3, 2]), 2).unwrap();
    assert!(doubts(&audit).contains("3 blocks are missing"));
}

#[test]
fn heights_below_the_records_that_are_wanted_are_not_counted() {
    for (wanted, missing) in [(1, ""), (2, ""), (3, "1 block is"), (4, "3 blocks are"), (9, "3 blocks are")] {
        let mut audit = ListAudit::new(Subject { wanted: Some(wanted), ..BLOCKS }, 0, &[]);
        take(&mut audit, 1, &heights(&[9, 8, 6]), 2).unwrap();
        take(&mut audit, 2, &heights(&[3, 2]), 2).unwrap();
        assert!(doubts(&audit).contains(missing), "{wanted}");
        assert_eq!(doubts(&audit).is_empty(), missing.is_empty(), "{wanted}");
    }
}

#[test]
fn blocks_that_rise_do_so_on_every_page() {
    let mut audit = ListAudit::new(BLOCKS, 0, &[]);
    take(&mut audit, 1, &heights(&[1, 2, 4]), 3).unwrap();
    take(&mut audit, 2, &heights(&[6]), 3).unwrap();
    assert!(doubts(&audit).contains("2 blocks are missing"));
    assert!(take(&mut audit, 3, &heights(&[6, 7]), 3).unwrap_err().contains("a block was received again"));
    for (first, second) in [(&[9, 8, 7], &[5, 6]), (&[1, 2, 3], &[5, 4]), (&[9, 8, 7], &[9, 10])] {
        let mut audit = ListAudit::new(BLOCKS, 0, &[]);
        take(&mut audit, 1, &heights(first), 2).unwrap();
        let error = take(&mut audit, 2, &heights(second), 2).unwrap_err();
        assert!(error.contains("ascending order"), "{second:?}: {error}");
    }
    let mut rising = ListAudit::new(BLOCKS, 0, &[]);
    take(&mut rising, 1, &heights(&[4, 5, 6]), 2).unwrap();
    let error = take(&mut rising, 2, &heights(&[3, 4]), 2).unwrap_err();
    assert_eq!(error, "a page begins at height 3, above records of height 6");
    let mixed = take(&mut ListAudit::new(BLOCKS, 0, &[]), 1, &heights(&[5, 9, 7]), 2).unwrap_err();
    assert_eq!(mixed, "the heights of blocks rise and fall on one page");
    for (height, is_contradiction) in [(Some(7), true), (None, false)] {
        let mut resumed = ListAudit::new(BLOCKS, 3, &[7]).below(height);
        assert_eq!(take(&mut resumed, 1, &heights(&[5, 6]), 2).is_err(), is_contradiction);
    }
}

#[test]
fn page_that_begins_above_the_one_before_it_is_a_contradiction() {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &heights(&[9, 8, 7]), 2).unwrap();
    let error = take(&mut audit, 2, &heights(&[8, 6]), 2).unwrap_err();
    assert_eq!(error, "a page begins at height 8, below records of height 7");
    // A list that is in another order anyway shows nothing by it.
    let mut unordered = ListAudit::new(LIST, 0, &[]);
    take(&mut unordered, 1, &heights(&[7, 9, 8]), 2).unwrap();
    take(&mut unordered, 2, &heights(&[12, 6]), 2).unwrap();
}

#[test]
fn records_of_two_blocks_under_one_height_are_a_contradiction() {
    let mut audit = ListAudit::new(ONE_BLOCK, 0, &[]);
    take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
    let error = take(&mut audit, 2, &Page(vec![(4, 7, 2)]), 2).unwrap_err();
    assert!(error.contains("two block hashes"), "{error}");
}

#[test]
fn list_that_is_shorter_than_a_discarded_reading_is_looked_at_three_times() {
    let read = |subject, rows: &Page| {
        let mut discarded = ListAudit::new(subject, 0, &[]);
        take(&mut discarded, 1, rows, 2).unwrap();
        take(&mut discarded, 2, &heights(&[5]), 1).unwrap_err();
        let mut audit = ListAudit::new(subject, 0, &[]).after_discarded(discarded);
        take(&mut audit, 1, rows, 1).unwrap();
        audit
    };
    for (subject, rows) in [
        (LIST, heights(&[9, 8, 7])),
        (BLOCKS, heights(&[9, 8, 7])),
        (Subject { order: Order::Ranked, kind: ListKind::Ranked, ..BLOCKS }, heights(&[8, 9, 7])),
    ] {
        let mut there = read(subject, &rows);
        look(&mut there, &heights(&[]), 1).unwrap();
        assert!(look(&mut there, &heights(&[5]), 2).unwrap_err().contains("an earlier response showed"));
        let mut deleted = read(subject, &rows);
        // The list has grown meanwhile.
        (0..3).for_each(|_| look(&mut deleted, &heights(&[7]), 2).unwrap());
        assert!(!deleted.is_open(&WHOLE));
        assert!(!read(subject, &rows).is_open(&End { extent: Extent::Reachable, ..WHOLE }));
    }
}

#[test]
fn list_that_is_empty_after_a_reading_of_records_was_discarded_is_a_contradiction() {
    let mut discarded = ListAudit::new(ONE_BLOCK, 0, &[]);
    take(&mut discarded, 1, &keys(&[1]), 1).unwrap();
    let again = ListAudit::new(ONE_BLOCK, 0, &[]).after_discarded(discarded);
    let audit = ListAudit::new(ONE_BLOCK, 0, &[]).after_discarded(again);
    assert!(audit.on_end(&WHOLE).unwrap_err().contains("became empty"));
    assert!(ListAudit::new(ONE_BLOCK, 0, &[]).on_end(&WHOLE).is_ok());
    // A page that says that it is another one is not taken, but the list has its records.
    let mut refused = ListAudit::new(ONE_BLOCK, 0, &[]);
    let rows = keys(&[1]);
    refused.note_records(&Response { rows: &rows, page: Some(2), limit: Some(3), total_pages: Some(2), total: None });
    let audit = ListAudit::new(ONE_BLOCK, 0, &[]).after_discarded(refused);
    assert!(audit.on_end(&WHOLE).unwrap_err().contains("became empty"));
}

#[test]
fn record_below_a_returned_one_in_a_discarded_reading_is_looked_for() {
    for (discarded, shown, is_there) in [
        (&[1, 2, 3][..], &[1, 2, 3, 4][..], true),
        (&[1, 2, 3], &[1, 2, 4, 5], false),
        // Newer records are above it meanwhile.
        (&[2, 3], &[8, 1, 2, 3], true),
    ] {
        let mut before = ListAudit::new(LIST, 0, &[]);
        take(&mut before, 1, &keys(discarded), 2).unwrap();
        let mut audit = ListAudit::new(LIST, 0, &[]).after_discarded(before);
        take(&mut audit, 1, &keys(&[1, 2, 4]), 2).unwrap();
        take(&mut audit, 2, &keys(&[5]), 2).unwrap();
        assert_eq!(look(&mut audit, &keys(shown), 1).is_err(), is_there, "{discarded:?} {shown:?}");
        assert!(is_there || !audit.is_open(&WHOLE));
    }
    // Records above all that both have may have been replaced.
    let mut before = ListAudit::new(LIST, 0, &[]);
    take(&mut before, 1, &keys(&[8, 9, 1]), 2).unwrap();
    let mut audit = ListAudit::new(LIST, 0, &[]).after_discarded(before);
    take(&mut audit, 1, &keys(&[7, 1, 2]), 1).unwrap();
    assert!(!audit.is_open(&WHOLE));
}

#[test]
fn row_that_was_dropped_is_not_looked_for() {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    let rows = keys(&[1, 2]);
    let response = Response { rows: &rows, page: None, limit: Some(3), total_pages: Some(1), total: None };
    let returned = AcceptedRows { rows: 0..2, kept: Some(&[0]), seen: ReaderState::default() };
    audit.on_response(&PageRequest::first(3), &response, &returned).unwrap();
    assert!(!audit.is_open(&WHOLE));
}

#[test]
fn end_that_another_response_showed_is_looked_for() {
    let read = || {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        let whole = PageRequest { ..PageRequest::first(6) };
        take_as(&mut audit, whole, &keys(&[1, 2, 2, 4, 5]), 1, None, 0..0).unwrap();
        take(&mut audit, 1, &keys(&[1, 2, 2]), 2).unwrap();
        let last = PageRequest { page: 4, ..PageRequest::first(1) };
        take_as(&mut audit, last, &keys(&[4]), 4, None, 0..1).unwrap();
        audit
    };
    assert!(look(&mut read(), &keys(&[4, 5]), 2).unwrap_err().contains("an earlier response showed"));
    let mut deleted = read();
    look(&mut deleted, &keys(&[4]), 2).unwrap();
    assert!(!deleted.is_open(&WHOLE));
}

#[test]
fn records_of_a_counted_list_follow_each_other_by_the_count() {
    let counted = |audit: &mut ListAudit, page, rows: &[u64], total, returned| {
        let request = PageRequest { page, ..PageRequest::first(3) };
        take_as(audit, request, &keys(rows), u64::div_ceil(total, 3), Some(total), returned)
    };
    let mut audit = ListAudit::new(LIST, 0, &[]);
    counted(&mut audit, 1, &[1, 2, 3], 7, 0..3).unwrap();
    // One record more: the page begins with a returned one.
    counted(&mut audit, 2, &[3, 4, 5], 8, 1..3).unwrap();
    let skipped = counted(&mut audit, 3, &[6, 7], 8, 1..2).unwrap_err();
    assert!(skipped.contains("do not follow each other"), "{skipped}");
    let mut audit = ListAudit::new(LIST, 0, &[]);
    counted(&mut audit, 1, &[1, 2, 3], 5, 0..3).unwrap();
    counted(&mut audit, 2, &[4, 5], 5, 0..2).unwrap();
    assert_eq!(audit.on_end(&WHOLE).unwrap_err(), "no response confirms the first page");
    let look = PageRequest { purpose: Purpose::FinalLook, ..PageRequest::first(3) };
    take_as(&mut audit, look, &keys(&[1, 2, 3]), 2, Some(5), 0..0).unwrap();
    audit.on_end(&WHOLE).unwrap();
}

#[test]
fn list_that_ends_before_its_last_page_has_more_records() {
    let read = |pages: &[u64]| {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        for (page, total_pages) in (1..).zip(pages) {
            let first = page as i64 * 10;
            take(&mut audit, page, &heights(&[100 - first, 99 - first, 98 - first]), *total_pages).unwrap();
        }
        audit.on_end(&WHOLE)
    };
    assert_eq!(read(&[4, 4]).unwrap_err(), "the list has more records than were returned");
    read(&[4, 4, 3]).unwrap();
    // Records were deleted meanwhile, as far as one response says.
    read(&[4, 2]).unwrap();
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &heights(&[90, 89, 88]), 2).unwrap();
    take(&mut audit, 2, &heights(&[]), 1).unwrap();
    // The record that was deleted may be one of those that were returned.
    assert_eq!(audit.on_end(&WHOLE).unwrap_err(), "the list has more records than were returned");
}
