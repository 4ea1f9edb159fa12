//! Waiting for the core: in a thread that can be interrupted, or in asyncio. Every sync and async method is one of these.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::{errors, logs};
use crate::client::{Error, runtime};

/// How long an interrupt may go unnoticed.
const TICK: Duration = Duration::from_millis(50);

fn handle() -> PyResult<Handle> {
    runtime().map_err(|error| PyRuntimeError::new_err(format!("no threads for requests: {error}")))
}

/// Aborts a task when it goes out of scope.
struct Abort(AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a future while this thread waits without the interpreter. An interrupt drops the future and is raised.
pub fn wait<T: Send + 'static>(py: Python<'_>, future: impl Future<Output = T> + Send + 'static) -> PyResult<T> {
    wait_unless(py, |py| py.check_signals(), future)
}

/// The interrupts of this process, for waits in threads that are not Python's: it delivers signals to its main thread
/// only, which may be waiting for those threads.
pub struct Interrupts {
    before: u64,
}

impl Interrupts {
    pub fn watch(py: Python<'_>) -> PyResult<Self> {
        let before = py.import(intern!(py, "chainframe._interrupts"))?.call_method0(intern!(py, "watch"))?;
        Ok(Self { before: before.extract()? })
    }

    /// Waits in whatever thread.
    pub fn wait<T: Send + 'static>(
        &self,
        py: Python<'_>,
        future: impl Future<Output = T> + Send + 'static,
    ) -> PyResult<T> {
        wait_unless(py, |py| self.check(py), future)
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()?;
        let interrupts = py.import(intern!(py, "chainframe._interrupts"))?;
        let more = interrupts.call_method1(intern!(py, "came_after"), (self.before,))?.is_truthy()?;
        if more { Err(PyKeyboardInterrupt::new_err(())) } else { Ok(()) }
    }
}

fn wait_unless<T: Send + 'static>(
    py: Python<'_>,
    interrupted: impl Fn(Python<'_>) -> PyResult<()>,
    future: impl Future<Output = T> + Send + 'static,
) -> PyResult<T> {
    if Handle::try_current().is_ok() {
        return Err(PyRuntimeError::new_err("a logging handler cannot wait for requests: they wait for it"));
    }
    logs::refresh(py)?;
    let (sender, receiver) = sync_channel(1);
    // The future runs on the runtime's thread, not on this one, so that a page costs no change of threads.
    let task = handle()?.spawn(async move {
        let _ = sender.send(future.await);
    });
    let _abort = Abort(task.abort_handle());
    let receiver = Mutex::new(receiver);
    loop {
        let received = py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK));
        match received {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) => interrupted(py)?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(errors::raise(py, &Error::Internal("a task ended early".into())));
            }
        }
    }
}

type Start = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + Sync>;

/// A call that begins when it is awaited.
#[pyclass(frozen)]
struct Deferred(Mutex<Option<Start>>);

#[pymethods]
impl Deferred {
    fn __call__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let start = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        start.ok_or_else(|| PyRuntimeError::new_err("awaited twice"))?(py)
    }
}

/// A coroutine of a future: nothing runs before it is awaited, so that `asyncio.run` takes it like any other.
pub fn coroutine<T: Send + 'static>(
    py: Python<'_>,
    future: impl Future<Output = T> + Send + 'static,
    convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Py<PyAny>> {
    static RUN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let future: Mutex<Pin<Box<dyn Future<Output = T> + Send>>> = Mutex::new(Box::pin(future));
    let convert = Mutex::new(convert);
    let start: Start = Box::new(move |py| {
        let future = future.into_inner().unwrap_or_else(PoisonError::into_inner);
        awaitable(py, future, convert.into_inner().unwrap_or_else(PoisonError::into_inner))
    });
    let deferred = Py::new(py, Deferred(Mutex::new(Some(start))))?;
    Ok(RUN.import(py, "chainframe._await", "run")?.call1((deferred,))?.unbind())
}

/// What is awaited in the running loop. Cancelling it drops the core's future, and with it the request.
pub fn awaitable<T: Send + 'static>(
    py: Python<'_>,
    future: impl Future<Output = T> + Send + 'static,
    convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Py<PyAny>> {
    static GET_RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let event_loop = GET_RUNNING_LOOP.import(py, "asyncio", "get_running_loop")?.call0()?;
    let promise = event_loop.call_method0(intern!(py, "create_future"))?;
    logs::refresh(py)?;
    let (target, settled) = (event_loop.clone().unbind(), promise.clone().unbind());
    let task = handle()?.spawn(async move {
        let value = AssertUnwindSafe(future).catch_unwind().await;
        // An interpreter that is shutting down cannot be told any more.
        Python::try_attach(|py| {
            let outcome: Outcome = Box::new(move |py| match value {
                Ok(value) => convert(py, value),
                Err(_) => Err(errors::raise(py, &Error::Internal("a task ended early".into()))),
            });
            settle(py, &target, settled, outcome);
        });
    });
    let cancel = Py::new(py, Cancel(task.abort_handle()))?;
    promise.call_method1(intern!(py, "add_done_callback"), (cancel,))?;
    let turns = promise.call_method0(intern!(py, "__await__"))?.unbind();
    Ok(Py::new(py, Awaited(turns))?.into_any())
}

/// The wait for a promise. What was promised is made at its end, so that it is made where it is awaited: a warning
/// points there, and what nobody came for any more was not taken from the next.
#[pyclass(frozen)]
struct Awaited(Py<PyAny>);

#[pymethods]
impl Awaited {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let ended = match self.0.call_method0(py, intern!(py, "__next__")) {
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => error,
            turn => return turn,
        };
        let promised = ended.value(py).getattr(intern!(py, "value"))?;
        let made = promised.cast::<Promised>()?.get().make(py)?;
        Err(PyStopIteration::new_err((made,)))
    }

    #[pyo3(signature = (*error))]
    fn throw(&self, py: Python<'_>, error: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        self.0.call_method1(py, intern!(py, "throw"), error)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.call_method0(py, intern!(py, "close")).map(drop)
    }
}

#[pyclass(frozen)]
struct Cancel(AbortHandle);

#[pymethods]
impl Cancel {
    fn __call__(&self, promise: &Bound<'_, PyAny>) -> PyResult<()> {
        if promise.call_method0(intern!(promise.py(), "cancelled"))?.is_truthy()? {
            self.0.abort();
        }
        Ok(())
    }
}

/// What makes a result of what has arrived.
type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// What a promise is given.
#[pyclass(frozen)]
struct Promised(Mutex<Option<Outcome>>);

impl Promised {
    fn make(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let outcome = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        outcome.ok_or_else(|| PyRuntimeError::new_err("awaited twice"))?(py)
    }
}

#[pyclass(frozen)]
struct Settle {
    promise: Py<PyAny>,
    promised: Py<Promised>,
}

#[pymethods]
impl Settle {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let promise = self.promise.bind(py);
        // It may have been cancelled while the result was on its way.
        if !promise.call_method0(intern!(py, "done"))?.is_truthy()? {
            promise.call_method1(intern!(py, "set_result"), (&self.promised,))?;
        }
        Ok(())
    }
}

fn settle(py: Python<'_>, event_loop: &Py<PyAny>, promise: Py<PyAny>, outcome: Outcome) {
    let call = Py::new(py, Promised(Mutex::new(Some(outcome))))
        .and_then(|promised| Py::new(py, Settle { promise, promised }))
        .and_then(|settle| event_loop.call_method1(py, intern!(py, "call_soon_threadsafe"), (settle,)));
    // Only a loop that was closed meanwhile refuses, and then nobody waits for the result.
    drop(call);
}
