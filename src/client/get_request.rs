//! `GetRequest`: a page that is requested, and what is expected of it.

use crate::columns::Projection;
use crate::decode::Page;
use crate::interface::Endpoint;

/// A request for one page.
#[derive(Clone, Debug)]
pub struct GetRequest {
    pub endpoint: &'static Endpoint,
    /// Path and query.
    pub target: String,
    /// Content by which the response is judged.
    pub expectation: Expectation,
}

/// The expected content of a response.
#[derive(Clone, Copy, Debug)]
pub struct Expectation {
    /// Number of requested records.
    pub row_hint: usize,
    /// Number of the page.
    pub page: u64,
    /// Number of records before the page.
    pub offset: u64,
    /// True if the service has said that there are records: an empty response is then a throttle in disguise.
    pub must_have_rows: bool,
    /// True if the records are the same whenever they are requested.
    pub is_fixed: bool,
    pub projection: Projection,
}

impl Expectation {
    /// The evidence that a page without records contradicts, if there is some.
    pub(super) fn contradiction(&self, page: &Page) -> Option<&'static str> {
        if page.columns.rows() > 0 {
            return None;
        }
        let has_more = page.paging.total.is_some_and(|total| total > self.offset)
            || page.paging.total_pages.is_some_and(|pages| pages > 1 && pages >= self.page);
        match (has_more, self.must_have_rows) {
            (true, _) => Some("the API reports more records"),
            (false, true) => Some("another response showed records of it"),
            (false, false) => None,
        }
    }

    /// True if a page without records does not say that there are none: nothing was found, or the API throttles. Some
    /// services count one page where they find nothing, others no pages at all.
    pub(super) fn is_doubtful(&self, page: &Page) -> bool {
        let is_first = self.page == 1 && page.paging.total_pages.is_none_or(|pages| pages <= 1);
        page.is_bare() || page.columns.rows() == 0 && is_first && !counts_none(page)
    }

    /// True if a list is empty by its first page, which counts none.
    pub(super) fn is_counted_empty(&self, page: &Page) -> bool {
        self.page == 1 && page.columns.rows() == 0 && counts_none(page)
    }
}

/// True if a page says that its list has no pages or no records.
pub(super) fn counts_none(page: &Page) -> bool {
    page.paging.total == Some(0) || page.paging.total_pages == Some(0)
}
