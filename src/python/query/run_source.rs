//! `RunSource`: the items of one run.

use std::collections::VecDeque;
use std::sync::Arc;

use super::feed::{Entry, Feed, Polled, Ready, Source};
use crate::client::Error;
use crate::columns::Columns;
use crate::process;
use crate::query::{Batch, Batches, Checkpoint, Page, Run};

/// Kind of the items of a run.
#[derive(Clone, Copy, PartialEq)]
pub enum StreamItem {
    Records,
    Pages,
    Batches,
}

pub enum RunItem {
    Page(Page),
    Batch(Batch),
}

pub struct RunSource {
    run: Run,
    kind: StreamItem,
    batches: Batches,
    /// Rows that a batch may grow to: each is twice the last.
    max_rows: usize,
}

/// Pages, batches and rows that were taken of a run.
#[derive(Default)]
pub struct TakenRows {
    /// Position after the last page or batch.
    checkpoint: Option<Checkpoint>,
    /// Rows of pages that are being taken by record. The last rows stay, for their checkpoint, until others follow.
    rows: VecDeque<PendingRows>,
}

/// A page that is taken row by row.
pub struct PageRows {
    pub columns: Arc<Columns>,
    /// Position in the run after the last row.
    checkpoint: Checkpoint,
}

/// Rows `row..end` of a page.
struct PendingRows {
    page: Arc<PageRows>,
    row: usize,
    end: usize,
}

impl Feed<RunSource> {
    /// Batches start with `rows` and double up to `max_rows`.
    pub fn of_run(run: Run, kind: StreamItem, rows: usize, max_rows: usize) -> Self {
        let batches = Batches::new(run.query().record(), rows);
        let client = run.query().client().clone();
        Self::new(&client, RunSource { run, kind, batches, max_rows }, TakenRows::default())
    }
}

impl Source for RunSource {
    type Item = RunItem;
    type Position = TakenRows;
    type Checkpoint = Option<Checkpoint>;
    const REMEDY: &'static str = "client.resume(query.cursor)";

    async fn fill(&mut self, ready: &Ready<Self>) {
        let max_items = self.run.query().client().concurrency();
        let mut take_along = false;
        while take_along || !ready.has_item() {
            let read = self.next().await;
            if let Err(Error::Drift { problem, .. }) = &read {
                self.run.report().keep_untaken(problem);
            }
            match read {
                // An empty page of a set has the position after the lists that have ended.
                Ok(Some(RunItem::Page(page)))
                    if self.kind == StreamItem::Records && page.columns.rows() == 0 && !self.run.is_of_set() => {}
                read => ready.push(read),
            }
            if self.kind == StreamItem::Records {
                // Pages that came at the same time are taken along: to wake a thread costs more than to read one.
                tokio::task::yield_now().await;
                take_along = self.run.is_ready() && ready.len() < max_items;
            }
        }
    }

    fn checkpoint(item: &RunItem) -> Option<Checkpoint> {
        match item {
            RunItem::Page(page) => Some(page.checkpoint.clone()),
            RunItem::Batch(batch) => batch.checkpoint.clone(),
        }
    }

    fn advance(taken: &mut TakenRows, checkpoint: Option<Checkpoint>) -> Option<Checkpoint> {
        std::mem::replace(&mut taken.checkpoint, checkpoint)
    }

    fn close(taken: &mut TakenRows) {
        if let Some(rows) = taken.rows.front_mut() {
            rows.end = rows.row;
        }
        taken.rows.truncate(1);
    }
}

impl RunSource {
    async fn next_page(&mut self) -> Result<Option<Page>, Error> {
        let page = self.run.next().await?;
        let report = self.run.report();
        Ok(page.map(|page| Page { checkpoint: page.checkpoint.read_ahead(report), ..page }))
    }

    async fn next(&mut self) -> Result<Option<RunItem>, Error> {
        if self.kind != StreamItem::Batches {
            let Some(mut page) = self.next_page().await? else { return Ok(None) };
            if self.kind == StreamItem::Records {
                // Callers keep single records.
                page.columns = process::long_if(page.columns.copied_size(), || page.columns.detached());
            }
            return Ok(Some(RunItem::Page(page)));
        }
        loop {
            if let Some(batch) = self.batches.full() {
                self.batches.resize((batch.records.len() * 2).min(self.max_rows));
                return Ok(Some(RunItem::Batch(batch)));
            }
            match self.next_page().await? {
                Some(page) => process::long_if(page.columns.copied_size(), || self.batches.push(page)),
                None => return Ok(self.batches.finish().map(RunItem::Batch)),
            }
        }
    }
}

impl Ready<RunSource> {
    /// Position after the last item taken; `None` before the first.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let TakenRows { checkpoint, rows } = &self.lock().position;
        rows.front().map(|rows| rows.page.checkpoint.at_row(rows.row)).or_else(|| checkpoint.clone())
    }

    pub fn take_row(&self) -> Polled<(Arc<PageRows>, usize)> {
        let mut state = self.lock();
        loop {
            let pending = &mut state.position.rows;
            if let Some(rows) = pending.front_mut().filter(|rows| rows.row < rows.end) {
                rows.row += 1;
                return Polled::Item((rows.page.clone(), rows.row - 1));
            }
            if pending.len() > 1 {
                pending.pop_front();
                continue;
            }
            match state.items.pop_front() {
                Some(Ok(Entry::Item(RunItem::Page(page)))) => {
                    let end = page.columns.rows();
                    let page = PageRows { columns: Arc::new(page.columns), checkpoint: page.checkpoint };
                    state.position.rows.push_back(PendingRows { page: Arc::new(page), row: 0, end });
                }
                Some(Err(error)) => return Polled::Failure(error),
                Some(Ok(_)) => {}
                None => return if state.ended { Polled::Ended } else { Polled::Pending },
            }
        }
    }

    /// Undoes the `take_row` that returned this row. Others may have been taken since, even of later pages.
    pub fn restore_row(&self, page: Arc<PageRows>, row: usize) {
        self.lock().position.rows.push_front(PendingRows { page, row, end: row + 1 });
    }
}
