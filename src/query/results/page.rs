//! `Page`, the records of one response, and `Checkpoint`, the position of a run after any of its rows.

use std::sync::Arc;

use super::report::Report;
use super::seen::SeenLog;
use crate::columns::Columns;
use crate::message::Message;
use crate::planted::Bug;
use crate::process::ForkSafeMutex;
use crate::query::audit::Repeat;
use crate::query::request::Query;
use crate::query::snapshot::ListCheckpoint;

/// One page of a run, in order.
#[derive(Clone)]
pub struct Page {
    pub number: u64,
    pub total_pages: Option<u64>,
    pub total: Option<u64>,
    pub chain_full_name: Option<String>,
    pub chain_short_name: Option<String>,
    pub columns: Columns,
    /// Position of the run after this page.
    pub checkpoint: Checkpoint,
}

/// Position of a run, after a number of a page's rows. Nothing is hashed or copied until a cursor is made of it.
#[derive(Clone)]
pub struct Checkpoint {
    page: Arc<PageCheckpoint>,
    row: usize,
    /// Position of the set that the page's list is one of.
    set: Option<Arc<SetPosition>>,
}

/// Position of a set when a page of one of its lists was returned.
pub struct SetPosition {
    pub query: Query,
    /// Index of the list of the page.
    pub member: usize,
    /// Rows of the page that the set returned, where another list had returned the others; all if `None`.
    pub kept: Option<Vec<u32>>,
    /// Positions of the other lists that are being read.
    pub open: Vec<(usize, Checkpoint)>,
    /// Cursors of the lists of which this run has returned nothing, as JSON: an earlier run had begun them.
    pub begun: Vec<(usize, Arc<str>)>,
    /// Bit i: list i has ended.
    pub ended: Vec<u64>,
    /// Lists that ended with an error, and the error.
    pub refused: Vec<(usize, Message)>,
    /// Records that another list may return again.
    pub seen: SeenLog,
    /// Reasons why ended lists are incomplete.
    pub reasons: Vec<Message>,
}

/// A delivered page and what it takes to resume after any of its rows.
pub struct PageCheckpoint {
    /// Query that the page is of.
    pub query: Query,
    pub slice: u64,
    pub source: Source,
    /// Rows of the page.
    pub rows: usize,
    /// Reasons why the slice is incomplete, if it ends with this page.
    pub end: Option<Vec<Message>>,
    /// Records still wanted before this page, where there is a limit.
    pub remaining: Option<u64>,
    /// Report after this page.
    pub report: Report,
}

/// Origin of a page's rows.
pub enum Source {
    /// Part of a list.
    List {
        /// Offset of the first received record.
        offset: u64,
        /// Records of the list that the page accounts for.
        received: Columns,
        /// Index in `received` of each row, where some were left out.
        received_rows: Option<Vec<u32>>,
        /// State of the list before this page.
        before: Box<ListCheckpoint>,
        /// State of the list after it, unless the page was cut by `max_items`.
        after: Option<LatestCheckpoint>,
        /// Records of it that the audit has still to prove to be two.
        repeats: Vec<Repeat>,
        /// Contradictions of the list so far that are no errors.
        doubts: Vec<Message>,
    },
    /// Lookup of several hashes, by indices into the hashes of the slice.
    Hashes {
        /// Hash of each row.
        found: Vec<u32>,
        missing: Vec<u32>,
        /// Hashes missing before this page.
        missing_before: usize,
    },
    /// Records of a single hash, from this one on.
    Hash { offset: u64 },
}

/// Position after a page, which responses without records make more precise. Of several pages, the last one has it.
#[derive(Clone)]
pub struct LatestCheckpoint(Arc<ForkSafeMutex<ListCheckpoint>>);

impl LatestCheckpoint {
    pub fn new(checkpoint: ListCheckpoint) -> Self {
        Self(Arc::new(ForkSafeMutex::new(checkpoint)))
    }

    pub fn get(&self) -> ListCheckpoint {
        self.0.lock().clone()
    }

    pub fn set(&self, checkpoint: ListCheckpoint) {
        *self.0.lock() = checkpoint;
    }
}

impl Checkpoint {
    /// Position after all rows of a page.
    pub(in crate::query) fn after(page: PageCheckpoint) -> Self {
        Self { row: page.rows, page: Arc::new(page), set: None }
    }

    /// Position after `row` rows of the same page.
    #[must_use]
    pub fn at_row(&self, row: usize) -> Self {
        let row = row + usize::from(Bug::CursorOffByOne.is_planted());
        Self { page: self.page.clone(), row: row.min(self.page.rows), set: self.set.clone() }
    }

    /// The position of a set after the rows that it returned of the page.
    pub(in crate::query) fn in_set(self, set: SetPosition) -> Self {
        let row = set.kept.as_ref().map_or(self.row, Vec::len);
        Self { row, set: Some(Arc::new(set)), ..self }
    }

    pub(in crate::query) fn set(&self) -> Option<&SetPosition> {
        self.set.as_deref()
    }

    /// The position in the list of the page, whatever set it is one of.
    pub(in crate::query) fn of_list(&self) -> Self {
        let kept = self.set.as_ref().and_then(|set| set.kept.as_ref());
        let row = match kept {
            // Rows between were returned by other lists.
            Some(kept) => kept.get(self.row).map_or(self.page.rows, |next| *next as usize),
            None => self.row,
        };
        Self { page: self.page.clone(), row, set: None }
    }

    pub(in crate::query) fn page(&self) -> &PageCheckpoint {
        &self.page
    }

    pub(in crate::query) fn row(&self) -> usize {
        self.row
    }
}
