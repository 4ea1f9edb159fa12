//! `Follow`: iterator over the events of a follower, for `for` and `async for` alike.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyModule, PyString, PyType};

use super::query::Query;
use super::source_reader::SourceReader;
use crate::client::{Client, Error};
use crate::process::ForkSafeMutex;
use crate::python::base::arguments::{self, Readable as _};
use crate::python::base::asyncio::{ANEXT, AsyncStep, Coroutine, coroutine};
use crate::python::base::block_on::block_on;
use crate::python::base::errors;
use crate::python::base::finalize;
use crate::python::base::generic;
use crate::python::results::records::Records;
use crate::python::results::report::Report;
use crate::python::results::undo::Undo;
use crate::query::{
    Changes, FollowCursor, FollowEvent, FollowItem, FollowOptions, FollowRun, FollowStart, Lag, OldestKnown, Poll,
    QueryStart, SharedReport,
};

/// Note on errors after which a follower can continue.
const RESUME_NOTE: &str = "pass start=error.cursor to query.follow, or iterate on, to continue from here";

// One iterator. Threads that share it get each event once.
#[doc = doc!(Follow)]
#[pyclass(frozen, module = "chainframe")]
pub struct Follow {
    about: String,
    client: Client,
    source: Arc<tokio::sync::Mutex<Option<FollowRun>>>,
    ready: Arc<ForkSafeMutex<ReadyEvents>>,
    reader: SourceReader,
    report: SharedReport,
    lag: Lag,
    /// Values of the lists of a set.
    values: Arc<[String]>,
}

struct ReadyEvents {
    /// Events that were read and not taken.
    items: VecDeque<ReadyEvent>,
    /// Position after the last event that was taken.
    cursor: FollowCursor,
    /// True once there is nothing more to read.
    ended: bool,
}

enum ReadyEvent {
    Event(FollowEvent),
    /// An event that was made and not returned.
    Converted(Py<PyAny>, Mark),
    Failure(Error),
}

/// A position of a list, which is one of a set or the only one.
#[derive(Clone)]
struct Mark {
    cursor: FollowCursor,
    list: Option<usize>,
}

/// Outcome of taking an event.
enum PolledEvent<'py> {
    Event(Bound<'py, PyAny>),
    /// Nothing yet: wait for `Follow::fill`.
    Pending,
    Ended,
}

impl Follow {
    fn new(start: &QueryStart, options: FollowOptions) -> Result<Self, Error> {
        let follow = FollowRun::new(start, options)?;
        let query = follow.query();
        let about = format!("{} of {}", query.endpoint().name, query.chain());
        let ready = ReadyEvents { items: VecDeque::new(), cursor: follow.cursor().clone(), ended: false };
        Ok(Self {
            about,
            client: query.client().clone(),
            report: follow.report().clone(),
            lag: follow.lag().clone(),
            values: query.values(),
            source: Arc::new(tokio::sync::Mutex::new(Some(follow))),
            ready: Arc::new(ForkSafeMutex::new(ready)),
            reader: SourceReader::default(),
        })
    }

    /// Reads until there is an event to take, or the end.
    fn fill(&self, py: Python<'_>) -> PyResult<impl Future<Output = ()> + Send + use<>> {
        finalize::check(py)?;
        self.reader.check(py, "query.follow(start=follow.cursor)")?;
        let source = self.source.clone();
        let ready = self.ready.clone();
        let reader = self.reader.clone();
        Ok(async move {
            let mut source = source.lock().await;
            let _mark = reader.mark();
            loop {
                let Some(follow) = &mut *source else { return ready.lock().ended = true };
                // Another thread may have read one while this one waited.
                if ready.lock().has_item() {
                    return;
                }
                let read = follow.next().await;
                ready.lock().push(read);
            }
        })
    }

    /// The next event if it was read already. A signal is raised here, and leaves the event.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<PolledEvent<'py>> {
        let (item, before) = {
            let mut ready = self.ready.lock();
            match ready.items.pop_front() {
                Some(item) => {
                    let before = item.mark().map(|after| ready.advance(after));
                    (item, before)
                }
                None => return Ok(if ready.ended { PolledEvent::Ended } else { PolledEvent::Pending }),
            }
        };
        let (made, mark) = match item {
            ReadyEvent::Failure(error) => return Err(self.failed(py, &error)),
            ReadyEvent::Converted(made, mark) => (Ok(made.into_bound(py)), mark),
            ReadyEvent::Event(FollowEvent { item, cursor, list }) => {
                (self.make(py, item, &cursor, list), Mark { cursor, list })
            }
        };
        let made = made?;
        match py.check_signals() {
            Ok(()) => Ok(PolledEvent::Event(made)),
            Err(raised) => {
                let mut ready = self.ready.lock();
                ready.items.push_front(ReadyEvent::Converted(made.unbind(), mark));
                before.into_iter().for_each(|before| drop(ready.advance(before)));
                Err(raised)
            }
        }
    }

    fn make<'py>(
        &self,
        py: Python<'py>,
        item: FollowItem,
        cursor: &FollowCursor,
        list: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let cursor = cursor.to_json();
        match item {
            FollowItem::Batch(records) => {
                let records =
                    Records::new(records, self.report.read(), self.client.settings().numbers).with_cursor(cursor);
                Ok(Bound::new(py, records)?.into_any())
            }
            FollowItem::Undo { after_height } => {
                Ok(Bound::new(py, Undo::new(after_height, cursor, list.map(|list| vec![self.values[list].clone()])))?
                    .into_any())
            }
            FollowItem::Moved => Ok(py.None().into_bound(py)),
        }
    }

    fn annotate(&self, exception: &Bound<'_, PyAny>) {
        errors::annotate(exception, Some(self.cursor()), Some(RESUME_NOTE));
    }

    fn interrupted(&self, py: Python<'_>, raised: PyErr) -> PyErr {
        errors::interrupted(py, raised, |exception| self.annotate(exception))
    }

    fn failed(&self, py: Python<'_>, error: &Error) -> PyErr {
        errors::raise_with_note(py, error, self.cursor(), (error.attempts() > 0).then_some(RESUME_NOTE))
    }
}

impl ReadyEvent {
    fn mark(&self) -> Option<Mark> {
        match self {
            Self::Event(event) => Some(Mark { cursor: event.cursor.clone(), list: event.list }),
            Self::Converted(_, mark) => Some(mark.clone()),
            Self::Failure(_) => None,
        }
    }
}

impl ReadyEvents {
    /// Moves to a position, and returns the one before.
    fn advance(&mut self, mark: Mark) -> Mark {
        let list = mark.list;
        Mark { cursor: self.cursor.advance(mark.cursor, list), list }
    }

    /// Takes a position without an event.
    fn moved(&mut self, mark: Mark) {
        // Events of the list that were read before it and not taken have their own positions.
        let is_behind = self.items.iter().any(|item| item.mark().is_some_and(|other| other.list == mark.list));
        if !is_behind {
            self.advance(mark);
        }
    }

    fn has_item(&self) -> bool {
        self.ended || !self.items.is_empty()
    }

    fn push(&mut self, read: Result<Option<FollowEvent>, Error>) {
        if self.ended {
            return;
        }
        match read {
            // Nothing was read before it that was not taken.
            Ok(Some(FollowEvent { item: FollowItem::Moved, cursor, list })) => self.moved(Mark { cursor, list }),
            Ok(Some(event)) => self.items.push_back(ReadyEvent::Event(event)),
            Ok(None) => self.ended = true,
            Err(error) => self.items.push_back(ReadyEvent::Failure(error)),
        }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.ready.lock().ended = true;
    }
}

#[pymethods]
impl Follow {
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, item: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        generic(class, item)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            match self.take(py).map_err(|raised| self.interrupted(py, raised))? {
                PolledEvent::Event(event) => return Ok(Some(event)),
                PolledEvent::Ended => return Ok(None),
                PolledEvent::Pending => {
                    let filled = block_on(py, &self.client, self.fill(py)?);
                    filled.map_err(|raised| self.interrupted(py, raised))?;
                }
            }
        }
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(slf: Py<Self>, py: Python<'_>) -> Coroutine {
        let follow = slf.clone_ref(py);
        let next = Coroutine::new(ANEXT, move |py| match slf.get().take(py)? {
            PolledEvent::Event(event) => Ok(AsyncStep::Done(event.unbind())),
            PolledEvent::Ended => Err(PyStopAsyncIteration::new_err(())),
            PolledEvent::Pending => Ok(AsyncStep::Wait(slf.get().client.clone(), Box::pin(slf.get().fill(py)?))),
        });
        next.annotating(move |exception| follow.get().annotate(exception))
    }

    #[doc = doc!(Follow.cursor)]
    #[getter]
    fn cursor(&self) -> String {
        self.ready.lock().cursor.to_json()
    }

    #[doc = doc!(Follow.report)]
    #[getter]
    fn report(&self) -> Report {
        Report { inner: self.report.read() }
    }

    #[doc = doc!(Follow.lag)]
    #[getter]
    fn lag(&self) -> f64 {
        let _time = self.client.enter_time();
        self.lag.longest().as_secs_f64()
    }

    #[doc = doc!(Follow.close)]
    fn close(&self) {
        let items = {
            let mut ready = self.ready.lock();
            ready.ended = true;
            std::mem::take(&mut ready.items)
        };
        // An event may be a Python object, whose end runs code.
        drop(items);
        // A task that reads at this moment ends with its request.
        if let Ok(mut source) = self.source.try_lock() {
            *source = None;
        }
    }

    #[doc = doc!(Follow.aclose)]
    fn aclose(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let client = slf.get().client.clone();
        coroutine(py, "Follow.aclose", &client, move |_| {
            slf.get().close();
            Ok((std::future::ready(()), |py: Python<'_>, ()| Ok(py.None())))
        })
    }

    fn __repr__(&self) -> String {
        errors::printable(&format!("<Follow {}>", self.about))
    }
}

#[pymethods]
impl Query {
    #[doc = doc!(Query.follow)]
    #[pyo3(
        signature = (*, start=None, settle=None, poll=PollArg(Poll::Auto), undo=None, **unknown),
        text_signature = "($self, *, start='now', settle=12, poll='auto', undo=False)"
    )]
    fn follow(
        slf: &Bound<'_, Self>,
        start: Option<&Bound<'_, PyAny>>,
        settle: Option<&Bound<'_, PyAny>>,
        poll: PollArg,
        undo: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Follow> {
        let py = slf.py();
        arguments::reject_in::<Self>(py, "follow", unknown)?;
        let start = start.map_or(Ok(FollowStart::Now), |start| start_of(slf, start))?;
        let changes = if arguments::flag("undo", undo)? { Changes::Undone } else { Changes::Held };
        let options = FollowOptions {
            start,
            end: None,
            settle: distance(settle)?,
            poll: poll.0,
            changes,
            max_rows: FollowOptions::MAX_ROWS,
        };
        Follow::new(&slf.get().start, options).map_err(|error| errors::raise(py, &error))
    }
}

#[pymethods]
impl Query {
    /// Cursor of the followed set that is at the cursors of some of its lists, by their values.
    fn _merged_cursor(&self, py: Python<'_>, set: String, lists: Vec<(String, String)>) -> PyResult<String> {
        let merged = FollowCursor::merged(self.start.query(), &set, &lists);
        merged.map(|cursor| cursor.to_json()).map_err(|error| errors::raise(py, &error))
    }

    /// Values of a set; none of a query of one value.
    #[getter]
    fn _values(&self) -> Vec<String> {
        self.start.query().values().to_vec()
    }

    /// Delivers the records between two cursors, again or for the first time, and ends.
    fn _follow_between(&self, py: Python<'_>, start: String, end: String, settle: u64) -> PyResult<Follow> {
        let options = FollowOptions {
            start: FollowStart::Cursor(start),
            end: Some(end),
            settle,
            poll: Poll::Once,
            changes: Changes::Held,
            max_rows: FollowOptions::MAX_ROWS,
        };
        Follow::new(&self.start, options).map_err(|error| errors::raise(py, &error))
    }
}

fn start_of(query: &Bound<'_, Query>, start: &Bound<'_, PyAny>) -> PyResult<FollowStart> {
    let py = query.py();
    if let Ok(text) = start.cast::<PyString>() {
        let text = arguments::text(text).map_err(|problem| errors::parameter(py, "start", problem))?;
        return Ok(match text.as_str() {
            "now" => FollowStart::Now,
            "beginning" => FollowStart::Beginning,
            _ => FollowStart::Cursor(text),
        });
    }
    let known = PyModule::import(py, "chainframe.exports.following")?.call_method1("known", (start, query))?;
    let (newest, start, forgotten): (Vec<(u64, i64)>, Option<i64>, Option<i64>) = known.extract()?;
    let oldest_known =
        start.map(OldestKnown::Start).or(forgotten.map(OldestKnown::Forgotten)).unwrap_or(OldestKnown::Start(-1));
    Ok(FollowStart::Export { newest, oldest_known })
}

/// Settle distance; 12 by default.
fn distance(settle: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    let Some(settle) = settle else { return Ok(12) };
    let read = if settle.is_instance_of::<PyBool>() { None } else { u64::read(settle).ok() };
    read.ok_or_else(|| errors::parameter(settle.py(), "settle", "must be a number of heights, an integer from 0"))
}

/// The interval: "auto", seconds, or None for a follower that ends.
struct PollArg(Poll);

impl<'py> FromPyObject<'_, 'py> for PollArg {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let is_number = given.is_instance_of::<PyFloat>() || given.is_instance_of::<PyInt>();
        let seconds = if is_number && !given.is_instance_of::<PyBool>() { given.extract::<f64>().ok() } else { None };
        let interval = seconds.filter(|seconds| *seconds > 0.0).map(Duration::try_from_secs_f64);
        match interval {
            Some(Ok(interval)) => Ok(Self(Poll::Every(interval))),
            None if given.is_none() => Ok(Self(Poll::Once)),
            None if given.extract::<&str>().is_ok_and(|text| text == "auto") => Ok(Self(Poll::Auto)),
            _ => Err(errors::parameter(given.py(), "poll", "must be \"auto\", a positive number of seconds, or None")),
        }
    }
}
