//! The places where clients were made, and the requests that they sent, for the pytest plugin.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::cassette;

/// True if the origins of clients are kept.
static KEEPS_ORIGINS: AtomicBool = AtomicBool::new(false);
/// Number of clients whose origins are kept.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// Keeps the origins of the clients that are made from now on, and counts their requests.
#[pyfunction]
pub fn _keep_origins() {
    KEEPS_ORIGINS.store(true, Ordering::Relaxed);
}

/// Number of clients whose origins are kept.
#[pyfunction]
pub fn _client_count() -> u64 {
    CLIENTS.load(Ordering::Relaxed)
}

/// Requests that were sent: the number of their client, the place where it was made, its base URL, true if that is this
/// machine, true if they were recorded, and their count.
#[pyfunction]
pub fn _sent_requests() -> Vec<(u64, String, String, bool, bool, u64)> {
    let sent = cassette::sent();
    sent.iter()
        .map(|(sender, count)| {
            let cassette::Sender { origin, base_url, is_loopback, is_recorded } = sender;
            (origin.number, origin.place.clone(), base_url.to_string(), *is_loopback, *is_recorded, *count)
        })
        .collect()
}

/// The number of a client, and the line that calls the package to make it, if origins are kept.
pub fn origin(py: Python<'_>) -> Option<Arc<cassette::Origin>> {
    if !KEEPS_ORIGINS.load(Ordering::Relaxed) {
        return None;
    }
    let frame = py.import("sys").and_then(|sys| sys.call_method0("_getframe"));
    let place = frame.and_then(caller_of_package).ok()?;
    let number = CLIENTS.fetch_add(1, Ordering::Relaxed);
    Some(Arc::new(cassette::Origin { number, place }))
}

/// File and line of the first frame, outwards from this one, that is not of the package.
fn caller_of_package(mut frame: Bound<'_, PyAny>) -> PyResult<String> {
    loop {
        let module: String = frame.getattr("f_globals")?.get_item("__name__")?.extract().unwrap_or_default();
        if module.split('.').next() != Some("chainframe") {
            let file: String = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
            return Ok(format!("{file}:{}", frame.getattr("f_lineno")?));
        }
        frame = frame.getattr("f_back")?;
    }
}
