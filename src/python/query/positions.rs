//! `_Positions`: the position of a followed set. Python stores and hands it on without holding its many lists as objects.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::value::RawValue;

use super::query::Query;
use crate::query::FollowCursor;

#[pyclass(frozen, name = "_Positions")]
pub struct Positions(pub FollowCursor);

#[pymethods]
impl Positions {
    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Returns the JSON. It exists once: a string of Rust would be a second copy.
    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = py.import("io")?.call_method0("StringIO")?;
        self.write_pieces(|piece| text.call_method1("write", (String::from_utf8_lossy(piece),)).map(drop))?;
        text.call_method0("getvalue")
    }

    /// Writes the JSON to a file, piece by piece.
    fn write(&self, file: &Bound<'_, PyAny>) -> PyResult<()> {
        self.write_pieces(|piece| file.call_method1("write", (PyBytes::new(file.py(), piece),)).map(drop))
    }

    /// The positions of the lists that moved after `before`.
    fn since(&self, before: &Self) -> Self {
        Self(self.0.since(&before.0))
    }

    /// The positions after those of some lists have moved.
    fn merged(&self, later: &Self) -> Self {
        Self(self.0.merged(&later.0))
    }
}

#[pymethods]
impl Query {
    /// The positions of a followed set that is at the cursors of some of its lists, by their values.
    fn _moved(&self, positions: &Positions, lists: Vec<(String, String)>) -> PyResult<Positions> {
        Ok(Positions(positions.0.moved_to(self.start.query(), &lists)?))
    }
}

/// The JSON of an object without a member that is the position of a followed set, and that position. None if it is not, or
/// not one that this version reads.
#[pyfunction]
pub fn _split_positions<'py>(py: Python<'py>, json: &[u8], member: &str) -> Option<(Bound<'py, PyBytes>, Positions)> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_slice(json).ok()?;
    let cursor = FollowCursor::from_json(members.remove(member)?.get()).ok()?;
    let rest = serde_json::to_vec(&members).ok()?;
    cursor.is_of_set().then(|| (PyBytes::new(py, &rest), Positions(cursor)))
}

/// Bytes that a file of Python is given at a time.
const PIECE: usize = 64 << 10;

impl Positions {
    /// Passes the JSON, which is ASCII, on in pieces.
    fn write_pieces(&self, write: impl FnMut(&[u8]) -> PyResult<()>) -> PyResult<()> {
        let mut to = BufWriter::with_capacity(PIECE, Pieces(write));
        self.0.write_spaced(&mut to).and_then(|()| to.flush()).map_err(PyErr::from)
    }
}

struct Pieces<W>(W);

impl<W: FnMut(&[u8]) -> PyResult<()>> Write for Pieces<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
