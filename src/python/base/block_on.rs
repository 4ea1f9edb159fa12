//! Waiting for a future of the core in a thread, with signals.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};

use super::errors;
use super::finalize;
use super::log;
use super::once::interned;
use crate::client::{Client, Error, runtime};
use crate::process;
use crate::virtual_time::VirtualTime;

/// Longest time for which a signal goes unnoticed.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(50);

pub fn handle() -> PyResult<Handle> {
    runtime().map_err(|error| no_runtime(&error))
}

fn no_runtime(error: &std::io::Error) -> PyErr {
    let advice = "the process may be at its limit of threads (ulimit -u, pids limit of the container)";
    errors::context(&format!("failed to start the Tokio runtime: {error}; {advice}"))
}

/// The process whose runtime is without descriptors: others may have their numbers by now. 0 is none.
static CLOSED: AtomicU32 = AtomicU32::new(0);

/// Runs a future on the threads of the runtime. Tokio panics if its descriptors were closed, as by `os.closerange`.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> PyResult<JoinHandle<T>> {
    let runtime = handle()?;
    let is_closed = CLOSED.load(Ordering::Relaxed) == process::id();
    let task = if is_closed { None } else { catch_unwind(AssertUnwindSafe(|| runtime.spawn(future))).ok() };
    task.ok_or_else(|| {
        CLOSED.store(process::id(), Ordering::Relaxed);
        let advice = "a daemon has to close them before its first request, or in a child that it forks";
        errors::context(&format!("the process has closed descriptors that requests need; {advice}"))
    })
}

/// Aborts a task when it is dropped.
pub struct AbortOnDrop(AbortHandle);

impl AbortOnDrop {
    pub fn new<T>(task: &JoinHandle<T>) -> Self {
        Self(task.abort_handle())
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Checks for signals.
pub trait Interrupt {
    /// Raises what a handler of a signal raised.
    fn check(&self, py: Python<'_>) -> PyResult<()>;
}

/// The signals that Python delivers to this thread.
pub struct Signals;

impl Interrupt for Signals {
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()
    }
}

/// The interrupts of this process, for threads that are not Python's: Python delivers signals to its main thread only,
/// which may be waiting for those threads.
pub struct SignalWatcher {
    /// Held, since a stream may be released where nothing can be imported: in a frame without builtins.
    interrupts: Py<PyModule>,
    id: u64,
    /// Number of interrupts before.
    before: u64,
}

impl SignalWatcher {
    /// Has interrupts counted for a stream that another thread may open.
    pub fn prepare(py: Python<'_>) -> PyResult<()> {
        Self::interrupts(py)?.call_method0(interned!(py, "prepare")).map(drop)
    }

    pub fn watch(py: Python<'_>) -> PyResult<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let interrupts = Self::interrupts(py)?;
        let before = interrupts.call_method1(interned!(py, "watch"), (id,))?.extract()?;
        Ok(Self { interrupts: interrupts.unbind(), id, before })
    }

    fn interrupts(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
        py.import(interned!(py, "chainframe._interrupts"))
    }

    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.interrupts.call_method1(py, interned!(py, "release"), (self.id,)).map(drop)
    }
}

impl Drop for SignalWatcher {
    fn drop(&mut self) {
        // A consumer may release a stream from any thread, and when the interpreter is gone.
        finalize::attach_in_drop(|py| self.release(py));
    }
}

impl Interrupt for SignalWatcher {
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()?;
        let more = self.interrupts.call_method1(py, interned!(py, "came_after"), (self.before,))?.is_truthy(py)?;
        if more { Err(PyKeyboardInterrupt::new_err(())) } else { Ok(()) }
    }
}

/// A future that keeps its value elsewhere. Tasks of this one type are compiled once, and not once for each value.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Place for the value of a `Work`.
pub struct Kept<T>(Arc<Mutex<Option<T>>>);

impl<T: Send + 'static> Kept<T> {
    pub fn of(future: impl Future<Output = T> + Send + 'static) -> (Work, Self) {
        let kept = Arc::new(Mutex::new(None));
        let value = kept.clone();
        let work = Box::pin(async move {
            let output = future.await;
            *process::lock(&value) = Some(output);
        });
        (work, Self(kept))
    }

    /// The value, once the task of the work has ended.
    pub fn take(&self) -> PyResult<T> {
        let value = process::lock(&self.0).take();
        value.ok_or_else(|| Error::Internal("a task ended early".into()).into())
    }
}

/// Runs a future of a client while this thread waits detached from the interpreter. A signal drops the future and is
/// raised, also one that comes together with the result: what must not be lost stays where the future put it.
pub fn block_on<T: Send + 'static>(
    py: Python<'_>,
    client: &Client,
    future: impl Future<Output = T> + Send + 'static,
) -> PyResult<T> {
    block_on_interruptible(py, client, &Signals, future)
}

pub fn block_on_interruptible<T: Send + 'static>(
    py: Python<'_>,
    client: &Client,
    interrupt: &dyn Interrupt,
    future: impl Future<Output = T> + Send + 'static,
) -> PyResult<T> {
    let (work, kept) = Kept::of(future);
    wait_for(py, client, interrupt, work)?;
    kept.take()
}

fn wait_for(py: Python<'_>, client: &Client, interrupt: &dyn Interrupt, work: Work) -> PyResult<()> {
    check_may_wait(client)?;
    let context = log::refresh(py)?;
    if let Some(time) = client.virtual_time() {
        check_process(time)?;
        return run_in_virtual_time(py, time, interrupt, log::scope(context, work));
    }
    let (running, ended) = channel::<()>();
    // The work is done by the runtime's threads, not by this one, so that a page costs no change of threads.
    let task = spawn(log::scope(context, async move {
        let _running = running;
        work.await;
        log::flushed().await;
    }))?;
    let _abort = AbortOnDrop::new(&task);
    let ended = Mutex::new(ended);
    loop {
        let waited = finalize::detach(py, || process::lock(&ended).recv_timeout(SIGNAL_POLL_INTERVAL));
        interrupt.check(py)?;
        if waited == Err(RecvTimeoutError::Disconnected) {
            return Ok(());
        }
    }
}

/// Raises where a request would wait for this thread.
pub fn check_may_wait(client: &Client) -> PyResult<()> {
    log::check_not_in_handler()?;
    if client.is_issuing_here() {
        return Err(errors::context(
            "credentials sends a request with the client that waits for it (would deadlock); use another client in it",
        ));
    }
    Ok(())
}

/// Raises in a forked child, which cannot use a simulation of its parent.
pub fn check_process(time: &VirtualTime) -> PyResult<()> {
    if time.is_ours() {
        return Ok(());
    }
    let problem = "service belongs to the process that made it; in a forked child, make another LocalService";
    Err(Error::config("simulated", problem).into())
}

/// Runs the tasks of all callers in this thread until this one has ended.
fn run_in_virtual_time(
    py: Python<'_>,
    time: &VirtualTime,
    interrupt: &dyn Interrupt,
    work: impl Future<Output = ()> + Send + 'static,
) -> PyResult<()> {
    let task = time.spawn(work);
    let _abort = AbortOnDrop::new(&task);
    loop {
        finalize::detach(py, || time.run());
        let has_ended = task.is_finished();
        if has_ended {
            let runtime = handle()?;
            finalize::detach(py, || runtime.block_on(log::flushed()));
        }
        interrupt.check(py)?;
        if has_ended {
            return Ok(());
        }
    }
}
