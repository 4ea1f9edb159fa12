//! What happens to requests, told to whoever listens. While nobody does it costs one load of a byte.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// How much it matters. The numbers are those of Python and of most others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Debug = 10,
    Info = 20,
    Warning = 30,
}

pub type Listener = fn(Level, &str);

static LISTENER: OnceLock<Listener> = OnceLock::new();
static LEAST: AtomicU8 = AtomicU8::new(u8::MAX);

/// The first listener is the only one.
pub fn listen(listener: Listener) {
    LISTENER.get_or_init(|| listener);
}

/// From which level on the listener wants to hear.
pub fn set_least(level: u8) {
    LEAST.store(level, Ordering::Relaxed);
}

pub(super) fn emit(level: Level, text: impl FnOnce() -> String) {
    if level as u8 >= LEAST.load(Ordering::Relaxed)
        && let Some(listener) = LISTENER.get()
    {
        listener(level, &text());
    }
}
