//! The list of a query, and its pages, as the reader and the audit take them.

use super::fetch::list_kind;
use crate::decode::Page;
use crate::interface::ResultLimit;
use crate::query::audit::Subject;
use crate::query::request::Query;
use crate::query::snapshot::{FirstPage, ListKind, ListReader, ListSpec, PageRequest, Purpose, Response, Tuning};

/// Description of a query's lists for their reader. Of each, `wanted` records are wanted, or all.
pub(super) fn list_spec(query: &Query, wanted: Option<u64>) -> ListSpec {
    ListSpec {
        endpoint: query.endpoint().name,
        kind: list_kind(query),
        page_size: query.page_size().max(1),
        max_page_size: query.max_page_size().unwrap_or(1),
        height_bound: query.height_bound(),
        result_window: query.result_window(),
        wanted,
        first_page: FirstPage::default(),
        hints: query.retry_hints(),
        tuning: Tuning::default(),
    }
}

/// The list of a query as its audit takes it.
pub(super) fn subject(query: &Query, wanted: Option<u64>) -> Subject {
    let endpoint = query.endpoint();
    let spec = list_spec(query, wanted);
    Subject {
        kind: spec.kind,
        order: endpoint.order,
        has_unique_keys: endpoint.has_unique_keys,
        has_blocks: endpoint.record().block().is_some(),
        drops_oldest: endpoint.limit == ResultLimit::LastYear,
        page_size: spec.page_size,
        max_page_size: spec.max_page_size,
        compares_growth: spec.kind == ListKind::Growing,
        wanted,
    }
}

/// A fetched page as the reader of the list and the audit take it. A count that may be that of the result window is none.
pub(super) fn response<'p>(page: &'p Page, list: &ListSpec) -> Response<'p> {
    Response {
        rows: &page.columns,
        page: page.paging.number,
        limit: page.paging.limit,
        total_pages: page.paging.total_pages,
        total: page.paging.total.filter(|total| !list.is_capped(*total)),
    }
}

/// True if an empty response would contradict what is known of the list.
pub(super) fn must_have_rows(list: &ListReader, request: &PageRequest) -> bool {
    match request.purpose {
        Purpose::Probe => request.page == 1,
        // They are requested where the list is expected to have moved to.
        Purpose::FinalLook => false,
        // The pages of one block had records.
        Purpose::Audit => list.spec().kind == ListKind::Fixed && request.position() < list.returned(),
        // The last page of a list has at least one record.
        Purpose::Records => {
            let position = request.position();
            let is_listed = position < list.snapshot().min_length || list.is_announced(request.page);
            // Another pass finds what a ranked list has left.
            let is_ranked = list.spec().kind == ListKind::Ranked;
            let is_known = request.height_bound.is_none() && !is_ranked && is_listed;
            is_known && !list.spec().is_beyond_window(request)
        }
    }
}
