//! Coroutines over futures of the core, for asyncio.

use std::ffi::CString;
use std::future::Future;
use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::{PyBaseException, PyRuntimeError, PyRuntimeWarning, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::awaited_only::{AwaitGuard, awaited_only};
use super::block_on::{Kept, Work};
use super::finalize;
use super::future_awaiter::FutureAwaiter;
use crate::client::{Client, Error};
use crate::process;

/// Result of a step of a coroutine.
pub enum AsyncStep {
    Done(Py<PyAny>),
    /// The next step is made when this future of a client is done.
    Wait(Client, Work),
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
        process::lock(&self.state)
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
    name: &'static str,
    client: Client,
    start: impl FnOnce(Python<'_>) -> PyResult<(F, C)> + Send + 'static,
) -> Coroutine
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
    C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
{
    let mut start = Some(start);
    let mut started = None;
    Coroutine::new(name, move |py| {
        if let Some(start) = start.take() {
            let (future, convert) = start(py)?;
            let (work, kept) = Kept::of(future);
            started = Some((kept, convert));
            return Ok(AsyncStep::Wait(client.clone(), work));
        }
        match started.take() {
            Some((kept, convert)) => convert(py, kept.take()?).map(AsyncStep::Done),
            None => Err(Error::Internal("a task ended early".into()).into()),
        }
    })
}
