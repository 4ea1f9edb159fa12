//! `Hint`: the advice of an error as a value.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::pickle::{Reduced, reduced};

use crate::message::{self, Syntax};

#[doc = doc!(Hint)]
#[pyclass(frozen, eq, hash, module = "chainframe")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Hint {
    inner: message::Hint,
}

#[pymethods]
impl Hint {
    #[new]
    #[pyo3(signature = (action, *parameters))]
    fn new(action: &str, parameters: Vec<String>) -> PyResult<Self> {
        let forms = match parameters.as_slice() {
            [] => vec![json!(action)],
            [one] => vec![json!({ action: one }), json!({ action: [one] })],
            all => vec![json!({ action: all })],
        };
        let inner = forms.into_iter().find_map(|form| serde_json::from_value(form).ok());
        inner
            .map(|inner| Self { inner })
            .ok_or_else(|| PyValueError::new_err(format!("no hint {action:?} of {} parameters", parameters.len())))
    }

    #[doc = doc!(Hint.action)]
    #[getter]
    fn action(&self) -> &'static str {
        self.inner.action()
    }

    #[doc = doc!(Hint.parameters)]
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.parameters())
    }

    fn __str__(&self) -> String {
        self.inner.render(Syntax::Python)
    }

    fn _in_shell(&self) -> String {
        self.inner.render(Syntax::Shell)
    }

    fn __repr__(&self) -> String {
        format!("<Hint: {}>", self.__str__())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "_restore_hint", (to_json(py, &self.inner)?,))
    }
}

/// Hints as Python has them.
pub fn tuple<'py>(py: Python<'py>, hints: &[message::Hint]) -> PyResult<Bound<'py, PyTuple>> {
    let hints = hints.iter().map(|inner| Hint { inner: inner.clone() }.into_pyobject(py));
    PyTuple::new(py, hints.collect::<PyResult<Vec<_>>>()?)
}

/// A serializable value as Python's `json` loads it.
pub fn to_json<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (serde_json::to_string(value).expect("plain values"),))
}

/// The value that Python's `json` dumps.
pub fn from_json<T: DeserializeOwned>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    let text: String = value.py().import("json")?.call_method1("dumps", (value,))?.extract()?;
    serde_json::from_str(&text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Messages as sentences.
pub fn sentences(messages: &[message::Message], syntax: Syntax) -> Vec<String> {
    messages.iter().map(|message| message.sentence(syntax)).collect()
}

#[pyfunction]
pub fn _restore_hint(value: &Bound<'_, PyAny>) -> PyResult<Hint> {
    Ok(Hint { inner: from_json(value)? })
}
