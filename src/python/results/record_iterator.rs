//! `RecordIterator`: iterator over the records of `Records`.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use super::record_classes;
use crate::columns::Columns;
use crate::process;

/// Iterator over records at hand.
#[pyclass(frozen, module = "chainframe")]
pub(super) struct RecordIterator {
    chunks: Vec<Arc<Columns>>,
    /// Chunk and row in it.
    next: Mutex<(usize, usize)>,
}

impl RecordIterator {
    pub(super) fn new(chunks: Vec<Arc<Columns>>) -> Self {
        Self { chunks, next: Mutex::new((0, 0)) }
    }
}

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (chunk, row) = {
            let mut next = process::lock(&self.next);
            let (chunk, row) = *next;
            let Some(columns) = self.chunks.get(chunk) else { return Ok(None) };
            *next = if row + 1 < columns.rows() { (chunk, row + 1) } else { (chunk + 1, 0) };
            (columns.clone(), row)
        };
        record_classes::view(py, chunk, row).map(Some)
    }
}
