//! What the core tells of its requests, through Python's `logging` under the name `chainframe`.

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::client::log::{self, Level};

fn logger(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = || Ok::<_, PyErr>(py.import("logging")?.call_method1("getLogger", ("chainframe",))?.unbind());
    LOGGER.get_or_try_init(py, made).map(|logger| logger.bind(py))
}

/// Asks the logger what it wants to hear. Done by whoever is about to wait for requests and holds the interpreter anyway,
/// so that a thread of the core needs to take it only for what will be logged.
///
/// The logger is Python code, in which Python delivers an interrupt that came meanwhile: that is no matter of logs.
pub fn refresh(py: Python<'_>) -> PyResult<()> {
    let asked = logger(py).and_then(|logger| logger.call_method0(intern!(py, "getEffectiveLevel"))?.extract::<i64>());
    let level = match asked {
        Ok(level) => level.clamp(0, 255) as u8,
        Err(error) if error.is_instance_of::<PyException>(py) => u8::MAX,
        Err(interrupt) => return Err(interrupt),
    };
    log::set_least(level);
    Ok(())
}

/// Every record is handled when its request's result is handed over. Nothing waits for the core's thread while it holds
/// the interpreter, so this cannot lock up.
fn tell(level: Level, text: &str) {
    Python::try_attach(|py| {
        let told = logger(py).and_then(|logger| logger.call_method1(intern!(py, "log"), (level as u8, "%s", text)));
        // A handler's errors are dealt with by `logging`; nobody here could.
        drop(told);
    });
}

pub fn install() {
    log::listen(tell);
}
