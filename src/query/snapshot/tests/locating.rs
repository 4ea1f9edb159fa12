//! The offset of a page by each strategy, and the cases in which there is none.

use super::super::delivered::Delivered;
use super::super::snapshot::{Length, PageSizes, Snapshot};
use super::super::spec::{Rows, View};
use super::super::uncounted::locator::{Location, Locator};

#[derive(Clone, Copy)]
struct Page {
    keys: [u64; 3],
    heights: [i64; 3],
    position: i64,
    page_size: u64,
    pages: Option<u64>,
    drift: i64,
    is_next: bool,
    page_sizes: PageSizes,
    window: u64,
}

const AS_REQUESTED: PageSizes = PageSizes { min: 1, max: u64::MAX };
const FIXED: PageSizes = PageSizes { min: 3, max: 3 };
const OVERLAPPING: Page = Page {
    keys: [7, 8, 9],
    heights: [0; 3],
    position: 3,
    page_size: 3,
    pages: None,
    drift: 1,
    is_next: false,
    page_sizes: AS_REQUESTED,
    window: u64::MAX,
};
const ADJACENT: Page = Page { is_next: true, pages: Some(4), ..OVERLAPPING };

impl Rows for Page {
    fn len(&self) -> usize {
        3
    }

    fn key(&self, row: usize) -> u64 {
        self.keys[row]
    }

    fn height(&self, row: usize) -> Option<i64> {
        Some(self.heights[row])
    }
}

/// Offset of a page after `end` records, of which the latest are known.
fn offset_after(end: u64, latest: &[u64], page: Page) -> Location {
    let mut delivered = Delivered::at(end - latest.len() as u64);
    delivered.push(latest.iter().copied(), 100);
    let snapshot = Snapshot { length: Length::Exact(9), page_sizes: page.page_sizes, ..Snapshot::default() };
    let Page { position, page_size, pages, window, .. } = page;
    let view = View { rows: &page, page: 2, position, page_size, pages, total: None, window };
    let next = (page.is_next && position - page.drift == end as i64).then_some(end as i64);
    Locator { view: &view, snapshot: &snapshot, delivered: &delivered, drift: page.drift, next }.locate()
}

#[test]
fn one_shared_record_locates_a_page_unless_it_may_be_a_duplicate_further_down() {
    assert_eq!(offset_after(3, &[4, 5, 7], OVERLAPPING), Location::Ambiguous);
    assert_eq!(offset_after(3, &[5, 5, 7], Page { keys: [5, 7, 8], ..OVERLAPPING }), Location::At(1));
    assert_eq!(offset_after(3, &[4, 5, 7], Page { keys: [1, 2, 3], ..OVERLAPPING }), Location::Lost);
    // No page could show a record above the first page, and an inner row has others above it.
    assert_eq!(offset_after(3, &[5, 5, 7], Page { position: 0, ..OVERLAPPING }), Location::At(2));
    assert_eq!(offset_after(5, &[5, 6, 6], Page { keys: [1, 2, 5], ..OVERLAPPING }), Location::At(0));
}

#[test]
fn page_at_the_position_of_the_next_record_is_adjacent_if_it_shares_none() {
    assert_eq!(offset_after(2, &[4, 5], ADJACENT), Location::At(2));
    assert_eq!(offset_after(3, &[4, 5, 6], ADJACENT), Location::Lost);
    assert_eq!(offset_after(2, &[4, 5], OVERLAPPING), Location::Lost);
    assert_eq!(offset_after(2, &[8, 5], ADJACENT), Location::Lost);
}

#[test]
fn rows_shared_with_an_adjacent_page_are_an_overlap_if_heights_show_that_they_are_not_repeated() {
    let page = |heights, page_sizes| Page {
        keys: [4, 5, 6],
        heights,
        drift: 0,
        page_sizes,
        page_size: 4,
        pages: Some(3),
        ..ADJACENT
    };
    for (heights, location) in [
        ([9, 8, 7], Location::At(1)),
        ([9, 8, 8], Location::At(1)),
        ([9, 9, 8], Location::Ambiguous),
        ([9, 9, 9], Location::Ambiguous),
        ([9, 8, 9], Location::Ambiguous),
        ([7, 8, 9], Location::Ambiguous),
    ] {
        assert_eq!(offset_after(3, &[3, 4, 5], page(heights, AS_REQUESTED)), location, "{heights:?}");
        // Nothing could tell duplicates apart.
        assert_eq!(offset_after(3, &[3, 4, 5], page(heights, FIXED)), Location::At(1));
    }
}

/// The page was requested where it would be if the list had grown.
#[test]
fn rows_shared_with_a_page_that_may_lie_below_are_an_overlap_if_all_records_differ() {
    let page = |keys, drift| Page { keys, drift, position: 4, ..OVERLAPPING };
    for (drift, differing, equal) in [
        (i64::MIN / 2, Location::At(1), Location::Ambiguous),
        (0, Location::At(1), Location::Ambiguous),
        (1, Location::At(1), Location::Ambiguous),
        (2, Location::At(1), Location::At(1)),
    ] {
        assert_eq!(offset_after(3, &[4, 7, 8], page([7, 8, 9], drift)), differing, "drift {drift}");
        assert_eq!(offset_after(3, &[4, 7, 8], page([7, 8, 8], drift)), equal, "drift {drift}");
        assert_eq!(offset_after(3, &[7, 7, 8], page([7, 8, 9], drift)), equal, "drift {drift}");
        let descending = Page { heights: [9, 8, 7], ..page([7, 8, 8], drift) };
        assert_eq!(offset_after(3, &[4, 7, 8], descending), Location::At(1), "drift {drift}");
    }
}

#[test]
fn last_page_is_where_it_ends_with_the_snapshot() {
    let page = |position, pages| Page { keys: [6, 7, 8], position, pages: Some(pages), ..OVERLAPPING };
    // The snapshot has nine records. Four pages have ten to twelve.
    assert_eq!(offset_after(6, &[4, 6, 7], page(6, 4)), Location::At(4));
    assert_eq!(offset_after(7, &[4, 6, 7], page(6, 4)), Location::At(5));
    assert_eq!(offset_after(8, &[4, 6, 7], page(6, 4)), Location::Lost);
    assert_eq!(offset_after(6, &[4, 6, 7], page(6, 3)), Location::Lost);
    for pages in [u64::MAX, 1 << 62] {
        assert_eq!(offset_after(6, &[4, 6, 7], page(6, pages)), Location::Lost);
    }
    // The same rows are the end of the list.
    assert_eq!(offset_after(8, &[4, 6, 7], page(6, 2)), Location::At(6));
    assert_eq!(offset_after(7, &[4, 6, 7], page(6, 2)), Location::Lost);
    assert_eq!(offset_after(9, &[4, 6, 7], page(6, 2)), Location::Lost);
}

#[test]
fn page_without_a_number_of_pages_is_not_adjacent_in_a_list_that_reported_its_length() {
    assert_eq!(offset_after(2, &[1, 2], ADJACENT), Location::At(2));
    assert_eq!(offset_after(2, &[1, 2], Page { pages: None, ..ADJACENT }), Location::Lost);
}

/// The list may have grown beyond the window, and the page follow any of its records.
#[test]
fn page_of_a_list_that_reaches_its_result_window_is_not_adjacent() {
    assert_eq!(offset_after(2, &[1, 2], Page { window: 13, ..ADJACENT }), Location::At(2));
    assert_eq!(offset_after(2, &[1, 2], Page { window: 12, ..ADJACENT }), Location::Lost);
    // An overlap is evidence as before.
    let last = Page { keys: [6, 7, 8], position: 6, pages: Some(3), ..OVERLAPPING };
    assert_eq!(offset_after(6, &[4, 6, 7], last), Location::Lost);
    assert_eq!(offset_after(6, &[4, 6, 7], Page { window: 9, ..last }), Location::At(4));
}
