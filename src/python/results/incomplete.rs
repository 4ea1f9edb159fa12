//! The end of a run whose result was not shown to be complete.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::records::Records;
use super::report::Report;
use crate::message::{Message, Syntax, counted};
use crate::python::base::errors::{class, new, printable};
use crate::python::base::hint;

/// Reasons that the message of an incomplete result states.
const REASONS: usize = 10;

/// Raises or warns, by `strict`, at the end of a run whose result was not shown to be complete.
pub fn report_incomplete(py: Python<'_>, strict: bool, report: Report, partial: Option<Records>) -> PyResult<()> {
    if report.inner.complete {
        return Ok(());
    }
    let more = report.inner.reasons.len().saturating_sub(REASONS);
    let reasons = report.inner.reasons.first(REASONS).to_vec();
    let render = |syntax| {
        let sentences = hint::sentences(&reasons, syntax).join(" ");
        if more == 0 {
            return format!("the result may be incomplete: {sentences}");
        }
        let more = counted(more as u64, "more reason");
        format!("the result may be incomplete: {sentences} And {more}, listed in the report.")
    };
    if strict {
        let hints: Vec<_> = reasons.iter().flat_map(Message::advice).cloned().collect();
        let given = PyDict::new(py);
        given.set_item("report", report.clone())?;
        given.set_item("partial", partial)?;
        return Err(new(py, "IncompleteResultError", render, &hints, &given));
    }
    let category = class(py, "IncompleteResultWarning")?;
    PyErr::warn(py, &category, &std::ffi::CString::new(printable(&render(Syntax::Python)))?, outside(py)?)
}

/// Number of frames up to the first that is neither of this package nor of the event loop: the line that a warning is
/// about.
fn outside(py: Python<'_>) -> PyResult<i32> {
    // A thread of an Arrow library has no frame.
    let Ok(mut frame) = py.import("sys")?.call_method0("_getframe") else { return Ok(1) };
    for level in 1.. {
        let module = frame.getattr("f_globals")?.call_method1("get", ("__name__", ""))?.str()?;
        if !["chainframe.", "asyncio."].iter().any(|inside| module.to_cow().is_ok_and(|name| name.starts_with(inside)))
        {
            return Ok(level);
        }
        frame = frame.getattr("f_back")?;
        if frame.is_none() {
            break;
        }
    }
    Ok(1)
}
