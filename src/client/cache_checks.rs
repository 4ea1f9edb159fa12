//! `CacheChecks`: settled blocks of the cache that were compared with the service a short time ago.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::cache::Anchor;
use crate::process::ForkSafeMutex;

/// Time for which a comparison serves further results of the cache.
const VALID: Duration = Duration::from_secs(60);

/// By the name of the chain.
#[derive(Debug, Default)]
pub struct CacheChecks(ForkSafeMutex<HashMap<String, Check>>);

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
        let checks = self.0.lock();
        let check = checks.get(chain).filter(|check| check.anchor == *anchor && check.at.elapsed() < VALID)?;
        Some(check.time)
    }

    pub fn add(&self, chain: &str, anchor: Anchor, time: i64) {
        self.0.lock().insert(chain.to_owned(), Check { anchor, at: Instant::now(), time });
    }
}
