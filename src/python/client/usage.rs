//! `Usage`: what a client has sent and received so far.

use pyo3::prelude::*;

use crate::client;
use crate::display::html;
use crate::python::base::hint::{from_json, to_json};
use crate::python::base::pickle::{Reduced, reduced};

#[doc = doc!(Usage)]
#[pyclass(frozen, eq, module = "chainframe")]
#[derive(Clone, Copy, PartialEq)]
pub struct Usage {
    pub inner: client::Usage,
}

getters! { Usage { requests: u64, retries: u64, throttled: u64, replayed: u64, cached: u64, bytes: u64 } }

#[pymethods]
impl Usage {
    #[doc = doc!(Usage.waited)]
    #[getter]
    fn waited(&self) -> f64 {
        self.inner.waited.as_secs_f64()
    }

    /// The usage since an earlier one.
    fn __sub__(&self, earlier: PyRef<'_, Self>) -> Self {
        Self { inner: self.inner - earlier.inner }
    }

    fn __str__(&self) -> String {
        html::usage(&self.inner)
    }

    fn __repr__(&self) -> String {
        let client::Usage { requests, retries, throttled, replayed, cached, bytes, .. } = self.inner;
        let waited = self.waited();
        format!(
            "Usage(requests={requests}, retries={retries}, throttled={throttled}, replayed={replayed}, cached={cached}, bytes={bytes}, \
             waited={waited:.3})"
        )
    }

    fn _repr_html_(&self) -> String {
        let client::Usage { requests, retries, throttled, replayed, cached, bytes, .. } = self.inner;
        let facts = [
            ("requests", requests.to_string()),
            ("retries", retries.to_string()),
            ("throttled", throttled.to_string()),
            ("replayed", replayed.to_string()),
            ("records from the cache", cached.to_string()),
            ("received", html::size(bytes)),
            ("waited", format!("{:.1} s", self.waited())),
        ];
        html::form("Usage", "of a client so far", &[html::pairs(&facts)])
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "_restore_usage", (to_json(py, &self.inner)?,))
    }
}

#[pyfunction]
pub fn _restore_usage(members: &Bound<'_, PyAny>) -> PyResult<Usage> {
    Ok(Usage { inner: from_json(members)? })
}
