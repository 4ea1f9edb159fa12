//! `Feed`: items between the core and Python. A task of the runtime reads them, and a thread that holds the interpreter
//! takes them. A wait takes nothing, so an interrupted or cancelled one leaves its item for the next.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;
use tokio::sync::Notify;

use crate::client::{Client, Error};
use crate::process::{self, ForkSafeGuard, ForkSafeMutex};
use crate::python::base::{errors, finalize};

/// Reads items for a feed.
pub trait Source: Send + Sized + 'static {
    type Item: Send;
    /// Record of the items that were taken.
    type Position: Send;
    /// In-memory position after an item.
    type Checkpoint: Clone + Send;
    /// Remedy for an iterator in a child of its process.
    const REMEDY: &'static str;

    /// Reads until there is an item to take, or the end.
    fn fill(&mut self, ready: &Ready<Self>) -> impl Future<Output = ()> + Send;

    fn checkpoint(item: &Self::Item) -> Self::Checkpoint;

    /// Moves to the checkpoint of an item, and returns the one that moves back.
    fn advance(position: &mut Self::Position, checkpoint: Self::Checkpoint) -> Self::Checkpoint;

    /// Ends a position: nothing more is taken.
    fn close(_position: &mut Self::Position) {}
}

/// Read items, and the position after those that were taken.
pub struct Ready<S: Source>(Arc<ForkSafeMutex<FeedState<S>>>);

pub struct FeedState<S: Source> {
    /// Items that were read and not taken.
    pub items: VecDeque<Result<Entry<S>, Error>>,
    pub position: S::Position,
    /// True once there is nothing more to read.
    pub ended: bool,
}

pub enum Entry<S: Source> {
    Item(S::Item),
    /// An item that was made an object of Python and not returned.
    Converted(Py<PyAny>, S::Checkpoint),
}

/// Outcome of taking an item.
pub enum Polled<T> {
    Item(T),
    Failure(Error),
    /// Nothing yet: wait for `Feed::fill`.
    Pending,
    Ended,
}

impl<T> Polled<T> {
    /// The outcome with what `make` makes of the item.
    pub fn try_map<U>(self, make: impl FnOnce(T) -> PyResult<U>) -> PyResult<Polled<U>> {
        Ok(match self {
            Self::Item(item) => Polled::Item(make(item)?),
            Self::Failure(error) => Polled::Failure(error),
            Self::Pending => Polled::Pending,
            Self::Ended => Polled::Ended,
        })
    }
}

impl<S: Source> Entry<S> {
    pub fn checkpoint(&self) -> S::Checkpoint {
        match self {
            Self::Item(item) => S::checkpoint(item),
            Self::Converted(_, checkpoint) => checkpoint.clone(),
        }
    }
}

impl<S: Source> Clone for Ready<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Source> Ready<S> {
    pub fn lock(&self) -> ForkSafeGuard<'_, FeedState<S>> {
        self.0.lock()
    }

    /// The next item, with the checkpoint before it.
    pub fn take(&self) -> Polled<(Entry<S>, S::Checkpoint)> {
        let mut state = self.lock();
        match state.items.pop_front() {
            Some(Ok(entry)) => {
                let before = S::advance(&mut state.position, entry.checkpoint());
                Polled::Item((entry, before))
            }
            Some(Err(error)) => Polled::Failure(error),
            None if state.ended => Polled::Ended,
            None => Polled::Pending,
        }
    }

    /// Undoes the `take` that returned this item.
    pub fn restore(&self, entry: Entry<S>, before: S::Checkpoint) {
        let mut state = self.lock();
        S::advance(&mut state.position, before);
        state.items.push_front(Ok(entry));
    }

    /// Adds what was read, unless the feed was closed meanwhile.
    pub fn push(&self, read: Result<Option<S::Item>, Error>) {
        let mut state = self.lock();
        match read.transpose() {
            _ if state.ended => {}
            Some(read) => state.items.push_back(read.map(Entry::Item)),
            None => state.ended = true,
        }
    }

    pub fn len(&self) -> usize {
        self.lock().items.len()
    }

    pub fn has_item(&self) -> bool {
        let state = self.lock();
        state.ended || !state.items.is_empty()
    }

    fn close(&self) {
        let mut state = self.lock();
        state.ended = true;
        S::close(&mut state.position);
        let items = std::mem::take(&mut state.items);
        drop(state);
        // An item may be a Python object, whose end runs code.
        drop(items);
    }
}

/// Reads a source, one task at a time.
pub struct Feed<S: Source> {
    client: Client,
    source: Arc<tokio::sync::Mutex<Option<S>>>,
    ready: Ready<S>,
    /// Process of the task that reads, or 0. A child that is forked meanwhile must not wait for that task.
    reader: Arc<AtomicU32>,
    /// Ends the task that reads, which may wait for a record that never comes.
    closed: Arc<Notify>,
}

impl<S: Source> Feed<S> {
    pub fn new(client: &Client, source: S, position: S::Position) -> Self {
        let state = FeedState { items: VecDeque::new(), position, ended: false };
        Self {
            client: client.clone(),
            source: Arc::new(tokio::sync::Mutex::new(Some(source))),
            ready: Ready(Arc::new(ForkSafeMutex::new(state))),
            reader: Arc::default(),
            closed: Arc::default(),
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn ready(&self) -> &Ready<S> {
        &self.ready
    }

    /// Reads until there is an item to take, or the end. Fails in a child of the process that reads.
    pub fn fill(&self, py: Python<'_>) -> PyResult<impl Future<Output = ()> + Send + use<S>> {
        finalize::check(py)?;
        if ![0, process::id()].contains(&self.reader.load(Ordering::Acquire)) {
            let remedy = S::REMEDY;
            let problem = "another thread was reading this iterator when the process was forked";
            return Err(errors::context(&format!("{problem}; {remedy} continues it")));
        }
        let source = self.source.clone();
        let ready = self.ready.clone();
        let reader = self.reader.clone();
        let closed = self.closed.clone();
        Ok(async move {
            let mut source = source.lock().await;
            reader.store(process::id(), Ordering::Release);
            let _guard = ReaderGuard(reader);
            // After the process of the reader is known, so that a close from now on ends the wait below.
            if ready.lock().ended {
                *source = None;
            }
            let Some(open) = &mut *source else {
                ready.lock().ended = true;
                return;
            };
            tokio::select! {
                () = open.fill(&ready) => {}
                () = closed.notified() => *source = None,
            }
        })
    }

    /// The next item as `make` converts it, if it was read already. A signal is raised here, and leaves the item: once it is
    /// returned, the interpreter would raise in the body of the loop, which could not know whether it has the item.
    pub fn take<'py>(
        &self,
        py: Python<'py>,
        make: impl FnOnce(S::Item) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Polled<Bound<'py, PyAny>>> {
        self.ready.take().try_map(|(entry, before)| {
            let checkpoint = entry.checkpoint();
            let value = match entry {
                Entry::Item(item) => make(item)?,
                Entry::Converted(value, _) => value.into_bound(py),
            };
            if let Err(raised) = py.check_signals() {
                self.ready.restore(Entry::Converted(value.unbind(), checkpoint), before);
                return Err(raised);
            }
            Ok(value)
        })
    }

    /// Ends the source: nothing more is requested or returned.
    pub fn close(&self) {
        self.ready.close();
        // A child has no task to end, and a lock of the notification may have been held during its fork.
        if self.reader.load(Ordering::Acquire) == process::id() {
            self.closed.notify_one();
        }
        if let Ok(mut source) = self.source.try_lock() {
            *source = None;
        }
    }
}

impl<S: Source> Drop for Feed<S> {
    fn drop(&mut self) {
        self.ready.close();
    }
}

struct ReaderGuard(Arc<AtomicU32>);

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}
