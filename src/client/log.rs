//! Log events of requests. While no logger listens, an event costs one load of a byte.

use std::any::Any;
use std::future::Future;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// Severity of an event. The numbers are those of Python's `logging`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Debug = 10,
    Info = 20,
    Warning = 30,
}

/// Data of the caller on whose behalf a task runs, for the logger.
pub type Context = Arc<dyn Any + Send + Sync>;

tokio::task_local! {
    static CONTEXT: Option<Context>;
}

/// Runs a future with that context.
pub fn scope<F: Future>(context: Option<Context>, future: F) -> impl Future<Output = F::Output> {
    CONTEXT.scope(context, future)
}

/// Gives a future that is spawned on its own the context of the task that spawns it.
pub fn inherit<F: Future>(future: F) -> impl Future<Output = F::Output> {
    scope(context(), future)
}

pub(super) fn context() -> Option<Context> {
    CONTEXT.try_with(Clone::clone).ok().flatten()
}

pub type Logger = fn(Level, &str, Option<Context>);

static LOGGER: OnceLock<Logger> = OnceLock::new();
static MIN_SEVERITY: AtomicU8 = AtomicU8::new(u8::MAX);

/// Sets the logger of the process. The first one stays.
pub fn set_logger(logger: Logger) {
    LOGGER.get_or_init(|| logger);
}

/// Sets the lowest severity that is logged.
pub fn set_max_level(level: u8) {
    MIN_SEVERITY.store(level, Ordering::Relaxed);
}

pub fn emit(level: Level, text: impl FnOnce() -> String) {
    if level as u8 >= MIN_SEVERITY.load(Ordering::Relaxed)
        && let Some(logger) = LOGGER.get()
    {
        logger(level, &text(), context());
    }
}
