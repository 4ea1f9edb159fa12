//! `Snapshot`: what is known of the list at the instant to which all offsets refer.

use serde::{Deserialize, Serialize};

use super::spec::{PageRequest, Response, View};

/// Records of the list at that instant.
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

/// Page sizes that the API serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageSizes {
    #[default]
    AsRequested,
    /// Limits above this one are served as this one.
    AtMost(u64),
    /// Pages have the size of the first page, whatever limit is requested.
    Fixed,
}

/// Unit in which responses report the length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Count {
    #[default]
    Pages,
    Records,
}

/// Fixed once the first responses have arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Snapshot {
    pub length: Length,
    /// As reported by the first response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_pages: Option<u64>,
    /// Least length of the list by the first response.
    pub min_length: u64,
    /// Limit of the requests for full pages, and the rows that these have.
    pub page_limit: u64,
    pub page_rows: u64,
    pub page_sizes: PageSizes,
    pub count: Count,
    /// Key of the first record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// Keys of some of the first records, by offset, of which the final look has to find one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<(u64, u64)>,
    /// Later records that it has to find as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<(u64, u64)>,
}

/// Anchors among records from this offset on: the last of those that differ from the record before them.
pub(super) fn anchors_of(from: u64, keys: &[u64], most: usize) -> Vec<(u64, u64)> {
    let differing = keys.windows(2).zip(from + 1..).filter(|(pair, _)| pair[0] != pair[1]);
    let mut anchors: Vec<(u64, u64)> = differing.map(|(pair, offset)| (offset, pair[1])).collect();
    anchors.drain(..anchors.len().saturating_sub(most));
    anchors
}

impl Snapshot {
    /// The snapshot of a first response.
    pub(super) fn new(request: &PageRequest, response: &Response<'_>) -> Self {
        let rows = response.rows.len() as u64;
        let total_pages = response.total_pages.filter(|pages| *pages > 0);
        let reported = response.limit.filter(|limit| (1..request.limit).contains(limit));
        let page_rows = match reported {
            Some(limit) => limit.max(rows),
            // A page with successors is full.
            None if total_pages.is_some_and(|pages| pages > 1) && rows > 0 => rows,
            None => request.limit.max(rows),
        };
        let page_sizes = match rows.max(page_rows) {
            served if served > request.limit => PageSizes::Fixed,
            served if served < request.limit => PageSizes::AtMost(served),
            _ => PageSizes::AsRequested,
        };
        let full_pages = total_pages.unwrap_or(1).saturating_sub(1);
        let min_length = full_pages.saturating_mul(page_rows).saturating_add(u64::from(rows > 0));
        // A count that is too low for the pages is not one of these records.
        let is_counted = response.total.is_some_and(|total| total >= min_length);
        let count = if is_counted { Count::Records } else { Count::Pages };
        Self {
            total: response.total,
            total_pages,
            min_length,
            page_limit: request.limit,
            page_rows: page_rows.max(1),
            page_sizes,
            count,
            ..Self::default()
        }
    }

    /// Most records that the list had at its first response, as far as that shows.
    pub(super) fn max_length(&self) -> u64 {
        self.min_length.saturating_sub(1).saturating_add(self.page_rows)
    }

    pub(super) fn has_fixed_pages(&self) -> bool {
        self.page_sizes == PageSizes::Fixed
    }

    /// Largest limit that is served as requested, as far as is known.
    pub(super) fn max_limit(&self) -> u64 {
        if let PageSizes::AtMost(limit) = self.page_sizes { limit } else { u64::MAX }
    }

    /// The same list before any of its records was read.
    pub(super) fn without_records(&self) -> Self {
        let (anchors, checks) = (Vec::new(), Vec::new());
        Self { length: Length::Pending, first: None, anchors, checks, ..self.clone() }
    }

    /// The same for full pages of another limit.
    #[must_use]
    pub(super) fn with_page_limit(mut self, limit: u64) -> Self {
        if limit != self.page_limit && !self.has_fixed_pages() {
            self.page_rows = limit.min(self.max_limit());
            self.page_limit = limit;
        }
        self
    }

    /// A response with its position.
    pub(super) fn view<'a>(&mut self, request: &PageRequest, response: &Response<'a>) -> View<'a> {
        let rows = response.rows.len() as u64;
        let is_page = request.limit == self.page_limit;
        let reported = response.limit.filter(|limit| *limit > 0);
        // A page with successors is full.
        let full = response.total_pages.filter(|pages| *pages > request.page && rows > 0).map(|_| rows);
        let served = full.or(reported).unwrap_or(request.limit).max(rows);
        if !is_page && served > request.limit {
            self.page_sizes = PageSizes::Fixed;
        } else if !is_page && served < request.limit && !self.has_fixed_pages() {
            self.page_sizes = PageSizes::AtMost(served);
        }
        let is_full_page = is_page || self.has_fixed_pages();
        // One page may be smaller than the others.
        let page_size = match reported {
            Some(limit) if is_page && full == reported && !self.has_fixed_pages() => limit,
            _ if is_full_page => self.page_rows,
            _ => request.limit.min(self.max_limit()),
        };
        View {
            rows: response.rows,
            page: request.page,
            position: ((request.page - 1) * page_size) as i64,
            page_size,
            pages: response.total_pages.filter(|pages| *pages > 0),
            total: response.total.filter(|_| self.is_counted()),
        }
    }

    /// True if the records so far contain an anchor that would not be mistaken for the record above it, if one record
    /// below it were deleted.
    pub(super) fn is_run(&self) -> bool {
        self.checks.is_empty() && self.anchors.first().is_none_or(|(offset, _)| *offset == 0)
    }

    pub(super) fn set_anchors(&mut self, keys: &[u64], most: usize) {
        self.first = keys.first().copied();
        self.anchors = anchors_of(0, keys, most);
        if self.anchors.is_empty() {
            self.anchors.extend(self.first.map(|key| (0, key)));
        }
    }

    /// Keeps anchors and checks before this offset: a record that is read again does not show what happened in between.
    pub(super) fn keep_evidence_before(&mut self, end: u64) {
        self.anchors.retain(|(offset, _)| *offset < end);
        self.checks.retain(|(offset, _)| *offset < end);
        if self.anchors.is_empty() {
            self.anchors.extend(self.first.map(|key| (0, key)));
        }
    }

    /// Adds the first record that differs from those at the head, if these are equal.
    pub(super) fn add_first_difference(&mut self, offset: u64, keys: &[u64]) {
        let Some((_, first)) = self.anchors.first().copied().filter(|_| self.is_run()) else { return };
        self.checks.extend((offset..).zip(keys).find(|(_, key)| **key != first).map(|(offset, key)| (offset, *key)));
    }

    pub(super) fn add_check(&mut self, offset: u64, key: u64, most: usize) {
        if self.checks.last() == Some(&(offset, key)) {
            return;
        }
        if self.checks.len() == most {
            self.checks.remove(1);
        }
        self.checks.push((offset, key));
    }

    /// True if responses report the number of records.
    pub(super) fn is_counted(&self) -> bool {
        self.count == Count::Records
    }

    /// The offset to look at: of the anchor furthest down, which outlasts replaced records at the head.
    pub(super) fn look_offset(&self, look: Look) -> u64 {
        let record = match look {
            Look::Anchor => self.anchors.last(),
            Look::Check(index) => self.checks.get(index),
        };
        record.map_or(0, |(offset, _)| *offset)
    }

    /// Compares the anchors, or the check, with a response whose first row has this offset, by its count.
    pub(super) fn compare(&self, look: Look, view: &View<'_>, offset: i64) -> Comparison {
        let records = match look {
            Look::Anchor => self.anchors.as_slice(),
            Look::Check(index) => self.checks.get(index..=index).unwrap_or_default(),
        };
        let row = |at: u64| usize::try_from(at as i64 - offset).ok().filter(|row| *row < view.rows.len());
        let is_equal = |(at, key): &(u64, u64)| row(*at).map(|row| view.rows.key(row) == *key);
        match records.last().and_then(is_equal) {
            _ if records.iter().any(|record| is_equal(record) == Some(true)) => Comparison::Equal,
            // Those above it may be gone with the head of the list.
            Some(_) => Comparison::Different,
            None => Comparison::NotVisible,
        }
    }
}

/// Purpose of a final look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A record of the first response.
    Anchor,
    /// A later record, by its index.
    Check(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Different,
    NotVisible,
}
