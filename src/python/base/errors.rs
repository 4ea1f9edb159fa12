//! From the core's errors to the classes of `chainframe.errors`.

use std::path::Path;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyString};

use super::hint;
use super::once::MadeOnce;
use crate::cache::CacheError;
use crate::cassette;
use crate::client::Error;
use crate::columns::NumericOverflow;
use crate::decode::is_unprintable;
use crate::interface::{ApiErrorKind, DeploymentError};
use crate::message::{self, Message, Syntax};

/// Note on a run that its bound ended.
const BUDGET_NOTE: &str =
    "call client.resume(error.cursor) of a client that may send more requests to continue from here";

/// The module of the error classes. An interpreter that finalizes cannot import it any more.
pub fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: MadeOnce<PyModule> = MadeOnce::new();
    MODULE.get(py, || PyModule::import(py, "chainframe.errors"))
}

pub fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    module(py)?.getattr(name)
}

/// Text whose control characters and marks of writing direction are escaped: a terminal, a log or a C string takes it as it is. Python's errors join
/// lines by themselves.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\r' | '\t' => printable.push(char),
            char if is_unprintable(char) => printable.extend(char.escape_unicode()),
            char => printable.push(char),
        }
    }
    printable
}

pub fn new(
    py: Python<'_>,
    name: &str,
    render: impl Fn(Syntax) -> String,
    hints: &[message::Hint],
    attributes: &Bound<'_, PyDict>,
) -> PyErr {
    let text = printable(&render(Syntax::Python));
    let made = class(py, name).and_then(|class| {
        let error = class.call((PyString::new(py, &text),), Some(attributes))?;
        let in_shell = printable(&render(Syntax::Shell));
        if in_shell != text {
            error.call_method1("_set_shell_text", (in_shell,))?;
        }
        if !hints.is_empty() {
            error.setattr("hints", hint::tuple(py, hints)?)?;
        }
        Ok(error)
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        Python::attach(|py| raise(py, &error))
    }
}

macro_rules! raised_as_core_errors {
    ($($error:ty),*) => {
        $(impl From<$error> for PyErr {
            fn from(error: $error) -> Self {
                Error::from(error).into()
            }
        })*
    };
}

raised_as_core_errors!(cassette::Error, CacheError, DeploymentError);

/// The Python error of a core error.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    match attributes(py, error) {
        Ok((name, message, given)) => new(py, name, |syntax| message.render(syntax), message.advice(), &given),
        Err(error) => error,
    }
}

/// The Python error of a core error, with the cursor that continues after it.
pub fn raise_at(py: Python<'_>, error: &Error, cursor: impl Into<Option<String>>) -> PyErr {
    raise_with_note(py, error, cursor, None)
}

/// The Python error of a core error, with a cursor and, if the error may be transient, with a note.
pub fn raise_with_note(py: Python<'_>, error: &Error, cursor: impl Into<Option<String>>, note: Option<&str>) -> PyErr {
    let raised = raise(py, error);
    let cursor = cursor.into();
    let value = raised.value(py);
    // Below a traceback, and not in the message: a log of it has no use for Python.
    let note = match error {
        Error::Budget { .. } => cursor.as_ref().map(|_| BUDGET_NOTE),
        _ => {
            if error.retryable() {
                note
            } else {
                None
            }
        }
    };
    let noted = note.map_or(Ok(()), |note| value.call_method1("add_note", (note,)).map(drop));
    match noted.and_then(|()| value.setattr("cursor", cursor)) {
        Ok(()) => raised,
        Err(raised) => raised,
    }
}

/// An exception that is not the package's and ends a wait: `annotate` adds to it how to continue.
pub fn interrupted(py: Python<'_>, raised: PyErr, annotate: impl FnOnce(&Bound<'_, PyAny>)) -> PyErr {
    if class(py, "ChainframeError").is_ok_and(|class| !raised.matches(py, class).unwrap_or(true)) {
        annotate(raised.value(py));
    }
    raised
}

/// Adds a cursor and a note to an exception of the caller. One that takes no attributes stays as it is.
pub fn annotate(exception: &Bound<'_, PyAny>, cursor: Option<String>, note: Option<&str>) {
    let noted = note.map_or(Ok(()), |note| exception.call_method1("add_note", (note,)).map(drop));
    drop(noted.and_then(|()| exception.setattr("cursor", cursor)));
}

fn attributes<'py>(py: Python<'py>, error: &Error) -> PyResult<(&'static str, Message, Bound<'py, PyDict>)> {
    let given = PyDict::new(py);
    let name = match error {
        Error::Config { .. } => "ConfigError",
        Error::InvalidParameter { .. } => "InvalidParameterError",
        Error::Service(response) => {
            given.set_item("endpoint", response.endpoint)?;
            given.set_item("status", response.status)?;
            given.set_item("code", &response.code)?;
            given.set_item("msg", &response.msg)?;
            given.set_item("attempts", response.attempts)?;
            given.set_item("retryable", error.retryable())?;
            match response.kind {
                ApiErrorKind::BadRequest => "BadRequestError",
                ApiErrorKind::NotFound => "NotFoundError",
                ApiErrorKind::PermissionDenied => "PermissionDeniedError",
                ApiErrorKind::Authentication => "AuthenticationError",
                ApiErrorKind::ClockSkew => "ClockSkewError",
                ApiErrorKind::RateLimit => {
                    given.set_item("retry_after", response.retry_after.map(|after| after.as_secs_f64()))?;
                    "RateLimitError"
                }
                ApiErrorKind::Unavailable => "ServiceUnavailableError",
                ApiErrorKind::Other => "ServiceError",
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
        Error::Budget { max_requests, .. } => {
            given.set_item("max_requests", max_requests)?;
            "BudgetExceededError"
        }
        Error::Reorganization { height, .. } => {
            given.set_item("height", height)?;
            "ReorganizationError"
        }
        Error::Gap { first, last, .. } => {
            given.set_item("first_height", first)?;
            given.set_item("last_height", last)?;
            "FollowGapError"
        }
        Error::Overflow(overflow) => {
            let NumericOverflow { column, row, text, .. } = &**overflow;
            given.set_item("column", column)?;
            given.set_item("row", row)?;
            given.set_item("text", text)?;
            "NumericOverflowError"
        }
        Error::Cassette(error) => {
            given.set_item("path", error.path().map(Path::to_string_lossy))?;
            match error {
                cassette::Error::Miss { missed, .. } => {
                    missed.note();
                    "CassetteMissError"
                }
                cassette::Error::Disk { source, .. } => {
                    given.set_item("errno", errno(py, source)?)?;
                    "CassetteError"
                }
                cassette::Error::Mode { .. }
                | cassette::Error::File { .. }
                | cassette::Error::Line { .. }
                | cassette::Error::Blocked { .. } => "CassetteError",
            }
        }
        Error::Internal(_) => "ChainframeError",
    };
    Ok((name, error.message(), given))
}

/// The number that Python has for an error of the system: Windows has others of its own.
fn errno(py: Python<'_>, error: &std::io::Error) -> PyResult<Option<i32>> {
    let Some(code) = error.raw_os_error() else { return Ok(None) };
    let raised = py.get_type::<PyOSError>().call1((code, "", py.None(), code))?;
    raised.getattr("errno")?.extract()
}

/// The error of a call that is not possible here and now.
pub fn context(problem: &str) -> PyErr {
    Python::attach(|py| new(py, "ContextError", |_| problem.to_owned(), &[], &PyDict::new(py)))
}
