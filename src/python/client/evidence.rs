//! Evidence on records that were fetched earlier.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::local_server::build;
use super::recorded_response::called;
use crate::python::results::report::evidence_dict;
use crate::query::{Evidence, Part};

/// `Report.evidence` of the records of a list, newest first, by their columns: of all of them, or of those up to a cut.
#[pyfunction]
pub fn _evidence<'py>(
    py: Python<'py>,
    call: &str,
    arguments: HashMap<String, String>,
    is_to_end: bool,
    columns: &Bound<'py, PyDict>,
    sources: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let endpoint = called(call)?;
    let records = build(endpoint, columns, &sources)?;
    let mut evidence = Evidence::of(endpoint.name, Part::FromFirst, |name| arguments.get(name).cloned());
    evidence.add(&records);
    evidence_dict(py, &evidence.findings(is_to_end))
}
