//! `FetchTask`: the task of one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::client::log;
use crate::process;

/// A spawned task that is aborted when it is dropped.
pub(super) struct FetchTask<T> {
    pub handle: JoinHandle<T>,
    has_response: Arc<AtomicBool>,
    process: u32,
}

impl<T: Send + 'static> FetchTask<T> {
    /// Spawns a task that notifies `responses` when it has its response.
    pub fn spawn(fetch: impl Future<Output = T> + Send + 'static, responses: Arc<Notify>) -> Self {
        let has_response = Arc::new(AtomicBool::new(false));
        let done = has_response.clone();
        let handle = tokio::spawn(log::inherit(async move {
            let response = fetch.await;
            done.store(true, Ordering::Release);
            responses.notify_one();
            response
        }));
        Self { handle, has_response, process: process::id() }
    }
}

impl<T> FetchTask<T> {
    pub fn has_response(&self) -> bool {
        self.has_response.load(Ordering::Acquire)
    }

    /// False in a forked child, where the task's threads do not exist and its locks may be held for ever.
    pub fn is_ours(&self) -> bool {
        self.process == process::id()
    }
}

impl<T> Drop for FetchTask<T> {
    fn drop(&mut self) {
        if self.is_ours() {
            self.handle.abort();
        }
    }
}
