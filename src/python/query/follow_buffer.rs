//! `_FollowBuffer`: what the followers of a set deliver, kept in the core until an export has written it.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::prelude::*;
use tokio::time::{Instant, timeout_at};

use super::follow::start_of;
use super::part_buffer::CHUNK_ROWS;
use super::positions::Positions;
use super::query::Query;
use crate::client::{Client, Error};
use crate::columns::StringLayout;
use crate::process::lock;
use crate::python::base::asyncio::coroutine;
use crate::python::base::block_on::block_on;
use crate::python::base::errors;
use crate::python::results::records::Records;
use crate::python::results::report::Report;
use crate::query::{
    Changes, FollowCursor, FollowEvent, FollowItem, FollowOptions, FollowRun, PieceRule, Poll, RecordsBuilder,
    SharedReport,
};

/// Delivered records that are not written yet.
///
/// `fetch` only adds to the buffer and `take` only removes from it, so an exception raised in or after `fetch` loses
/// nothing: the next `take` returns what arrived before it.
#[pyclass(frozen, name = "_FollowBuffer")]
pub struct FollowBuffer {
    client: Client,
    run: Arc<tokio::sync::Mutex<FollowRun>>,
    state: Arc<Mutex<BufferState>>,
    report: SharedReport,
}

struct BufferState {
    records: RecordsBuilder,
    /// Rows of the file that the records and the pieces before are for, and about the bytes that they take.
    file_rows: usize,
    file_bytes: usize,
    pieces: PieceRule,
    /// Position after the records.
    cursor: FollowCursor,
    /// Arrival of the oldest record of the file.
    oldest: Option<Instant>,
    ended: bool,
    max_rows: usize,
    max_bytes: usize,
    max_age: Duration,
}

impl BufferState {
    fn add(&mut self, event: Option<FollowEvent>) {
        let Some(event) = event else {
            self.ended = true;
            return;
        };
        self.cursor.advance(event.cursor, event.list);
        let FollowItem::Batch(records) = event.item else { return };
        self.oldest.get_or_insert_with(Instant::now);
        for columns in records.chunks() {
            self.file_rows += columns.rows();
            self.file_bytes += columns.copied_size();
            self.records.push(columns, self.max_rows.saturating_sub(self.file_rows));
        }
    }

    /// Time at which a file is due, if it does not fill before.
    fn due_at(&self) -> Option<Instant> {
        self.oldest.map(|oldest| oldest + self.max_age)
    }

    fn is_due(&self) -> bool {
        let is_full = self.file_rows >= self.max_rows || self.file_bytes >= self.max_bytes;
        is_full || self.due_at().is_some_and(|due| due <= Instant::now())
    }

    /// True if the records are to be stored before they fill a file.
    fn has_piece(&self, requests: u64) -> bool {
        self.records.rows() > 0 && self.pieces.is_due(requests)
    }
}

impl FollowBuffer {
    /// Reads until a file or a piece is due or all lists have been read. Between an event and its entry into the buffer lies
    /// no point of suspension, so that dropping the future loses none.
    fn fetching(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let run = self.run.clone();
        let state = self.state.clone();
        let report = self.report.clone();
        async move {
            let run = &mut *run.lock().await;
            loop {
                let due_at = {
                    let state = lock(&state);
                    if state.ended || state.is_due() || state.has_piece(report.requests()) {
                        return Ok(());
                    }
                    state.due_at()
                };
                let next = match due_at {
                    None => run.next().await,
                    Some(due_at) => match timeout_at(due_at, run.next()).await {
                        Ok(next) => next,
                        Err(_) => return Ok(()),
                    },
                };
                lock(&state).add(next?);
            }
        }
    }
}

#[pymethods]
impl FollowBuffer {
    fn fetch(&self, py: Python<'_>) -> PyResult<()> {
        block_on(py, &self.client, self.fetching())?.map_err(|error| errors::raise(py, &error))
    }

    fn fetch_async(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let client = slf.get().client.clone();
        coroutine(py, "_FollowBuffer.fetch_async", &client, move |_| {
            Ok((slf.get().fetching(), |py: Python<'_>, result: Result<(), Error>| {
                result.map_err(|error| errors::raise(py, &error))?;
                Ok(py.None())
            }))
        })
    }

    /// Waits until a fetch that was interrupted has ended: until its task is aborted it may still add records.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        let run = self.run.clone();
        block_on(py, &self.client, async move { drop(run.lock().await) })
    }

    fn is_due(&self) -> bool {
        let _time = self.client.enter_time();
        lock(&self.state).is_due()
    }

    fn is_piece_due(&self) -> bool {
        lock(&self.state).has_piece(self.report.requests())
    }

    #[getter]
    fn ended(&self) -> bool {
        lock(&self.state).ended
    }

    /// Rows that `take` would return.
    #[getter]
    fn rows(&self) -> usize {
        lock(&self.state).records.rows()
    }

    /// Position after all that was read, with the heights that have no records.
    #[getter]
    fn positions(&self) -> Positions {
        Positions(lock(&self.state).cursor.clone())
    }

    /// Removes the records, with which a file ends; returns them with the position after them, or None if there are none.
    fn take(&self) -> Option<(Records, Positions)> {
        let taken = self.take_piece();
        self.report.read().verdicts.forget_changes();
        let mut state = lock(&self.state);
        state.file_rows = 0;
        state.file_bytes = 0;
        state.oldest = None;
        taken
    }

    /// Removes the records like `take`, but others follow in the file.
    fn take_piece(&self) -> Option<(Records, Positions)> {
        let report = self.report.read();
        let mut state = lock(&self.state);
        state.pieces.taken(report.requests);
        let records = state.records.finish();
        let numbers = self.client.settings().numbers;
        let taken = (Records::new(records, report, numbers), Positions(state.cursor.clone()));
        (!taken.0.inner.is_empty()).then_some(taken)
    }

    fn report(&self) -> Report {
        Report { inner: self.report.read() }
    }
}

#[pymethods]
impl Query {
    /// A run for an export of a set that ends below the head of each list.
    fn _follow_buffer(
        slf: &Bound<'_, Self>,
        start: &Bound<'_, PyAny>,
        settle: u64,
        max_rows: usize,
        max_bytes: usize,
        max_age: f64,
        earlier_requests: Option<u64>,
    ) -> PyResult<FollowBuffer> {
        let options = FollowOptions {
            start: start_of(slf, start)?,
            end: None,
            settle,
            poll: Poll::Once,
            changes: Changes::Held,
            max_rows: FollowOptions::MAX_ROWS,
        };
        let run = FollowRun::new(&slf.get().start, options)?;
        let state = BufferState {
            records: RecordsBuilder::with_chunk_rows(run.query().record(), StringLayout::Utf8, CHUNK_ROWS),
            file_rows: 0,
            file_bytes: 0,
            pieces: PieceRule::new(earlier_requests),
            cursor: run.cursor().clone(),
            oldest: None,
            ended: false,
            max_rows,
            max_bytes,
            max_age: Duration::from_secs_f64(max_age),
        };
        Ok(FollowBuffer {
            client: run.query().client().clone(),
            report: run.report().clone(),
            run: Arc::new(tokio::sync::Mutex::new(run)),
            state: Arc::new(Mutex::new(state)),
        })
    }
}
