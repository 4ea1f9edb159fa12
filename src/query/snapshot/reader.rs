//! `SnapshotReader`: which page to request next, and which rows of a response to return.

use super::checkpoint::Accepted;
use super::delivered::Delivered;
use super::growth::Growth;
use super::snapshot::{Proof, Snapshot};
use super::spec::{End, ListKind, ListSpec, PageRequest, Purpose, Response};
use crate::client::Error;

/// State of reading; the table is in the module's documentation.
#[derive(Debug)]
pub(super) enum Phase {
    First,
    Length,
    /// The last page of the beginning that is wanted.
    Mark,
    Ahead {
        next_page: u64,
    },
    Overlap(Attempt),
    Locate,
    Single,
    /// The end that follows, if no record does.
    TailLook(End),
    /// The group of anchors that is looked for, and the end that follows.
    FinalLook(usize, End),
    Done(End),
    Failed(Error),
}

/// Attempts to find the next record in an overlapping page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attempt {
    /// At the position that the growth of the latest responses leads to.
    First,
    /// At the position of the latest response, which showed the drift if the list has a length.
    Second,
    /// The same, after a request for a returned record did not contradict that it is where it should be.
    Third,
}

/// Distance by which the list has moved since the snapshot.
#[derive(Debug, Default)]
pub(super) struct Drift {
    pub offset: i64,
    pub growth: Growth,
    /// Latest responses in a row without a new record.
    pub misses: u32,
    /// Pages in a row whose number contradicts the number of records.
    pub contradictions: u32,
    /// True if the list has changed since the first response, or may have before a run that continues another.
    pub has_changed: bool,
    pub restarts: u32,
}

#[derive(Debug)]
pub struct SnapshotReader {
    pub(super) spec: ListSpec,
    pub(super) phase: Phase,
    pub(super) snapshot: Snapshot,
    pub(super) delivered: Delivered,
    pub(super) drift: Drift,
    /// Records that were read before the snapshot began, and which it must contain. Newer ones are skipped, and these, if
    /// they were returned.
    pub(super) earlier: Option<Delivered>,
    pub(super) proof: Proof,
    /// The mark of the snapshot, until the first page was received again.
    pub(super) new_mark: Option<(u64, u64)>,
    /// Greatest height of the part that is being read, below a result window.
    pub(super) bound: Option<i64>,
    pub(super) returned: u64,
}

impl SnapshotReader {
    pub fn new(spec: ListSpec) -> Self {
        Self {
            spec,
            phase: Phase::First,
            snapshot: Snapshot::default(),
            delivered: Delivered::default(),
            drift: Drift::default(),
            earlier: None,
            proof: Proof::Overlap,
            new_mark: None,
            bound: None,
            returned: 0,
        }
    }

    /// Number of records returned, and so the offset of the next one in the result.
    pub fn returned(&self) -> u64 {
        self.returned
    }

    /// Distance by which the list has moved since the snapshot.
    pub fn drift(&self) -> i64 {
        self.drift.offset
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The kind of end, once the list has ended.
    pub fn end(&self) -> Option<End> {
        if let Phase::Done(end) = self.phase { Some(end) } else { None }
    }

    /// Why the list cannot be read.
    pub fn error(&self) -> Option<&Error> {
        if let Phase::Failed(error) = &self.phase { Some(error) } else { None }
    }

    pub fn fail(&mut self, error: Error) {
        self.phase = Phase::Failed(error);
    }

    pub fn spec(&self) -> &ListSpec {
        &self.spec
    }

    /// About how many records are still to come.
    pub fn to_come(&self) -> u64 {
        self.snapshot.length.exact().unwrap_or(self.snapshot.max_length()).saturating_sub(self.delivered.end())
    }

    /// Ends the list here, since the caller wants no more records; a final look may still be due. False if it was at its
    /// end already.
    pub fn stop(&mut self) -> bool {
        let is_reading =
            !matches!(self.phase, Phase::Done(_) | Phase::Failed(_) | Phase::TailLook(_) | Phase::FinalLook(..));
        if is_reading {
            self.end_beginning();
        }
        is_reading
    }

    /// Next request while `in_flight` requests are, or `None` until one of them is answered.
    pub fn next_request(&mut self, in_flight: usize) -> Option<PageRequest> {
        if let Phase::Ahead { next_page } = self.phase {
            return self.request_ahead(next_page, in_flight);
        }
        if in_flight > 0 {
            return None;
        }
        match self.phase {
            Phase::First => Some(self.request(1, self.spec.page_size, Purpose::Records)),
            Phase::Overlap(attempt) => Some(self.overlapping_page(attempt)),
            Phase::Length => Some(self.request(1, 1, Purpose::CountProbe)),
            Phase::Mark => Some(self.mark_page()),
            Phase::Locate => {
                Some(self.probe(self.delivered.boundary_record().map_or(self.delivered.end(), |(offset, _)| offset)))
            }
            Phase::Single => Some(self.probe(self.delivered.end())),
            Phase::TailLook(_) => Some(self.request(self.position(self.delivered.end()) + 1, 1, Purpose::FinalLook)),
            Phase::FinalLook(group, _) => Some(self.look_page(group)),
            Phase::Ahead { .. } | Phase::Done(_) | Phase::Failed(_) => None,
        }
    }

    fn request_ahead(&mut self, page: u64, in_flight: usize) -> Option<PageRequest> {
        let is_alone = in_flight == 0;
        if !is_alone && !self.may_request_ahead(page) {
            return None;
        }
        self.phase = Phase::Ahead { next_page: page + 1 };
        // A record may be added in the middle of the list between responses that arrive in another order.
        if !is_alone && self.spec.kind == ListKind::Growing && self.snapshot.length.exact().is_some() {
            self.proof = Proof::FinalLook;
        }
        Some(self.request(page, self.spec.page_size, Purpose::Records))
    }

    /// Takes back a request that was cancelled.
    pub fn cancel(&mut self, request: &PageRequest) {
        if let Phase::Ahead { next_page } = &mut self.phase {
            *next_page = request.page.min(*next_page);
        }
    }

    /// Takes the response to the oldest request in flight.
    pub fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<Accepted, Error> {
        self.drift.growth.on_response();
        let total = response.total.filter(|total| !self.spec.is_capped(*total));
        let response = &Response { total, ..*response };
        if matches!(self.phase, Phase::First) {
            self.snapshot = Snapshot { length: self.snapshot.length, ..Snapshot::new(request, response) };
        }
        let view = self.snapshot.view(request, response, self.spec.window());
        let accepted = match self.phase {
            Phase::First => self.on_first(&view),
            Phase::Length => self.on_length(&view),
            Phase::Mark => Ok(self.on_mark(&view)),
            Phase::Ahead { .. } | Phase::Overlap(_) => self.on_records(&view),
            Phase::Locate => self.on_locate(&view),
            Phase::Single => self.on_single(&view),
            Phase::TailLook(end) => self.on_tail_look(&view, end),
            Phase::FinalLook(group, end) => self.on_final_look(&view, group, end),
            Phase::Done(_) | Phase::Failed(_) => Ok(Accepted::default()),
        };
        accepted.or_else(|error| self.restart(error))
    }

    /// True if the requests that were sent after the one whose response was taken are still of use.
    pub fn is_ahead(&self) -> bool {
        matches!(self.phase, Phase::Ahead { .. })
    }

    /// Begins another snapshot, unless records were returned and some of this one were read.
    fn restart(&mut self, error: Error) -> Result<Accepted, Error> {
        let is_final = self.returned > 0 && self.delivered.end() > 0;
        // A first page that was not returned is not looked for any more.
        let is_looking = self.returned == 0 && self.earlier.is_some() && self.snapshot.length.exact().is_some();
        if is_final || !(self.may_begin_again() || is_looking) {
            self.fail(error.clone());
            return Err(error);
        }
        self.forget_unreturned();
        self.phase = self.begin_again();
        Ok(Accepted::default())
    }

    /// Does not look for a first page that was not returned: the snapshot may contain newer records.
    pub(super) fn forget_unreturned(&mut self) {
        if self.returned == 0 {
            self.earlier = None;
        }
    }

    pub(super) fn may_begin_again(&self) -> bool {
        self.drift.restarts < self.spec.tuning.max_restarts && self.snapshot.length.exact().is_some()
    }

    /// Requests the length, with which another snapshot begins.
    pub(super) fn begin_again(&mut self) -> Phase {
        self.delivered = Delivered::default();
        self.proof = Proof::Overlap;
        self.new_mark = None;
        self.snapshot.mark = None;
        self.drift.restarts += 1;
        self.drift.has_changed = true;
        Phase::Length
    }
}
