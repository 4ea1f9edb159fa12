//! Numbers that a response reports of itself, compared with its request.

use super::pages::records_before;
use crate::message::counted;
use crate::query::snapshot::{PageRequest, Response};

/// A page beyond the last one has no records. Some services report 0 pages in place of none.
pub fn check_numbers(request: &PageRequest, response: &Response<'_>) -> Result<(), String> {
    match response.total_pages {
        Some(pages) if pages > 0 && pages < request.page && response.rows.len() > 0 => {
            Err(format!("page {} has records, but the API reports {}", request.page, counted(pages, "page")))
        }
        _ => Ok(()),
    }
}

/// A response that names another page is not that of the request.
pub fn check_echo(request: &PageRequest, response: &Response<'_>) -> Result<(), String> {
    match response.page {
        Some(page) if page != request.page && page > 0 => {
            Err(format!("the response to page {} says that it is page {page}", request.page))
        }
        _ => Ok(()),
    }
}

/// A count that is less than the records of its own page and of those before it.
pub fn check_count(request: &PageRequest, response: &Response<'_>) -> Result<(), String> {
    let rows = response.rows.len() as u64;
    match response.total {
        Some(total) if rows > 0 && records_before(request, response.limit).saturating_add(rows) > total => {
            Err(format!("page {} has records beyond the {total} that the API counts", request.page))
        }
        _ => Ok(()),
    }
}
