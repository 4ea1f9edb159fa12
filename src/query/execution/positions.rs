//! `Positions`: heights of times and blocks of heights, which other lists of a set or the client's cache may have.

use std::time::Duration;

use super::height_search::{Block, TimePosition};
use super::heights::{ChainHeights, call};
use super::kept_chain::{KeptChain, cache_of, key, now};
use super::shared_heights::{Found, SharedHeights};
use crate::cache::{Cache, DEFAULT_SETTLE, Entry, Extent, Facts, Key};
use crate::client::{Client, Error};
use crate::interface::Chain;
use crate::query::request::{Query, ShownRecords};
use crate::query::results::SharedReport;

/// Greatest age of a position or block that lists of a set share: none of them may begin long after it was found.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Greatest age of a position near the head, which a reorganization may move.
const MAX_AGE_AT_HEAD: Duration = Duration::from_secs(5);
/// Blocks above a position that a reorganization is not taken to reach, as the cache and followers assume by default.
const SETTLED: i64 = DEFAULT_SETTLE;

/// Returns the height of the last block of a chain that is not later than `time`, in Unix milliseconds. Blocks without
/// transactions count as absent on a chain whose blocks the API does not list.
pub async fn height_at(client: &Client, chain: Chain, name: Option<&str>, time: i64) -> Result<i64, Error> {
    let report = SharedReport::default();
    let found = Positions::new(ChainHeights::new(client, chain, name, &report), None, &report)?.find(time).await?;
    if report.empty_responses_reason().is_some() {
        let problem = "responses were empty and did not count pages: the service may throttle so".to_owned();
        let attempts = u32::try_from(report.read().requests).unwrap_or(u32::MAX);
        return Err(Error::Empty { endpoint: call(chain), problem, attempts });
    }
    match found {
        TimePosition::At(height) => Ok(height),
        TimePosition::Before(first) | TimePosition::BeforeSampled(first) => {
            Err(Error::parameter("time", format!("must not be before the first block, which has height {first}")))
        }
        TimePosition::NoBlock => {
            Err(Error::parameter("time", "must not be before the first block: no block is listed yet"))
        }
    }
}

pub(super) struct Positions<'q> {
    heights: ChainHeights<'q>,
    /// Those that other lists of a set have found.
    shared: Option<&'q SharedHeights>,
    kept: Option<KeptPositions<'q>>,
    report: &'q SharedReport,
}

impl<'q> Positions<'q> {
    fn new(
        heights: ChainHeights<'q>,
        shared: Option<&'q SharedHeights>,
        report: &'q SharedReport,
    ) -> Result<Self, Error> {
        let list = heights.list(Vec::new(), None)?;
        let kept = cache_of(list.client()).map(|cache| KeptPositions { cache, list, report });
        Ok(Self { heights, shared, kept, report })
    }

    /// Positions in the chain that a query reads.
    pub fn of(query: &'q Query, shared: Option<&'q SharedHeights>, report: &'q SharedReport) -> Result<Self, Error> {
        Self::new(ChainHeights::of(query, report), shared, report)
    }

    /// The newest block as of the first request.
    pub async fn newest(&mut self) -> Result<Option<Block>, Error> {
        self.heights.newest().await
    }

    /// The records that responses showed; none if they are of another list than that of the query.
    pub fn shown(self, query: &Query) -> ShownRecords {
        self.heights.shown(query)
    }

    /// Returns the block of a height.
    pub async fn block(&self, height: i64) -> Result<Option<Block>, Error> {
        let Some(shared) = self.shared else { return self.heights.block(height).await };
        let request = async || Ok((self.found(self.heights.block(height).await?), MAX_AGE));
        let found = shared.blocks.get(height, request).await?;
        Ok(self.used(found))
    }

    /// Returns the position of a time.
    pub async fn find(&mut self, time: i64) -> Result<TimePosition, Error> {
        let Some(shared) = self.shared else { return Ok(self.kept_or_searched(time).await?.0) };
        let found = shared
            .positions
            .get(time, async || {
                let (position, max_age) = self.kept_or_searched(time).await?;
                Ok((self.found(position), max_age))
            })
            .await?;
        Ok(self.used(found))
    }

    /// Returns a position, with the age up to which other lists may use it.
    async fn kept_or_searched(&mut self, time: i64) -> Result<(TimePosition, Duration), Error> {
        let Some(kept) = &self.kept else { return self.searched(time).await };
        if let Some(position) = kept.get(time).await? {
            return Ok((position, MAX_AGE));
        }
        let removals = kept.removals();
        let found = self.searched(time).await?;
        if let Some(kept) = &self.kept
            && self.report.empty_responses_reason().is_none()
        {
            kept.put(time, found.0, &self.heights, removals).await;
        }
        Ok(found)
    }

    async fn searched(&mut self, time: i64) -> Result<(TimePosition, Duration), Error> {
        let position = self.heights.find(time).await?;
        Ok((position, if self.is_settled(position) { MAX_AGE } else { MAX_AGE_AT_HEAD }))
    }

    /// True if the block after a position that was just found is settled.
    fn is_settled(&self, position: TimePosition) -> bool {
        match position {
            TimePosition::At(height) | TimePosition::Before(height) | TimePosition::BeforeSampled(height) => {
                self.heights.known_newest().is_some_and(|newest| height < newest - SETTLED)
            }
            TimePosition::NoBlock => false,
        }
    }

    /// A value for other lists of a set.
    fn found<V>(&self, value: V) -> Found<V> {
        Found { value, is_doubtful: self.report.empty_responses_reason().is_some() }
    }

    /// A value that another list of a set may have found, whose doubts are those of this list as well.
    fn used<V>(&self, found: Found<V>) -> V {
        if found.is_doubtful && self.report.empty_responses_reason().is_none() {
            self.report.doubt_empty_responses();
        }
        found.value
    }
}

/// Positions in the client's cache. The block after a position is settled and not above the anchor: while the chain has that
/// one, the position is the same.
struct KeptPositions<'q> {
    cache: Cache,
    /// The list that shows the blocks of the chain.
    list: Query,
    report: &'q SharedReport,
}

impl KeptPositions<'_> {
    async fn get(&self, time: i64) -> Result<Option<TimePosition>, Error> {
        let key = self.key(time);
        let chain = self.chain(&key);
        let read = || self.cache.get(&key, self.list.record(), now(self.list.client()));
        let Some(Entry { facts, .. }) = chain.noted(read).await.flatten() else { return Ok(None) };
        let Extent::Position { height, next } = facts.extent else { return Ok(None) };
        let is_unchanged = chain.unchanged_anchor(next, false).await?.is_some();
        let position = height.map_or(TimePosition::Before(next), TimePosition::At);
        Ok(Some(position).filter(|_| is_unchanged))
    }

    /// Keeps a position that was found, unless the cache was emptied since the number of `removals`.
    async fn put(&self, time: i64, position: TimePosition, heights: &ChainHeights<'_>, removals: u64) {
        let Some(next) = heights.block_after(position) else { return };
        let height = match position {
            TimePosition::At(height) => Some(height),
            _ => None,
        };
        let is_settled = heights.known_newest().is_some_and(|newest| next.height <= newest - self.cache.settle());
        if !is_settled {
            return;
        }
        let key = self.key(time);
        let chain = self.chain(&key);
        let is_removed = || self.removals() != removals;
        if !chain.anchor_by_request(&next, is_removed).await || is_removed() {
            return;
        }
        let now = now(self.list.client());
        let facts = Facts { extent: Extent::Position { height, next: next.height }, read_at: now };
        let entry = Entry { facts, rows: [].into() };
        chain.noted(|| self.cache.put(&key, self.list.record(), &entry, now)).await;
    }

    /// Number of removals from the cache.
    fn removals(&self) -> u64 {
        self.list.client().cache_checks().discards()
    }

    fn key(&self, time: i64) -> Key {
        let asked = serde_json::json!({ "chain": self.list.chain(), "time": time });
        key(&self.list, "height_at", &asked)
    }

    fn chain<'a>(&'a self, key: &'a Key) -> KeptChain<'a> {
        KeptChain { cache: &self.cache, key, query: &self.list, report: self.report }
    }
}
