//! Progress of a run in the unit that its query counts.

use crate::query::request::Query;
use crate::query::results::Progress;

/// Position of a run after a page.
pub(super) struct RunPosition {
    pub slice: u64,
    pub offset: u64,
    /// Slice and offset at which the run began: those of its cursor, if it continues an earlier one.
    pub began: (u64, u64),
}

/// Progress of a run that delivered `pages` pages and `records` records. The list has `total` records or else
/// `total_pages` pages.
pub(super) fn progress(
    query: &Query,
    position: &RunPosition,
    total: Option<u64>,
    total_pages: Option<u64>,
    pages: u64,
    records: u64,
) -> Progress {
    let limit = query.max_items();
    let (slice, offset) = position.began;
    match (query.slices().unit(), total, total_pages) {
        (Some(unit), ..) => {
            let total = if limit.is_none() { Some(query.slices().count()) } else { None };
            Progress { unit, start: slice, done: position.slice + 1, total }
        }
        (None, Some(total), _) => {
            let done = if limit.is_some() { offset + records } else { position.offset };
            let total = Some(limit.map_or(total, |limit| total.min(offset + limit)));
            Progress { unit: "records", start: offset, done, total }
        }
        (None, None, Some(last)) if last > 0 => {
            let size = query.page_size().max(1);
            let total = Some(limit.map_or(last, |limit| last.min((offset + limit).div_ceil(size))));
            // Pages may be smaller than what was asked for.
            let done = if offset == 0 { pages } else { position.offset.div_ceil(size) };
            Progress { unit: "pages", start: offset / size, done, total }
        }
        _ => Progress { unit: "records", start: offset, done: offset + records, total: None },
    }
}
