//! A guard against requests that a test suite did not mean to send.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;

use super::{Cassette, Error, Request};

static BLOCKED: AtomicBool = AtomicBool::new(false);

/// Blocks or unblocks the network for every client of the process.
pub fn block(blocked: bool) {
    BLOCKED.store(blocked, Ordering::Relaxed);
}

/// Requests that were sent by clients without a cassette, by the places where the clients were made. Replaced as a whole,
/// so that no lock is held during a fork.
static UNRECORDED: LazyLock<ArcSwap<BTreeMap<Arc<str>, u64>>> = LazyLock::new(ArcSwap::default);

/// Counts a request of a client that was made in that place.
pub fn note_unrecorded(place: &Arc<str>) {
    UNRECORDED.rcu(|counts| {
        let mut counts = BTreeMap::clone(counts);
        *counts.entry(place.clone()).or_default() += 1;
        counts
    });
}

pub fn unrecorded() -> Arc<BTreeMap<Arc<str>, u64>> {
    UNRECORDED.load_full()
}

/// Fails if the network is blocked, unless the request is recorded or its host is this machine.
pub fn check(request: impl FnOnce() -> Request, cassette: Option<&Cassette>, is_loopback: bool) -> Result<(), Error> {
    if !BLOCKED.load(Ordering::Relaxed) || is_loopback || cassette.is_some_and(Cassette::can_record) {
        return Ok(());
    }
    Err(Error::Blocked { request: request().to_string() })
}
