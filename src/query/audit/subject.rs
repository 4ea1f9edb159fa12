//! `Subject`: what the audit is told about a list and its responses.

use std::ops::Range;

use crate::interface::Order;
use crate::query::snapshot::{self, ListKind, ListReader};

/// The declared properties of a list.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    pub kind: ListKind,
    pub order: Order,
    pub has_unique_keys: bool,
    /// True if records show their blocks.
    pub has_blocks: bool,
    /// True if the API returns no records above some age.
    pub drops_oldest: bool,
    pub page_size: u64,
    pub max_page_size: u64,
    /// True if reported growth is compared with the head of the list: one request more, for a reason at most.
    pub compares_growth: bool,
    /// Number of records after which the caller stops; `None` if all are wanted.
    pub wanted: Option<u64>,
}

/// The end of a list, as its reader sees it.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Distance by which the list has moved.
    pub drift: i64,
    /// Records of a full page.
    pub page_rows: u64,
    pub extent: Extent,
}

impl End {
    /// The end of a list that has ended, or of which the caller wants no more records.
    pub fn of(reader: &ListReader, wants_more: bool) -> Self {
        let extent = match reader.end() {
            _ if !wants_more => Extent::Beginning,
            Some(snapshot::End::List) => Extent::Whole,
            _ => Extent::Reachable,
        };
        Self { drift: reader.drift(), page_rows: reader.snapshot().page_rows(), extent }
    }

    pub fn is_whole(&self) -> bool {
        self.extent == Extent::Whole
    }
}

/// Part of a list that its reader has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// All records: none follows.
    Whole,
    /// As many records as the caller wants.
    Beginning,
    /// The records that can be had, although others may follow.
    #[default]
    Reachable,
}

/// State of the reading after a response.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReaderState {
    /// Length of the snapshot.
    pub length: Option<u64>,
    /// Distance by which the list has moved.
    pub drift: i64,
    /// Number of responses that were taken before the request was sent, at least.
    pub taken_before: u64,
}

/// Rows of a response that are about to be returned.
pub struct AcceptedRows<'a> {
    /// Range of the rows that the reader accepted.
    pub rows: Range<usize>,
    /// Indices of the accepted rows that do not contradict the arguments; all of them if `None`.
    pub kept: Option<&'a [u32]>,
    pub seen: ReaderState,
}

impl AcceptedRows<'_> {
    /// Rows of the response that are returned.
    pub fn kept(&self) -> Vec<usize> {
        match self.kept {
            Some(kept) => kept.iter().map(|row| self.rows.start + *row as usize).collect(),
            None => self.rows.clone().collect(),
        }
    }
}
