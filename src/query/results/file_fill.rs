//! `FileFill`: how full the next file of an export is, and when its rows are stored before they fill it, so that a process that
//! is killed loses few requests.

use std::time::Duration;

use tokio::time::Instant;

use crate::columns::Columns;

/// Fewest requests between two pieces: storing one takes about as long as ten requests to a server nearby.
const MIN_REQUESTS: u64 = 8;

/// A piece has this share of the requests of the export so far, if that is more: the number of pieces grows with the
/// logarithm of the requests only.
const SHARE: u64 = 300;

/// The rows of the next file that were taken already, with those that wait.
pub struct FileFill {
    rows: usize,
    /// About the bytes that they take.
    bytes: usize,
    /// Arrival of the oldest of them.
    oldest: Option<Instant>,
    limits: FileLimits,
    /// Requests of the export's earlier runs; `None` if no pieces are stored.
    earlier_requests: Option<u64>,
    /// Requests of this run before the last piece or file was taken.
    requests_before: u64,
}

/// Limits of a file.
#[derive(Clone, Copy, Debug)]
pub struct FileLimits {
    pub rows: usize,
    pub bytes: usize,
    /// Time after which it is written, even if it is small.
    pub age: Duration,
}

impl FileFill {
    /// A first file, with the number of requests of the export's earlier runs; `None` if no pieces are stored.
    pub fn new(limits: FileLimits, earlier_requests: Option<u64>) -> Self {
        Self { rows: 0, bytes: 0, oldest: None, limits, earlier_requests, requests_before: 0 }
    }

    /// Notes that a row has arrived, which may be one of the file.
    pub fn note_arrival(&mut self) {
        self.oldest.get_or_insert_with(Instant::now);
    }

    pub fn add(&mut self, columns: &Columns) {
        self.rows += columns.rows();
        self.bytes += columns.copied_size();
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn is_full(&self) -> bool {
        self.rows >= self.limits.rows || self.bytes >= self.limits.bytes
    }

    pub fn fits(&self, columns: &Columns) -> bool {
        self.rows + columns.rows() <= self.limits.rows && self.bytes + columns.copied_size() <= self.limits.bytes
    }

    /// Rows that it still has room for.
    pub fn room(&self) -> usize {
        self.limits.rows.saturating_sub(self.rows)
    }

    /// Time at which it is due, if it does not fill before.
    pub fn due_at(&self) -> Option<Instant> {
        self.oldest.filter(|_| !self.is_empty()).map(|oldest| oldest + self.limits.age)
    }

    pub fn is_due(&self) -> bool {
        self.is_full() || self.due_at().is_some_and(|due| due <= Instant::now())
    }

    /// True if rows that wait are to be stored before they fill it, after a number of requests of this run.
    pub fn is_piece_due(&self, requests: u64) -> bool {
        let total = self.earlier_requests.map(|earlier| earlier + requests);
        total.is_some_and(|total| requests - self.requests_before >= (total / SHARE).max(MIN_REQUESTS))
    }

    /// Notes that the rows that waited were taken, after a number of requests of this run.
    pub fn on_taken(&mut self, requests: u64) {
        self.requests_before = requests;
    }

    /// Begins another file, for which rows have arrived or not.
    pub fn begin_next(&mut self, has_rows: bool) {
        self.rows = 0;
        self.bytes = 0;
        self.oldest = has_rows.then(Instant::now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_due_after_eight_requests_or_a_share_of_all() {
        let limits = FileLimits { rows: 1, bytes: 1, age: Duration::ZERO };
        let mut new = FileFill::new(limits, Some(0));
        assert!(!new.is_piece_due(7) && new.is_piece_due(8));
        new.on_taken(8);
        assert!(!new.is_piece_due(15) && new.is_piece_due(16));
        let continued = FileFill::new(limits, Some(29_990));
        assert!(!continued.is_piece_due(99) && continued.is_piece_due(100));
        assert!(!FileFill::new(limits, None).is_piece_due(1_000));
    }
}
