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

/// The origin of a client, if it is kept: clients are numbered in the order in which they were made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    pub number: u64,
    /// The line that made the client.
    pub place: String,
}

/// The client of a request, and the service that it was sent to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sender {
    pub origin: Arc<Origin>,
    pub base_url: Arc<str>,
    pub is_loopback: bool,
    /// False if the requests went past all cassettes.
    pub is_recorded: bool,
}

/// Requests that were sent by clients whose origin is kept. Replaced as a whole, so that no lock is held during a fork.
static SENT: LazyLock<ArcSwap<BTreeMap<Sender, u64>>> = LazyLock::new(ArcSwap::default);

/// Counts a request of a client.
pub fn note_sent(sender: &Sender) {
    SENT.rcu(|counts| {
        let mut counts = BTreeMap::clone(counts);
        *counts.entry(sender.clone()).or_default() += 1;
        counts
    });
}

pub fn sent() -> Arc<BTreeMap<Sender, u64>> {
    SENT.load_full()
}

/// Fails if the network is blocked, unless the request is recorded or its host is this machine.
pub fn check(request: impl FnOnce() -> Request, cassette: Option<&Cassette>, is_loopback: bool) -> Result<(), Error> {
    if !BLOCKED.load(Ordering::Relaxed) || is_loopback || cassette.is_some_and(Cassette::can_record) {
        return Ok(());
    }
    Err(Error::Blocked { request: request().to_string() })
}
