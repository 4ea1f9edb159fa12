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
}

/// A report that a run writes and others read meanwhile.
#[derive(Clone, Debug)]
pub struct SharedReport {
    /// With since when the clock runs, and whether the run is over.
    state: Arc<Mutex<(Report, Option<Instant>, bool)>>,
}

impl SharedReport {
    /// Of a run that begins, with what already spoke against an earlier part of it.
    pub(super) fn start(reasons: Vec<String>, missing: Vec<String>) -> Self {
        let report = Report { reasons, missing, ..Report::default() };
        Self { state: Arc::new(Mutex::new((report, Some(Instant::now()), false))) }
    }

    fn lock(&self) -> MutexGuard<'_, (Report, Option<Instant>, bool)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn read(&self) -> Report {
        let state = self.lock();
        let mut report = state.0.clone();
        if let Some(started) = state.1 {
            report.elapsed += started.elapsed();
        }
        report
    }

    /// How many reasons and missing hashes there are.
    pub(super) fn counts(&self) -> (usize, usize) {
        let report = &self.lock().0;
        (report.reasons.len(), report.missing.len())
    }

    /// The first so many reasons and missing hashes.
    pub(super) fn said(&self, (reasons, missing): (usize, usize)) -> (Vec<String>, Vec<String>) {
        let report = &self.lock().0;
        (report.reasons[..reasons].to_vec(), report.missing[..missing].to_vec())
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut Report)) {
        change(&mut self.lock().0);
    }

    /// A reason once, however often it is met.
    pub(super) fn reason(&self, reason: String) {
        self.update(|report| {
            if !report.reasons.contains(&reason) {
                report.reasons.push(reason);
            }
        });
    }

    /// The clock stands from an error until the run goes on.
    pub(super) fn pause(&self) {
        let mut state = self.lock();
        if let Some(started) = state.1.take() {
            state.0.elapsed += started.elapsed();
        }
    }

    pub(super) fn go_on(&self) {
        let mut state = self.lock();
        if !state.2 {
            state.1.get_or_insert_with(Instant::now);
        }
    }

    /// The run came to its end. It is complete if nothing spoke against it.
    pub(super) fn finish(&self) {
        self.pause();
        let mut state = self.lock();
        state.2 = true;
        state.0.complete = state.0.reasons.is_empty();
    }
}
