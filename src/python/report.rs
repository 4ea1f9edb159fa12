//! `Report`: the account of a run, as it stood when it was asked for.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::time::Duration;

use super::html;
use crate::query;

#[doc = doc!(Report)]
#[pyclass(frozen, module = "chainframe")]
#[derive(Clone)]
pub struct Report {
    pub inner: query::Report,
}

#[pymethods]
impl Report {
    #[getter]
    fn complete(&self) -> bool {
        self.inner.complete
    }

    #[doc = doc!(Report.reasons)]
    #[getter]
    fn reasons(&self) -> Vec<String> {
        self.inner.reasons.clone()
    }

    #[doc = doc!(Report.requests)]
    #[getter]
    fn requests(&self) -> u64 {
        self.inner.requests
    }

    #[getter]
    fn retries(&self) -> u64 {
        self.inner.retries
    }

    #[getter]
    fn pages(&self) -> u64 {
        self.inner.pages
    }

    #[getter]
    fn records(&self) -> u64 {
        self.inner.records
    }

    #[doc = doc!(Report.duplicates_dropped)]
    #[getter]
    fn duplicates_dropped(&self) -> u64 {
        self.inner.duplicates_dropped
    }

    #[doc = doc!(Report.missing)]
    #[getter]
    fn missing(&self) -> Vec<String> {
        self.inner.missing.clone()
    }

    #[doc = doc!(Report.bytes)]
    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes
    }

    // Seconds.
    #[doc = doc!(Report.elapsed)]
    #[getter]
    fn elapsed(&self) -> f64 {
        self.inner.elapsed.as_secs_f64()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        self.members(py)?.eq(other.get().members(py)?)
    }

    fn __hash__(&self) -> u64 {
        self.inner.records ^ self.inner.bytes.rotate_left(32)
    }

    fn __repr__(&self) -> String {
        let report = &self.inner;
        let complete = if report.complete { "True" } else { "False" };
        format!(
            "Report(complete={complete}, records={}, pages={}, requests={}, retries={}, missing={}, reasons={:?})",
            report.records,
            report.pages,
            report.requests,
            report.retries,
            report.missing.len(),
            report.reasons
        )
    }

    fn _repr_html_(&self) -> String {
        html::report(&self.inner)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = py.import("chainframe._native")?.getattr("_restore_report")?;
        Ok((restore, (self.members(py)?,).into_pyobject(py)?))
    }
}

impl Report {
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = &self.inner;
        let members = PyDict::new(py);
        members.set_item("complete", report.complete)?;
        members.set_item("reasons", &report.reasons)?;
        members.set_item("requests", report.requests)?;
        members.set_item("retries", report.retries)?;
        members.set_item("pages", report.pages)?;
        members.set_item("records", report.records)?;
        members.set_item("duplicates_dropped", report.duplicates_dropped)?;
        members.set_item("missing", &report.missing)?;
        members.set_item("bytes", report.bytes)?;
        members.set_item("elapsed", report.elapsed.as_secs_f64())?;
        Ok(members)
    }
}

#[pyfunction]
pub fn _restore_report(members: &Bound<'_, PyDict>) -> PyResult<Report> {
    let member = |name: &str| members.as_any().get_item(name);
    let inner = query::Report {
        complete: member("complete")?.extract()?,
        reasons: member("reasons")?.extract()?,
        requests: member("requests")?.extract()?,
        retries: member("retries")?.extract()?,
        pages: member("pages")?.extract()?,
        records: member("records")?.extract()?,
        duplicates_dropped: member("duplicates_dropped")?.extract()?,
        missing: member("missing")?.extract()?,
        bytes: member("bytes")?.extract()?,
        elapsed: Duration::try_from_secs_f64(member("elapsed")?.extract()?).unwrap_or_default(),
        outlook: query::Outlook::default(),
    };
    Ok(Report { inner })
}
