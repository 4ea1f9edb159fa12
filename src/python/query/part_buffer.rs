//! `_PartBuffer`: the pages of an export's run, kept in the core until they are written.

use std::collections::VecDeque;
use std::future::Future;
use std::iter;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::prelude::*;
use tokio::time::{Instant, timeout_at};

use super::last_run::BegunRun;
use super::progress::Bar;
use crate::client::{Client, Error};
use crate::columns::Columns;
use crate::process::{self, lock};
use crate::python::base::asyncio::{Coroutine, coroutine};
use crate::python::base::block_on::block_on;
use crate::python::base::finalize;
use crate::python::results::records::Records;
use crate::python::results::report::Report;
use crate::query::{
    Batches, Checkpoint, FileFill, FileLimits, Page, Records as RecordsOfPages, Run, SharedReport, record_keys,
};

/// Rows that are allocated at a time. A file of rows in one piece would need room for twice as many while it grows.
pub(super) const CHUNK_ROWS: usize = 4_096;

/// Bytes of rows after which a file is written, however few rows these are. Records of 330 to 500 bytes make files of
/// 33,000 to 50,000 rows; event logs of many kilobytes take no more memory than these.
const MAX_BYTES: usize = 16 << 20;

/// Key of a record, and its height where it has one.
type Key = (String, Option<i64>);

/// Fetched records that are not written yet.
///
/// `fetch` only adds to the buffer and `take` only removes from it, so an exception raised in or after `fetch` loses
/// nothing: the next `take` returns what arrived before it.
#[pyclass(frozen, name = "_PartBuffer")]
pub struct PartBuffer {
    client: Client,
    begun: BegunRun,
    run: Arc<tokio::sync::Mutex<Run>>,
    state: Arc<Mutex<BufferState>>,
    report: SharedReport,
    bar: Bar,
}

struct BufferState {
    /// True if records are accepted by the caller, who compares their keys; false if all pages are.
    keyed: bool,
    batches: Batches,
    /// Rows in `batches`.
    rows: usize,
    /// The file that `batches` and the pieces before are for.
    file: FileFill,
    /// Position in the run after the last released row.
    checkpoint: Option<Checkpoint>,
    /// Pages that arrived, each with the number of its rows that were released.
    held: VecDeque<(Page, usize)>,
    keys: Vec<Key>,
    ended: bool,
    is_read_to_end: bool,
}

impl BufferState {
    fn hold(&mut self, page: Page) {
        if self.keyed {
            self.keys.extend(keys(&page.columns));
        }
        self.file.note_arrival();
        self.held.push_back((page, 0));
    }

    /// Moves the first `rows` held rows to those to be written, or drops them.
    fn release(&mut self, mut rows: usize, keep: bool) {
        while let Some((page, offset)) = self.held.front_mut() {
            let available = page.columns.rows() - *offset;
            let released = rows.min(available);
            if released == 0 && available > 0 {
                return;
            }
            rows -= released;
            let checkpoint = page.checkpoint.at_row(*offset + released);
            let columns = page.columns.slice(*offset, released);
            let part = Page { columns, ..page.clone() };
            *offset += released;
            if released == available {
                self.held.pop_front();
            }
            self.checkpoint = Some(checkpoint);
            if keep {
                self.rows += released;
                self.file.add(&part.columns);
                self.batches.push(part);
            }
        }
    }

    /// Moves whole pages to those to be written while they fit into a file, unless they are compared by keys.
    fn accept_pages(&mut self) {
        while !self.keyed
            && let Some((page, _)) = self.held.front()
        {
            if !self.file.is_empty() && !self.file.fits(&page.columns) {
                return;
            }
            self.release(page.columns.rows(), true);
        }
    }

    /// True if a file or a piece is due, or the result has ended. Pages that are not compared by keys are accepted first.
    fn is_fetched(&mut self, requests: u64) -> bool {
        self.accept_pages();
        self.ended || self.file.is_full() || self.has_more_than_a_file() || self.has_piece(requests)
    }

    /// True if pages do not fit into the file, after those that do were accepted.
    fn has_more_than_a_file(&self) -> bool {
        !self.keyed && !self.held.is_empty()
    }

    /// True if the rows to be written are to be stored before they fill a file.
    fn has_piece(&self, requests: u64) -> bool {
        self.rows > 0 && self.file.is_piece_due(requests)
    }

    fn take(&mut self, requests: u64) -> Option<(RecordsOfPages, Checkpoint)> {
        self.rows = 0;
        self.file.on_taken(requests);
        self.batches.finish().map(|batch| batch.records).zip(self.checkpoint.clone())
    }
}

/// Waits for what a run returns next. `None` if the file is due before.
pub(super) async fn next_before<T>(due_at: Option<Instant>, next: impl Future<Output = T>) -> Option<T> {
    match due_at {
        None => Some(next.await),
        Some(due_at) => timeout_at(due_at, next).await.ok(),
    }
}

/// Returns memory that was freed to the system.
#[pyfunction]
pub fn _release_memory(py: Python<'_>) {
    finalize::detach(py, process::release_memory);
}

fn keys(columns: &Columns) -> impl Iterator<Item = Key> {
    let heights = columns.heights().chain(iter::repeat(None));
    record_keys(columns).into_iter().map(|key| format!("{key:016x}")).zip(heights)
}

impl PartBuffer {
    pub fn new(
        (run, begun): (Run, BegunRun),
        bar: Bar,
        (max_rows, max_age): (usize, Duration),
        keyed: bool,
        earlier_requests: Option<u64>,
    ) -> Self {
        let limits = FileLimits { rows: max_rows, bytes: MAX_BYTES, age: max_age };
        let state = BufferState {
            keyed,
            batches: Batches::with_chunk_rows(run.query().record(), max_rows, CHUNK_ROWS),
            rows: 0,
            file: FileFill::new(limits, earlier_requests),
            checkpoint: None,
            held: VecDeque::new(),
            keys: Vec::new(),
            ended: false,
            is_read_to_end: false,
        };
        Self {
            client: run.query().client().clone(),
            begun,
            report: run.report().clone(),
            run: Arc::new(tokio::sync::Mutex::new(run)),
            state: Arc::new(Mutex::new(state)),
            bar,
        }
    }

    /// Fetches until a file or a piece is due or the result ends; one page if the caller compares keys.
    ///
    /// Between the arrival of a page and its entry into the buffer lies no point of suspension, so that dropping the
    /// future loses no page.
    fn fetching(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let run = self.run.clone();
        let state = self.state.clone();
        let report = self.report.clone();
        async move {
            let run = &mut *run.lock().await;
            loop {
                let due_at = {
                    let mut state = lock(&state);
                    if state.is_fetched(report.requests()) {
                        return Ok(());
                    }
                    state.file.due_at()
                };
                let Some(next) = next_before(due_at, run.next()).await else { return Ok(()) };
                let page = next?;
                let mut state = lock(&state);
                let Some(page) = page else {
                    state.ended = true;
                    state.is_read_to_end = run.is_read_to_end();
                    return Ok(());
                };
                state.hold(page);
                if state.keyed {
                    return Ok(());
                }
            }
        }
    }

    fn fetched(&self, py: Python<'_>, result: Result<(), Error>) -> PyResult<()> {
        if result.is_err() || lock(&self.state).ended {
            self.bar.close();
        }
        result.map_err(|error| self.begun.failed(py, &error))
    }
}

#[pymethods]
impl PartBuffer {
    /// Fetches until a file is full or `max_age` seconds old, a piece of it is due, or the result ends.
    fn fetch(&self, py: Python<'_>) -> PyResult<()> {
        let result = block_on(py, &self.client, self.fetching())?;
        self.fetched(py, result)
    }

    fn fetch_async(slf: Py<Self>) -> Coroutine {
        coroutine("_PartBuffer.fetch_async", slf.get().client.clone(), move |_| {
            Ok((slf.get().fetching(), move |py: Python<'_>, result| {
                slf.get().fetched(py, result)?;
                Ok(py.None())
            }))
        })
    }

    /// Reads no further: the next fetch proves what was read, and ends the result.
    fn end_here(&self, py: Python<'_>) -> PyResult<()> {
        let run = self.run.clone();
        block_on(py, &self.client, async move { run.lock().await.end_here() })
    }

    /// Waits until a fetch that was interrupted has ended: until its task is aborted it may still add pages.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        let run = self.run.clone();
        block_on(py, &self.client, async move { drop(run.lock().await) })
    }

    /// True if the rows that were taken since the last file and those that `take` would return are a file that is full, or due
    /// by age.
    fn is_due(&self) -> bool {
        let state = lock(&self.state);
        state.file.is_due() || !state.file.is_empty() && state.has_more_than_a_file()
    }

    /// True if `take_piece` would return enough to be stored.
    fn is_piece_due(&self) -> bool {
        lock(&self.state).has_piece(self.report.requests())
    }

    /// True if the list was read to its end. It may lack records that are older than those that the API returns.
    #[getter]
    fn is_read_to_end(&self) -> bool {
        lock(&self.state).is_read_to_end
    }

    #[getter]
    fn ended(&self) -> bool {
        let state = lock(&self.state);
        state.ended && !state.has_more_than_a_file()
    }

    /// Rows that `take` would return.
    #[getter]
    fn rows(&self) -> usize {
        lock(&self.state).rows
    }

    /// Rows that the file still has room for.
    #[getter]
    fn room(&self) -> usize {
        lock(&self.state).file.room()
    }

    /// Keys of the records that arrived since the last call.
    fn new_keys(&self) -> Vec<Key> {
        std::mem::take(&mut lock(&self.state).keys)
    }

    /// Releases the first `rows` held rows for `take`.
    fn accept(&self, rows: usize) {
        lock(&self.state).release(rows, true);
    }

    /// Drops the first `rows` held rows.
    fn skip(&self, rows: usize) {
        lock(&self.state).release(rows, false);
    }

    /// Removes the accepted records, with which a file ends; returns them with the cursor after them, or None if there are
    /// none.
    fn take(&self, py: Python<'_>) -> PyResult<Option<(Py<Records>, String)>> {
        let report = self.report.read();
        report.verdicts.forget_changes();
        let taken = {
            let mut state = lock(&self.state);
            let taken = state.take(report.requests);
            let has_rows = !state.held.is_empty();
            state.file.begin_next(has_rows);
            state.accept_pages();
            taken
        };
        self.with_cursor(py, taken)
    }

    /// Removes the accepted records like `take`, but others follow in the file.
    fn take_piece(&self, py: Python<'_>) -> PyResult<Option<(Py<Records>, String)>> {
        let taken = lock(&self.state).take(self.report.requests());
        self.with_cursor(py, taken)
    }

    /// Report of this run, whatever else the query is used for meanwhile.
    fn report(&self) -> Report {
        Report { inner: self.report.read() }
    }
}

impl PartBuffer {
    fn with_cursor(
        &self,
        py: Python<'_>,
        taken: Option<(RecordsOfPages, Checkpoint)>,
    ) -> PyResult<Option<(Py<Records>, String)>> {
        let Some((records, checkpoint)) = taken else { return Ok(None) };
        let cursor = finalize::detach(py, || checkpoint.cursor().to_json());
        let records = Py::new(py, Records::new(records, self.report.read(), self.client.settings().numbers))?;
        Ok(Some((records, cursor)))
    }
}
