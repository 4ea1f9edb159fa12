//! Requests that show a place of the list.

use crate::query::snapshot::PageRequest;

/// The page that has the records at both offsets. Pages begin at multiples of their size, so the largest may begin between
/// the two. In a list that grows, both are best in the middle of a page. `None` if no page has both.
pub fn page_of_both(first: u64, second: u64, max_page_size: u64) -> Option<PageRequest> {
    let sizes = (2..=max_page_size).filter(|limit| first / limit == second / limit);
    let limit = sizes.max_by_key(|limit| (first % limit).min(limit - 1 - second % limit))?;
    Some(PageRequest::of_audit(first / limit + 1, limit))
}

/// Number of records before a page, as far as its request and its response show.
pub fn records_before(request: &PageRequest, served: Option<u64>) -> u64 {
    let page_rows = served.filter(|rows| (1..request.limit).contains(rows)).unwrap_or(request.limit);
    request.position_by(page_rows)
}
