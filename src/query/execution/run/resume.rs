//! Pages of each kind of slice, and the cursors after any of their rows.

use std::sync::Arc;

use crate::columns::Columns;
use crate::message::Message;
use crate::process::ForkSafeMutex;
use crate::query::audit::AuditedPage;
use crate::query::request::Query;
use crate::query::results::{Cursor, Division, Report, Resume, SharedReport, key_of_all};
use crate::query::snapshot::ListCheckpoint;

/// A page of any slice.
pub(super) struct SlicePage {
    pub query: Query,
    pub slice: u64,
    pub rows: usize,
    /// Reasons why the slice is incomplete, if it ends with this page.
    pub end: Option<Vec<Message>>,
    /// Division of the list before this page, if it is read by ranges of values.
    pub division: Option<Division>,
    /// Division that begins after this page.
    pub divides: Option<Division>,
    /// Records still wanted before this page, where there is a limit.
    pub remaining: Option<u64>,
    /// Report after this page.
    pub report: Report,
    /// Latest heights and their blocks after this page, where these are of several lists or look-ups.
    pub blocks: Vec<(i64, u64)>,
}

/// Part of a list.
pub(super) struct ListPage {
    pub page: SlicePage,
    /// Offset of the first received record.
    pub offset: u64,
    /// Records of the list that the page accounts for.
    pub received: Columns,
    /// Index in `received` of each row, where some were left out.
    pub received_rows: Option<Vec<u32>>,
    /// State of the list before this page.
    pub before: ListCheckpoint,
    pub audit: AuditedPage,
    /// State of the list after it, unless the page was cut by `max_items`. Later responses without records make it more precise.
    pub after: Option<Arc<ForkSafeMutex<ListCheckpoint>>>,
    /// Contradictions of the list so far that are no errors.
    pub doubts: Vec<Message>,
}

/// Lookup of several hashes, by indices into the hashes of the slice.
pub(super) struct HashesPage {
    pub page: SlicePage,
    /// Hash of each row.
    pub found: Vec<u32>,
    pub missing: Vec<u32>,
    /// Hashes missing before this page.
    pub missing_before: usize,
}

/// Records of a single hash, from `offset` on.
pub(super) struct HashPage {
    pub page: SlicePage,
    /// All records of the hash.
    pub selected: Columns,
    pub offset: usize,
    /// The report, which has the look-ups that were received.
    pub report: SharedReport,
}

/// Records that a run returns without a request. Its caller stops before or after all of them.
pub(in crate::query::execution) struct KnownPage {
    query: Query,
    /// Slice after the records.
    slice: u64,
    /// Report with the records.
    report: Report,
}

impl KnownPage {
    /// Records that come before those of the query.
    pub fn before(query: &Query, report: &SharedReport) -> Self {
        Self { query: query.clone(), slice: 0, report: report.read() }
    }

    /// Records up to the end of the query. It has no slice from there on, however many its range may have.
    pub fn to_end(query: &Query, report: &SharedReport) -> Self {
        Self { slice: u64::from(u32::MAX), ..Self::before(query, report) }
    }
}

impl Resume for KnownPage {
    fn cursor(&self, _row: usize) -> Cursor {
        let mut at = Cursor::at(&self.query, self.slice, 0, ListCheckpoint::default(), self.query.max_items());
        at.reasons = self.report.own_reasons();
        at.missing = self.report.missing.to_vec();
        at
    }
}

impl SlicePage {
    fn is_whole(&self, row: usize) -> bool {
        row >= self.rows
    }

    /// True if the slice ends after `row` rows.
    fn ends(&self, row: usize) -> bool {
        self.is_whole(row) && self.end.is_some()
    }

    fn remaining(&self, row: usize) -> Option<u64> {
        self.remaining.map(|remaining| remaining - row as u64)
    }

    /// Adds what the report has after `row` rows.
    fn reported(&self, mut at: Cursor, row: usize) -> Cursor {
        let mut reasons = self.report.own_reasons();
        let end = if self.is_whole(row) { self.end.as_ref() } else { None };
        for reason in end.into_iter().flatten().chain(&at.reasons) {
            if !reasons.contains(reason) {
                reasons.push(reason.clone());
            }
        }
        at.reasons = reasons;
        at.missing = self.report.missing.to_vec();
        at.blocks.clone_from(&self.blocks);
        if let Some(division) = &self.division {
            // The ranges that have ended are not needed.
            at.division = Some(division.after(row as u64, at.slice));
            at.slice = 1;
        }
        at
    }
}

impl Resume for ListPage {
    fn cursor(&self, row: usize) -> Cursor {
        let SlicePage { query, slice, .. } = &self.page;
        let remaining = self.page.remaining(row);
        if self.page.ends(row) {
            let at = Cursor::at(query, slice + 1, 0, ListCheckpoint::default(), remaining);
            return self.page.reported(at, row);
        }
        let is_whole = self.page.is_whole(row);
        if is_whole && !self.audit.has_open_repeats() && self.page.divides.is_some() {
            // The final look proves what the list itself returned as well, apart from equal records.
            let mut at = Cursor::at(query, 1, 0, ListCheckpoint::default(), None);
            at.division.clone_from(&self.page.divides);
            at.reasons.clone_from(&self.doubts);
            return self.page.reported(at, row);
        }
        let rows = match &self.received_rows {
            Some(rows) if !is_whole => rows[row] as usize,
            None if !is_whole => row,
            Some(_) | None => self.received.rows(),
        };
        let list = match &self.after {
            Some(after) if is_whole => after.lock().clone(),
            _ => self.before.clone().advanced(&self.received, rows),
        };
        let mut at = Cursor::at(query, *slice, self.offset + rows as u64, list, remaining);
        at.audit = self.audit.checkpoint(&self.received, rows, at.offset);
        at.reasons.clone_from(&self.doubts);
        self.page.reported(at, row)
    }
}

impl Resume for HashesPage {
    fn cursor(&self, row: usize) -> Cursor {
        let SlicePage { query, slice, report, .. } = &self.page;
        let remaining = self.page.remaining(row);
        if self.page.ends(row) {
            return self.page.reported(Cursor::at_hash(query, slice + 1, 0, 0, remaining), row);
        }
        let next = row.checked_sub(1).map_or(0, |last| self.found[last] + 1);
        let missing = self.missing_before + self.missing.partition_point(|index| *index < next);
        let mut at = self.page.reported(Cursor::at_hash(query, *slice, next as usize, 0, remaining), row);
        at.missing = report.missing.first(missing).to_vec();
        at
    }
}

impl Resume for HashPage {
    fn cursor(&self, row: usize) -> Cursor {
        let SlicePage { query, slice, .. } = &self.page;
        let remaining = self.page.remaining(row);
        let delivered = self.offset + row;
        let first = slice + u64::from(self.page.ends(row));
        let offset = if first == *slice { delivered as u64 } else { 0 };
        let mut at = Cursor::at_hash(query, first, 0, offset, remaining);
        at.lookups = self.report.lookups_after(*slice, first);
        if at.offset > 0 {
            at.audit.latest.push(key_of_all(&self.selected.slice(0, delivered)));
            // The others were received as well.
            at.audit.latest.push(key_of_all(&self.selected));
        }
        self.page.reported(at, row)
    }
}
