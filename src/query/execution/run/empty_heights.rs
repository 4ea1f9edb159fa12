//! `EmptyHeights`: heights that had no records when they were requested, below new records. A range may reach above the newest block, and
//! a part of the service may be behind: such a height may have got its block since then.

use std::iter::zip;

use futures_util::future::join_all;

use super::Run;
use crate::client::{Age, Error};
use crate::decode::Page;
use crate::message::{Hint, Message};
use crate::query::execution::fetch::get_request;
use crate::query::execution::recorded_range::request_of_facts;
use crate::query::snapshot::PageRequest;

/// Slices of a range of heights.
#[derive(Default)]
pub(super) struct EmptyHeights {
    /// Those without records above the last one that had some.
    above: Vec<u64>,
    /// Those without records below one with new records.
    below_new: Vec<u64>,
    /// True if some were below one with records, of whatever age.
    are_below_some: bool,
}

impl EmptyHeights {
    /// Adds a slice, above those that were added before, or one of them whose list is read again.
    fn add(&mut self, slice: u64, records: Option<Age>) {
        self.above.pop_if(|last| *last == slice);
        let Some(age) = records else { return self.above.push(slice) };
        self.are_below_some |= !self.above.is_empty();
        match age {
            Age::New => self.below_new.append(&mut self.above),
            // Below old records, all blocks were there long ago.
            Age::Old => self.above.clear(),
        }
    }
}

impl Run {
    /// Notes whether a height has records. A follower reads settled heights only.
    pub(super) fn note_height(&mut self, request: &PageRequest, page: &Page) {
        if self.query.slices().bounds().is_none() || self.query.is_followed() || request.page > 1 {
            return;
        }
        let Some(fetcher) = self.fetchers.front() else { return };
        let records = (page.columns.rows() > 0).then(|| self.query.client().age_of(&page.columns));
        self.empty_heights.add(fetcher.slice, records);
    }

    /// Requests heights without records once more before the run ends. One that may have some now is a reason.
    pub(super) async fn look_at_empty_heights(&mut self) -> Result<(), Error> {
        if !self.empty_heights.are_below_some {
            return Ok(());
        }
        let client = self.query.client();
        let mut facts = request_of_facts(&self.query)?;
        facts.params.insert("facts".to_owned(), "empty heights".to_owned());
        // A recording does not say how old its records were, but which heights were requested again.
        let recorded = client.replay_facts(&facts)?.and_then(|body| serde_json::from_slice(&body).ok());
        if recorded.is_none() {
            client
                .record_facts(&facts, serde_json::to_vec(&self.empty_heights.below_new).unwrap_or_default().into())?;
        }
        let slices = recorded.unwrap_or_else(|| self.empty_heights.below_new.clone());
        let report = &self.output.report;
        let look = async |slice: &u64| {
            let request = get_request(&self.query, *slice, &PageRequest::first(self.query.page_size()), false);
            client.is_empty_still(&request, &|| report.update(|report| report.requests += 1)).await
        };
        let looks = join_all(slices.iter().map(look)).await;
        for (slice, is_empty) in zip(&slices, looks) {
            let height = self.query.slices().height(*slice).unwrap_or_default();
            // All records were received: the run does not fail with this request.
            let outcome = match is_empty {
                Ok(true) => continue,
                Ok(false) => "has some now",
                Err(_) => "could not be requested again",
            };
            let problem = format!("Height {height} had no records when it was requested, and {outcome}");
            report.add_reason(Message::new(problem).hint(Hint::RunAgain));
        }
        self.empty_heights = EmptyHeights::default();
        Ok(())
    }
}
