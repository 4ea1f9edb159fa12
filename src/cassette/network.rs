//! A guard against requests that a test suite did not mean to send.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Cassette, Error, Request};

static BLOCKED: AtomicBool = AtomicBool::new(false);

/// Blocks or unblocks the network for every client of the process.
pub fn block(blocked: bool) {
    BLOCKED.store(blocked, Ordering::Relaxed);
}

/// Fails if the network is blocked, unless the request is recorded or its host is this machine.
pub fn check(request: impl FnOnce() -> Request, cassette: Option<&Cassette>, is_loopback: bool) -> Result<(), Error> {
    if !BLOCKED.load(Ordering::Relaxed) || is_loopback || cassette.is_some_and(Cassette::can_record) {
        return Ok(());
    }
    Err(Error::Blocked { request: request().to_string() })
}
