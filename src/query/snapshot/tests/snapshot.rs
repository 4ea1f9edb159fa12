//! Page sizes and ends that responses show.

use super::super::snapshot::{PageSizes, Snapshot};
use super::super::spec::View;
use super::super::{PageRequest, Response};
use super::lists::Keys;

const AT_MOST_50: PageSizes = PageSizes { min: 1, max: 50 };
const AT_MOST_30: PageSizes = PageSizes { min: 1, max: 30 };
const FIXED: PageSizes = PageSizes { min: 50, max: 50 };

#[test]
fn pages_have_the_requested_size_within_those_that_the_api_serves() {
    let rows = |page_sizes, page_limit| Snapshot { page_limit, page_sizes, ..Snapshot::default() }.page_rows();
    assert_eq!([10, 50, 100].map(|limit| rows(PageSizes::default(), limit)), [10, 50, 100]);
    assert_eq!([10, 50, 100].map(|limit| rows(AT_MOST_50, limit)), [10, 50, 50]);
    assert_eq!([10, 50, 100].map(|limit| rows(FIXED, limit)), [50, 50, 50]);
}

/// Position and page size of the second page of a list in pages of 100, of which the API serves 50 records, and the page
/// sizes that it is taken to serve.
fn second_page(limit: u64, rows: usize, reported: Option<u64>) -> (i64, u64, PageSizes) {
    second_page_of(0, limit, rows, reported)
}

/// Position, page size and page sizes of the second page, if a third one follows.
fn before_the_last(limit: u64, rows: usize, reported: Option<u64>) -> (i64, u64, PageSizes) {
    second_page_of(3, limit, rows, reported)
}

fn second_page_of(pages: u64, limit: u64, rows: usize, reported: Option<u64>) -> (i64, u64, PageSizes) {
    let (page_limit, rows) = (100, Keys((0..rows as u64).collect()));
    let mut snapshot = Snapshot { page_limit, page_sizes: AT_MOST_50, ..Snapshot::default() };
    let request = PageRequest { page: 2, ..PageRequest::first(limit) };
    let response = Response { rows: &rows, page: None, limit: reported, total_pages: Some(pages), total: None };
    snapshot.learn_page_sizes(&request, &response);
    let view = snapshot.view(&request, &response, u64::MAX);
    assert_eq!((view.pages, view.total), (Some(pages).filter(|pages| *pages > 0), None));
    (view.position, view.page_size, snapshot.page_sizes)
}

#[test]
fn pages_have_a_fixed_size_if_another_limit_is_ignored() {
    assert_eq!(second_page(100, 50, Some(50)), (50, 50, AT_MOST_50));
    assert_eq!(second_page(100, 50, Some(60)), (50, 50, AT_MOST_50));
    assert_eq!(before_the_last(100, 20, Some(20)), (20, 20, AT_MOST_50));
    assert_eq!(before_the_last(100, 20, Some(50)), (50, 50, AT_MOST_50));
    assert_eq!(before_the_last(40, 30, None), (30, 30, AT_MOST_30));
    assert_eq!(before_the_last(40, 0, None), (40, 40, AT_MOST_50));
    assert_eq!(before_the_last(40, 30, Some(40)), (30, 30, AT_MOST_30));
    assert_eq!(second_page(80, 50, Some(50)), (50, 50, AT_MOST_50));
    assert_eq!(second_page(40, 30, Some(30)), (30, 30, AT_MOST_30));
    assert_eq!(second_page(40, 30, Some(0)), (40, 40, AT_MOST_50));
    assert_eq!(second_page(1, 1, Some(1)), (1, 1, AT_MOST_50));
    assert_eq!(second_page(1, 1, Some(0)), (1, 1, AT_MOST_50));
    assert_eq!(second_page(1, 1, None), (1, 1, AT_MOST_50));
    assert_eq!(second_page(1, 2, None), (50, 50, FIXED));
    assert_eq!(second_page(1, 1, Some(50)), (50, 50, FIXED));
}

#[test]
fn fixed_size_stays_as_it_is_if_a_page_shows_less() {
    let (rows, mut snapshot) = (Keys((0..30).collect()), Snapshot { page_sizes: FIXED, ..Snapshot::default() });
    let response = Response { rows: &rows, page: None, limit: Some(30), total_pages: None, total: None };
    snapshot.learn_page_sizes(&PageRequest::first(60), &response);
    assert_eq!(snapshot.page_sizes, FIXED);
}

#[test]
fn last_page_is_that_of_the_reported_number_or_reaches_the_count_or_is_empty() {
    for (position, rows, pages, total, is_last) in [
        (6, 3, Some(3), None, true),
        (6, 3, Some(4), None, false),
        (6, 3, Some(4), Some(9), false),
        (6, 3, None, Some(10), false),
        (6, 3, None, Some(9), true),
        (6, 2, None, Some(9), false),
        (6, 0, None, Some(9), true),
        (6, 3, None, None, false),
        // The service may return two records at most.
        (6, 2, None, None, false),
        (6, 0, None, None, true),
    ] {
        let rows = Keys((0..rows).collect());
        let view = View { rows: &rows, page: 3, position, page_size: 3, pages, total, window: u64::MAX };
        assert_eq!(view.is_last(), is_last, "{} rows, {pages:?} {total:?}", view.len());
    }
}

/// A list that reaches the result window has more records than pages.
#[test]
fn pages_of_one_record_show_the_length_below_the_result_window() {
    let rows = Keys(vec![1]);
    for (pages, length) in [(197, Some(197)), (198, None), (199, None)] {
        let response = Response { rows: &rows, page: None, limit: Some(1), total_pages: Some(pages), total: None };
        assert_eq!(Snapshot::default().view(&PageRequest::first(1), &response, 198).length(), length);
    }
}
