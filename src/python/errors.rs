//! From the core's errors to the classes of `chainframe.errors`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyString};

use super::records::Records;
use super::report::Report;
use crate::cassette;
use crate::client::{Class, Error};
use crate::columns::Overflow;

/// What is noted of an error that may not come again.
const WAY_ON: &str = "client.resume(error.cursor) goes on from here; a Client with more max_retries bears more of it";

/// Settings that an environment variable may give.
const FROM_ENVIRONMENT: &[&str] = &["base_url", "api_key", "secret_key", "passphrase", "main_chain", "zone_chain"];

/// The variable of a setting.
pub fn variable(setting: &str) -> String {
    format!("CHAINFRAME_{}", setting.to_uppercase())
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    MODULE.get_or_try_init(py, || PyModule::import(py, "chainframe.errors").map(Bound::unbind))?.bind(py).getattr(name)
}

fn new(py: Python<'_>, name: &str, message: &str, attributes: &Bound<'_, PyDict>) -> PyErr {
    match class(py, name).and_then(|class| class.call((PyString::new(py, message),), Some(attributes))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The Python error of a core error.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    attributes(py, error).map_or_else(|error| error, |(name, message, given)| new(py, name, &message, &given))
}

/// The same, with the place that whoever catches it can go on from.
pub fn raise_at(py: Python<'_>, error: &Error, cursor: impl Into<Option<String>>) -> PyErr {
    let (raised, cursor) = (raise(py, error), cursor.into());
    let value = raised.value(py);
    // Below a traceback, and not in the message: a log of it has no use for Python.
    let note = match cursor {
        Some(_) if error.retryable() && error.attempts() > 0 => value.call_method1("add_note", (WAY_ON,)).map(drop),
        _ => Ok(()),
    };
    match note.and_then(|()| value.setattr("cursor", cursor)) {
        Ok(()) => raised,
        Err(refused) => refused,
    }
}

fn attributes<'py>(py: Python<'py>, error: &Error) -> PyResult<(&'static str, String, Bound<'py, PyDict>)> {
    let given = PyDict::new(py);
    let mut message = error.to_string();
    let name = match error {
        Error::Config { setting, problem } => {
            if FROM_ENVIRONMENT.contains(setting) {
                message = format!("{setting} ({}): {problem}", variable(setting));
            }
            "ConfigError"
        }
        Error::InvalidParameter { .. } => "InvalidParameterError",
        Error::Service(refusal) => {
            given.set_item("endpoint", refusal.endpoint)?;
            given.set_item("status", refusal.status)?;
            given.set_item("code", &refusal.code)?;
            given.set_item("msg", &refusal.msg)?;
            given.set_item("attempts", refusal.attempts)?;
            given.set_item("retryable", error.retryable())?;
            match refusal.class {
                Class::BadRequest => "BadRequestError",
                Class::NotFound => "NotFoundError",
                Class::PermissionDenied => "PermissionDeniedError",
                Class::Authentication => "AuthenticationError",
                Class::ClockSkew => "ClockSkewError",
                Class::RateLimit => {
                    given.set_item("retry_after", refusal.retry_after.map(|after| after.as_secs_f64()))?;
                    "RateLimitError"
                }
                Class::Unavailable => "ServiceUnavailableError",
                Class::Other => "ServiceError",
            }
        }
        Error::Transport { endpoint, phase, attempts, .. } | Error::Timeout { endpoint, phase, attempts, .. } => {
            given.set_item("endpoint", endpoint)?;
            given.set_item("phase", phase.as_str())?;
            given.set_item("attempts", attempts)?;
            given.set_item("retryable", error.retryable())?;
            if matches!(error, Error::Timeout { .. }) { "RequestTimeoutError" } else { "TransportError" }
        }
        Error::Format { endpoint, path, excerpt, .. } => {
            given.set_item("endpoint", endpoint)?;
            given.set_item("path", path)?;
            given.set_item("excerpt", excerpt)?;
            given.set_item("retryable", error.retryable())?;
            "ResponseFormatError"
        }
        Error::Empty { .. } | Error::Drift { .. } => {
            given.set_item("retryable", error.retryable())?;
            "PaginationDriftError"
        }
        Error::Window { .. } => "ResultWindowError",
        Error::Overflow(overflow) => {
            let Overflow { column, row, text, .. } = &**overflow;
            given.set_item("column", column)?;
            given.set_item("row", row)?;
            given.set_item("text", text)?;
            "NumericOverflowError"
        }
        Error::Cassette(cassette::Error::Miss { .. }) => "CassetteMissError",
        Error::Cassette(cassette::Error::Mode { .. } | cassette::Error::File { .. } | cassette::Error::Line { .. }) => {
            "CassetteError"
        }
        Error::Internal(_) => "ChainframeError",
    };
    Ok((name, message, given))
}

pub fn parameter(py: Python<'_>, parameter: &str, problem: &str) -> PyErr {
    raise(py, &Error::parameter(parameter, problem))
}

/// The end of a run that could not show its result to be complete: an error if that was asked for, else a warning.
pub fn incomplete(py: Python<'_>, strict: bool, report: Report, partial: Option<Records>) -> PyResult<()> {
    if report.inner.complete {
        return Ok(());
    }
    let message = format!("the result may be incomplete: {}", report.inner.reasons.join(" "));
    if strict {
        let given = PyDict::new(py);
        given.set_item("report", report)?;
        given.set_item("partial", partial)?;
        return Err(new(py, "IncompleteResultError", &message, &given));
    }
    let category = class(py, "IncompleteResultWarning")?;
    PyErr::warn(py, &category, &std::ffi::CString::new(message.replace('\0', " "))?, outside(py)?)
}

/// How many frames up the first is that is neither of this package nor of the event loop: the line that a warning is
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
