//! Reports of runs for an observer outside the core.

use crate::client::Error;
use crate::client::log::Context;
use crate::query::results::{Page, Report, SharedReport};

/// Observer of one run.
pub trait RunObserver: Send + Sync {
    /// Context in which the attempts of the run are reported.
    fn context(&self) -> Context;

    /// Takes an error, after which the run may continue.
    fn failed(&mut self, error: &Error);

    /// Takes the report at the end, also of a run that was dropped before it. Must not wait.
    fn ended(self: Box<Self>, report: Report);
}

/// The observer of a run, until its end.
#[derive(Default)]
pub(super) struct Observed(Option<(Box<dyn RunObserver>, SharedReport)>);

impl Observed {
    pub fn new(observer: Box<dyn RunObserver>, report: SharedReport) -> Self {
        Self(Some((observer, report)))
    }

    pub fn context(&self) -> Option<Context> {
        self.0.as_ref().map(|(observer, _)| observer.context())
    }

    /// Takes what the run returned.
    pub fn returned(&mut self, page: &Result<Option<Page>, Error>) {
        match (page, &mut self.0) {
            (Ok(None), _) => self.end(),
            (Err(error), Some((observer, _))) => observer.failed(error),
            _ => {}
        }
    }

    fn end(&mut self) {
        if let Some((observer, report)) = self.0.take() {
            observer.ended(report.read());
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.end();
    }
}
