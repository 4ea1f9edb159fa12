//! `BelievedResponses`: the empty responses of a run that were taken to mean that nothing was found.

use std::sync::Arc;

use tokio::time::Instant;

use crate::client::{BelievedEmpty, EmptyResponses, GetRequest};

/// Requests with empty responses that are kept, to be sent again once a page with records is known.
const KEPT_REQUESTS: usize = 1 << 10;
/// Empty responses that a run may have without a response with records at the same time: a list may be empty.
pub(super) const UNCONFIRMED: u64 = 1;

/// Empty responses that were taken to mean that nothing was found.
#[derive(Debug)]
pub(super) struct BelievedResponses {
    /// Start of the run.
    started: Instant,
    confirmed: u64,
    pub unconfirmed: u64,
    /// The requests of these, until they are sent again.
    to_confirm: Vec<GetRequest>,
    /// Page objects that counted none.
    counted: u64,
    /// The client's knowledge of such responses, if there were any.
    known: Option<Arc<EmptyResponses>>,
}

impl BelievedResponses {
    pub fn new(started: Instant) -> Self {
        Self { started, confirmed: 0, unconfirmed: 0, to_confirm: Vec::new(), counted: 0, known: None }
    }

    pub fn are_doubtful(&self) -> bool {
        self.unconfirmed > UNCONFIRMED || self.are_disproved()
    }

    /// True if the service has throttled by responses like these.
    pub fn are_disproved(&self) -> bool {
        self.known.as_ref().is_some_and(|known| {
            known.has_throttled_since(self.started) && self.confirmed + self.unconfirmed > 0
                || known.has_false_counts() && self.counted > 0
        })
    }

    /// True if several are unconfirmed that a page with records may confirm.
    fn can_be_confirmed(&self) -> bool {
        self.unconfirmed > UNCONFIRMED
            && self.to_confirm.len() as u64 == self.unconfirmed
            && self.known.as_ref().is_some_and(|known| known.has_control() && !known.has_throttled_since(self.started))
    }

    pub fn add(&mut self, known: &Arc<EmptyResponses>, response: BelievedEmpty, request: GetRequest) {
        match response {
            BelievedEmpty::Confirmed => self.confirmed += 1,
            BelievedEmpty::Repeated => {
                self.unconfirmed += 1;
                if self.to_confirm.len() < KEPT_REQUESTS {
                    self.to_confirm.push(request);
                }
            }
            BelievedEmpty::Counted => self.counted += 1,
        }
        self.known.get_or_insert_with(|| known.clone());
    }

    pub fn take_unconfirmed(&mut self) -> Vec<GetRequest> {
        if self.can_be_confirmed() { std::mem::take(&mut self.to_confirm) } else { Vec::new() }
    }

    pub fn confirm(&mut self, responses: u64) {
        self.unconfirmed = self.unconfirmed.saturating_sub(responses);
        self.confirmed += responses;
    }

    /// The page objects of a run that counted none.
    pub fn counted(&self) -> (u64, Option<Arc<EmptyResponses>>) {
        (self.counted, self.known.clone())
    }

    pub fn take_counted(&mut self, (counted, known): (u64, Option<Arc<EmptyResponses>>)) {
        self.counted = self.counted.max(counted);
        self.known = self.known.take().or(known);
    }
}
