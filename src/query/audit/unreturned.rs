//! `Unreturned`: records that were received below others and not returned, as far as they are known. A page may be discarded
//! because its place is unknown; its records are returned with another one, unless the list ends too early.

use std::collections::VecDeque;
use std::ops::Range;

use super::known_keys::KnownKeys;
use crate::query::snapshot::{PageRequest, Purpose, Response, Rows};

/// Pairs that are kept: those of the pages that can be in flight together.
const KEPT: usize = 1_024;
/// Requests for the end of a list that grows meanwhile.
const MAX_LOOKS: u64 = 8;

#[derive(Debug, Default)]
pub struct Unreturned {
    /// A record, and the one below it.
    pairs: VecDeque<(u64, u64)>,
    looks: u64,
}

impl Unreturned {
    /// Takes a response of which these rows are about to be returned.
    pub fn on_response(&mut self, rows: &dyn Rows, returned: &Range<usize>, known: &KnownKeys) {
        let from = if returned.is_empty() { 1 } else { returned.end };
        for row in from..rows.len() {
            let pair = (rows.key(row - 1), rows.key(row));
            if !known.contains(pair.1) {
                self.pairs.push_back(pair);
            }
        }
        if self.pairs.len() > KEPT {
            self.pairs.retain(|(_, below)| !known.contains(*below));
            let excess = self.pairs.len().saturating_sub(KEPT);
            self.pairs.drain(..excess);
        }
    }

    /// True if a record followed a returned one and was not returned.
    pub fn may_follow(&self, known: &KnownKeys) -> bool {
        self.pairs.iter().any(|(above, below)| known.contains(*above) && !known.contains(*below))
    }

    /// The page with the last record, at this position; then those that follow it.
    pub fn request(&self, last: u64, limit: u64) -> PageRequest {
        PageRequest { page: last / limit + 1 + self.looks, limit, height_bound: None, purpose: Purpose::Audit }
    }

    /// Takes the response to that request. False if a record follows a returned one.
    pub fn on_look(&mut self, request: &PageRequest, response: &Response<'_>, known: &KnownKeys) -> bool {
        let is_known: Vec<bool> = (0..response.rows.len()).map(|row| known.contains(response.rows.key(row))).collect();
        let follows_last = self.looks > 0 && is_known.first() == Some(&false);
        let follows = is_known.windows(2).any(|pair| pair[0] && !pair[1]);
        let has_next = response.total_pages.is_some_and(|pages| pages > request.page);
        if !has_next && (response.rows.len() as u64) < request.limit {
            self.pairs.clear();
        }
        self.looks += 1;
        !follows && !follows_last && self.looks < MAX_LOOKS
    }
}
