//! `Lengths`: how long the list was at least, by each response. A list of which fewer records were returned has not ended.

use crate::query::snapshot::{PageRequest, Response};

#[derive(Debug, Default)]
pub struct Lengths {
    /// The least of the least lengths: records may have been deleted between two responses.
    least: Option<u64>,
    /// True if a response was the last page, or the lengths are those of a part of the list.
    is_known_end: bool,
}

impl Lengths {
    /// Lengths of a list that continues another run, whose responses are not known.
    pub fn continued() -> Self {
        Self { least: None, is_known_end: true }
    }

    /// Takes a response.
    pub fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) {
        let rows = response.rows.len() as u64;
        let has_next = response.total_pages.is_some_and(|pages| pages > request.page);
        let full_pages = response.total_pages.filter(|_| has_next && rows > 0).map(|pages| (pages - 1) * rows);
        let least = response.total.or(full_pages.map(|records| records + 1)).unwrap_or(0);
        self.is_known_end |= request.height_bound.is_some() || !has_next;
        self.least = Some(self.least.map_or(least, |known| known.min(least)));
    }

    /// True if all responses say that the list has more records than were returned.
    pub fn exceed(&self, returned: u64) -> bool {
        !self.is_known_end && self.least.is_some_and(|least| least > returned)
    }
}
