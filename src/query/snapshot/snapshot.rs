//! `Snapshot`: what is known of the list at the instant to which all offsets refer.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::spec::{PageRequest, Response, View};

/// Number of records of a list at the instant of its snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// Not requested yet.
    #[default]
    Pending,
    Exact(u64),
    /// The API reports no count, or the list exceeds the result window.
    Unknown,
}

impl Length {
    pub fn exact(self) -> Option<u64> {
        match self {
            Self::Exact(length) => Some(length),
            Self::Pending | Self::Unknown => None,
        }
    }
}

/// Evidence that the delivered records are the snapshot, from the least request to the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Each page was read with records of the one before it; or nothing was read that needs a proof.
    #[default]
    Overlap,
    /// The number of records. It is no evidence for the beginning of the snapshot.
    Length,
    /// A record of the first page at its offset, in the end.
    FinalLook,
}

/// Page sizes that the API serves, as far as is known: another limit is served as the nearest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSizes {
    // Cursors have these names.
    #[serde(rename = "least")]
    pub min: u64,
    #[serde(rename = "most")]
    pub max: u64,
}

impl Default for PageSizes {
    fn default() -> Self {
        Self { min: 1, max: u64::MAX }
    }
}

impl PageSizes {
    pub fn served(self, limit: u64) -> u64 {
        limit.clamp(self.min, self.max)
    }

    /// Returns the sizes after the API has answered `limit` with a page of `served` rows, where full pages have `page_rows`.
    #[must_use]
    fn learned(self, limit: u64, served: u64, page_rows: u64) -> Self {
        match served.cmp(&limit) {
            Ordering::Less if self.min == 1 => Self { min: 1, max: served },
            Ordering::Greater => Self { min: page_rows, max: page_rows },
            _ => self,
        }
    }
}

/// Anchors of each group in a checkpoint.
const CHECKPOINT_ANCHORS: usize = 8;

/// Fixed once the first responses have arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Snapshot {
    pub length: Length,
    /// Number of records as reported by the first response. Without one, none of a later response is believed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Number of records that the list has at least, by the first response.
    pub min_length: u64,
    /// Limit of the requests for full pages.
    pub page_limit: u64,
    pub page_sizes: PageSizes,
    /// Key of the first record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// Groups of records, by offset and key, in each of which the final look has to find one: first of the first page, then
    /// single later ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<Vec<(u64, u64)>>,
    /// A record near the end of the beginning that is wanted, by its offset and one key of it and of the record above it, as
    /// long as it was not read. It was received before all records but those of the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<(u64, u64)>,
    /// Records at the ends of a partition, by offset and key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<(u64, u64)>,
}

impl Snapshot {
    /// The snapshot of a first response.
    pub(super) fn new(request: &PageRequest, response: &Response<'_>) -> Self {
        let rows = response.rows.len() as u64;
        let total = response.total;
        let page_limit = request.limit;
        let page_rows = match (response.total_pages, total) {
            // Nothing shows that a short page is the last.
            (None, None) if rows > 0 => rows,
            _ => full_page(request, response).filter(|size| *size <= page_limit).unwrap_or(page_limit).max(rows),
        };
        let full_pages = response.total_pages.unwrap_or(1).saturating_sub(1);
        let min_length = full_pages.saturating_mul(page_rows).saturating_add(u64::from(rows > 0));
        let page_sizes = PageSizes::default().learned(request.limit, page_rows, page_rows);
        // A number that is too low for the pages is not that of the records.
        let total = total.filter(|total| *total >= min_length);
        Self { total, min_length, page_limit, page_sizes, ..Self::default() }
    }

    /// Offset of a response's first row, where the response has a count. New records are above the row, so that its position
    /// has risen by as many as the list has grown. A deleted record below it would make the offset wrong: the final look
    /// excludes that.
    pub(super) fn offset_by_count(&self, view: &View<'_>) -> Option<i64> {
        let drift = view.length()? as i64 - self.length.exact()? as i64;
        Some(view.position - drift)
    }

    /// Offset of the only row of a response. Its number of pages is a count.
    pub(super) fn offset_of_one(&self, view: &View<'_>) -> Option<i64> {
        if view.len() <= 1 { self.offset_by_count(view) } else { None }
    }

    /// Rows of a full page.
    pub fn page_rows(&self) -> u64 {
        self.page_sizes.served(self.page_limit)
    }

    /// Most records that the list had at its first response, as far as that shows.
    pub(super) fn max_length(&self) -> u64 {
        self.min_length.saturating_sub(1).saturating_add(self.page_rows())
    }

    /// True if pages have one size, whatever limit is requested.
    pub(super) fn has_fixed_pages(&self) -> bool {
        self.page_sizes.min > 1
    }

    /// Learns from a response which page sizes the API serves.
    pub(super) fn learn_page_sizes(&mut self, request: &PageRequest, response: &Response<'_>) {
        if request.limit != self.page_limit {
            let rows = response.rows.len() as u64;
            let served = full_page(request, response).unwrap_or(request.limit).max(rows);
            self.page_sizes = self.page_sizes.learned(request.limit, served, self.page_rows());
        }
    }

    /// A response with its position.
    pub(super) fn view<'a>(&self, request: &PageRequest, response: &Response<'a>, window: u64) -> View<'a> {
        let rows = response.rows.len() as u64;
        let is_page = request.limit == self.page_limit;
        // One page may be smaller than the others.
        let is_own = is_page && is_full(request, response) && response.limit == Some(rows) && !self.has_fixed_pages();
        let page_size = if is_own { rows } else { self.page_sizes.served(request.limit) };
        View {
            rows: response.rows,
            page: request.page,
            position: request.position_by(page_size) as i64,
            page_size,
            pages: response.total_pages.filter(|pages| *pages > 0),
            total: self.total.and(response.total),
            window,
        }
    }

    /// True if the records so far contain no anchor that would not be mistaken for the record above it, if one record
    /// below it were deleted.
    pub(super) fn lacks_distinct_key(&self) -> bool {
        self.anchors.iter().flatten().all(|(offset, _)| *offset == 0)
    }

    /// Takes as anchors the last of the first records that differ from all records above them: where records below it were
    /// deleted, one of those above is in the place of an anchor.
    pub(super) fn set_anchors(&mut self, keys: &[u64], max_anchors: usize) {
        let mut above = HashSet::new();
        let firsts = (0..).zip(keys.iter().copied()).filter(|(_, key)| above.insert(*key));
        let mut group: Vec<(u64, u64)> = firsts.skip(1).collect();
        group.drain(..group.len().saturating_sub(max_anchors));
        self.first = keys.first().copied();
        self.anchors = vec![group];
        self.keep_anchors_before(u64::MAX);
    }

    /// The snapshot as a checkpoint has it: with the last few anchors of each group.
    pub(super) fn with_few_anchors(&self) -> Self {
        let mut snapshot = self.clone();
        for group in &mut snapshot.anchors {
            group.drain(..group.len().saturating_sub(CHECKPOINT_ANCHORS));
        }
        snapshot
    }

    /// Keeps the anchors before this offset: a record that is read again does not show what happened in between.
    pub(super) fn keep_anchors_before(&mut self, end: u64) {
        self.anchors.iter_mut().for_each(|group| group.retain(|(offset, _)| *offset < end));
        self.anchors.retain(|group| !group.is_empty());
        if self.anchors.is_empty() {
            self.anchors.extend(self.first.map(|key| vec![(0, key)]));
        }
    }

    /// Forgets the mark once it was read at its offset, which proves that no record before it was skipped.
    pub(super) fn pass_mark(&mut self, end: u64, proof: &mut Proof) {
        if self.mark.take_if(|(offset, _)| *offset < end).is_some() && *proof == Proof::Length {
            *proof = Proof::Overlap;
        }
    }

    /// Adds the first record that differs from those at the head, if these are equal.
    pub(super) fn add_first_difference(&mut self, offset: u64, keys: impl Iterator<Item = u64>) {
        let Some(first) = self.first else { return };
        if self.lacks_distinct_key() {
            let different = (offset..).zip(keys).find(|(_, key)| *key != first);
            self.anchors.extend(different.map(|record| vec![record]));
        }
    }
}

/// True if a page has successors.
fn is_full(request: &PageRequest, response: &Response<'_>) -> bool {
    response.rows.len() > 0 && response.has_next(request)
}

/// Rows of a full page, as far as the response shows them.
fn full_page(request: &PageRequest, response: &Response<'_>) -> Option<u64> {
    let reported = response.limit.filter(|limit| *limit > 0);
    if is_full(request, response) { Some(response.rows.len() as u64) } else { reported }
}
