//! Requests of a run, one page each.

use std::collections::BTreeSet;

use crate::client::{Error, Expectation, GetRequest};
use crate::columns::{Column, Columns};
use crate::decode::Page;
use crate::interface::{Order, Shape};
use crate::message::{Hint, Message};
use crate::query::request::Query;
use crate::query::results::{SharedReport, record_keys};
use crate::query::snapshot::{ListKind, PageRequest, Rows};

/// Least records that the response to a lookup is expected to have.
pub(super) const LOOKUP_ROWS: u64 = 16;

const OTHER_RECORDS: &str = "A request of the client that was sent again returned other records than before: a part of \
                             the service may lack some";
const DOUBLED_RECORDS: &str = "A page has more records than were requested, and equal ones among them: some may be one \
                               record that the page has twice.";

/// Fetches one page. `must_have_rows` is true if an empty page would contradict an earlier response.
pub(super) async fn fetch(
    query: &Query,
    slice: u64,
    request: PageRequest,
    must_have_rows: bool,
    report: &SharedReport,
) -> Result<Page, Error> {
    let sent = get_request(query, slice, &request, must_have_rows);
    // Counted when it is sent: the run may be gone when the response arrives.
    let fetched = query.client().get(&sent, &|| report.update(|report| report.requests += 1)).await;
    let attempts = fetched.as_ref().map_or_else(Error::attempts, |fetched| fetched.attempts);
    report.update(|report| {
        report.retries += u64::from(attempts.saturating_sub(1));
        report.bytes += fetched.as_ref().map_or(0, |fetched| fetched.bytes as u64);
    });
    let is_height = query.slices().height(slice).is_some();
    let fetched = match fetched {
        // One height of a range: there may be none between two others.
        Err(error) if error.is_absent_block() && is_height && !query.is_shown(slice) => {
            return Ok(Page::empty(query.endpoint().record()));
        }
        fetched => fetched?,
    };
    if let Some(believed) = fetched.believed_empty {
        report.add_believed_empty(query.client().empty_responses(), believed, sent);
    }
    confirm_empty(query, report).await;
    if fetched.repeated.iter().any(|page| lacks(&page.before, &page.after) || lacks(&page.after, &page.before)) {
        report.add_contradiction(Message::new(OTHER_RECORDS).hint(Hint::RunAgain));
    }
    if query.is_paged() && has_doubled_records(&fetched.page, request.limit) {
        report.add_contradiction(DOUBLED_RECORDS);
    }
    check_heights(query, slice, &fetched.page)?;
    Ok(fetched.page)
}

/// The request for a page of a slice.
pub(super) fn get_request(query: &Query, slice: u64, request: &PageRequest, must_have_rows: bool) -> GetRequest {
    let PageRequest { page, limit, height_bound, .. } = *request;
    let hashes = query.slices().hashes(slice).len() as u64;
    let row_hint = if query.is_paged() { limit } else { hashes.max(LOOKUP_ROWS) } as usize;
    let offset = request.position();
    GetRequest {
        endpoint: query.endpoint(),
        target: query.target(slice, page, limit, height_bound),
        expectation: Expectation { row_hint, page, offset, must_have_rows, ..expectation(query) },
    }
}

/// Requests pages once more whose empty responses nothing has confirmed, as soon as a page with records is known.
pub(super) async fn confirm_empty(query: &Query, report: &SharedReport) {
    let unconfirmed = report.take_unconfirmed();
    if unconfirmed.is_empty() {
        return;
    }
    let are_confirmed =
        query.client().confirm_empty(&unconfirmed, &|| report.update(|report| report.requests += 1)).await;
    if are_confirmed {
        report.confirm_empty(unconfirmed.len());
    }
}

/// True if a page lacks a record of another response to its request, and the chain has the block of the record. A block that
/// both responses show was not replaced, and neither was one below it.
fn lacks(page: &Columns, other: &Columns) -> bool {
    let known = BTreeSet::from_iter(record_keys(page));
    let blocks: BTreeSet<(i64, u64)> = (0..page.rows()).filter_map(|row| block_of(page, row)).collect();
    let shared = (0..other.rows()).filter_map(|row| block_of(other, row)).filter(|block| blocks.contains(block));
    let top = shared.map(|(height, _)| height).max();
    (0..).zip(record_keys(other)).filter(|(_, key)| !known.contains(key)).any(|(row, _)| {
        let Some((height, _)) = block_of(other, row) else { return true };
        top.is_some_and(|top| height <= top)
    })
}

/// Height and hash of a record's block, where it shows them.
fn block_of(rows: &Columns, row: usize) -> Option<(i64, u64)> {
    Rows::height(rows, row).zip(Rows::block(rows, row))
}

/// True if a page has more records than its limit, and would not without the second ones of equal records: a service that
/// joins tables after it has cut the page. One that ignores the limit has as many different records.
fn has_doubled_records(page: &Page, limit: u64) -> bool {
    let rows = &page.columns;
    rows.rows() as u64 > limit && BTreeSet::from_iter(record_keys(rows)).len() as u64 <= limit
}

/// Expectation of all requests of a query, to which each adds its page and its number of records.
pub(super) fn expectation(query: &Query) -> Expectation {
    Expectation {
        row_hint: 0,
        page: 1,
        offset: 0,
        must_have_rows: false,
        is_fixed: matches!(list_kind(query), ListKind::Lookup | ListKind::Fixed),
        projection: query.projection(),
    }
}

/// Fails if a record lacks the height by which its slice was requested, or by which its list is followed.
fn check_heights(query: &Query, slice: u64, page: &Page) -> Result<(), Error> {
    let columns = &page.columns;
    let endpoint = query.endpoint();
    let Some(height) = columns.record().height() else { return Ok(()) };
    if columns.rows() == 0 {
        return Ok(());
    }
    let is_slice = query.slices().height(slice).is_some();
    // A pending record has the member, without a value.
    let is_absent = page.members.in_all & 1 << height == 0;
    let row = match columns.column(height) {
        Column::Integer(heights) if is_slice => heights.iter().position(|height| height.is_none()),
        _ => None,
    };
    if row.is_none() && !(is_absent && (is_slice || query.is_followed())) {
        return Ok(());
    }
    let name = &query.client().decoder(endpoint).names()[height];
    let list =
        if let Shape::Paged { list, .. } = endpoint.shape { format!("data[0].{list}") } else { "data".to_owned() };
    let path = row.map_or_else(|| list.clone(), |row| format!("{list}[{row}].{name}"));
    let identity = columns
        .record()
        .identity
        .iter()
        .find_map(|name| columns.text(columns.record().position(name)?, row.unwrap_or(0)));
    Err(Error::Format {
        endpoint: endpoint.name,
        path,
        problem: format!("expected records with {name}, by which they are requested"),
        excerpt: identity.unwrap_or_default().into(),
        attempts: 1,
        retryable: false,
    })
}

/// Kind of a query's lists.
pub(super) fn list_kind(query: &Query) -> ListKind {
    if !query.is_paged() {
        ListKind::Lookup
    } else if query.endpoint().order == Order::Ranked {
        ListKind::Ranked
    } else if query.may_grow() {
        ListKind::Growing
    } else {
        ListKind::Fixed
    }
}
