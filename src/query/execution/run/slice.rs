//! `CurrentSlice`: the slice that is being delivered. It begins with saved output, to which a run may return, and ends with reasons.

use std::sync::Arc;

use super::Run;
use super::output::{RunOutput, SavedOutput};
use crate::client::Error;
use crate::process::ForkSafeMutex;
use crate::query::audit::Source;
use crate::query::execution::reasons::{contradictions, limits, of_end};
use crate::query::snapshot::{End, ListCheckpoint};

#[derive(Default)]
pub(super) struct CurrentSlice {
    start: SliceStart,
    /// Position after its last page, which responses without records make more precise.
    pub latest: Option<Arc<ForkSafeMutex<ListCheckpoint>>>,
}

/// The output to which a run can return, to read the list of a slice again.
#[derive(Default)]
enum SliceStart {
    /// The slice was not begun, or its records are handed out at once.
    #[default]
    Unsaved,
    Saved(Box<SavedOutput>),
    /// The list continues a snapshot: that of a cursor, or of a partition.
    BeforeRun,
}

impl CurrentSlice {
    /// A slice that an earlier run began.
    pub fn continued() -> Self {
        Self { start: SliceStart::BeforeRun, latest: None }
    }

    /// Remembers where a slice begins that this run reads from its beginning.
    pub fn save(&mut self, output: &RunOutput) {
        if let SliceStart::Unsaved = self.start
            && let Some(saved) = output.save()
        {
            self.start = SliceStart::Saved(Box::new(saved));
        }
    }
}

impl Run {
    /// Reads a list again that changed too much, if none of its records were handed out.
    pub(super) fn read_again(&mut self) -> bool {
        let SliceStart::Saved(start) = &mut self.current.start else { return false };
        let Some(slice) = self.fetchers.front().map(|fetcher| fetcher.slice) else { return false };
        if !self.output.rewind(start) {
            return false;
        }
        self.output.blocks.forget(Source::List(slice));
        if let Some(query) = self.whole.take() {
            self.query = query;
        }
        self.current.latest = None;
        self.dividing.restart();
        let again = self.open(slice);
        if let Some(discarded) = self.fetchers.pop_front() {
            self.fetchers.push_front(again.after_discarded(discarded.discarded()));
        }
        self.next_slice = self.fetchers.back().map_or(self.next_slice, |last| last.slice + 1);
        true
    }

    /// Ends the slice that is being delivered, of which no request is in flight. False if the run ends with it.
    pub(super) fn conclude(&mut self, is_stopped: bool) -> Result<bool, Error> {
        let Some(fetcher) = self.fetchers.front_mut() else { return Ok(false) };
        if let Some(error) = fetcher.list.error() {
            return Err(error.clone());
        }
        fetcher.conclude()?;
        if is_stopped {
            // The parts of a divided list are counted by the list.
            let end = fetcher.list.end().filter(|end| *end != End::UnknownLength || self.whole.is_none());
            if let Some(reason) = of_end(end) {
                self.output.report.add_reason(reason);
            }
            for reason in contradictions(&self.query, fetcher) {
                self.output.report.add_contradiction(reason);
            }
            return Ok(false);
        }
        if self.dividing.is_cut() {
            self.divide();
            return Ok(true);
        }
        // A block whose list ends at the result window may have any number of records beyond it.
        fetcher.check_window(&self.query, fetcher.list.returned().saturating_add(1))?;
        self.end_slice();
        Ok(true)
    }

    /// Requests no more than it takes to verify the records that were returned.
    pub(super) fn stop(&mut self) {
        self.next_slice = self.query.slices().count();
        let has_returned = self.fetchers.front().is_some_and(|fetcher| fetcher.list.returned() > 0);
        self.fetchers.truncate(usize::from(has_returned));
        for fetcher in &mut self.fetchers {
            fetcher.stop();
        }
    }

    /// Ends the slice that is being delivered.
    fn end_slice(&mut self) {
        let Some(fetcher) = self.fetchers.pop_front() else { return };
        self.sizes.add(fetcher.list.returned());
        self.current = CurrentSlice::default();
        self.end = fetcher.list.end();
        for reason in limits(&self.query, &fetcher, &self.output.evidence) {
            self.output.report.add_reason(reason);
        }
        for reason in contradictions(&self.query, &fetcher) {
            self.output.report.add_contradiction(reason);
        }
        if self.query.slices().is_final_look(fetcher.slice) {
            self.sum_up();
        }
    }

    pub(super) fn finish(&mut self) {
        self.fetchers.clear();
        self.next_slice = self.query.slices().count();
        let is_to_end = self.end == Some(End::List) && self.remaining() != Some(0);
        let findings = self.output.evidence.findings(is_to_end);
        self.output.report.update(|report| report.evidence = findings);
        if self.output.delivered == 0 && self.output.report.read().dropped == 0 {
            self.output.report.update(|report| report.remarks = self.query.implausible_args().into());
        }
        self.output.report.finish();
    }
}
