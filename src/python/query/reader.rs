//! A query as a reader of Arrow batches, which fetches as it is read.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::feed::{Entry, Feed, Polled};
use super::last_run::BegunRun;
use super::progress::Bar;
use super::run_source::{RunItem, RunSource, StreamItem};
use crate::client::Error;
use crate::columns::{DecimalPolicy, batch};
use crate::process;
use crate::python::base::block_on::{Interrupt as _, SignalWatcher, block_on_interruptible};
use crate::python::base::errors;
use crate::python::base::finalize;
use crate::python::results::arrow::{Table, schema_capsule};
use crate::query::{Batch, Run};

/// Rows of the largest batch of a stream.
const MOST_ROWS: usize = 32_768;

/// Reader of the batches of a query.
pub struct QueryReader {
    stage: ReaderStage,
    schema: SchemaRef,
    numbers: DecimalPolicy,
    /// Converted batches that were not returned yet.
    converted: VecDeque<RecordBatch>,
    /// Rows that were converted.
    row: usize,
    signals: SignalWatcher,
}

/// A consumer may keep the reader, and the query's last error the consumer. So the reader keeps no run that ended or failed.
enum ReaderStage {
    Open(OpenRun),
    Ended,
    /// Text of the error. A reader that is read again must not seem to have ended.
    Failed(String),
}

struct OpenRun {
    begun: BegunRun,
    feed: Feed<RunSource>,
    _bar: Bar,
}

impl QueryReader {
    /// Batches start with `first` rows and grow, so that a consumer that wants five rows costs one request.
    pub fn growing(py: Python<'_>, run: (Run, BegunRun), bar: Bar, first: usize, schema: SchemaRef) -> PyResult<Self> {
        Self::new(py, run, bar, (first, MOST_ROWS), (schema, DecimalPolicy::Decimal))
    }

    pub fn of_batches(
        py: Python<'_>,
        run: (Run, BegunRun),
        bar: Bar,
        rows: usize,
        form: (SchemaRef, DecimalPolicy),
    ) -> PyResult<Self> {
        Self::new(py, run, bar, (rows, rows), form)
    }

    fn new(
        py: Python<'_>,
        (run, begun): (Run, BegunRun),
        bar: Bar,
        (first, max_rows): (usize, usize),
        (schema, numbers): (SchemaRef, DecimalPolicy),
    ) -> PyResult<Self> {
        let feed = Feed::of_run(run, StreamItem::Batches, first, max_rows);
        begun.follow(feed.ready());
        let stage = ReaderStage::Open(OpenRun { begun, feed, _bar: bar });
        let signals = SignalWatcher::watch(py)?;
        Ok(Self { stage, schema, numbers, converted: VecDeque::new(), row: 0, signals })
    }

    /// The next batch. The query keeps an error as it is, whatever its consumer makes of it.
    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        if let Some(batch) = self.converted.pop_front() {
            return Ok(Some(batch));
        }
        let run = match std::mem::replace(&mut self.stage, ReaderStage::Ended) {
            ReaderStage::Open(run) => run,
            ReaderStage::Ended => return Ok(None),
            ReaderStage::Failed(text) => {
                let failed = errors::context(&format!(
                    "this reader has failed before ({text}); make another one, or continue with client.resume(query.cursor)"
                ));
                self.stage = ReaderStage::Failed(text);
                return Err(failed);
            }
        };
        let read = match self.read(py, &run) {
            Ok(None) => run.begun.ended(py).map(|()| None),
            read => read,
        };
        let read = read.map_err(|raised| run.begun.interrupted(py, raised));
        match &read {
            Err(error) => {
                run.begun.set_error(py, error.clone_ref(py));
                self.stage = ReaderStage::Failed(message(py, error));
            }
            Ok(Some(_)) => self.stage = ReaderStage::Open(run),
            Ok(None) => {}
        }
        read
    }

    /// Takes and converts the next batch; a signal or an error leaves the query's cursor before it.
    fn read(&mut self, py: Python<'_>, run: &OpenRun) -> PyResult<Option<RecordBatch>> {
        let (batch, before) = loop {
            match run.feed.ready().take() {
                Polled::Item((Entry::Item(RunItem::Batch(batch)), before)) => break (batch, before),
                Polled::Pending => block_on_interruptible(py, run.feed.client(), &self.signals, run.feed.fill(py)?)?,
                Polled::Failure(error) => return Err(run.begun.failed(py, &error)),
                Polled::Ended | Polled::Item(_) => return Ok(None),
            }
        };
        let converted = self.convert(&batch).map_err(PyErr::from);
        if let Err(error) = converted.and_then(|()| self.signals.check(py)) {
            run.feed.ready().restore(Entry::Item(RunItem::Batch(batch)), before);
            return Err(error);
        }
        Ok(self.converted.pop_front())
    }

    fn convert(&mut self, batch: &Batch) -> Result<(), Error> {
        for chunk in batch.records.chunks() {
            let converted = self::batch(chunk, &self.schema, self.numbers, self.row);
            self.converted.push_back(converted.map_err(|overflow| Error::Overflow(Box::new(overflow)))?);
            self.row += chunk.rows();
        }
        Ok(())
    }
}

const PANICKED: &str = "internal error: the stream's reader failed; please report it";

/// A reader in the hands of C, into which no panic may unwind. The reader is `None` after a panic.
pub struct Guarded(Option<QueryReader>, SchemaRef);

impl Guarded {
    pub fn new(reader: QueryReader) -> Self {
        let schema = reader.schema.clone();
        Self(Some(reader), schema)
    }

    /// Consumers may call detached from the interpreter, and from threads of their own. None once it is finalizing.
    fn read(&mut self) -> Option<Result<RecordBatch, String>> {
        let Some(reader) = self.0.as_mut() else { return Some(Err(PANICKED.into())) };
        let permit = finalize::enter()?;
        let _attached = Attached::new();
        let read = Python::try_attach(|py| {
            drop(permit);
            reader.next_batch(py).map_err(|error| message(py, &error))
        });
        read?.transpose()
    }
}

/// Message of an error: consumers keep nothing else. An interrupt has only its name.
fn message(py: Python<'_>, error: &PyErr) -> String {
    let text = error.value(py).str().map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned());
    if text.is_empty() { error.get_type(py).name().map_or(text, |name| name.to_string()) } else { text }
}

impl Iterator for Guarded {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = catch_unwind(AssertUnwindSafe(|| self.read())).unwrap_or_else(|_| {
            // The stream may be inconsistent after a panic, and dropping it may panic again: it is leaked.
            std::mem::forget(self.0.take());
            Some(Err(PANICKED.into()))
        });
        // Arrow makes a C string of it.
        read.map(|read| read.map_err(|text| ArrowError::ExternalError(errors::printable(&text).into())))
    }
}

impl RecordBatchReader for Guarded {
    fn schema(&self) -> SchemaRef {
        self.1.clone()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let Some(reader) = self.0.take() else { return };
        let Some(permit) = finalize::enter() else {
            // The interpreter is finalizing, and ends with the process.
            std::mem::forget(reader);
            return;
        };
        let _attached = Attached::new();
        drop(permit);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(reader)));
    }
}

/// Hold of the interpreter by the current thread. A consumer may have detached within a Python call that this module made,
/// which PyO3 does not notice: it would take the thread for attached.
struct Attached(ffi::PyGILState_STATE);

impl Attached {
    fn new() -> Self {
        // SAFETY: the interpreter is not finalizing, which the caller's permit ensures; it may be attached already.
        Self(unsafe { ffi::PyGILState_Ensure() })
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: once for each `new`, in its thread.
        unsafe { ffi::PyGILState_Release(self.0) }
    }
}

/// Batches of a query as tables, in a Python loop: errors are raised as they are.
#[pyclass(frozen)]
pub struct BatchIterator {
    /// None while a thread reads, which may run Python code.
    reader: Mutex<Option<QueryReader>>,
    schema: SchemaRef,
}

impl BatchIterator {
    pub fn new(reader: QueryReader) -> Self {
        Self { schema: reader.schema.clone(), reader: Mutex::new(Some(reader)) }
    }

    fn exchange(&self, reader: Option<QueryReader>) -> Option<QueryReader> {
        std::mem::replace(&mut *process::lock(&self.reader), reader)
    }
}

#[pymethods]
impl BatchIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let Some(mut reader) = self.exchange(None) else {
            return Err(errors::context("another thread is reading from this reader; make one for each thread"));
        };
        let batch = reader.next_batch(py);
        self.exchange(Some(reader));
        Ok(batch?.map(|batch| Table::of(self.schema.clone(), vec![batch])))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }
}
