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
use crate::decode::is_unprintable;
use crate::interface::{ApiErrorKind, DeploymentError};
use crate::message::{self, Syntax};

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
    let exception = class(py, name).and_then(|class| {
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
    exception.map_or_else(|error| error, PyErr::from_value)
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
    if let Error::Cassette(cassette::Error::Miss { missed, .. }) = error {
        missed.note();
    }
    match attributes(py, error) {
        Ok(given) => {
            let message = error.message();
            let raised = new(py, class_name(error), |syntax| message.render(syntax), message.advice(), &given);
            if let Error::InvalidParameter { parameter, .. } = error {
                // The class would put the name before a message that begins with it.
                drop(raised.value(py).setattr("parameter", parameter));
            }
            raised
        }
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

fn class_name(error: &Error) -> &'static str {
    match error {
        Error::Config { .. } | Error::Rows { .. } => "ConfigError",
        Error::InvalidParameter { .. } => "InvalidParameterError",
        Error::Service(response) => match response.kind {
            ApiErrorKind::BadRequest => "BadRequestError",
            ApiErrorKind::NotFound => "NotFoundError",
            ApiErrorKind::PermissionDenied => "PermissionDeniedError",
            ApiErrorKind::Authentication => "AuthenticationError",
            ApiErrorKind::ClockSkew => "ClockSkewError",
            ApiErrorKind::RateLimit => "RateLimitError",
            ApiErrorKind::Unavailable => "ServiceUnavailableError",
            ApiErrorKind::Other => "ServiceError",
        },
        Error::Transport { .. } => "TransportError",
        Error::Timeout { .. } => "RequestTimeoutError",
        Error::Format { .. } => "ResponseFormatError",
        Error::Empty { .. } | Error::Drift { .. } => "PaginationDriftError",
        Error::Window { .. } => "ResultWindowError",
        Error::Budget { .. } => "BudgetExceededError",
        Error::Reorganization { .. } => "ReorganizationError",
        Error::Gap { .. } => "FollowGapError",
        Error::Overflow(_) => "NumericOverflowError",
        Error::Cassette(cassette::Error::Miss { .. }) => "CassetteMissError",
        Error::Cassette(_) => "CassetteError",
        Error::Internal(_) => "ChainframeError",
    }
}

/// The attributes that its class takes of an error.
fn attributes<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyDict>> {
    let given = PyDict::new(py);
    given.set_item("retryable", error.retryable())?;
    match error {
        Error::Service(response) => {
            given.set_item("endpoint", response.endpoint)?;
            given.set_item("status", response.status)?;
            given.set_item("code", &response.code)?;
            given.set_item("msg", &response.msg)?;
            given.set_item("attempts", response.attempts)?;
            if response.kind == ApiErrorKind::RateLimit {
                given.set_item("retry_after", response.retry_after.map(|after| after.as_secs_f64()))?;
            }
        }
        Error::Transport { endpoint, phase, attempts, .. } | Error::Timeout { endpoint, phase, attempts, .. } => {
            given.set_item("endpoint", endpoint)?;
            given.set_item("phase", phase.as_str())?;
            given.set_item("attempts", attempts)?;
        }
        Error::Format { endpoint, path, excerpt, .. } => {
            given.set_item("endpoint", endpoint)?;
            given.set_item("path", path)?;
            given.set_item("excerpt", excerpt)?;
        }
        Error::Budget { max_requests, .. } => given.set_item("max_requests", max_requests)?,
        Error::Reorganization { height, .. } => given.set_item("height", height)?,
        Error::Gap { first, last, .. } => {
            given.set_item("first_height", first)?;
            given.set_item("last_height", last)?;
        }
        Error::Overflow(overflow) => {
            given.set_item("column", &overflow.column)?;
            given.set_item("row", overflow.row)?;
            given.set_item("text", &overflow.text)?;
        }
        Error::Cassette(error) => {
            given.set_item("path", error.path().map(Path::to_string_lossy))?;
            if let cassette::Error::Disk { source, .. } = error {
                given.set_item("errno", errno(py, source)?)?;
            }
        }
        Error::Config { .. }
        | Error::Rows { .. }
        | Error::InvalidParameter { .. }
        | Error::Empty { .. }
        | Error::Drift { .. }
        | Error::Window { .. }
        | Error::Internal(_) => {}
    }
    Ok(given)
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
