//! Lists that are read again because they changed too much. Only a run that collects can do that: it has
//! returned none of the records that it discards.

use crate::query::evidence::Evidence;
use crate::query::results::{Partial, PartialMark, Report, SharedReport};

/// Most times that the list of one slice is read again.
const MAX_REREADS: u32 = 2;

/// The state of a run that collects where a slice begins.
pub(super) struct SliceStart {
    partial: PartialMark,
    report: Report,
    delivered: u64,
    evidence: Evidence,
    rereads: u32,
}

impl SliceStart {
    /// The state of a run after `delivered` records; `None` if it streams its records.
    pub fn of(partial: &Partial, report: &SharedReport, delivered: u64, evidence: &Evidence) -> Option<Self> {
        let partial = partial.mark()?;
        Some(Self { partial, report: report.read(), delivered, evidence: evidence.clone(), rereads: 0 })
    }

    /// Discards the records of the slice, and returns the number of those before it. `None` if the slice was read too
    /// often.
    pub fn restore(&mut self, partial: &Partial, report: &SharedReport, evidence: &mut Evidence) -> Option<u64> {
        if self.rereads == MAX_REREADS {
            return None;
        }
        self.rereads += 1;
        partial.rewind(&self.partial);
        report.rewind(&self.report);
        evidence.clone_from(&self.evidence);
        Some(self.delivered)
    }
}
