//! Evidence on records that were fetched earlier.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::local_server::build;
use super::recorded_response::called;
use crate::python::results::report::evidence_dict;
use crate::query::Evidence;

/// `Report.evidence` of all records of a list, newest first, by their columns.
#[pyfunction]
pub fn _evidence<'py>(
    py: Python<'py>,
    call: &str,
    arguments: HashMap<String, String>,
    columns: &Bound<'py, PyDict>,
    sources: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let endpoint = called(py, call)?;
    let records = build(py, endpoint, columns, &sources)?;
    let mut evidence = Evidence::of(endpoint.name, |name| arguments.get(name).cloned());
    evidence.add(&records);
    evidence_dict(py, &evidence.findings(true))
}
