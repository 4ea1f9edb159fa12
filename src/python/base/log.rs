//! Log records of the core, through Python's `logging` under the name `chainframe`.

use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use super::dispatch::LOGS;
use super::errors;
use super::once::{MadeOnce, interned};
use crate::client::log::{self, Context, Level};

/// Longest time that a result waits for the handlers of its records: a handler may be waiting for that result.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Records on their way to handlers.
static PENDING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// True while this thread runs handlers.
    static IN_HANDLER: Cell<bool> = const { Cell::new(false) };
}

fn logger(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static LOGGER: MadeOnce<PyAny> = MadeOnce::new();
    LOGGER.get(py, || py.import("chainframe._logs")?.call_method0("logger"))
}

/// False as long as nothing can show a record: the program has not imported `logging`, whose import takes longer than
/// that of this package, and the environment does not ask for records.
fn is_configured(py: Python<'_>) -> PyResult<bool> {
    static CONFIGURED: AtomicBool = AtomicBool::new(false);
    if !CONFIGURED.load(Ordering::Relaxed) {
        let modules = py.import(interned!(py, "sys"))?.getattr(interned!(py, "modules"))?;
        let is_configured = modules.contains(interned!(py, "logging"))? || std::env::var_os("CHAINFRAME_LOG").is_some();
        CONFIGURED.store(is_configured, Ordering::Relaxed);
    }
    Ok(CONFIGURED.load(Ordering::Relaxed))
}

/// Raises in a logging handler, which must not wait: a result waits for the handlers of its records.
pub fn check_not_in_handler() -> PyResult<()> {
    if IN_HANDLER.get() {
        return Err(errors::context(
            "requests cannot be awaited inside a logging handler or on_attempt (would deadlock)",
        ));
    }
    Ok(())
}

fn level_and_context(py: Python<'_>) -> PyResult<(i64, Context)> {
    static COPY_CONTEXT: MadeOnce<PyAny> = MadeOnce::new();
    let level = if is_configured(py)? {
        logger(py)?.call_method0(interned!(py, "getEffectiveLevel"))?.extract()?
    } else {
        i64::from(u8::MAX)
    };
    let context = COPY_CONTEXT.import(py, "contextvars", "copy_context")?.call0()?;
    Ok((level, Arc::new(context.unbind())))
}

/// Reads the logger's level and the caller's context variables, in which handlers run. Called by a thread that is about
/// to wait for requests and holds the interpreter anyway.
///
/// The logger is Python code, in which Python delivers an interrupt that came meanwhile: that one is raised.
pub fn refresh(py: Python<'_>) -> PyResult<Option<Context>> {
    match level_and_context(py) {
        Ok((level, context)) => {
            log::set_max_level(level.clamp(0, 255) as u8);
            Ok(Some(context))
        }
        // A module that an ending interpreter has cleared, or a logger of the caller's that fails.
        Err(error) if error.is_instance_of::<PyException>(py) => {
            log::set_max_level(u8::MAX);
            Ok(None)
        }
        Err(interrupt) => Err(interrupt),
    }
}

/// Runs a future whose records are logged in that context.
pub fn scope<F: Future>(context: Option<Context>, future: F) -> impl Future<Output = F::Output> {
    log::scope(context, future)
}

/// Returns when the records so far are handled, or after a second: a handler that takes longer is not waited for.
pub async fn flushed() {
    if PENDING.load(Ordering::Acquire) == 0 {
        return;
    }
    let (sender, handled) = tokio::sync::oneshot::channel::<()>();
    LOGS.send(move |_| drop(sender));
    let _ = tokio::time::timeout(MAX_WAIT, handled).await;
}

/// Counts a call of Python code that a result waits for, until it is dropped.
struct Pending;

impl Pending {
    fn new() -> Self {
        PENDING.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        PENDING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One record on its way to handlers.
struct Record {
    _pending: Pending,
    level: Level,
    text: String,
    context: Option<Context>,
}

impl Record {
    fn handle(&self, py: Python<'_>) -> PyResult<()> {
        let log = logger(py)?.getattr(interned!(py, "log"))?;
        let record = (self.level as u8, "%s", &self.text);
        match self.context.as_deref().and_then(|context| context.downcast_ref::<Py<PyAny>>()) {
            Some(context) => {
                // A context is entered by one thread at a time; the caller's stays its own.
                let copy = context.call_method0(py, interned!(py, "copy"))?;
                copy.call_method1(py, interned!(py, "run"), (log, record.0, record.1, record.2)).map(drop)
            }
            None => log.call1(record).map(drop),
        }
    }
}

/// Calls a function of the caller's where handlers run, in a copy of the caller's context. A result waits for it as it
/// waits for handlers. An exception is reported as unraisable.
pub fn call_in_handler(
    context: Option<Context>,
    function: impl FnOnce(Python<'_>) -> Option<Py<PyAny>> + Send + 'static,
    argument: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static,
) {
    let pending = Pending::new();
    LOGS.send(move |py| {
        let _pending = pending;
        let Some(function) = function(py) else { return };
        IN_HANDLER.set(true);
        if let Err(error) = call(py, context.as_ref(), &function, argument) {
            error.write_unraisable(py, Some(function.bind(py)));
        }
        IN_HANDLER.set(false);
    });
}

fn call(
    py: Python<'_>,
    context: Option<&Context>,
    function: &Py<PyAny>,
    argument: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
) -> PyResult<()> {
    name_thread(py)?;
    let argument = argument(py)?;
    match context.and_then(|context| context.downcast_ref::<Py<PyAny>>()) {
        Some(context) => {
            let copy = context.call_method0(py, interned!(py, "copy"))?;
            copy.call_method1(py, interned!(py, "run"), (function, argument)).map(drop)
        }
        None => function.call1(py, (argument,)).map(drop),
    }
}

fn emit(level: Level, text: &str, context: Option<Context>) {
    let record = Record { _pending: Pending::new(), level, text: text.to_owned(), context };
    LOGS.send(move |py| {
        IN_HANDLER.set(true);
        // `logging` deals with a handler's errors; nothing here could.
        let _ = name_thread(py).and_then(|()| record.handle(py));
        IN_HANDLER.set(false);
    });
}

/// Gives Python's object of this thread a name that says where its records come from.
fn name_thread(py: Python<'_>) -> PyResult<()> {
    let thread = py.import(interned!(py, "threading"))?.call_method0(interned!(py, "current_thread"))?;
    thread.setattr(interned!(py, "name"), "chainframe-log")
}

pub fn install() {
    log::set_logger(emit);
}
