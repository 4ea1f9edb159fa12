//! The pages that the reader requests.

use super::super::snapshot::Length;
use super::super::spec::{FirstPage, PageRequest, Purpose};
use super::super::state::Attempt;
use super::{Phase, UncountedReader};

/// Returned records with which a page begins while the list drifts: one of them may be equal to its neighbor.
const MIN_OVERLAP: u64 = 2;

impl UncountedReader {
    /// The page that this phase requests.
    pub(super) fn page_of_phase(&self) -> PageRequest {
        let list = &self.list;
        match self.phase {
            Phase::First | Phase::Ahead { .. } => list.page(list.next_page),
            Phase::Length => PageRequest { purpose: Purpose::Probe, ..PageRequest::first(1) },
            Phase::Mark => self.mark_page(),
            Phase::Overlap(attempt) => self.overlapping_page(attempt),
            Phase::Locate => {
                let boundary = list.delivered.boundary_record();
                let offset = boundary.map_or(list.delivered.end(), |(offset, _)| offset);
                list.one_record(offset, Purpose::Probe)
            }
            Phase::Single => list.one_record(list.delivered.end(), Purpose::Probe),
            Phase::TailLook { .. } => {
                let page = list.position(list.delivered.end()) + 1;
                PageRequest { page, purpose: Purpose::FinalLook, ..PageRequest::first(1) }
            }
        }
    }

    /// True if each page has to begin with returned records: nothing else shows that no record of the beginning of a list
    /// was skipped, or the length would cost more requests.
    pub(super) fn is_overlapping(&self) -> bool {
        let snapshot = &self.list.snapshot;
        let wanted = self.list.spec.wanted.unwrap_or(u64::MAX);
        let is_short = wanted <= self.list.spec.tuning.overlap_pages * snapshot.page_rows();
        let is_beginning = wanted < snapshot.max_length() && (is_short || snapshot.length == Length::Unknown);
        let has_evidence = snapshot.has_fixed_pages() || snapshot.length.exact().is_some();
        (is_beginning || self.list.spec.first_page == FirstPage::Compared) && !has_evidence
    }

    /// True if the beginning of a list is read by pages that need not overlap, since a record of the last one is known first.
    pub(super) fn may_mark(&self) -> bool {
        let wanted = self.list.spec.wanted.unwrap_or(u64::MAX);
        let is_short = wanted <= self.list.spec.tuning.overlap_pages * self.list.snapshot.page_rows();
        // A page of one record shows nothing of its neighbors.
        let may_overlap = self.list.snapshot.page_rows() > 1 && !self.list.snapshot.has_fixed_pages();
        let is_compared = self.list.spec.first_page == FirstPage::Compared;
        let is_beginning = wanted < self.list.snapshot.max_length() && wanted <= self.list.spec.window() && !is_short;
        may_overlap && is_beginning && !is_compared
    }

    /// A page of the last record that is wanted and of the one above it.
    fn mark_page(&self) -> PageRequest {
        let last = self.list.spec.wanted.unwrap_or(1).saturating_sub(1);
        let rows = self.list.snapshot.page_rows();
        let limit = (2..=rows).rev().find(|limit| !last.is_multiple_of(*limit)).unwrap_or(rows);
        PageRequest { page: last / limit + 1, purpose: Purpose::Probe, ..PageRequest::first(limit) }
    }

    /// Continues with the page of the next record, and several pages in flight where these may be read in parallel.
    pub(super) fn go_ahead(&mut self) {
        self.list.set_next_page();
        let needs_overlap = self.is_overlapping() && self.list.snapshot.mark.is_none();
        self.phase = if needs_overlap { Phase::Overlap(Attempt::Expected) } else { Phase::Ahead { new_mark: None } };
    }

    /// The page that begins a little before the next record.
    pub(super) fn overlapping_page(&self, attempt: Attempt) -> PageRequest {
        let overlap = self.list.delivered.boundary().unwrap_or(0).max(MIN_OVERLAP);
        self.list.page_around_next(attempt, overlap)
    }
}
