//! What a run did and what it could not show: counted while it runs, final when it ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The account of one run of a query.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Whether the result was shown to hold every record.
    pub complete: bool,
    /// Why it is not complete, a sentence each.
    pub reasons: Vec<String>,
    pub requests: u64,
    pub retries: u64,
    pub pages: u64,
    pub records: u64,
    pub duplicates_dropped: u64,
    /// Hashes that were asked for and not returned.
    pub missing: Vec<String>,
    /// Of the answers' bodies, uncompressed.
    pub bytes: u64,
    pub elapsed: Duration,
    pub outlook: Outlook,
}

/// How far a run is, for whoever watches it: in records where the service counts them, else in pages, and in windows
/// where there are several.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    pub unit: &'static str,
    pub done: u64,
    /// Where it ends, if that is known.
    pub total: Option<u64>,
}

impl Default for Outlook {
    fn default() -> Self {
        Self { unit: "records", done: 0, total: None }
    }
}

/// A report that a run writes and others read meanwhile.
#[derive(Clone, Debug)]
pub struct SharedReport {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    report: Report,
    started: Instant,
    finished: bool,
}

impl SharedReport {
    /// Of a run that begins, with what already spoke against an earlier part of it.
    pub(super) fn start(reasons: Vec<String>, missing: Vec<String>) -> Self {
        let report = Report { reasons, missing, ..Report::default() };
        let state = State { report, started: Instant::now(), finished: false };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn read(&self) -> Report {
        self.lock().report.clone()
    }

    /// How many reasons and missing hashes there are.
    pub(super) fn counts(&self) -> (usize, usize) {
        let report = &self.lock().report;
        (report.reasons.len(), report.missing.len())
    }

    /// The first so many reasons and missing hashes.
    pub(super) fn said(&self, (reasons, missing): (usize, usize)) -> (Vec<String>, Vec<String>) {
        let report = &self.lock().report;
        (report.reasons[..reasons].to_vec(), report.missing[..missing].to_vec())
    }

    /// Time is counted up to the latest news, so that it stands still after an error, an interrupt, or when nobody
    /// goes on.
    pub(super) fn update(&self, change: impl FnOnce(&mut Report)) {
        let mut state = self.lock();
        if !state.finished {
            state.report.elapsed = state.started.elapsed();
        }
        change(&mut state.report);
    }

    /// A reason once, however often it is met.
    pub(super) fn reason(&self, reason: String) {
        self.update(|report| {
            if !report.reasons.contains(&reason) {
                report.reasons.push(reason);
            }
        });
    }

    /// The run came to its end. It is complete if nothing spoke against it.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.finished, true) {
            state.report.elapsed = state.started.elapsed();
            state.report.complete = state.report.reasons.is_empty();
        }
    }
}
