//! `FetchTask`: the task of one request.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::client::log;
use crate::process;

/// Size of a list, as one response shows it. It can be read before the response is taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    /// Number of pages, where the response counts them.
    pub pages: Option<u64>,
    /// Records of the response.
    pub rows: u64,
}

/// A spawned task that is aborted when it is dropped.
pub(super) struct FetchTask<T> {
    pub handle: JoinHandle<T>,
    extent: Arc<OnceLock<Extent>>,
    process: u32,
}

impl<T: Send + 'static> FetchTask<T> {
    /// Spawns a task that notifies `responses` when it has its response, of which `extent_of` is the extent.
    pub fn spawn(
        fetch: impl Future<Output = T> + Send + 'static,
        extent_of: impl FnOnce(&T) -> Extent + Send + 'static,
        responses: Arc<Notify>,
    ) -> Self {
        let extent = Arc::new(OnceLock::new());
        let received = extent.clone();
        let handle = tokio::spawn(log::inherit(async move {
            let response = fetch.await;
            received.get_or_init(|| extent_of(&response));
            responses.notify_one();
            response
        }));
        Self { handle, extent, process: process::id() }
    }
}

impl<T> FetchTask<T> {
    /// Extent of the response, once it has arrived.
    pub fn extent(&self) -> Option<Extent> {
        self.extent.get().copied()
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
