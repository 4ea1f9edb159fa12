//! `OpenList`: a list of a set that is being read.

use crate::query::results::{Checkpoint, Report, SharedReport};

pub(super) struct OpenList {
    /// Position after the last page that was returned.
    pub checkpoint: Option<Checkpoint>,
    pub report: SharedReport,
    /// Counts of the runs before the present one. Those after an error are its `rereads`.
    pub before: Report,
    /// Pages that the set had returned when the list was asked for its page.
    pub asked_at: u64,
    /// True if a response to a later page said that the list has no records.
    pub was_denied: bool,
    /// Records of it that another list had returned.
    pub repeated: u64,
}

impl OpenList {
    pub fn new(report: &SharedReport) -> Self {
        let before = Report::default();
        Self { checkpoint: None, report: report.clone(), before, asked_at: 0, was_denied: false, repeated: 0 }
    }

    /// Takes the report of another run, which continues the present one or reads its list again.
    pub fn begin_again(&mut self, report: &SharedReport) {
        self.before = self.counts();
        self.report = report.clone();
        self.repeated = 0;
    }

    /// Report of the list, without the records that another list had returned.
    pub fn counts(&self) -> Report {
        let mut report = self.report.read();
        report.records = report.records.saturating_sub(self.repeated);
        report.duplicates_dropped += self.repeated;
        add_counts(&mut report, &self.before);
        report
    }
}

/// Adds the counts of one list.
pub(super) fn add_counts(sum: &mut Report, list: &Report) {
    sum.requests += list.requests;
    sum.retries += list.retries;
    sum.pages += list.pages;
    sum.records += list.records;
    sum.bytes += list.bytes;
    sum.duplicates_dropped += list.duplicates_dropped;
    sum.dropped += list.dropped;
    sum.moved += list.moved;
    sum.rereads += list.rereads;
    if list.search.is_some() {
        sum.search.clone_from(&list.search);
    }
    if let Some(cache) = &list.cache {
        sum.cache.get_or_insert_default().add(cache);
    }
}
