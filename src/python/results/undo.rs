//! `Undo`: records that a follower delivered and that are void.

use pyo3::prelude::*;

use crate::python::base::arguments::DeferredArg;

#[doc = doc!(Undo)]
#[pyclass(frozen, eq, hash, module = "chainframe")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Undo {
    #[doc = doc!(Undo.after_height)]
    #[pyo3(get)]
    after_height: i64,
    #[doc = doc!(Undo.cursor)]
    #[pyo3(get)]
    cursor: String,
    #[doc = doc!(Undo.queried)]
    #[pyo3(get)]
    queried: Option<Vec<String>>,
}

/// Arguments that make an equal object.
type Arguments = (i64, String, Option<Vec<String>>);

impl Undo {
    pub const fn new(after_height: i64, cursor: String, queried: Option<Vec<String>>) -> Self {
        Self { after_height, cursor, queried }
    }
}

#[pymethods]
impl Undo {
    #[new]
    #[pyo3(signature = (after_height, cursor, queried=None))]
    fn py_new(after_height: DeferredArg<i64>, cursor: String, queried: Option<Vec<String>>) -> PyResult<Self> {
        Ok(Self::new(after_height.of_parameter("after_height")?, cursor, queried))
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("after_height", "cursor")
    }

    fn __repr__(&self) -> String {
        let queried = self.queried.as_ref().map(|queried| format!(", queried={queried:?}")).unwrap_or_default();
        format!("Undo(after_height={}{queried})", self.after_height)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, Arguments) {
        let undo = slf.get();
        (slf.get_type().into_any(), (undo.after_height, undo.cursor.clone(), undo.queried.clone()))
    }
}
