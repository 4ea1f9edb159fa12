//! State of one process: its runtime and its connections. A forked child must not touch those of its parent.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::block_in_place;

pub use fork::id;

/// Returns freed memory to the system. glibc keeps it in arenas of several threads, and what was freed in one of them is
/// not used by the others.
pub fn release_memory() {
    // SAFETY: it takes the locks of the allocator, and changes nothing that is in use.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Locks a mutex whose value is whole even if the thread that held it panicked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value that every process makes for itself. It takes no lock: a lock that another thread holds during a fork stays
/// locked in the child.
pub struct PerProcess<T> {
    /// The value and the process that made it.
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
        let entry = Arc::new((process, make()?));
        let before = self.current.compare_and_swap(&current, Some(entry.clone()));
        let raced = before.as_deref().filter(|(owner, _)| *owner == process);
        if let Some((_, value)) = raced {
            return Ok(value.clone());
        }
        // The parent's value is not dropped: that would close what the parent still uses.
        std::mem::forget(before);
        std::mem::forget(current);
        Ok(entry.1.clone())
    }

    /// Returns the value, which is made without fail.
    pub fn get_with(&self, make: impl FnOnce() -> T) -> T {
        let Ok(value) = self.get(|| Ok::<_, Infallible>(make()));
        value
    }
}

impl<T> PerProcess<T> {
    /// Drops the value if this process made it.
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

/// The runtime of this process. It has one worker: two would hand each response from one thread to the other, which
/// takes half as much CPU again. Work of milliseconds runs in [`long`].
pub fn runtime() -> std::io::Result<Handle> {
    RUNTIME.get(|| {
        check_threads(1)?;
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .event_interval(POLLS_PER_EVENT)
            .global_queue_interval(POLLS_PER_EVENT)
            .thread_name("chainframe")
            .enable_all();
        // Another thread may have taken the last one meanwhile.
        let built = catch_unwind(AssertUnwindSafe(|| builder.build()));
        let runtime: Runtime = built.unwrap_or_else(|_| Err(ErrorKind::WouldBlock.into()))?;
        let handle = runtime.handle().clone();
        // It lives as long as the process: joining its threads at exit could wait for a stalled request.
        std::mem::forget(runtime);
        Ok(handle)
    })
}

/// Fails if the process may not start that many threads. Tokio panics then.
pub fn check_threads(count: usize) -> std::io::Result<()> {
    let (open, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    std::thread::scope(|scope| {
        let started = (0..count).try_for_each(|_| {
            let builder = std::thread::Builder::new().name("chainframe".into());
            builder.spawn_scoped(scope, || drop(wait.lock().map(|wait| wait.recv()))).map(drop)
        });
        drop(open);
        started
    })
}

/// Bytes that take milliseconds to decode or to copy.
const LONG_BYTES: usize = 512 << 10;

/// Polls of tasks after which the network is polled. Those of a large response may take a fraction of a millisecond each,
/// and meanwhile no other response is received.
const POLLS_PER_EVENT: u32 = 7;

/// Runs work of milliseconds or more, while another thread continues the other tasks of the runtime.
pub fn long<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}

/// Runs work on that many bytes: as [`long`] if it takes milliseconds.
pub fn long_if<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > LONG_BYTES { long(work) } else { work() }
}

/// A mutex that a forked child can lock: forks of other threads wait until it is free. For critical sections that are
/// short, wait for nothing and do not nest.
#[derive(Debug, Default)]
pub struct ForkSafeMutex<T>(Mutex<T>);

pub struct ForkSafeGuard<'a, T> {
    value: MutexGuard<'a, T>,
    /// Released after the mutex.
    _gate: fork::Gate,
}

impl<T> ForkSafeMutex<T> {
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub fn lock(&self) -> ForkSafeGuard<'_, T> {
        let gate = fork::enter();
        ForkSafeGuard { value: lock(&self.0), _gate: gate }
    }
}

impl<T> Deref for ForkSafeGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for ForkSafeGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// Makes forks wait for fork-safe mutexes. Called before there are threads that hold one: a fork that began before the
/// first call does not wait.
pub fn wait_for_locks_on_fork() {
    fork::register();
}

#[cfg(unix)]
mod fork {
    use std::cell::RefCell;
    use std::process;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

    /// The id of this process, or 0 until it is asked for: a request needs it a dozen times, each a system call.
    static ID: AtomicU32 = AtomicU32::new(0);

    /// Read by every holder of a fork-safe mutex, written by a fork.
    static GATE: RwLock<()> = RwLock::new(());

    thread_local! {
        static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
    }

    pub type Gate = RwLockReadGuard<'static, ()>;

    pub fn register() {
        static REGISTERED: Once = Once::new();
        // SAFETY: the handlers run in the forking thread, and only lock and unlock.
        REGISTERED.call_once(|| unsafe {
            libc::pthread_atfork(Some(prepare), Some(release), Some(start));
        });
    }

    pub fn id() -> u32 {
        match ID.load(Ordering::Relaxed) {
            0 => {
                register();
                ID.store(process::id(), Ordering::Relaxed);
                process::id()
            }
            id => id,
        }
    }

    pub fn enter() -> Gate {
        register();
        GATE.read().unwrap_or_else(PoisonError::into_inner)
    }

    extern "C" fn prepare() {
        let gate = GATE.write().unwrap_or_else(PoisonError::into_inner);
        let _ = FORKING.try_with(|forking| *forking.borrow_mut() = Some(gate));
    }

    extern "C" fn release() {
        let _ = FORKING.try_with(|forking| forking.borrow_mut().take());
    }

    extern "C" fn start() {
        ID.store(0, Ordering::Relaxed);
        release();
    }
}

#[cfg(not(unix))]
mod fork {
    pub use std::process::id;

    pub struct Gate;

    pub fn register() {}

    pub fn enter() -> Gate {
        Gate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_created_once_per_process() {
        let value: PerProcess<Arc<u8>> = PerProcess::new();
        let first = value.get(|| Ok::<_, ()>(Arc::new(1))).unwrap();
        let second = value.get(|| Ok::<_, ()>(Arc::new(2))).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
    }

    /// Forks while another thread holds the lock nearly all the time; a child that inherits it locked would never end.
    #[cfg(unix)]
    #[test]
    fn a_forked_child_can_lock_what_another_thread_held() {
        static SHARED: ForkSafeMutex<u64> = ForkSafeMutex::new(0);
        assert_eq!(id(), std::process::id());
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let busy = stop.clone();
        let holder = std::thread::spawn(move || {
            while !busy.load(std::sync::atomic::Ordering::Relaxed) {
                let mut value = SHARED.lock();
                (0..2_000).for_each(|step| *value = value.wrapping_add(std::hint::black_box(step)));
            }
        });
        for _ in 0..100 {
            // SAFETY: the child only locks, unlocks and ends.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    // The signal's default action ends a child that cannot lock.
                    libc::alarm(20);
                    drop(SHARED.lock());
                    libc::_exit(i32::from(id() != std::process::id()));
                }
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                assert_eq!(status, 0, "the child could not lock, or took itself for its parent");
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        holder.join().unwrap();
    }

    #[test]
    fn long_work_does_not_delay_other_tasks() {
        let (begin, has_begun) = std::sync::mpsc::channel();
        let (send, receive) = std::sync::mpsc::channel();
        let runtime = runtime().unwrap();
        let long = runtime.spawn(async move {
            long_if(LONG_BYTES + 1, || {
                begin.send(()).unwrap();
                receive.recv_timeout(std::time::Duration::from_secs(60))
            })
        });
        has_begun.recv().unwrap();
        runtime.spawn(async move { send.send("another task") });
        assert_eq!(runtime.block_on(long).unwrap(), Ok("another task"));
    }

    #[test]
    fn failed_creation_is_returned_and_retried() {
        let value: PerProcess<u8> = PerProcess::new();
        assert_eq!(value.get(|| Err("no")), Err("no"));
        assert_eq!(value.get(|| Ok::<_, &str>(3)), Ok(3));
    }
}
