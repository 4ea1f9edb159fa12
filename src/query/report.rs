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
    state: Arc<Mutex<(Report, Option<Instant>)>>,
}

impl SharedReport {
    pub fn start() -> Self {
        Self { state: Arc::new(Mutex::new((Report::default(), Some(Instant::now())))) }
    }

    fn lock(&self) -> MutexGuard<'_, (Report, Option<Instant>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn read(&self) -> Report {
        let state = self.lock();
        let mut report = state.0.clone();
        if let Some(started) = state.1 {
            report.elapsed = started.elapsed();
        }
        report
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

    /// The run came to its end. It is complete if nothing spoke against it.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        if let Some(started) = state.1.take() {
            state.0.elapsed = started.elapsed();
            state.0.complete = state.0.reasons.is_empty();
        }
    }
}
