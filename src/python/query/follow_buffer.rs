//! `_FollowBuffer`: what the followers of a set deliver, kept in the core until an export has written it.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::prelude::*;

use super::follow::start_of;
use super::part_buffer::{CHUNK_ROWS, next_before};
use super::positions::Positions;
use super::query::Query;
use crate::client::{Client, Error};
use crate::columns::StringLayout;
use crate::process::lock;
use crate::python::base::asyncio::{Coroutine, coroutine};
use crate::python::base::block_on::block_on;
use crate::python::base::errors;
use crate::python::results::records::Records;
use crate::python::results::report::Report;
use crate::query::{
    FileFill, FileLimits, FollowCursor, FollowEvent, FollowItem, FollowOptions, FollowRun, RecordsBuilder, SharedReport,
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
    /// The file that the records and the pieces before are for.
    file: FileFill,
    /// Position after the records.
    cursor: FollowCursor,
    ended: bool,
}

impl BufferState {
    fn add(&mut self, event: Option<FollowEvent>) {
        let Some(event) = event else {
            self.ended = true;
            return;
        };
        self.cursor.advance(event.cursor, event.list);
        let FollowItem::Batch(records) = event.item else { return };
        self.file.note_arrival();
        for columns in records.chunks() {
            self.file.add(columns);
            self.records.push(columns, self.file.room());
        }
    }

    /// True if the records are to be stored before they fill a file.
    fn has_piece(&self, requests: u64) -> bool {
        self.records.rows() > 0 && self.file.is_piece_due(requests)
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
                    if state.ended || state.file.is_due() || state.has_piece(report.requests()) {
                        return Ok(());
                    }
                    state.file.due_at()
                };
                let Some(next) = next_before(due_at, run.next()).await else { return Ok(()) };
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

    fn fetch_async(slf: Py<Self>) -> Coroutine {
        coroutine("_FollowBuffer.fetch_async", slf.get().client.clone(), move |_| {
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
        lock(&self.state).file.is_due()
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
        lock(&self.state).file.begin_next(false);
        taken
    }

    /// Removes the records like `take`, but others follow in the file.
    fn take_piece(&self) -> Option<(Records, Positions)> {
        let report = self.report.read();
        let mut state = lock(&self.state);
        state.file.on_taken(report.requests);
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
        let run = FollowRun::new(&slf.get().start, FollowOptions::once(start_of(slf, start)?, settle))?;
        let limits = FileLimits { rows: max_rows, bytes: max_bytes, age: Duration::from_secs_f64(max_age) };
        let state = BufferState {
            records: RecordsBuilder::with_chunk_rows(run.query().record(), StringLayout::Utf8, CHUNK_ROWS),
            file: FileFill::new(limits, earlier_requests),
            cursor: run.cursor().clone(),
            ended: false,
        };
        Ok(FollowBuffer {
            client: run.query().client().clone(),
            report: run.report().clone(),
            run: Arc::new(tokio::sync::Mutex::new(run)),
            state: Arc::new(Mutex::new(state)),
        })
    }
}
