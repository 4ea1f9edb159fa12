//! Pickling. A private function of `chainframe._native`, `_restore_…`, makes the value again: its class needs no constructor.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A function and its arguments, as `__reduce__` returns them.
pub type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// A call of a function of `chainframe._native`.
pub fn reduced<'py, A>(py: Python<'py>, function: &str, arguments: A) -> PyResult<Reduced<'py>>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
{
    let function = py.import("chainframe._native")?.getattr(function)?;
    Ok((function, arguments.into_pyobject(py)?))
}
