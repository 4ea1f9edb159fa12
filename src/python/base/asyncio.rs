//! Coroutines over futures of the core, for asyncio.

use std::ffi::CString;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use pyo3::exceptions::{PyBaseException, PyRuntimeError, PyRuntimeWarning, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyType, PyWeakrefReference};
use tokio::task::JoinHandle;

use super::awaited_only::{AwaitGuard, awaited_only};
use super::block_on::{AbortOnDrop, check_process, handle};
use super::dispatch::FUTURES;
use super::errors;
use super::finalize;
use super::log;
use super::once::{MadeOnce, interned};
use crate::client::{Client, Error};
use crate::virtual_time::VirtualTime;

/// Interval at which a wait wakes its event loop, which may have signals to handle, and checks that it is still open.
const LOOP_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Result of a step of a coroutine.
pub enum AsyncStep {
    Done(Py<PyAny>),
    /// The next step is made when this future of a client is done.
    Wait(Client, Pin<Box<dyn Future<Output = ()> + Send>>),
}

type Next = Box<dyn FnMut(Python<'_>) -> PyResult<AsyncStep> + Send>;
/// Adds to an exception that ends a wait, such as a cancellation, what it leaves.
type Annotate = Box<dyn Fn(&Bound<'_, PyAny>) + Send + Sync>;

enum CoroutineState {
    Created(Next),
    Suspended(Next, FutureAwaiter),
    Running,
    Finished,
}

/// A coroutine whose steps are made in the frame that awaits it: a warning points there, and a result is taken only by
/// a frame that is still waiting for it. Nothing runs before it is awaited. Closing or dropping it aborts its task.
#[pyclass(frozen, module = "chainframe")]
pub struct Coroutine {
    name: &'static str,
    /// Locked only while the interpreter is held, and never while Python code runs.
    state: Mutex<CoroutineState>,
    annotate: Option<Annotate>,
    guard: AwaitGuard,
}

impl Coroutine {
    pub fn new(name: &'static str, next: impl FnMut(Python<'_>) -> PyResult<AsyncStep> + Send + 'static) -> Self {
        Self {
            name,
            state: Mutex::new(CoroutineState::Created(Box::new(next))),
            annotate: None,
            guard: AwaitGuard::default(),
        }
    }

    /// For `__await__` methods: Python may iterate over the coroutine.
    #[must_use]
    pub fn awaited(self) -> Self {
        self.guard.allow();
        self
    }

    /// Has `annotate` called with an exception that is thrown into a wait.
    #[must_use]
    pub fn annotating(mut self, annotate: impl Fn(&Bound<'_, PyAny>) + Send + Sync + 'static) -> Self {
        self.annotate = Some(Box::new(annotate));
        self
    }

    fn state(&self) -> MutexGuard<'_, CoroutineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the state out, to be dropped when the lock is released: its end may run Python code.
    fn exchange(&self, state: CoroutineState) -> CoroutineState {
        std::mem::replace(&mut *self.state(), state)
    }

    fn advance(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (mut next, mut awaiter) = match self.exchange(CoroutineState::Running) {
            CoroutineState::Created(next) => (next, None),
            CoroutineState::Suspended(next, awaiter) => (next, Some(awaiter)),
            CoroutineState::Running => return Err(PyRuntimeError::new_err("coroutine is being awaited already")),
            CoroutineState::Finished => {
                self.exchange(CoroutineState::Finished);
                return Err(PyRuntimeError::new_err("cannot reuse already awaited coroutine"));
            }
        };
        let stepped = loop {
            if let Some(current) = awaiter.take() {
                match current.turn(py) {
                    Ok(Some(yielded)) => {
                        self.exchange(CoroutineState::Suspended(next, current));
                        return Ok(yielded);
                    }
                    Ok(None) => {}
                    Err(error) => break Err(error),
                }
            }
            match next(py) {
                Ok(AsyncStep::Done(value)) => break Err(PyStopIteration::new_err((value,))),
                Ok(AsyncStep::Wait(client, future)) => match FutureAwaiter::start(py, &client, future) {
                    Ok(started) => awaiter = Some(started),
                    Err(error) => break Err(error),
                },
                Err(error) => break Err(error),
            }
        };
        self.exchange(CoroutineState::Finished);
        stepped
    }
}

awaited_only!(Coroutine);

#[pymethods]
impl Coroutine {
    #[getter]
    fn __name__(&self) -> &'static str {
        self.name
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.name
    }

    fn __repr__(&self) -> String {
        format!("<coroutine {} of chainframe>", self.name)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.advance(py)
    }

    /// asyncio sends nothing but None.
    fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.advance(py)
    }

    #[pyo3(signature = (kind, value=None, traceback=None))]
    fn throw(
        &self,
        kind: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let _ = traceback;
        self.close();
        let error = match value {
            Some(value) if value.is_instance_of::<PyBaseException>() => value,
            Some(value) => kind.call1((value,))?,
            None if kind.is_instance_of::<PyType>() => kind.call0()?,
            None => kind,
        };
        if let Some(annotate) = &self.annotate {
            annotate(&error);
        }
        Err(PyErr::from_value(error))
    }

    fn close(&self) {
        let ended = self.exchange(CoroutineState::Finished);
        drop(ended);
    }

    /// A task, its future and this coroutine refer to one another.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.state.try_lock().as_deref() {
            Ok(CoroutineState::Suspended(_, awaiter)) => visit.call(&awaiter.turns),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        self.close();
    }
}

impl Drop for Coroutine {
    fn drop(&mut self) {
        if matches!(self.state.get_mut(), Ok(CoroutineState::Created(_))) && self.name != ANEXT {
            let message = CString::new(format!("coroutine '{}' was never awaited", self.name)).unwrap_or_default();
            finalize::attach_in_drop(|py| PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1));
        }
    }
}

/// Name of the coroutines of `anext`, of which asynchronous generators do not warn either.
pub const ANEXT: &str = "Stream.__anext__";

/// A coroutine that runs one future of a client. `start` makes it, and what converts its value, when the coroutine is first awaited.
pub fn coroutine<T, F, C>(
    py: Python<'_>,
    name: &'static str,
    client: &Client,
    start: impl FnOnce(Python<'_>) -> PyResult<(F, C)> + Send + 'static,
) -> PyResult<Py<PyAny>>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
    C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
{
    Ok(Py::new(py, unstarted(name, client, start))?.into_any())
}

/// The coroutine of `coroutine`.
pub fn unstarted<T, F, C>(
    name: &'static str,
    client: &Client,
    start: impl FnOnce(Python<'_>) -> PyResult<(F, C)> + Send + 'static,
) -> Coroutine
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
    C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
{
    let result = Arc::new(Mutex::new(None));
    let client = client.clone();
    let mut start = Some(start);
    let mut convert = None;
    Coroutine::new(name, move |py| {
        if let Some(start) = start.take() {
            let (future, converter) = start(py)?;
            convert = Some(converter);
            let result = result.clone();
            return Ok(AsyncStep::Wait(
                client.clone(),
                Box::pin(async move {
                    let value = future.await;
                    *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                }),
            ));
        }
        let value = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        match value.zip(convert.take()) {
            Some((value, convert)) => convert(py, value).map(AsyncStep::Done),
            None => Err(Error::Internal("a task ended early".into()).into()),
        }
    })
}

/// A task of the runtime and the asyncio future that is settled when it ends. The task knows the future weakly, so that
/// an unreachable coroutine is collected, and its task aborted.
struct FutureAwaiter {
    /// The iterator of `Future.__await__`.
    turns: Py<PyAny>,
    _task: AbortOnDrop,
}

impl FutureAwaiter {
    fn start(py: Python<'_>, client: &Client, future: Pin<Box<dyn Future<Output = ()> + Send>>) -> PyResult<Self> {
        static GET_RUNNING_LOOP: MadeOnce<PyAny> = MadeOnce::new();
        log::check_not_in_handler()?;
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
        let task = handle()?.spawn(log::scope(context, async move {
            let work = AssertUnwindSafe(future).catch_unwind();
            tokio::select! {
                // A panic leaves no result, which the coroutine's next step finds out.
                _ = work => {}
                () = loop_closed(watched) => return,
            }
            log::flushed().await;
            FUTURES.send(move |py| settle(py, &weak));
        }));
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
    fn turn(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
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
fn settle(py: Python<'_>, weak: &Py<PyWeakrefReference>) {
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
