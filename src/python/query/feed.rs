//! Items of one run between the core and Python: a task of the runtime reads them, and a thread that holds the
//! interpreter takes them. A wait takes nothing, so an interrupted or cancelled one leaves its item for the next.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use pyo3::prelude::*;

use super::source_reader::SourceReader;
use crate::client::{Client, Error};
use crate::columns::Columns;
use crate::process::{self, ForkSafeGuard, ForkSafeMutex};
use crate::query::{Batch, Batches, Checkpoint, Page, Run};

/// Kind of the items of a run.
#[derive(Clone, Copy, PartialEq)]
pub enum StreamItem {
    Records,
    Pages,
    Batches,
}

/// Read items of a run and the checkpoint after those that were taken.
#[derive(Clone, Default)]
pub struct Ready(Arc<ForkSafeMutex<FeedState>>);

#[derive(Default)]
struct FeedState {
    /// Items that were read and not taken.
    items: VecDeque<Item>,
    /// Rows of pages that are being taken by record. The last rows stay, for their checkpoint, until others follow.
    rows: VecDeque<PendingRows>,
    /// Position after the last page or batch that was taken.
    checkpoint: Option<Checkpoint>,
    ended: bool,
}

pub enum Item {
    Page(Page),
    Batch(Batch),
    /// A page or batch that was made and not returned.
    Converted(Py<PyAny>, Option<Checkpoint>),
    Failure(Error),
}

impl Item {
    fn checkpoint(&self) -> Option<Checkpoint> {
        match self {
            Self::Page(page) => Some(page.checkpoint.clone()),
            Self::Batch(Batch { checkpoint, .. }) | Self::Converted(_, checkpoint) => checkpoint.clone(),
            Self::Failure(_) => None,
        }
    }
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

/// Outcome of taking an item.
pub enum Polled<T> {
    Item(T),
    Failure(Error),
    /// Nothing yet: wait for `Feed::fill`.
    Pending,
    Ended,
}

impl Ready {
    fn lock(&self) -> ForkSafeGuard<'_, FeedState> {
        self.0.lock()
    }

    /// Position after the last item taken; `None` before the first.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let state = self.lock();
        state.rows.front().map(|rows| rows.page.checkpoint.at_row(rows.row)).or_else(|| state.checkpoint.clone())
    }

    pub fn take_row(&self) -> Polled<(Arc<PageRows>, usize)> {
        let mut state = self.lock();
        loop {
            if let Some(rows) = state.rows.front_mut().filter(|rows| rows.row < rows.end) {
                rows.row += 1;
                return Polled::Item((rows.page.clone(), rows.row - 1));
            }
            if state.rows.len() > 1 {
                state.rows.pop_front();
                continue;
            }
            match state.items.pop_front() {
                Some(Item::Page(page)) => {
                    let end = page.columns.rows();
                    let page = PageRows { columns: Arc::new(page.columns), checkpoint: page.checkpoint };
                    state.rows.push_back(PendingRows { page: Arc::new(page), row: 0, end });
                }
                Some(Item::Failure(error)) => return Polled::Failure(error),
                Some(Item::Batch(_) | Item::Converted(..)) => {}
                None => return if state.ended { Polled::Ended } else { Polled::Pending },
            }
        }
    }

    /// Undoes the `take_row` that returned this row. Others may have been taken since, even of later pages.
    pub fn restore_row(&self, page: Arc<PageRows>, row: usize) {
        self.lock().rows.push_front(PendingRows { page, row, end: row + 1 });
    }

    /// The next page or batch, with the checkpoint before it.
    pub fn take(&self) -> Polled<(Item, Option<Checkpoint>)> {
        let mut state = self.lock();
        match state.items.pop_front() {
            Some(Item::Failure(error)) => Polled::Failure(error),
            Some(item) => {
                let after = item.checkpoint();
                let before = std::mem::replace(&mut state.checkpoint, after);
                Polled::Item((item, before))
            }
            None if state.ended => Polled::Ended,
            None => Polled::Pending,
        }
    }

    /// Undoes the `take` that returned this item.
    pub fn restore(&self, item: Item, before: Option<Checkpoint>) {
        let mut state = self.lock();
        state.checkpoint = before;
        state.items.push_front(item);
    }

    fn push(&self, item: Item) {
        let mut state = self.lock();
        if !state.ended {
            state.items.push_back(item);
        }
    }

    fn len(&self) -> usize {
        self.lock().items.len()
    }

    fn has_item(&self) -> bool {
        let state = self.lock();
        state.ended || !state.items.is_empty()
    }

    fn end(&self) {
        self.lock().ended = true;
    }

    fn close(&self) {
        let mut state = self.lock();
        state.ended = true;
        let items = std::mem::take(&mut state.items);
        if let Some(rows) = state.rows.front_mut() {
            rows.end = rows.row;
        }
        state.rows.truncate(1);
        drop(state);
        // An item may be a Python object, whose end runs code.
        drop(items);
    }
}

/// Reads a run, one task at a time.
pub struct Feed {
    client: Client,
    kind: StreamItem,
    source: Arc<tokio::sync::Mutex<Option<ItemSource>>>,
    ready: Ready,
    reader: SourceReader,
}

struct ItemSource {
    run: Run,
    batches: Batches,
    /// Rows that a batch may grow to: each is twice the last.
    max_rows: usize,
}

impl Feed {
    /// Batches start with `rows` and double up to `max_rows`.
    pub fn new(run: Run, kind: StreamItem, rows: usize, max_rows: usize) -> Self {
        let batches = Batches::new(run.query().record(), rows);
        let client = run.query().client().clone();
        let source = ItemSource { run, batches, max_rows };
        let source = Arc::new(tokio::sync::Mutex::new(Some(source)));
        Self { client, kind, source, ready: Ready::default(), reader: SourceReader::default() }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Reads until there is an item to take, or the run ended.
    pub fn fill(&self, py: Python<'_>) -> PyResult<impl Future<Output = ()> + Send + use<>> {
        self.reader.check(py, "client.resume(query.cursor)")?;
        let kind = self.kind;
        let source = self.source.clone();
        let ready = self.ready.clone();
        let reader = self.reader.clone();
        Ok(async move {
            let mut source = source.lock().await;
            let _mark = reader.mark();
            match &mut *source {
                Some(source) => source.fill(kind, &ready).await,
                None => ready.end(),
            }
        })
    }

    /// Ends the run: nothing more is requested or returned.
    pub fn close(&self) {
        self.ready.close();
        // A task that reads at this moment ends with the page that it waits for.
        if let Ok(mut source) = self.source.try_lock() {
            *source = None;
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.ready.close();
    }
}

impl ItemSource {
    async fn fill(&mut self, kind: StreamItem, ready: &Ready) {
        let max_items = self.run.query().client().settings().concurrency;
        let mut take_along = false;
        while take_along || !ready.has_item() {
            match self.next(kind).await {
                Ok(Some(Item::Page(page))) if kind == StreamItem::Records && page.columns.rows() == 0 => {}
                Ok(Some(item)) => ready.push(item),
                Ok(None) => return ready.end(),
                Err(error) => ready.push(Item::Failure(error)),
            }
            if kind == StreamItem::Records {
                // Pages that came at the same time are taken along: to wake a thread costs more than to read one.
                tokio::task::yield_now().await;
                take_along = self.run.is_ready() && ready.len() < max_items;
            }
        }
    }

    async fn next(&mut self, kind: StreamItem) -> Result<Option<Item>, Error> {
        if kind != StreamItem::Batches {
            let Some(mut page) = self.run.next().await? else { return Ok(None) };
            if kind == StreamItem::Records {
                // Callers keep single records.
                page.columns = process::long_if(page.columns.copied_size(), || page.columns.detached());
            }
            return Ok(Some(Item::Page(page)));
        }
        loop {
            if let Some(batch) = self.batches.full() {
                self.batches.resize((batch.records.len() * 2).min(self.max_rows));
                return Ok(Some(Item::Batch(batch)));
            }
            match self.run.next().await? {
                Some(page) => process::long_if(page.columns.copied_size(), || self.batches.push(page)),
                None => return Ok(self.batches.finish().map(Item::Batch)),
            }
        }
    }
}
