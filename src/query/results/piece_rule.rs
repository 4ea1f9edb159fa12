//! `PieceRule`: when the records that wait for a file of an export are stored outside it, so that a process that is killed
//! loses few requests.

/// Fewest requests between two pieces: storing one takes about as long as ten requests to a server nearby.
const MIN_REQUESTS: u64 = 8;

/// A piece has this share of the requests of the export so far, if that is more: the number of pieces grows with the
/// logarithm of the requests only.
const SHARE: u64 = 300;

/// Counts the requests of an export, with those of its earlier runs.
pub struct PieceRule {
    /// Requests of earlier runs; `None` if no pieces are stored.
    earlier: Option<u64>,
    /// Requests of this run before the last piece or file was taken.
    before: u64,
}

impl PieceRule {
    pub fn new(earlier: Option<u64>) -> Self {
        Self { earlier, before: 0 }
    }

    /// True if a piece is to be stored after `requests` of this run.
    pub fn is_due(&self, requests: u64) -> bool {
        let total = self.earlier.map(|earlier| earlier + requests);
        total.is_some_and(|total| requests - self.before >= (total / SHARE).max(MIN_REQUESTS))
    }

    pub fn taken(&mut self, requests: u64) {
        self.before = requests;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_due_after_eight_requests_or_a_share_of_all() {
        let mut new = PieceRule::new(Some(0));
        assert!(!new.is_due(7) && new.is_due(8));
        new.taken(8);
        assert!(!new.is_due(15) && new.is_due(16));
        let continued = PieceRule::new(Some(29_990));
        assert!(!continued.is_due(99) && continued.is_due(100));
        assert!(!PieceRule::new(None).is_due(1_000));
    }
}
