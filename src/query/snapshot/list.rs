//! `ListReader`: the reader of a list, by the kind of the list.

use super::checkpoint::{Accepted, ListCheckpoint};
use super::ranked::RankedReader;
use super::reader::SnapshotReader;
use super::snapshot::Snapshot;
use super::spec::{End, ListKind, ListSpec, PageRequest, Response};
use crate::client::Error;
use crate::message::Message;

#[derive(Debug)]
pub enum ListReader {
    Snapshot(SnapshotReader),
    Ranked(RankedReader),
}

/// Calls a method that both readers have.
macro_rules! either {
    ($self:ident, $reader:ident => $call:expr) => {
        match $self {
            ListReader::Snapshot($reader) => $call,
            ListReader::Ranked($reader) => $call,
        }
    };
}

impl ListReader {
    pub fn new(spec: ListSpec) -> Self {
        match spec.kind {
            ListKind::Ranked => Self::Ranked(RankedReader::new(spec)),
            ListKind::Lookup | ListKind::Fixed | ListKind::Growing => Self::Snapshot(SnapshotReader::new(spec)),
        }
    }

    /// A reader that continues from a checkpoint, after `returned` records.
    pub fn resumed(spec: ListSpec, returned: u64, checkpoint: &ListCheckpoint) -> Self {
        match (spec.kind, checkpoint.ranked()) {
            (ListKind::Ranked, Some(checkpoint)) => Self::Ranked(RankedReader::resumed(spec, checkpoint)),
            (ListKind::Ranked, None) => Self::Ranked(RankedReader::new(spec)),
            _ => Self::Snapshot(SnapshotReader::resumed(spec, returned, checkpoint)),
        }
    }

    pub fn next_request(&mut self, in_flight: usize) -> Option<PageRequest> {
        either!(self, reader => reader.next_request(in_flight))
    }

    pub fn cancel(&mut self, request: &PageRequest) {
        either!(self, reader => reader.cancel(request));
    }

    pub fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<Accepted, Error> {
        match self {
            Self::Snapshot(reader) => reader.on_response(request, response),
            Self::Ranked(reader) => Ok(reader.on_response(request, response)),
        }
    }

    pub fn stop(&mut self) -> bool {
        either!(self, reader => reader.stop())
    }

    pub fn end(&self) -> Option<End> {
        either!(self, reader => reader.end())
    }

    pub fn error(&self) -> Option<&Error> {
        either!(self, reader => reader.error())
    }

    pub fn fail(&mut self, error: Error) {
        either!(self, reader => reader.fail(error));
    }

    pub fn returned(&self) -> u64 {
        either!(self, reader => reader.returned())
    }

    pub fn snapshot(&self) -> &Snapshot {
        either!(self, reader => reader.snapshot())
    }

    pub fn is_ahead(&self) -> bool {
        either!(self, reader => reader.is_ahead())
    }

    pub fn to_come(&self) -> u64 {
        either!(self, reader => reader.to_come())
    }

    pub fn checkpoint(&self) -> ListCheckpoint {
        either!(self, reader => reader.checkpoint())
    }

    pub fn spec(&self) -> &ListSpec {
        either!(self, reader => reader.spec())
    }

    /// Distance by which the list has moved since the snapshot.
    pub fn drift(&self) -> i64 {
        if let Self::Snapshot(reader) = self { reader.drift() } else { 0 }
    }

    /// Records of a ranked list that have changed their positions, as far as was seen.
    pub fn moved(&self) -> u64 {
        if let Self::Ranked(reader) = self { reader.moved() } else { 0 }
    }

    /// True if a request begins where the API may return no more records, whatever it reported before.
    pub fn is_beyond_window(&self, request: &PageRequest) -> bool {
        self.spec().is_beyond_window(request)
    }

    /// Ends the list where the API returned no more of it.
    pub fn end_at_window(&mut self) {
        either!(self, reader => reader.end_with(End::ResultWindow));
    }

    /// The error for a list that contradicts itself.
    pub fn drift_error(&self, problem: String) -> Error {
        let spec = self.spec();
        Error::Drift { endpoint: spec.endpoint, problem: Message::new(problem).hints(spec.hints.clone()) }
    }
}
