//! `FetchTask`: the task of one request.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::client::log;
use crate::process;

/// Size of a response, and of its list as far as it shows. It can be read before the response is taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResponseSize {
    /// Number of pages, where the response counts them.
    pub pages: Option<u64>,
    /// Records of the response.
    pub rows: u64,
}

/// A spawned task that is aborted when it is dropped.
pub(super) struct FetchTask<T> {
    pub handle: JoinHandle<T>,
    size: Arc<OnceLock<ResponseSize>>,
    process: u32,
}

impl<T: Send + 'static> FetchTask<T> {
    /// Spawns a task that notifies `responses` when it has its response, whose size is that of `size_of_response`.
    pub fn spawn(
        fetch: impl Future<Output = T> + Send + 'static,
        size_of_response: impl FnOnce(&T) -> ResponseSize + Send + 'static,
        responses: Arc<Notify>,
    ) -> Self {
        let size = Arc::new(OnceLock::new());
        let received = size.clone();
        let handle = tokio::spawn(log::inherit(async move {
            let response = fetch.await;
            received.get_or_init(|| size_of_response(&response));
            responses.notify_one();
            response
        }));
        Self { handle, size, process: process::id() }
    }
}

impl<T> FetchTask<T> {
    /// Size of the response, once it has arrived.
    pub fn size(&self) -> Option<ResponseSize> {
        self.size.get().copied()
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
