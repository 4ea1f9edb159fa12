//! `CacheChecks`: settled blocks of the cache that were compared with the service a short time ago.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

use crate::cache::Anchor;
use crate::process::{ForkSafeMutex, PerProcess};

/// Time for which a comparison serves further results of the cache.
const VALID: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct CacheChecks {
    /// By the name of the chain.
    checks: ForkSafeMutex<HashMap<String, Check>>,
    /// Held during a comparison.
    comparing: PerProcess<Arc<Mutex<()>>>,
}

#[derive(Clone, Debug)]
struct Check {
    anchor: Anchor,
    at: Instant,
    /// Unix milliseconds.
    time: i64,
}

impl CacheChecks {
    /// The time at which the block was found unchanged, if that was a short time ago.
    pub fn recent(&self, chain: &str, anchor: &Anchor) -> Option<i64> {
        let checks = self.checks.lock();
        let check = checks.get(chain).filter(|check| check.anchor == *anchor && check.at.elapsed() < VALID)?;
        Some(check.time)
    }

    /// Waits until no other task compares a block. The lists of a set need one comparison.
    pub async fn compare(&self) -> OwnedMutexGuard<()> {
        self.comparing.get_with(Arc::default).lock_owned().await
    }

    pub fn add(&self, chain: &str, anchor: Anchor, time: i64) {
        self.checks.lock().insert(chain.to_owned(), Check { anchor, at: Instant::now(), time });
    }
}
