//! `Gaps`: heights that had no records when they were requested, below new records. A range may reach above the newest block, and
//! a part of the service may be behind: such a height may have got its block since then.

use std::iter::zip;

use futures_util::future::try_join_all;

use super::Run;
use crate::cassette::Request;
use crate::client::{Age, Error};
use crate::decode::Page;
use crate::message::{Hint, Message};
use crate::query::execution::fetch::get_request;
use crate::query::execution::recorded_range::request_of_facts;
use crate::query::request::Query;
use crate::query::snapshot::PageRequest;

/// Slices of a range of heights.
#[derive(Default)]
pub(super) struct Gaps {
    /// Those without records above the last one that had some.
    empty: Vec<u64>,
    /// Those without records below one with new records.
    below_new: Vec<u64>,
}

impl Gaps {
    /// Adds a slice without records.
    fn add_empty(&mut self, slice: u64) {
        self.empty.push(slice);
    }

    /// Adds records, above the slices that were added before. Below old ones, all blocks were there long ago.
    fn add_records(&mut self, age: Age) {
        match age {
            Age::New => self.below_new.append(&mut self.empty),
            Age::Old => self.empty.clear(),
        }
    }
}

impl Run {
    /// Notes whether a height has records. A follower reads settled heights only.
    pub(super) fn note_gap(&mut self, request: &PageRequest, page: &Page) {
        let Some(slice) = self.fetchers.front().map(|fetcher| fetcher.slice) else { return };
        if !has_gaps(&self.query) {
            return;
        }
        if page.columns.rows() > 0 {
            self.gaps.add_records(self.query.client().age_of(&page.columns));
        } else if request.page == 1 {
            self.gaps.add_empty(slice);
        }
    }

    /// Requests the gaps once more before the run ends. One that has records now is a reason.
    pub(super) async fn look_at_gaps(&mut self) -> Result<(), Error> {
        if !has_gaps(&self.query) {
            return Ok(());
        }
        let client = self.query.client();
        let facts = request_of_gaps(&self.query)?;
        // A recording does not say how old its records were, but which heights were requested again.
        let recorded = client.replay_facts(&facts)?.and_then(|body| serde_json::from_slice(&body).ok());
        let slices = recorded.unwrap_or_else(|| self.gaps.below_new.clone());
        if !slices.is_empty() {
            client.record_facts(&facts, serde_json::to_vec(&slices).unwrap_or_default().into())?;
        }
        let report = &self.output.report;
        let is_empty = async |slice: &u64| {
            let request = get_request(&self.query, *slice, &PageRequest::first(self.query.page_size()), false);
            client.is_empty_still(&request, &|| report.update(|report| report.requests += 1)).await
        };
        let are_empty = try_join_all(slices.iter().map(is_empty)).await?;
        let filled = zip(&slices, are_empty).filter(|(_, is_empty)| !is_empty);
        for height in filled.filter_map(|(slice, _)| self.query.slices().height(*slice)) {
            let problem = format!("Height {height} had no records when it was requested, and has some now");
            report.add_reason(Message::new(problem).hint(Hint::RunAgain));
        }
        self.gaps = Gaps::default();
        Ok(())
    }
}

/// True if a query is read height by height.
fn has_gaps(query: &Query) -> bool {
    query.slices().bounds().is_some() && !query.is_followed()
}

/// The facts of a recording on the gaps of a query.
fn request_of_gaps(query: &Query) -> Result<Request, Error> {
    request_of_facts(query, [("facts", "gaps")])
}
