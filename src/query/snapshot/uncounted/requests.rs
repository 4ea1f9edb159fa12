//! The pages that the reader requests.

use super::super::snapshot::Length;
use super::super::spec::{FirstPage, ListSpec, PageRequest, Purpose};
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
            Phase::Length => PageRequest::new(Purpose::Probe, 1, 1),
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
                PageRequest::new(Purpose::FinalLook, page, 1)
            }
        }
    }

    /// True if each page has to begin with returned records: nothing else shows that no record of the beginning of a list
    /// was skipped, or the length would cost more requests.
    pub(super) fn is_overlapping(&self) -> bool {
        let snapshot = &self.list.snapshot;
        let is_beginning = self.wants_beginning() && (self.is_short() || snapshot.length == Length::Unknown);
        let has_evidence = snapshot.has_fixed_pages() || snapshot.length.exact().is_some();
        (is_beginning || self.list.spec.first_page == FirstPage::Compared) && !has_evidence
    }

    /// True if the beginning of a list is read by pages that need not overlap, since a record of the last one is known first.
    pub(super) fn may_mark(&self) -> bool {
        // A page of one record shows nothing of its neighbors.
        let may_overlap = self.list.snapshot.page_rows() > 1 && !self.list.snapshot.has_fixed_pages();
        let is_compared = self.list.spec.first_page == FirstPage::Compared;
        may_overlap && self.wants_beginning() && !self.is_short() && !is_compared
    }

    /// True if the list may have more records than are wanted.
    fn wants_beginning(&self) -> bool {
        let ListSpec { wanted, result_window, .. } = self.list.spec;
        let max_length = self.list.snapshot.max_length();
        wanted.is_some_and(|wanted| {
            // The pages of a longer list end at the window, too.
            let is_capped = max_length >= self.list.spec.window() && Some(wanted) <= result_window;
            wanted < max_length || is_capped
        })
    }

    /// True if the records that are wanted are on so few pages that these may all overlap.
    fn is_short(&self) -> bool {
        let pages = self.list.spec.tuning.overlap_pages;
        self.list.spec.wanted.is_some_and(|wanted| wanted <= pages * self.list.snapshot.page_rows())
    }

    /// True if nothing else than returned records shows where the next page is.
    pub(super) fn needs_overlap(&self) -> bool {
        self.is_overlapping() && self.list.snapshot.mark.is_none()
    }

    /// Number of wanted records that can be requested at once, whatever the list has.
    pub(super) fn max_marked(&self) -> u64 {
        self.list.spec.wanted.unwrap_or(0).min(self.list.spec.window())
    }

    /// A page of the last record that is wanted and can be requested at once, and of the one above it.
    fn mark_page(&self) -> PageRequest {
        let last = self.max_marked().saturating_sub(1);
        let rows = self.list.snapshot.page_rows();
        let limit = (2..=rows).rev().find(|limit| !last.is_multiple_of(*limit)).unwrap_or(rows);
        PageRequest::new(Purpose::Probe, last / limit + 1, limit)
    }

    /// Continues with the page of the next record, and several pages in flight where these may be read in parallel.
    pub(super) fn go_ahead(&mut self) {
        self.list.set_next_page();
        self.phase =
            if self.needs_overlap() { Phase::Overlap(Attempt::Expected) } else { Phase::Ahead { new_mark: None } };
    }

    /// The page that begins a little before the next record.
    pub(super) fn overlapping_page(&self, attempt: Attempt) -> PageRequest {
        let overlap = self.list.delivered.boundary().unwrap_or(0).max(MIN_OVERLAP);
        self.list.page_around_next(attempt, overlap)
    }
}
