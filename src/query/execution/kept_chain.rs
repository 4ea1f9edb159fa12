//! `KeptChain`: the chain that the results of the client's cache are of, known by the hash of one settled block, the anchor.

use std::time::SystemTime;

use super::block_list::{BlockList, block_hash, fetch_newest_rows};
use crate::cache::{Anchor, Cache, Failure, Key};
use crate::client::{Client, Error};
use crate::columns::Columns;
use crate::message::Message;
use crate::process;
use crate::query::request::Query;
use crate::query::results::SharedReport;

/// The note on a result that was read while the cache was emptied.
pub(super) const READ_DURING_REMOVAL: &str =
    "What was kept contradicted the service while this result was read, so the result is not kept";

/// The cache of a client. One that plays a cassette has none: its requests are those that were recorded.
pub(super) fn cache_of(client: &Client) -> Option<Cache> {
    let settings = client.settings();
    settings.cache.clone().filter(|_| settings.cassette.is_none())
}

/// Key of what is kept of a service: with its names, the call with what was asked, and the declaration of its records, which
/// says in which form they are kept. Accounts share it, since the chain is the same for all.
pub(super) fn key(query: &Query, call: &'static str, asked: &serde_json::Value) -> Key {
    let settings = query.client().settings();
    let declaration = format!("{:?} {:?}", query.endpoint(), query.record());
    let service = format!("{:?}", settings.deployment);
    Key::new(settings.base_url(), &service, call, asked, &declaration)
}

/// Unix milliseconds.
pub(super) fn now(client: &Client) -> i64 {
    let since = client.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Notes why a result is not kept, or was not taken from the cache.
pub(super) fn note(report: &SharedReport, reason: impl Into<Message>) {
    let reason = reason.into();
    report.update(|report| report.cache.get_or_insert_default().reason = Some(reason));
}

/// Outcome of a comparison of a settled block with the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// The chain still has it, as of this time.
    Unchanged(i64),
    /// Another block has its height.
    Replaced,
    /// No block is shown at its height.
    Absent,
}

impl Compared {
    fn unchanged_at(self) -> Option<i64> {
        if let Self::Unchanged(at) = self { Some(at) } else { None }
    }
}

#[derive(Clone, Copy)]
pub(super) struct KeptChain<'a> {
    pub cache: &'a Cache,
    /// A key of the service.
    pub key: &'a Key,
    pub query: &'a Query,
    pub report: &'a SharedReport,
}

impl KeptChain<'_> {
    /// The outcome of an operation on the cache, which may wait for another process. The query does not fail with the cache.
    pub async fn noted<T>(&self, operation: impl FnOnce() -> Result<T, Failure>) -> Option<T> {
        let mut turn = self.cache.turn().await;
        let outcome = process::long(|| turn.take(operation));
        outcome.map_err(|failure| note(self.report, format!("The cache {}", failure.text))).ok()
    }

    /// Removes all that is kept of the service: its chain has changed below the settled heights.
    pub async fn discard(&self) {
        note(self.report, "What was kept contradicted the service, and was removed");
        self.noted(|| self.cache.discard_service(self.key)).await;
    }

    /// Times that all that was kept of the service was removed.
    pub async fn removals(&self) -> Option<i64> {
        self.noted(|| self.cache.removals(self.key)).await
    }

    /// The highest settled block of the chain whose hash is known. All that is kept below it is of the same chain.
    pub async fn anchor(&self) -> Option<Anchor> {
        self.noted(|| self.cache.anchor(self.key, self.query.chain())).await.flatten()
    }

    pub async fn raise_anchor(&self, anchor: &Anchor) {
        self.noted(|| self.cache.raise_anchor(self.key, self.query.chain(), anchor)).await;
    }

    pub async fn saw_head(&self, height: i64) {
        let now = now(self.query.client());
        self.noted(|| self.cache.saw_head(self.key, self.query.chain(), height, now)).await;
    }

    /// Makes a settled block the anchor, and returns the anchor, which is not below it. The one that is kept is compared after
    /// the block was read: if the chain still has it, what is kept below it is of the same chain. `None` if it has not.
    pub async fn anchor_by_request(&self, found: &Anchor) -> Option<Anchor> {
        if let Some(kept) = self.anchor().await {
            if kept.height >= found.height {
                return Some(kept);
            }
            // The query does not fail with it: its result is complete.
            self.compared(&kept).await.ok()?.unchanged_at()?;
        }
        self.raise_anchor(found).await;
        self.anchor().await
    }

    /// The anchor that is kept, at `min_height` or higher, and the time as of which the chain still has it. `None` if there is none
    /// or it has changed.
    pub async fn unchanged_anchor(&self, min_height: i64, is_costly: bool) -> Result<Option<(Anchor, i64)>, Error> {
        let client = self.query.client();
        let is_shared = !is_costly && !client.settings().strict;
        let _comparing = if is_shared { Some(client.cache_checks().compare().await) } else { None };
        // The comparison of another list may have removed it.
        let Some(anchor) = self.anchor().await.filter(|anchor| anchor.height >= min_height) else { return Ok(None) };
        if is_shared && let Some(at) = client.cache_checks().recent(self.query.chain(), &anchor) {
            return Ok(Some((anchor, at)));
        }
        Ok(self.compared(&anchor).await?.unchanged_at().map(|at| (anchor, at)))
    }

    /// Requests the block of the anchor. If the chain has another one, all that is kept of the service is removed.
    pub async fn compared(&self, anchor: &Anchor) -> Result<Compared, Error> {
        let client = self.query.client();
        let at = now(client);
        let found = self.block(anchor.height).await?;
        if found.as_ref() != Some(anchor) {
            // A block without transactions may have taken its place, but a service that shows no block at all proves nothing.
            if found.is_some() || fetch_newest_rows(self.query, self.report).await?.rows() > 0 {
                self.discard().await;
            }
            return Ok(if found.is_some() { Compared::Replaced } else { Compared::Absent });
        }
        client.cache_checks().add(self.query.chain(), anchor.clone(), at);
        Ok(Compared::Unchanged(at))
    }

    /// Requests the block of a height.
    pub async fn block(&self, height: i64) -> Result<Option<Anchor>, Error> {
        let rows = BlockList::of(self.query, self.report).rows_of(height).await?;
        Ok(rows.and_then(|rows| highest_block_of(&rows, height)))
    }
}

/// The highest block up to a height, if the rows have the hash of their block.
pub(super) fn highest_block_of(columns: &Columns, max_height: i64) -> Option<Anchor> {
    let rows = columns.heights().enumerate().filter_map(|(row, height)| Some((height?, block_hash(columns, row)?)));
    let (height, hash) = rows.filter(|(height, _)| *height <= max_height).max_by_key(|(height, _)| *height)?;
    Some(Anchor { height, block_hash: hash.to_owned() })
}
