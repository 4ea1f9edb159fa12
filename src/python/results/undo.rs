//! `Undo`: records that a follower delivered and that are void.

use pyo3::prelude::*;

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
}

#[pymethods]
impl Undo {
    #[new]
    pub fn new(after_height: i64, cursor: String) -> Self {
        Self { after_height, cursor }
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("after_height", "cursor")
    }

    fn __repr__(&self) -> String {
        format!("Undo(after_height={})", self.after_height)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (i64, String)) {
        let undo = slf.get();
        (slf.get_type().into_any(), (undo.after_height, undo.cursor.clone()))
    }
}
