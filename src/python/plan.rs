//! `Plan`: what a query will take and give.

use pyo3::prelude::*;

use super::html;
use crate::query;

#[doc = doc!(Plan)]
#[pyclass(frozen, module = "chainframe")]
pub struct Plan {
    pub inner: query::Plan,
}

#[pymethods]
impl Plan {
    #[doc = doc!(Plan.windows)]
    #[getter]
    fn windows(&self) -> u64 {
        self.inner.windows
    }

    #[getter]
    fn pages(&self) -> Option<u64> {
        self.inner.pages
    }

    #[doc = doc!(Plan.requests)]
    #[getter]
    fn requests(&self) -> Option<u64> {
        self.inner.requests
    }

    #[getter]
    fn records(&self) -> Option<u64> {
        self.inner.records
    }

    #[doc = doc!(Plan.exact)]
    #[getter]
    fn exact(&self) -> bool {
        self.inner.exact
    }

    #[doc = doc!(Plan.seconds)]
    #[getter]
    fn seconds(&self) -> Option<f64> {
        self.inner.seconds
    }

    #[doc = doc!(Plan.cannot)]
    #[getter]
    fn cannot(&self) -> Vec<String> {
        self.inner.cannot.clone()
    }

    fn __repr__(&self) -> String {
        let plan = &self.inner;
        let number = |value: Option<u64>| value.map_or("None".into(), |value| value.to_string());
        format!(
            "Plan(records={}, pages={}, requests={}, windows={}, exact={}, seconds={}, cannot={:?})",
            number(plan.records),
            number(plan.pages),
            number(plan.requests),
            plan.windows,
            if plan.exact { "True" } else { "False" },
            plan.seconds.map_or("None".into(), |seconds| format!("{seconds:.2}")),
            plan.cannot
        )
    }

    fn _repr_html_(&self) -> String {
        html::plan(&self.inner)
    }
}
