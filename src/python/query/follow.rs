//! `Follow`: iterator over the events of a follower, for `for` and `async for` alike.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyModule, PyString, PyType};

use super::feed::{Feed, Polled, Ready, Source};
use super::iterator::{self, FeedIterator, feed_iterator};
use super::positions::Positions;
use super::query::Query;
use crate::client::Error;
use crate::python::base::arguments::{self, Readable as _};
use crate::python::base::asyncio::Coroutine;
use crate::python::base::at_caller::at_caller;
use crate::python::base::errors;
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
    feed: Feed<FollowRun>,
    report: SharedReport,
    lag: Lag,
    /// Values of the lists of a set.
    values: Arc<[String]>,
}

/// A position of a list, which is one of a set or the only one.
#[derive(Clone)]
pub struct EventCheckpoint {
    cursor: FollowCursor,
    list: Option<usize>,
}

impl Source for FollowRun {
    type Item = FollowEvent;
    type Position = FollowCursor;
    type Checkpoint = EventCheckpoint;
    const REMEDY: &'static str = "query.follow(start=follow.cursor)";

    async fn fill(&mut self, ready: &Ready<Self>) {
        // Another thread may have read an event while this one waited.
        while !ready.has_item() {
            match self.next().await {
                Ok(Some(FollowEvent { item: FollowItem::Moved, cursor, list })) => {
                    ready.moved(EventCheckpoint { cursor, list })
                }
                read => ready.push(read),
            }
        }
    }

    fn checkpoint(event: &FollowEvent) -> EventCheckpoint {
        EventCheckpoint { cursor: event.cursor.clone(), list: event.list }
    }

    fn advance(cursor: &mut FollowCursor, checkpoint: EventCheckpoint) -> EventCheckpoint {
        let list = checkpoint.list;
        EventCheckpoint { cursor: cursor.advance(checkpoint.cursor, list), list }
    }
}

impl Ready<FollowRun> {
    /// Takes a position without an event.
    fn moved(&self, checkpoint: EventCheckpoint) {
        let mut state = self.lock();
        // Events of the list that were read before it and not taken have their own positions.
        let is_behind = state.items.iter().flatten().any(|item| item.checkpoint().list == checkpoint.list);
        if !state.ended && !is_behind {
            FollowRun::advance(&mut state.position, checkpoint);
        }
    }
}

impl Follow {
    fn new(start: &QueryStart, options: FollowOptions) -> Result<Self, Error> {
        let follow = FollowRun::new(start, options)?;
        let query = follow.query();
        let client = query.client().clone();
        let cursor = follow.cursor().clone();
        Ok(Self {
            about: format!("{} of {}", query.endpoint().name, query.chain()),
            values: query.values(),
            report: follow.report().clone(),
            lag: follow.lag().clone(),
            feed: Feed::new(&client, follow, cursor),
        })
    }

    fn make<'py>(&self, py: Python<'py>, event: FollowEvent) -> PyResult<Bound<'py, PyAny>> {
        let FollowEvent { item, cursor, list } = event;
        let cursor = cursor.to_json();
        match item {
            FollowItem::Batch(records) => {
                let records = Records::new(records, self.report.read(), self.feed.client().settings().numbers)
                    .with_cursor(cursor);
                Ok(Bound::new(py, records)?.into_any())
            }
            FollowItem::Undo { after_height } => {
                Ok(Bound::new(py, Undo::new(after_height, cursor, list.map(|list| vec![self.values[list].clone()])))?
                    .into_any())
            }
            FollowItem::Moved => Ok(py.None().into_bound(py)),
        }
    }

    /// Position after the last event.
    fn position(&self) -> FollowCursor {
        self.feed.ready().lock().position.clone()
    }

    fn failed(&self, py: Python<'_>, error: &Error) -> PyErr {
        errors::raise_with_note(py, error, self.cursor(), (error.attempts() > 0).then_some(RESUME_NOTE))
    }
}

impl FeedIterator for Follow {
    type Source = FollowRun;

    fn feed(&self) -> &Feed<FollowRun> {
        &self.feed
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Polled<Bound<'py, PyAny>>> {
        match self.feed.take(py, |event| self.make(py, event))? {
            Polled::Failure(error) => Err(self.failed(py, &error)),
            taken => Ok(taken),
        }
    }

    fn interrupted(&self, py: Python<'_>, raised: PyErr) -> PyErr {
        errors::interrupted(py, raised, |exception| self.annotate(exception))
    }

    fn annotate(&self, exception: &Bound<'_, PyAny>) {
        errors::annotate(exception, Some(self.cursor()), Some(RESUME_NOTE));
    }
}

feed_iterator!(Follow);

#[pymethods]
impl Follow {
    #[doc = doc!(Follow.cursor)]
    #[getter]
    fn cursor(&self) -> String {
        self.position().to_json()
    }

    /// Position of a set after the last event.
    #[getter]
    fn _positions(&self) -> Positions {
        Positions(self.position())
    }

    #[doc = doc!(Follow.report)]
    #[getter]
    fn report(&self) -> Report {
        Report { inner: self.report.read() }
    }

    #[doc = doc!(Follow.lag)]
    #[getter]
    fn lag(&self) -> f64 {
        let _time = self.feed.client().enter_time();
        self.lag.longest().as_secs_f64()
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
        let settle = distance(settle)?;
        let start = start.map_or(Ok(FollowStart::Now), |start| start_of(slf, start))?;
        let changes = if arguments::flag("undo", undo)? { Changes::Undone } else { Changes::Held };
        let options = FollowOptions { poll: poll.0, changes, ..FollowOptions::once(start, settle) };
        Ok(Follow::new(&slf.get().start, options)?)
    }
}

#[pymethods]
impl Query {
    /// Heights that a follower remembers with a settle distance.
    #[staticmethod]
    fn _num_remembered(settle: u64) -> usize {
        FollowOptions::num_remembered(settle)
    }

    /// Values of a set; none of a query of one value.
    #[getter]
    fn _values(&self) -> Vec<String> {
        self.start.query().values().to_vec()
    }

    /// Delivers the records between two cursors, again or for the first time, and ends.
    fn _follow_between(&self, start: String, end: String, settle: u64) -> PyResult<Follow> {
        let start = FollowStart::Cursor(FollowCursor::from_json(&start)?);
        let options = FollowOptions { end: Some(end), ..FollowOptions::once(start, settle) };
        Ok(Follow::new(&self.start, options)?)
    }
}

pub(super) fn start_of(query: &Bound<'_, Query>, start: &Bound<'_, PyAny>) -> PyResult<FollowStart> {
    let py = query.py();
    if let Ok(text) = start.cast::<PyString>() {
        let text = arguments::text(text).map_err(|problem| Error::parameter("start", problem))?;
        return Ok(match text.as_str() {
            "now" => FollowStart::Now,
            "beginning" => FollowStart::Beginning,
            _ => FollowStart::Cursor(FollowCursor::from_json(&text)?),
        });
    }
    if let Ok(positions) = start.cast::<Positions>() {
        return Ok(FollowStart::Cursor(positions.get().0.clone()));
    }
    let known = PyModule::import(py, "chainframe.exports.follow_start")?.call_method1("known", (start, query));
    let known = known.map_err(|raised| at_caller(py, raised))?;
    let (newest, start, forgotten): (Vec<(u64, i64)>, Option<i64>, Option<i64>) = known.extract()?;
    let oldest_known =
        start.map(OldestKnown::Start).or(forgotten.map(OldestKnown::Forgotten)).unwrap_or(OldestKnown::Start(-1));
    Ok(FollowStart::Export { newest, oldest_known })
}

/// Settle distance; 12 by default.
fn distance(settle: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    let Some(settle) = settle else { return Ok(12) };
    u64::read(settle).map_err(|_| {
        Error::parameter("settle", arguments::rejected("must be a number of heights, an integer from 0", settle)).into()
    })
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
            _ => {
                let expected = "must be \"auto\", a positive number of seconds, or None";
                Err(Error::parameter("poll", arguments::rejected(expected, &given)).into())
            }
        }
    }
}
