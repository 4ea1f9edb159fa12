//! The pages that the reader requests.

use super::reader::{Attempt, Phase, SnapshotReader};
use super::snapshot::Length;
use super::spec::{ListKind, PageRequest, Purpose};

impl SnapshotReader {
    /// Position of a record at the latest response.
    pub(super) fn position(&self, offset: u64) -> u64 {
        (offset as i64 + self.drift.offset).max(0) as u64
    }

    /// True if each page has to begin with returned records: nothing else shows that no record of the beginning of a list
    /// was skipped, or the length would cost more requests.
    pub(super) fn is_overlapping(&self) -> bool {
        let snapshot = &self.snapshot;
        let wanted = self.spec.wanted.unwrap_or(u64::MAX);
        let is_short = wanted <= self.spec.tuning.overlap_pages * snapshot.page_rows();
        let is_beginning = wanted < snapshot.max_length() && (is_short || snapshot.length == Length::Unknown);
        let has_evidence = snapshot.has_fixed_pages() || snapshot.length.exact().is_some();
        self.spec.kind == ListKind::Growing && is_beginning && !has_evidence
    }

    /// True if the beginning of a list is read by pages that need not overlap, since a record of the last one is known first.
    pub(super) fn may_mark(&self) -> bool {
        let wanted = self.spec.wanted.unwrap_or(u64::MAX);
        let is_short = wanted <= self.spec.tuning.overlap_pages * self.snapshot.page_rows();
        // A page of one record shows nothing of its neighbors.
        let may_overlap = self.snapshot.page_rows() > 1 && !self.snapshot.has_fixed_pages();
        let is_beginning = wanted < self.snapshot.max_length() && wanted <= self.spec.window() && !is_short;
        self.spec.kind == ListKind::Growing && !self.snapshot.is_counted() && may_overlap && is_beginning
    }

    /// The page of the last record that is wanted.
    pub(super) fn mark_page(&self) -> PageRequest {
        let last = self.spec.wanted.unwrap_or(1).saturating_sub(1);
        self.request(last / self.snapshot.page_rows() + 1, self.spec.page_size, Purpose::CountProbe)
    }

    /// Pages from that of the next record on.
    pub(super) fn ahead(&self) -> Phase {
        if self.is_overlapping() && self.snapshot.mark.is_none() {
            return Phase::Overlap(Attempt::First);
        }
        Phase::Ahead { next_page: self.position(self.delivered.end()) / self.snapshot.page_rows() + 1 }
    }

    /// In a run of equal records from the head on, only the count shows where a page belongs.
    pub(super) fn may_request_ahead(&self, page: u64) -> bool {
        let is_run = self.spec.kind == ListKind::Growing && self.snapshot.is_run();
        let length = self.snapshot.length.exact().unwrap_or(self.snapshot.max_length());
        !is_run && page <= self.position(length).div_ceil(self.snapshot.page_rows())
    }

    pub(super) fn request(&self, page: u64, limit: u64, purpose: Purpose) -> PageRequest {
        PageRequest { page, limit, height_bound: self.bound, purpose }
    }

    /// The record at this offset, and the length.
    pub(super) fn probe(&self, offset: u64) -> PageRequest {
        self.request(self.position(offset) + self.drift.growth.expected() + 1, 1, Purpose::CountProbe)
    }

    /// The page that begins a little before the next record and reaches furthest beyond it. Pages begin at multiples of
    /// their size, so a smaller page may reach further.
    pub(super) fn overlapping_page(&self, attempt: Attempt) -> PageRequest {
        let next = self.delivered.end();
        let size = self.snapshot.page_rows();
        let sizes = self.snapshot.page_sizes;
        // The largest page is the likeliest to contain the next record.
        let most = sizes.served(size.max(self.spec.max_page_size));
        // Right after a measurement, a page that begins too early is of more use than one that begins too late.
        let growth = if attempt > Attempt::First { 0 } else { self.drift.growth.expected() };
        let overlap = self.delivered.boundary().unwrap_or(0).max(self.spec.tuning.overlap);
        let margin = if self.snapshot.is_counted() { 0 } else { overlap };
        let from = self.position(next - margin.min(most - 1).min(next)) + growth;
        // While the list is stable, no page contains records that are not returned if another one shows as many that are.
        let is_stable = self.drift.offset == 0 && self.drift.misses == 0;
        let last = if is_stable { self.spec.wanted.unwrap_or(u64::MAX).min(next + size) } else { u64::MAX };
        let best = (sizes.least..=most).max_by_key(|limit| {
            let end = (from / limit + 1) * limit;
            (end.min(last), end <= last, *limit)
        });
        let best = best.unwrap_or(size);
        let limit = if best == size { self.spec.page_size } else { best };
        self.request(from / best + 1, limit, Purpose::Records)
    }

    /// The page of the final look: as many records of the first page as it may show, or one record and the length.
    pub(super) fn look_page(&self, group: usize) -> PageRequest {
        // The record furthest down outlasts replaced records at the head.
        let offset = self.snapshot.anchors.get(group).and_then(|group| group.last()).map_or(0, |(offset, _)| *offset);
        let position = self.position(offset) + self.drift.growth.expected();
        if self.snapshot.is_counted() {
            let page = position / self.snapshot.page_rows() + 1;
            return self.request(page, self.spec.page_size, Purpose::FinalLook);
        }
        self.request(position + 1, 1, Purpose::FinalLook)
    }
}
