//! `Lengths`: how long the list was at least, by each response. A list of which fewer records were returned has not ended.

use super::pages::records_before;
use crate::query::snapshot::{PageRequest, Response};

/// Requests for records that only a discarded reading has shown: several servers may answer in turn.
const MAX_LOOKS: u32 = 3;

#[derive(Clone, Debug, Default)]
pub struct Lengths {
    /// The least of the least lengths: records may have been deleted between two responses.
    min_length: Option<u64>,
    /// True if a response was the last page, or the lengths are those of a part of the list.
    is_known_end: bool,
    /// End of the records that were received, as an offset of the result.
    received: u64,
    /// Records that one response showed from the first on.
    shown: u64,
    /// Key of the last record, as the latest response with a page that is not full shows it.
    last: Option<u64>,
    /// The end of those that a reading of the same list received that was discarded.
    discarded: u64,
    looks: u32,
}

impl Lengths {
    /// Lengths of a list that continues another run, whose responses are not known.
    pub fn continued() -> Self {
        Self { is_known_end: true, ..Self::default() }
    }

    /// Lengths of a list of which an earlier reading received records up to this one.
    pub fn after(discarded: u64) -> Self {
        Self { discarded, ..Self::default() }
    }

    /// End of all records that were received of the list.
    pub fn received(&self) -> u64 {
        self.received.max(self.discarded)
    }

    /// Takes the rows of any response, from a list that has moved by `drift`.
    pub fn on_rows(&mut self, request: &PageRequest, response: &Response<'_>, drift: i64) {
        let rows = response.rows.len() as u64;
        if request.height_bound.is_some() || rows == 0 {
            return;
        }
        let end = records_before(request, response.limit) + rows;
        self.received = self.received.max(end.saturating_add_signed(drift.saturating_neg()));
        if request.page == 1 {
            self.shown = self.shown.max(rows);
        }
        if rows < response.limit.unwrap_or(request.limit).min(request.limit) && !response.has_next(request) {
            self.last = Some(response.rows.key(response.rows.len() - 1));
        }
    }

    /// Takes a response, of which rows may be returned. An empty page says only that the list is shorter by now.
    pub fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) {
        let rows = response.rows.len() as u64;
        self.is_known_end |= request.height_bound.is_some();
        if rows == 0 {
            return;
        }
        let has_next = response.has_next(request);
        let min_length = match (response.total, response.total_pages) {
            (Some(total), _) => total,
            (None, Some(pages)) if has_next => (pages - 1) * rows + 1,
            (None, _) => 0,
        };
        self.is_known_end |= !has_next;
        self.min_length = Some(self.min_length.map_or(min_length, |known| known.min(min_length)));
    }

    /// True if all responses say that the list has more records than were returned.
    pub fn exceed(&self, returned: u64) -> bool {
        !self.is_known_end && self.min_length.is_some_and(|min_length| min_length > returned)
    }

    /// True if one response has shown more records.
    pub fn are_shown_to_exceed(&self, returned: u64) -> bool {
        self.shown > returned
    }

    /// True if a discarded reading has received more records, or a response another last one, which may still be there.
    pub fn may_exceed(&self, returned: u64, is_known: impl Fn(u64) -> bool) -> bool {
        let has_another_end = self.last.is_some_and(|last| !is_known(last));
        (self.discarded > returned || has_another_end) && self.looks < MAX_LOOKS
    }

    /// The page of the record after the last one.
    pub fn request(&mut self, last: u64, page_size: u64, page_rows: u64) -> PageRequest {
        self.looks += 1;
        PageRequest::of_audit(last / page_rows + 1, page_size)
    }
}
