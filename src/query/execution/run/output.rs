//! `RunOutput`: what a run has returned so far, and what it reports of that.

use crate::query::audit::Blocks;
use crate::query::evidence::Evidence;
use crate::query::execution::undated::Undated;
use crate::query::results::{Partial, Report, SavedPartial, SharedReport};

/// Most times that the list of one slice is read again, or the round of a follower whose list has lost its length.
pub(in crate::query::execution) const MAX_REREADS: u32 = 2;

pub(super) struct RunOutput {
    /// Number of records.
    pub delivered: u64,
    /// The records, or the last of them in a run that streams.
    pub partial: Partial,
    pub report: SharedReport,
    /// Evidence of the records.
    pub evidence: Evidence,
    /// Blocks of records that do not come from one list.
    pub blocks: Blocks,
    /// Records without a time, of the slices of a range of times.
    pub undated: Undated,
    /// True if the caller hands out the pages that are collected.
    pub is_handed_out: bool,
    /// Slice and offset of the first page.
    pub began: Option<(u64, u64)>,
}

/// The output where a slice begins. Only a run that collects can return to it, since it has handed out none of the records
/// that it discards.
pub(super) struct SavedOutput {
    partial: SavedPartial,
    report: Report,
    delivered: u64,
    evidence: Evidence,
    undated: Undated,
    rereads: u32,
}

impl RunOutput {
    pub fn new(partial: Partial, report: SharedReport, undated: Undated) -> Self {
        Self {
            delivered: 0,
            partial,
            report,
            evidence: Evidence::default(),
            blocks: Blocks::default(),
            undated,
            is_handed_out: false,
            began: None,
        }
    }

    /// The output before the next record; `None` in a run that streams.
    pub fn save(&self) -> Option<SavedOutput> {
        let Self { delivered, report, evidence, undated, .. } = self;
        let partial = self.partial.save()?;
        Some(SavedOutput {
            partial,
            report: report.read(),
            delivered: *delivered,
            evidence: evidence.clone(),
            undated: undated.clone(),
            rereads: 0,
        })
    }

    /// Discards the records since the beginning of a slice. False if the slice was read too often, or they were handed out.
    pub fn rewind(&mut self, start: &mut SavedOutput) -> bool {
        if self.is_handed_out || start.rereads == MAX_REREADS {
            return false;
        }
        start.rereads += 1;
        self.partial.rewind(&start.partial);
        self.report.rewind(&start.report);
        self.evidence.clone_from(&start.evidence);
        self.undated.clone_from(&start.undated);
        self.delivered = start.delivered;
        true
    }
}
