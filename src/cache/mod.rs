//! Results that were read before, kept on disk for later reads. `store` is the database; what may be served from it is
//! decided in `query`.

mod settings;
mod store;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use settings::{Cache, CacheError, DEFAULT_MAX_AGE, DEFAULT_MAX_BYTES, DEFAULT_SETTLE};
pub use store::{Failure, Summary};

use crate::columns::Columns;

/// Identifies a result: equal for queries that request the same of the same service. Nothing of it is a secret.
#[derive(Clone, Debug)]
pub struct Key {
    /// Hash of the service: all that is kept of one is discarded together.
    service: String,
    /// Hash of the service, the query and the declaration of its records.
    digest: String,
    base_url: String,
    call: &'static str,
    arguments: String,
    /// Times that all that was kept of the service had been removed when the result was looked up, or began to be read. What was
    /// read before a later removal may be of the chain that was removed.
    pub removals: i64,
}

impl Key {
    /// `service` has all that distinguishes services; `query` all that distinguishes results of one, and `declaration` the
    /// form of the records.
    pub fn new(
        base_url: String,
        service: &str,
        call: &'static str,
        query: &serde_json::Value,
        declaration: &str,
    ) -> Self {
        let service = hash(&[&base_url, service]);
        let arguments = query.to_string();
        Self {
            digest: hash(&[&service, call, &arguments, declaration]),
            service,
            base_url,
            call,
            arguments,
            removals: 0,
        }
    }
}

/// Hash of texts, whatever they contain.
fn hash(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hex(&hasher.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A result that is kept.
#[derive(Clone, Debug)]
pub struct Entry {
    pub facts: Facts,
    pub rows: Arc<[Columns]>,
}

/// Facts about a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub extent: Extent,
    /// When the whole of it was read, in Unix milliseconds.
    pub read_at: i64,
}

/// Records that a result has, and so the way to continue it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Extent {
    /// All that there is, of settled heights.
    Settled,
    /// Heights in ascending order.
    Heights {
        /// First height of the range.
        low: i64,
        /// First height that is not settled.
        next: i64,
        /// Last height of the range, if it is settled.
        end: Option<i64>,
        /// The newest block, if the range reached it.
        head: Option<Anchor>,
    },
    /// A list with its newest record first, or its beginning.
    List { shape: Shape },
    /// The last block that is not later than a time.
    Position {
        height: i64,
        /// Height of the newest block at that time.
        newest: i64,
    },
}

/// The size of a list as its first page told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub total: Option<u64>,
    pub total_pages: Option<u64>,
    pub page_size: u64,
}

impl Shape {
    /// True if the list has as many pages as that many records take; `None` if its pages are not counted.
    pub fn has_pages_for(self, records: usize) -> Option<bool> {
        self.total_pages.map(|pages| pages == (records as u64).div_ceil(self.page_size))
    }
}

/// A block that was known to be settled: while it has this hash, nothing below has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    pub height: i64,
    pub block_hash: String,
}
