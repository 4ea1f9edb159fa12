//! `Estimate`: the expected cost and size of a query.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::html;
use crate::message::Syntax;
use crate::python::base::hint::{from_json, sentences, to_json};
use crate::query;

#[doc = doc!(Estimate)]
#[pyclass(frozen, module = "chainframe")]
pub struct Estimate {
    pub inner: query::Estimate,
}

#[pymethods]
impl Estimate {
    #[doc = doc!(Estimate.num_slices)]
    #[getter]
    fn num_slices(&self) -> u64 {
        self.inner.num_slices
    }

    #[doc = doc!(Estimate.pages)]
    #[getter]
    fn pages(&self) -> Option<u64> {
        self.inner.pages
    }

    #[doc = doc!(Estimate.requests)]
    #[getter]
    fn requests(&self) -> Option<u64> {
        self.inner.requests
    }

    #[doc = doc!(Estimate.records)]
    #[getter]
    fn records(&self) -> Option<u64> {
        self.inner.records
    }

    #[doc = doc!(Estimate.is_exact)]
    #[getter]
    fn is_exact(&self) -> bool {
        self.inner.is_exact
    }

    #[doc = doc!(Estimate.estimated_seconds)]
    #[getter]
    fn estimated_seconds(&self) -> Option<f64> {
        self.inner.estimated_seconds
    }

    #[doc = doc!(Estimate.limitations)]
    #[getter]
    fn limitations(&self) -> Vec<String> {
        sentences(&self.inner.limitations, Syntax::Python)
    }

    fn _limitations_in_shell(&self) -> Vec<String> {
        sentences(&self.inner.limitations, Syntax::Shell)
    }

    fn __repr__(&self) -> String {
        let plan = &self.inner;
        let number = |value: Option<u64>| value.map_or("None".into(), |value| value.to_string());
        format!(
            "Estimate(records={}, pages={}, requests={}, num_slices={}, is_exact={}, estimated_seconds={}, \
             limitations={:?})",
            number(plan.records),
            number(plan.pages),
            number(plan.requests),
            plan.num_slices,
            if plan.is_exact { "True" } else { "False" },
            plan.estimated_seconds.map_or("None".into(), |seconds| format!("{seconds:.2}")),
            self.limitations()
        )
    }

    fn _repr_html_(&self) -> String {
        html::estimate(&self.inner)
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let query::Estimate { num_slices, pages, requests, records, is_exact, estimated_seconds, limitations } =
            self.inner.clone();
        let restore = py.import("chainframe._native")?.getattr("_restore_estimate")?;
        let limitations = to_json(py, &limitations)?;
        let members = (num_slices, pages, requests, records, is_exact, estimated_seconds, limitations);
        Ok((restore, members.into_pyobject(py)?))
    }
}

#[pyfunction]
pub fn _restore_estimate(
    num_slices: u64,
    pages: Option<u64>,
    requests: Option<u64>,
    records: Option<u64>,
    is_exact: bool,
    estimated_seconds: Option<f64>,
    limitations: &Bound<'_, PyAny>,
) -> PyResult<Estimate> {
    let limitations = from_json(limitations)?;
    let inner = query::Estimate { num_slices, pages, requests, records, is_exact, estimated_seconds, limitations };
    Ok(Estimate { inner })
}
