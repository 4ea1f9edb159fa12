//! `VirtualTime`: a runtime whose clock stands still while a task can run, and then moves on to the next timer. Waits
//! that would take minutes take no time, and one thread of callers always sees the same order of events.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::process;

/// Virtual time after which a caller is given the opportunity to check for signals.
const SLICE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct VirtualTime {
    /// Locked by the thread that runs the tasks of all callers. Taken out when this is dropped.
    runtime: Mutex<Option<Runtime>>,
    handle: Handle,
    started: Instant,
    /// Time of day at the start.
    epoch: SystemTime,
    /// A task of a caller has ended.
    ended: Arc<Notify>,
    process: u32,
}

impl VirtualTime {
    pub fn new(epoch: SystemTime) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
        let handle = runtime.handle().clone();
        let started = {
            let _entered = handle.enter();
            Instant::now()
        };
        Ok(Self {
            runtime: Mutex::new(Some(runtime)),
            handle,
            started,
            epoch,
            ended: Arc::default(),
            process: process::id(),
        })
    }

    /// True in the process that made it. In a forked child, its locks may be held by a thread of the parent.
    pub fn is_ours(&self) -> bool {
        self.process == process::id()
    }

    /// Time of day.
    pub fn now(&self) -> SystemTime {
        let _entered = self.enter();
        self.epoch + self.started.elapsed()
    }

    /// Makes this the time of the current thread until the guard is dropped, unless the process is a forked child.
    pub fn enter(&self) -> Option<EnterGuard<'_>> {
        self.is_ours().then(|| self.handle.enter())
    }

    /// Adds the task of a caller. It runs while a caller is in [`run`](Self::run).
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let ended = self.ended.clone();
        self.handle.spawn(async move {
            task.await;
            ended.notify_one();
        })
    }

    /// Runs all tasks until that of a caller ends, or for a while.
    pub fn run(&self) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(runtime) = &*runtime else { return };
        runtime.block_on(async {
            let _ = tokio::time::timeout(SLICE, self.ended.notified()).await;
        });
    }
}

impl Drop for VirtualTime {
    fn drop(&mut self) {
        if !self.is_ours() {
            std::mem::forget(self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner).take());
            return;
        }
        // The last reference may be that of a task, in which a runtime must not wait for its end.
        if let Some(runtime) = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_take_virtual_time_only() {
        let time = VirtualTime::new(SystemTime::UNIX_EPOCH).unwrap();
        let hour = Duration::from_secs(3_600);
        let task = time.spawn(async move { tokio::time::sleep(hour).await });
        let mut runs = 0;
        while !task.is_finished() {
            time.run();
            runs += 1;
        }
        assert_eq!(time.now(), SystemTime::UNIX_EPOCH + hour);
        assert!((3_600..=3_601).contains(&runs), "{runs}");
    }

    #[test]
    fn time_stands_still_between_the_calls_of_its_users() {
        let time = VirtualTime::new(SystemTime::UNIX_EPOCH).unwrap();
        let (late, early) = (Duration::from_millis(20), Duration::from_millis(10));
        let slow = time.spawn(async move { tokio::time::sleep(late).await });
        let fast = time.spawn(async move { tokio::time::sleep(early).await });
        time.run();
        assert!(fast.is_finished() && !slow.is_finished());
        assert_eq!(time.now(), SystemTime::UNIX_EPOCH + early);
    }
}
