//! Exceptions as they leave methods that are written in Python: without the frames of the package.

use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::awaited_only::{AwaitGuard, awaited_only};
use super::errors::class;

/// An error of the package, an interrupt or a cancellation, with the caller's frames only. Other exceptions are defects,
/// and keep their frames.
pub fn at_caller(py: Python<'_>, raised: PyErr) -> PyErr {
    let is_expected = !raised.is_instance_of::<PyException>(py)
        || class(py, "ChainframeError").is_ok_and(|class| raised.matches(py, class).unwrap_or(false));
    if !is_expected {
        return raised;
    }
    let mut current = Some(raised.value(py).clone().into_any());
    while let Some(error) = current {
        let bare = error.call_method1("with_traceback", (py.None(),));
        // An exception whose class refuses the change is raised unchanged.
        drop(bare.and_then(|_| error.setattr("__suppress_context__", true)));
        current = error.getattr("__cause__").ok().filter(|cause| !cause.is_none());
    }
    // Before Python 3.12 the interpreter keeps the traceback beside the exception.
    raised.set_traceback(py, None);
    raised
}

/// A coroutine of Python whose exceptions end at the frame that awaits it.
#[pyclass(frozen, module = "chainframe", name = "Coroutine")]
pub struct CoroutineAtCaller {
    inner: Py<PyAny>,
    guard: AwaitGuard,
}

impl CoroutineAtCaller {
    pub fn new(coroutine: Bound<'_, PyAny>) -> Self {
        Self { inner: coroutine.unbind(), guard: AwaitGuard::default() }
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Py<PyAny>> {
        let called = self.inner.bind(py).call_method1(method, arguments);
        called.map(Bound::unbind).map_err(|raised| at_caller(py, raised))
    }
}

awaited_only!(CoroutineAtCaller);

#[pymethods]
impl CoroutineAtCaller {
    #[getter]
    fn __name__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.inner.getattr(py, "__name__")
    }

    #[getter]
    fn __qualname__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.inner.getattr(py, "__qualname__")
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.call(py, "send", (py.None(),))
    }

    fn send(&self, py: Python<'_>, value: Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.call(py, "send", (value,))
    }

    #[pyo3(signature = (kind, value=None, traceback=None))]
    fn throw(
        &self,
        py: Python<'_>,
        kind: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        // The form with three arguments is deprecated.
        match value {
            Some(value) => self.call(py, "throw", (kind, value, traceback)),
            None => self.call(py, "throw", (kind,)),
        }
    }

    fn close(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.call(py, "close", ())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.inner)
    }
}
