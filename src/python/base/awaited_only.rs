//! Coroutines whose result is used before it is awaited: the error says so.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Tells the iterations of an `await` from those of a loop over a coroutine that was not awaited.
#[derive(Default)]
pub struct AwaitGuard(AtomicBool);

impl AwaitGuard {
    pub fn allow(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn check(&self, coroutine: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.0.load(Ordering::Relaxed) { Ok(()) } else { unawaited(coroutine, "is not iterable") }
    }
}

pub fn unawaited<T>(coroutine: &Bound<'_, PyAny>, problem: &str) -> PyResult<T> {
    let name = coroutine.getattr("__qualname__")?;
    Err(PyTypeError::new_err(format!("the coroutine of {name} {problem}; await it first")))
}

/// Declares the methods of a coroutine class that are called where its result is wanted. The class has an `AwaitGuard`.
macro_rules! awaited_only {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// An error: the attribute of the result is wanted.
            fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
                let advice = if name.starts_with('_') { "" } else { "await it first" };
                Err($crate::python::base::arguments::no_attribute(slf, name, advice))
            }

            fn __await__(slf: Py<Self>) -> Py<Self> {
                slf.get().guard.allow();
                slf
            }

            /// Python may iterate over what `__await__` returns.
            fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
                slf.get().guard.check(slf)?;
                Ok(slf.clone())
            }

            fn __aiter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                $crate::python::base::awaited_only::unawaited(slf, "is not iterable")
            }

            fn __contains__(slf: &Bound<'_, Self>, _item: &Bound<'_, PyAny>) -> PyResult<bool> {
                $crate::python::base::awaited_only::unawaited(slf, "is not iterable")
            }

            fn __getitem__(slf: &Bound<'_, Self>, _index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                $crate::python::base::awaited_only::unawaited(slf, "is not subscriptable")
            }

            fn __len__(slf: &Bound<'_, Self>) -> PyResult<usize> {
                $crate::python::base::awaited_only::unawaited(slf, "has no length")
            }

            /// Python would ask for the length.
            fn __bool__(&self) -> bool {
                true
            }
        }
    };
}

pub(super) use awaited_only;
