//! `Report`: completeness and cost of a run at one moment.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::display::html;
use crate::message::Syntax;
use crate::python::base::convert;
use crate::python::base::hint::{from_json, sentences, to_json};
use crate::python::base::pickle::{Reduced, reduced};
use crate::query;

#[doc = doc!(Report)]
#[pyclass(frozen, module = "chainframe")]
#[derive(Clone)]
pub struct Report {
    pub inner: query::Report,
}

getters! { Report {
    complete: bool, requests: u64, retries: u64, pages: u64, records: u64, duplicates_dropped: u64, dropped: u64,
    moved: u64, rereads: u64, bytes: u64,
} }

#[pymethods]
impl Report {
    #[doc = doc!(Report.reasons)]
    #[getter]
    fn reasons(&self) -> Vec<String> {
        sentences(&self.inner.reasons.to_vec(), Syntax::Python)
    }

    #[doc = doc!(Report.remarks)]
    #[getter]
    fn remarks(&self) -> Vec<String> {
        sentences(&self.inner.remarks.to_vec(), Syntax::Python)
    }

    /// The remarks in the form that `_restore_report` takes.
    #[getter]
    fn _remarks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_json(py, &self.inner.remarks.to_vec())
    }

    fn _remarks_in_shell(&self) -> Vec<String> {
        sentences(&self.inner.remarks.to_vec(), Syntax::Shell)
    }

    fn _reasons_in_shell(&self) -> Vec<String> {
        sentences(&self.inner.reasons.to_vec(), Syntax::Shell)
    }

    /// The verdicts on the values of a set in the form that `_restore_report` takes.
    #[getter]
    fn _verdicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_json(py, &self.inner.verdicts)
    }

    /// Those of the verdicts that have changed since the buffer of an export began a file, with the requests since.
    #[getter]
    fn _changed_verdicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_json(py, &self.inner.verdicts.changed())
    }

    /// The reasons in the form that `_restore_report` takes.
    #[getter]
    fn _reasons<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_json(py, &self.inner.reasons.to_vec())
    }

    #[doc = doc!(Report.missing)]
    #[getter]
    fn missing(&self) -> Vec<String> {
        self.inner.missing.to_vec()
    }

    #[doc = doc!(Report.members_absent)]
    #[getter]
    fn members_absent(&self) -> Vec<String> {
        self.inner.members.absent()
    }

    #[doc = doc!(Report.members_unknown)]
    #[getter]
    fn members_unknown(&self) -> Vec<String> {
        self.inner.members.unknown.to_vec()
    }

    #[doc = doc!(Report.by_argument)]
    #[getter]
    fn by_argument<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let verdicts = PyDict::new(py);
        for verdict in self.inner.verdicts.to_vec() {
            let members = PyDict::new(py);
            members.set_item("complete", verdict.complete)?;
            members.set_item("records", verdict.records)?;
            members.set_item("requests", verdict.requests)?;
            members.set_item("reasons", sentences(&verdict.reasons, Syntax::Python))?;
            let error = verdict.error.map(|error| error.render(Syntax::Python));
            members.set_item("error", error)?;
            verdicts.set_item(verdict.argument, members)?;
        }
        Ok(verdicts)
    }

    #[doc = doc!(Report.evidence)]
    #[getter]
    fn evidence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        evidence_dict(py, &self.inner.evidence)
    }

    /// The evidence in the form that `_restore_report` takes.
    #[getter]
    fn _evidence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_json(py, &self.inner.evidence)
    }

    #[doc = doc!(Report.cache)]
    #[getter]
    fn cache<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(used) = &self.inner.cache else { return Ok(None) };
        let members = PyDict::new(py);
        members.set_item("records", used.records)?;
        members.set_item("as_of", used.as_of.map(|time| convert::datetime(py, time)).transpose()?)?;
        members.set_item("reason", used.reason.as_ref().map(|reason| reason.render(Syntax::Python)))?;
        Ok(Some(members))
    }

    // Seconds.
    #[doc = doc!(Report.elapsed)]
    #[getter]
    fn elapsed(&self) -> f64 {
        self.inner.elapsed.as_secs_f64()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        to_json(py, &self.inner)?.eq(to_json(py, &other.get().inner)?)
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
            self.reasons()
        )
    }

    fn _repr_html_(&self) -> String {
        html::report(&self.inner)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "_restore_report", (to_json(py, &self.inner)?,))
    }
}

/// Members of findings by their laws.
pub fn evidence_dict<'py>(py: Python<'py>, findings: &[query::Finding]) -> PyResult<Bound<'py, PyDict>> {
    let evidence = PyDict::new(py);
    for finding in findings {
        let members = PyDict::new(py);
        members.set_item("held", finding.held)?;
        members.set_item("checked", finding.checked)?;
        members.set_item("missing", finding.missing)?;
        members.set_item("violation", &finding.violation)?;
        members.set_item("earlier", finding.earlier)?;
        members.set_item("assumption", &finding.assumption)?;
        evidence.set_item(&finding.law, members)?;
    }
    Ok(evidence)
}

#[pyfunction]
pub fn _restore_report(members: &Bound<'_, PyDict>) -> PyResult<Report> {
    Ok(Report { inner: from_json(members)? })
}
