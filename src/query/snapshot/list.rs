//! `ListReader`: the reader of a list, by the kind of the list.

use super::block::BlockReader;
use super::checkpoint::{Accepted, Cut, ListCheckpoint};
use super::counted::CountedReader;
use super::ranked::RankedReader;
use super::reader::Reader;
use super::snapshot::Snapshot;
use super::spec::{End, ListKind, ListSpec, PageRequest, Response};
use super::state::{ListState, Stage};
use super::uncounted::UncountedReader;
use crate::client::Error;

#[derive(Clone, Debug)]
pub enum ListReader {
    Block(BlockReader),
    Counted(CountedReader),
    Uncounted(UncountedReader),
    Ranked(RankedReader),
}

impl ListReader {
    pub fn new(spec: ListSpec) -> Self {
        match spec.kind {
            ListKind::Lookup | ListKind::Fixed => Self::Block(BlockReader::new(spec)),
            ListKind::Growing => Self::Uncounted(UncountedReader::new(spec)),
            ListKind::Ranked => Self::Ranked(RankedReader::new(spec)),
        }
    }

    /// A reader that continues from a checkpoint, after `returned` records.
    pub fn resumed(spec: ListSpec, returned: u64, checkpoint: &ListCheckpoint) -> Self {
        if checkpoint.is_start() && returned == 0 {
            return Self::new(spec);
        }
        match spec.kind {
            ListKind::Ranked => Self::Ranked(RankedReader::resumed(spec, checkpoint)),
            ListKind::Lookup | ListKind::Fixed => Self::Block(BlockReader::resumed(spec, returned, checkpoint)),
            ListKind::Growing if checkpoint.snapshot.total.is_some() => {
                Self::Counted(CountedReader::resumed(spec, returned, checkpoint))
            }
            ListKind::Growing => Self::Uncounted(UncountedReader::resumed(spec, returned, checkpoint)),
        }
    }

    fn reader(&self) -> &dyn Reader {
        match self {
            Self::Block(reader) => reader,
            Self::Counted(reader) => reader,
            Self::Uncounted(reader) => reader,
            Self::Ranked(reader) => reader,
        }
    }

    fn reader_mut(&mut self) -> &mut dyn Reader {
        match self {
            Self::Block(reader) => reader,
            Self::Counted(reader) => reader,
            Self::Uncounted(reader) => reader,
            Self::Ranked(reader) => reader,
        }
    }

    pub(super) fn list(&self) -> &ListState {
        self.reader().list()
    }

    /// Next request while `in_flight` requests are, or `None` until one of them is answered.
    pub fn next_request(&mut self, in_flight: usize) -> Option<PageRequest> {
        let is_ahead = self.is_ahead();
        let reader = self.reader_mut();
        let request = match reader.list().stage {
            Stage::Ended(_) | Stage::Failed(_) => return None,
            Stage::FinalLook { group, .. } => reader.final_look(group),
            Stage::Reading => reader.request(),
        };
        if in_flight > 0 && !(is_ahead && reader.allow_ahead(request.page)) {
            return None;
        }
        reader.list_mut().next_page += u64::from(is_ahead);
        Some(PageRequest { height_bound: reader.height_bound(), ..request })
    }

    /// Allows the pages of a list of one block to be requested, of which the first has arrived, but was not taken yet.
    pub fn announce(&mut self, pages: u64) {
        if let Self::Block(reader) = self {
            reader.announce(pages);
        }
    }

    /// True for a page that a first response has counted which was not taken yet.
    pub fn is_announced(&self, page: u64) -> bool {
        if let Self::Block(reader) = self { reader.is_announced(page) } else { false }
    }

    /// Takes back a request that was cancelled.
    pub fn cancel(&mut self, request: &PageRequest) {
        if self.is_ahead() {
            let list = self.reader_mut().list_mut();
            list.next_page = request.page.min(list.next_page);
        }
    }

    /// Takes the response to the oldest request in flight. Returns the rows that come next in the result.
    pub fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<Accepted, Error> {
        self.switch_to_counted(request, response);
        let reader = self.reader_mut();
        let list = reader.list_mut();
        list.drift.growth.on_response();
        let accepted = match list.stage {
            Stage::Ended(_) | Stage::Failed(_) => return Ok(Accepted::default()),
            Stage::FinalLook { group, end } => {
                let view = list.view(request, response);
                list.on_final_look(&view, group, end)
            }
            Stage::Reading => reader.on_response(request, response),
        };
        if let Err(error) = &accepted {
            self.fail(error.clone());
        }
        accepted
    }

    /// Chooses the reader of a list that may grow: its first response has a count, or has none.
    fn switch_to_counted(&mut self, request: &PageRequest, response: &Response<'_>) {
        if let Self::Uncounted(reader) = self
            && reader.may_be_counted()
            && Snapshot::new(request, response).total.is_some()
        {
            *self = Self::Counted(CountedReader::new(self.spec().clone()));
        }
    }

    /// Ends the list here, since the caller wants no more records; a final look may still be due. False if it was at its
    /// end already.
    pub fn stop(&mut self) -> bool {
        self.is_reading() && self.reader_mut().stop()
    }

    fn is_reading(&self) -> bool {
        matches!(self.list().stage, Stage::Reading)
    }

    /// The kind of end, once the list has ended.
    pub fn end(&self) -> Option<End> {
        if let Stage::Ended(end) = self.list().stage { Some(end) } else { None }
    }

    /// Why the list cannot be read.
    pub fn error(&self) -> Option<&Error> {
        if let Stage::Failed(error) = &self.list().stage { Some(error) } else { None }
    }

    pub fn fail(&mut self, error: Error) {
        self.reader_mut().list_mut().fail(error);
    }

    /// Number of records returned, and so the offset of the next one in the result.
    pub fn returned(&self) -> u64 {
        self.list().returned
    }

    /// Number of records that the API reports, if it is not that of the returned ones.
    pub fn contradicted_total(&self) -> Option<u64> {
        let total = self.snapshot().total?;
        (total != self.returned()).then_some(total)
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.list().snapshot
    }

    /// True if the requests that were sent after the one whose response was taken are still of use.
    pub fn is_ahead(&self) -> bool {
        self.is_reading() && self.reader().is_ahead()
    }

    pub fn to_come(&self) -> u64 {
        self.reader().to_come()
    }

    pub fn checkpoint(&self) -> ListCheckpoint {
        self.reader().checkpoint()
    }

    pub fn spec(&self) -> &ListSpec {
        &self.list().spec
    }

    /// Number of positions by which records have moved since the snapshot.
    pub fn drift(&self) -> i64 {
        self.list().drift.offset
    }

    /// Records of a ranked list that have changed their positions, as far as was seen.
    pub fn moved(&self) -> u64 {
        if let Self::Ranked(reader) = self { reader.moved() } else { 0 }
    }

    /// Requests after which a run that continues this list from here has returned a record, or has ended: fewer return none
    /// however often it is continued.
    pub fn requests_to_continue(&self) -> u64 {
        match self {
            Self::Uncounted(_) => 3,
            Self::Ranked(_) => 2,
            Self::Block(_) | Self::Counted(_) => 1,
        }
    }

    /// The cut that is nearest to an offset in a page of a list with a count.
    pub fn cut_near(&self, offset: u64, request: &PageRequest, response: &Response<'_>) -> Option<Cut> {
        if let Self::Counted(reader) = self { reader.cut_near(offset, request, response) } else { None }
    }

    /// The end of a page of a list with a count: its offset, and the position there.
    pub fn checkpoint_after(&self, request: &PageRequest, response: &Response<'_>) -> Option<(u64, ListCheckpoint)> {
        if let Self::Counted(reader) = self { reader.checkpoint_after(request, response) } else { None }
    }

    /// True if a final look is due at records that have moved beyond the result window.
    pub fn is_look_beyond_window(&self) -> bool {
        let list = self.list();
        matches!(list.stage, Stage::FinalLook { group, .. } if list.position(list.reachable_anchor(group)) >= list.spec.window())
    }

    /// Ends the list where the API returned no more of it.
    pub fn end_at_window(&mut self) {
        self.reader_mut().list_mut().end_with(End::ResultWindow);
    }

    /// The error for a list that contradicts itself.
    pub fn drift_error(&self, problem: String) -> Error {
        self.list().drift_error(problem)
    }
}
