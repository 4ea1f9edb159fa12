//! `Served`: a response of the modelled API, as reader and audit take it.

use super::super::spec::Rows;
use super::super::{Accepted, ListReader, PageRequest, Purpose, Response};
use crate::query::audit::{AcceptedRows, ListAudit, ReaderState};

/// A record: unique, with a key that others of the same height may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub(super) id: u64,
    pub(super) key: u64,
    pub(super) height: i64,
}

pub struct Slice<'a>(pub &'a [Record]);

impl Rows for Slice<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn key(&self, row: usize) -> u64 {
        self.0[row].key
    }

    fn height(&self, row: usize) -> Option<i64> {
        Some(self.0[row].height)
    }
}

/// Response to a request, as the list was then.
#[derive(Clone)]
pub struct Served {
    pub rows: Vec<Record>,
    pub limit: u64,
    pub total_pages: u64,
    pub total: Option<u64>,
}

impl Served {
    /// Gives the response to the reader, and to the audit with the rows that the reader accepts.
    pub fn take(
        &self,
        reader: &mut ListReader,
        audit: Option<&mut ListAudit>,
        request: &PageRequest,
    ) -> Result<Accepted, String> {
        let rows = Slice(&self.rows);
        let response = Response {
            rows: &rows,
            page: None,
            limit: Some(self.limit),
            total_pages: Some(self.total_pages),
            total: self.total.filter(|total| !reader.spec().is_capped(*total)),
        };
        let accepted = match request.purpose {
            Purpose::Audit => Accepted::default(),
            _ => reader.on_response(request, &response).map_err(|error| error.to_string())?,
        };
        if let Some(audit) = audit {
            audit.note_records(&response);
            let length = reader.snapshot().length.exact();
            let seen = ReaderState { length, drift: reader.drift(), ..ReaderState::default() };
            audit.on_response(request, &response, &AcceptedRows { rows: accepted.rows.clone(), kept: None, seen })?;
        }
        Ok(accepted)
    }
}
