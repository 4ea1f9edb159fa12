//! Python objects that are made once.

use std::sync::OnceLock;

use pyo3::prelude::*;

/// A Python object that is made when it is first needed. Unlike with `PyOnceLock`, no thread waits for another to make
/// it: a fork during that would leave the child waiting for a thread that it does not have. Two threads may make the
/// object, and one of the two is kept.
#[derive(Debug)]
pub struct MadeOnce<T>(OnceLock<Py<T>>);

impl<T> MadeOnce<T> {
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    pub fn get<'py, E>(
        &self,
        py: Python<'py>,
        make: impl FnOnce() -> Result<Bound<'py, T>, E>,
    ) -> Result<&Bound<'py, T>, E> {
        if let Some(value) = self.0.get() {
            return Ok(value.bind(py));
        }
        let value = make()?.unbind();
        // The interpreter's lock is held meanwhile, also by a thread that forks.
        Ok(self.0.get_or_init(|| value).bind(py))
    }
}

impl MadeOnce<PyAny> {
    pub fn import<'py>(&self, py: Python<'py>, module: &str, name: &str) -> PyResult<&Bound<'py, PyAny>> {
        self.get(py, || py.import(module)?.getattr(name))
    }
}

/// An interned `str`, made once.
macro_rules! interned {
    ($py:expr, $text:expr) => {{
        static TEXT: $crate::python::base::once::MadeOnce<pyo3::types::PyString> =
            $crate::python::base::once::MadeOnce::new();
        let Ok(text) = TEXT.get($py, || Ok::<_, std::convert::Infallible>(pyo3::types::PyString::intern($py, $text)));
        text
    }};
}
pub(crate) use interned;
