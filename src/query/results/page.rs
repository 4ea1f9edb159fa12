//! `Page`, the records of one response, and `Checkpoint`, the position of a run after any of its rows.

use std::sync::Arc;

use super::cursor::Cursor;
use super::shared_report::SharedReport;
use crate::columns::Columns;
use crate::decode::Paging;
use crate::planted::Bug;

/// One page of a run, in order.
#[derive(Clone)]
pub struct Page {
    /// Number that was requested.
    pub number: u64,
    /// Members of the response's page object, empty without a response.
    pub paging: Paging,
    pub columns: Columns,
    /// Position of the run after this page.
    pub checkpoint: Checkpoint,
}

/// Position of a run, after a number of a page's rows. Nothing is hashed or copied until a cursor is made of it.
#[derive(Clone)]
pub struct Checkpoint {
    page: Arc<dyn Resume>,
    rows: usize,
    row: usize,
    /// The run, if it is read ahead of its caller.
    ahead: Option<SharedReport>,
}

/// A returned page and what it takes to continue after any of its rows. Cursors are made here, when one is asked for: those
/// of each kind of slice in `execution/run/resume.rs`, those of sets in `execution/set/page.rs`.
pub(in crate::query) trait Resume: Send + Sync {
    /// The cursor after `row` rows.
    fn cursor(&self, row: usize) -> Cursor;
}

impl Checkpoint {
    /// Position after all `rows` of a page.
    pub(in crate::query) fn after(page: impl Resume + 'static, rows: usize) -> Self {
        Self { page: Arc::new(page), rows, row: rows, ahead: None }
    }

    /// Position in a run that is read ahead of its caller, who may never see how it ended.
    #[must_use]
    pub fn read_ahead(self, run: &SharedReport) -> Self {
        Self { ahead: Some(run.clone()), ..self }
    }

    /// Position after `row` rows of the same page.
    #[must_use]
    pub fn at_row(&self, row: usize) -> Self {
        let row = row + usize::from(Bug::CursorOffByOne.is_planted());
        Self { row: row.min(self.rows), ..self.clone() }
    }

    /// Position after all rows of the page.
    #[must_use]
    pub(in crate::query) fn at_end(&self) -> Self {
        Self { row: self.rows, ..self.clone() }
    }

    pub fn cursor(&self) -> Cursor {
        let mut at = self.page.cursor(self.row);
        at.reasons.extend(self.ahead.as_ref().and_then(SharedReport::untaken_reason));
        at
    }
}
