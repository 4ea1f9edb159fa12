//! What belongs to one process: its runtime and its connections. A forked child must not touch its parent's.

use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use arc_swap::ArcSwapOption;
use tokio::runtime::{Builder, Handle, Runtime};

/// This process's number. The system is asked once: a page is looked at by a dozen who want to know, and libraries of
/// C keep no number of their own any more.
#[cfg(unix)]
pub fn id() -> u32 {
    static ID: AtomicU32 = AtomicU32::new(0);
    static WATCHED: AtomicBool = AtomicBool::new(false);

    extern "C" fn forget() {
        ID.store(0, Ordering::Relaxed);
    }

    let known = ID.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let id = std::process::id();
    // SAFETY: the handler runs in a forked child, where it stores to an atomic and does no more.
    let watch = || unsafe { libc::pthread_atfork(None, None, Some(forget)) } == 0;
    // Two threads that come here at once both set the watch; a number is kept by nobody who has not seen to it.
    if WATCHED.load(Ordering::Acquire) || watch() {
        WATCHED.store(true, Ordering::Release);
        ID.store(id, Ordering::Relaxed);
    }
    id
}

#[cfg(not(unix))]
pub use std::process::id;

/// A value that is made anew in every process that asks for it. Takes no lock, since a lock that another thread held
/// during a fork stays locked in the child for ever.
pub struct PerProcess<T> {
    /// With the process it was made in.
    current: ArcSwapOption<(u32, T)>,
}

impl<T: Clone> PerProcess<T> {
    pub const fn new() -> Self {
        Self { current: ArcSwapOption::const_empty() }
    }

    pub fn get<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let process = id();
        let current = self.current.load();
        if let Some((_, value)) = current.as_deref().filter(|(owner, _)| *owner == process) {
            return Ok(value.clone());
        }
        let made = Arc::new((process, make()?));
        let before = self.current.compare_and_swap(&current, Some(made.clone()));
        let raced = before.as_deref().filter(|(owner, _)| *owner == process);
        if let Some((_, value)) = raced {
            return Ok(value.clone());
        }
        // The parent's value is left alone: dropping it here would close what the parent still uses.
        std::mem::forget(before);
        std::mem::forget(current);
        Ok(made.1.clone())
    }
}

impl<T> PerProcess<T> {
    /// Drops the value, if it is this process's own.
    pub fn clear(&self) {
        let last = self.current.swap(None);
        if last.as_deref().is_some_and(|(owner, _)| *owner != id()) {
            std::mem::forget(last);
        }
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<T: Clone> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

static RUNTIME: PerProcess<Handle> = PerProcess::new();

/// This process's runtime. One worker: the work is waiting, and pages are decoded faster than they arrive.
pub fn runtime() -> std::io::Result<Handle> {
    RUNTIME.get(|| {
        let runtime: Runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("chainframe").enable_all().build()?;
        let handle = runtime.handle().clone();
        // It lives as long as the process: threads that are joined at exit could wait for a stalled request.
        std::mem::forget(runtime);
        Ok(handle)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_per_process() {
        let value: PerProcess<Arc<u8>> = PerProcess::new();
        let first = value.get(|| Ok::<_, ()>(Arc::new(1))).unwrap();
        let second = value.get(|| Ok::<_, ()>(Arc::new(2))).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn a_failure_to_make_is_passed_on_and_not_kept() {
        let value: PerProcess<u8> = PerProcess::new();
        assert_eq!(value.get(|| Err("no")), Err("no"));
        assert_eq!(value.get(|| Ok::<_, &str>(3)), Ok(3));
    }
}
