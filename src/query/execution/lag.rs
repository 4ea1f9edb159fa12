//! `Lag`: how long ago a follower has seen the end of each of its lists.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::process::ForkSafeMutex;

/// Clones share the same times.
#[derive(Clone)]
pub struct Lag(Arc<ForkSafeMutex<Vec<Option<Instant>>>>);

impl Lag {
    /// All lists lag behind from now on.
    pub fn new(num_lists: usize) -> Self {
        Self(Arc::new(ForkSafeMutex::new(vec![Some(Instant::now()); num_lists])))
    }

    pub(super) fn caught_up(&self, list: usize) {
        self.0.lock()[list] = Some(Instant::now());
    }

    /// Leaves out a list that is not followed any more.
    pub(super) fn forget(&self, list: usize) {
        self.0.lock()[list] = None;
    }

    /// Time since the list was read to its end that was so the longest time ago.
    pub fn longest(&self) -> Duration {
        self.0.lock().iter().flatten().min().map_or(Duration::ZERO, Instant::elapsed)
    }
}
