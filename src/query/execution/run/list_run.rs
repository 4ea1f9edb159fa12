//! A run as that of one list of a set.

use super::Run;
use crate::query::execution::query_start::QueryStart;
use crate::query::execution::set::{ListRun, NextPage};
use crate::query::execution::slice_fetcher::{Discarded, SliceFetcher};
use crate::query::results::SharedReport;

impl Run {
    /// Begins the run of a list of a set.
    pub(super) fn begin(start: &QueryStart) -> Box<dyn ListRun> {
        Box::new(Self::new(start).dividing())
    }

    /// Begins the run of a list whose first page may be the only one that is needed of a set.
    pub(super) fn begin_at_once(start: &QueryStart) -> Box<dyn ListRun> {
        Box::new(Self::new(start).dividing().returning_first_page_at_once())
    }
}

impl ListRun for Run {
    fn report(&self) -> &SharedReport {
        &self.output.report
    }

    fn set_max_in_flight(&mut self, pages: usize) {
        self.set_max_in_flight(pages);
    }

    fn discard(&mut self) -> Option<Discarded> {
        // The slices of a divided list are not those with which another run begins.
        let reading = if self.is_divided() { None } else { self.fetchers.pop_front() };
        reading.map(SliceFetcher::discarded).or(self.discarded.take())
    }

    fn begin_after(&mut self, discarded: Discarded) {
        self.discarded = Some(discarded);
    }

    fn next(&mut self) -> NextPage<'_> {
        Box::pin(self.next())
    }
}
