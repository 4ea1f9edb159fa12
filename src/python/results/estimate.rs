//! `Estimate`: the expected cost and size of a query.

use pyo3::prelude::*;

use crate::display::html;
use crate::message::Syntax;
use crate::python::base::hint::{from_json, sentences, to_json};
use crate::python::base::pickle::{Reduced, reduced};
use crate::query::{self, Bounds};

#[doc = doc!(Estimate)]
#[pyclass(frozen, module = "chainframe")]
pub struct Estimate {
    pub inner: query::Estimate,
}

getters! { Estimate { num_slices: u64, estimated_seconds: f64 } }

#[pymethods]
impl Estimate {
    #[doc = doc!(Estimate.records)]
    #[getter]
    fn records(&self) -> u64 {
        self.inner.records.expected
    }

    #[doc = doc!(Estimate.pages)]
    #[getter]
    fn pages(&self) -> u64 {
        self.inner.pages.expected
    }

    #[doc = doc!(Estimate.requests)]
    #[getter]
    fn requests(&self) -> u64 {
        self.inner.requests.expected
    }

    #[doc = doc!(Estimate.records_range)]
    #[getter]
    fn records_range(&self) -> (u64, Option<u64>) {
        (self.inner.records.low, self.inner.records.high)
    }

    #[doc = doc!(Estimate.requests_range)]
    #[getter]
    fn requests_range(&self) -> (u64, Option<u64>) {
        (self.inner.requests.low, self.inner.requests.high)
    }

    #[doc = doc!(Estimate.is_exact)]
    #[getter]
    fn is_exact(&self) -> bool {
        self.inner.records.is_exact()
    }

    #[doc = doc!(Estimate.limitations)]
    #[getter]
    fn limitations(&self) -> Vec<String> {
        sentences(&self.inner.limitations, Syntax::Python)
    }

    fn _limitations_in_shell(&self) -> Vec<String> {
        sentences(&self.inner.limitations, Syntax::Shell)
    }

    /// Names and values for display.
    fn _facts(&self) -> Vec<(&'static str, String)> {
        html::estimate_facts(&self.inner)
    }

    fn __repr__(&self) -> String {
        let estimate = &self.inner;
        format!(
            "Estimate(records={}, pages={}, requests={}, num_slices={}, is_exact={}, records_range={}, \
             requests_range={}, estimated_seconds={:.2}, limitations={:?})",
            self.records(),
            self.pages(),
            self.requests(),
            estimate.num_slices,
            if self.is_exact() { "True" } else { "False" },
            range_text(estimate.records),
            range_text(estimate.requests),
            estimate.estimated_seconds,
            self.limitations()
        )
    }

    fn _repr_html_(&self) -> String {
        html::estimate(&self.inner)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let query::Estimate { num_slices, pages, requests, records, estimated_seconds, limitations } = &self.inner;
        let limitations = to_json(py, limitations)?;
        let [pages, requests, records] =
            [pages, requests, records].map(|bounds| (bounds.expected, bounds.low, bounds.high));
        reduced(py, "_restore_estimate", (*num_slices, pages, requests, records, *estimated_seconds, limitations))
    }
}

type Range = (u64, u64, Option<u64>);

#[pyfunction]
pub fn _restore_estimate(
    num_slices: u64,
    pages: Range,
    requests: Range,
    records: Range,
    estimated_seconds: f64,
    limitations: &Bound<'_, PyAny>,
) -> PyResult<Estimate> {
    let limitations = from_json(limitations)?;
    let [pages, requests, records] =
        [pages, requests, records].map(|(expected, low, high)| Bounds { expected, low, high });
    let inner = query::Estimate { num_slices, pages, requests, records, estimated_seconds, limitations };
    Ok(Estimate { inner })
}

fn range_text(bounds: Bounds) -> String {
    format!("({}, {})", bounds.low, bounds.high.map_or("None".into(), |high| high.to_string()))
}
