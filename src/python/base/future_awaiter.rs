//! `FutureAwaiter`: a task of the runtime that an event loop of asyncio waits for.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyWeakrefReference};
use tokio::task::JoinHandle;

use super::block_on::{AbortOnDrop, Work, check_may_wait, check_process, spawn};
use super::dispatch::FUTURES;
use super::errors;
use super::finalize;
use super::log;
use super::once::{MadeOnce, interned};
use crate::client::Client;
use crate::virtual_time::VirtualTime;

/// Interval at which a wait wakes its event loop, which may have signals to handle, and checks that it is still open.
const LOOP_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A task of the runtime and the asyncio future that has a result when it ends. The task knows the future weakly, so that
/// an unreachable coroutine is collected, and its task aborted.
pub(super) struct FutureAwaiter {
    /// The iterator of `Future.__await__`.
    pub turns: Py<PyAny>,
    _task: AbortOnDrop,
}

impl FutureAwaiter {
    pub fn start(py: Python<'_>, client: &Client, future: Work) -> PyResult<Self> {
        static GET_RUNNING_LOOP: MadeOnce<PyAny> = MadeOnce::new();
        check_may_wait(client)?;
        if finalize::is_closing() {
            return Err(errors::context("the interpreter is shutting down"));
        }
        let running = GET_RUNNING_LOOP.import(py, "asyncio", "get_running_loop")?.call0().map_err(|_| {
            let message = "no running asyncio event loop; elsewhere, call the blocking method in a thread, as \
                           trio.to_thread.run_sync(query.collect) does";
            PyRuntimeError::new_err(message)
        })?;
        let context = log::refresh(py)?;
        if let Some(time) = client.virtual_time() {
            check_process(time)?;
            return Self::start_in_virtual_time(&running, time, log::scope(context, future));
        }
        FUTURES.start().map_err(|error| errors::context(&format!("failed to start a thread: {error}")))?;
        let target = running.call_method0(interned!(py, "create_future"))?;
        let weak = PyWeakrefReference::new(&target)?.unbind();
        let watched = weak.clone_ref(py);
        let task = spawn(log::scope(context, async move {
            let work = AssertUnwindSafe(future).catch_unwind();
            tokio::select! {
                // A panic leaves no result, which the coroutine's next step finds out.
                _ = work => {}
                () = loop_closed(watched) => return,
            }
            log::flushed().await;
            FUTURES.send(move |py| set_result_threadsafe(py, &weak));
        }))?;
        let task = AbortOnDrop::new(&task);
        Ok(Self { turns: target.call_method0(interned!(py, "__await__"))?.unbind(), _task: task })
    }

    /// The event loop itself runs the tasks, in turn with its other callbacks, so that their order is always the same.
    fn start_in_virtual_time(
        running: &Bound<'_, PyAny>,
        time: &Arc<VirtualTime>,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> PyResult<Self> {
        let py = running.py();
        let target = running.call_method0(interned!(py, "create_future"))?;
        let task = time.spawn(AssertUnwindSafe(future).catch_unwind().map(drop));
        let awaiter = AbortOnDrop::new(&task);
        let weak = PyWeakrefReference::new(&target)?.unbind();
        let turn = VirtualTurn { time: time.clone(), task, future: weak, running: running.clone().unbind() };
        running.call_method1(interned!(py, "call_soon"), (Bound::new(py, turn)?,))?;
        Ok(Self { turns: target.call_method0(interned!(py, "__await__"))?.unbind(), _task: awaiter })
    }

    /// Next value of the future's iterator; None once the future has its result.
    pub fn turn(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.turns.call_method0(py, interned!(py, "__next__")) {
            Ok(yielded) => Ok(Some(yielded)),
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A callback of an event loop that runs tasks in virtual time until that of one future has ended.
#[pyclass(frozen)]
struct VirtualTurn {
    time: Arc<VirtualTime>,
    task: JoinHandle<()>,
    future: Py<PyWeakrefReference>,
    running: Py<PyAny>,
}

#[pymethods]
impl VirtualTurn {
    fn __call__(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let turn = slf.get();
        let Some(future) = turn.future.bind(py).upgrade() else { return Ok(()) };
        if future.call_method0(interned!(py, "done"))?.is_truthy()? {
            return Ok(());
        }
        if !turn.task.is_finished() {
            finalize::detach(py, || turn.time.run());
        }
        if turn.task.is_finished() {
            return _set_result(&future);
        }
        turn.running.call_method1(py, interned!(py, "call_soon"), (slf,)).map(drop)
    }
}

/// Returns once the future is gone or its event loop is closed: nothing will await the task any more.
async fn loop_closed(weak: Py<PyWeakrefReference>) {
    let weak = Arc::new(weak);
    loop {
        tokio::time::sleep(LOOP_POLL_INTERVAL).await;
        let (sender, done) = tokio::sync::oneshot::channel();
        let weak = weak.clone();
        FUTURES.send(move |py| {
            let closed = weak.bind(py).upgrade().is_none_or(|future| wake_loop(&future).is_err());
            let _ = sender.send(closed);
        });
        if done.await.unwrap_or(false) {
            return;
        }
    }
}

/// Wakes the event loop of a future; a closed loop raises. Under Jupyter an interrupt is noticed only by a loop that
/// turns.
fn wake_loop(future: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = future.py();
    let nothing = py.get_type::<PyBool>();
    future
        .call_method0(interned!(py, "get_loop"))?
        .call_method1(interned!(py, "call_soon_threadsafe"), (nothing,))
        .map(drop)
}

/// Has the future's event loop set its result.
fn set_result_threadsafe(py: Python<'_>, weak: &Py<PyWeakrefReference>) {
    static SET_RESULT: MadeOnce<PyAny> = MadeOnce::new();
    let Some(future) = weak.bind(py).upgrade() else { return };
    let call = future.call_method0(interned!(py, "get_loop")).and_then(|running| {
        let set_result = SET_RESULT.import(py, "chainframe._native", "_set_result")?;
        running.call_method1(interned!(py, "call_soon_threadsafe"), (set_result, &future))
    });
    // Only a closed loop raises, in which no coroutine waits.
    drop(call);
}

/// Wakes the coroutine that awaits the future. It may have been cancelled meanwhile.
#[pyfunction]
pub fn _set_result(future: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = future.py();
    if !future.call_method0(interned!(py, "done"))?.is_truthy()? {
        future.call_method1(interned!(py, "set_result"), (py.None(),))?;
    }
    Ok(())
}
