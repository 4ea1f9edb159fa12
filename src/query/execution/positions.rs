//! `Positions`: heights of times and blocks of heights, which other lists of a set or the client's cache may have.

use std::time::Duration;

use super::block_list::{BlockList, call, no_block};
use super::height_search::TimedBlock;
use super::heights::ChainHeights;
use super::kept_chain::{KeptChain, cache_of, key, note, now};
use super::shared_heights::{Found, SharedHeights};
use crate::cache::{Cache, DEFAULT_SETTLE, Entry, Extent, Facts, Key};
use crate::client::{Client, Error};
use crate::interface::Chain;
use crate::query::request::Query;
use crate::query::results::{SharedReport, TimePosition};

/// Greatest age of a position or block that lists of a set share: none of them may begin long after it was found.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Greatest age of a position near the head, which a reorganization may move.
const MAX_AGE_AT_HEAD: Duration = Duration::from_secs(5);

const BESIDE_ABSENT: &str = "The height of a time is not kept: no block was found at the next height";

/// Returns the height of the last block of a chain that is not later than `time`, in Unix milliseconds. Blocks without
/// transactions count as absent on a chain whose blocks the API does not list.
pub async fn height_at(client: &Client, chain: Chain, name: Option<&str>, time: i64) -> Result<i64, Error> {
    let report = SharedReport::default();
    let list = BlockList::new(client, chain, name, &report);
    let mut positions = Positions::new(ChainHeights::new(list), None, &report)?;
    let found = positions.find(time).await?;
    reject_empty_responses(chain, &report)?;
    match found {
        // Later blocks may have come in the meantime.
        TimePosition::Newest(height) => Ok(height),
        TimePosition::At(height) | TimePosition::BelowAbsent { height, .. } => {
            let above = positions.heights.shown(height + 1..=i64::MAX).filter(|block| block.time <= time).last();
            above.map_or(Ok(height), |block| Err(not_the_last(chain, height, block)))
        }
        TimePosition::Before(first) | TimePosition::BeforeSampled(first) => {
            Err(Error::parameter("time", format!("must not be before the first block, which has height {first}")))
        }
        TimePosition::NoBlock => {
            Err(Error::parameter("time", "must not be before the first block: no block is listed yet"))
        }
    }
}

/// Error of a search that ended below a block that a response showed.
fn not_the_last(chain: Chain, found: i64, above: TimedBlock) -> Error {
    let problem = format!(
        "has a block of height {} that is not later than the time, but the requests by height found none above {found}: the \
         service lacks blocks by their heights, or their times are not in the order of heights; try again later",
        above.height
    );
    no_block(chain, problem, format!("{{\"height\":\"{}\"}}", above.height))
}

/// Raises an error if empty responses may have been throttles.
pub(super) fn reject_empty_responses(chain: Chain, report: &SharedReport) -> Result<(), Error> {
    if report.empty_responses_reason().is_none() {
        return Ok(());
    }
    let problem = "responses were empty: the service may throttle so".to_owned();
    let attempts = u32::try_from(report.read().requests).unwrap_or(u32::MAX);
    Err(Error::Empty { endpoint: call(chain), problem, denies_list: false, attempts })
}

pub(super) struct Positions<'q> {
    pub heights: ChainHeights<'q>,
    /// Heights that other lists of a set have found.
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
        let list = heights.list.query(Vec::new(), None)?;
        let kept = cache_of(list.client()).map(|cache| KeptPositions { cache, list, report, compared: None });
        Ok(Self { heights, shared, kept, report })
    }

    /// Positions in the chain that a query reads.
    pub fn of(query: &'q Query, shared: Option<&'q SharedHeights>, report: &'q SharedReport) -> Result<Self, Error> {
        let earlier = shared.map_or_else(|| report.search(), SharedHeights::search);
        let heights = ChainHeights::of(query, report);
        let heights = match earlier {
            Some(state) => heights.continuing(&state),
            None => heights,
        };
        Self::new(heights, shared, report)
    }

    /// Returns the block of a height.
    pub async fn block(&mut self, height: i64) -> Result<Option<TimedBlock>, Error> {
        let Some(shared) = self.shared else { return self.block_for_age(height).await };
        let found = shared
            .blocks
            .get(height, async || {
                let block = self.block_for_age(height).await?;
                Ok((self.found(block), MAX_AGE))
            })
            .await?;
        Ok(self.used(found))
    }

    /// A reorganization moves the time of a height by less than what counts where lists are said to reach back to it.
    async fn block_for_age(&mut self, height: i64) -> Result<Option<TimedBlock>, Error> {
        if let Some(known) = self.heights.kept.age(height) {
            return Ok(Some(known));
        }
        let block = self.heights.list.block(height).await?;
        block.into_iter().for_each(|block| self.heights.keep_age(block));
        Ok(block)
    }

    /// True if the chain has changed since earlier runs have found positions: they are to be found again.
    pub async fn has_changed(&mut self) -> bool {
        let has_changed = self.heights.kept.take_discarded();
        if has_changed && let Some(shared) = self.shared {
            shared.positions.clear().await;
        }
        has_changed
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
        if self.heights.kept.found(time).is_none()
            && let Some(kept) = &mut self.kept
            && let Some(height) = kept.get(time).await?
        {
            self.heights.keep_position(time, TimePosition::At(height));
            return Ok((TimePosition::At(height), MAX_AGE));
        }
        let (position, max_age) = self.searched(time).await?;
        if let (Some(kept), TimePosition::At(height) | TimePosition::BelowAbsent { height, .. }) =
            (&self.kept, position)
            && self.report.empty_responses_reason().is_none()
            && !self.heights.has_falling_times()
        {
            kept.put(time, height, &self.heights).await;
        }
        Ok((position, max_age))
    }

    async fn searched(&mut self, time: i64) -> Result<(TimePosition, Duration), Error> {
        let position = self.heights.find(time).await?;
        Ok((position, if self.is_settled(position) { MAX_AGE } else { MAX_AGE_AT_HEAD }))
    }

    /// True if the block after a position that was just found is settled, as the cache assumes by default.
    fn is_settled(&self, position: TimePosition) -> bool {
        match position {
            TimePosition::At(height)
            | TimePosition::BelowAbsent { height, .. }
            | TimePosition::Before(height)
            | TimePosition::BeforeSampled(height) => {
                self.heights.known_newest().is_some_and(|newest| is_settled(height + 1, newest, DEFAULT_SETTLE))
            }
            TimePosition::Newest(_) | TimePosition::NoBlock => false,
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

/// Positions in the client's cache: of times between two blocks that follow each other, of which the second is settled and not
/// above the anchor. While the chain has the anchor, the position is the same.
struct KeptPositions<'q> {
    cache: Cache,
    /// The list that shows the blocks of the chain.
    list: Query,
    report: &'q SharedReport,
    /// Height of the anchor, if this run has compared it.
    compared: Option<i64>,
}

impl KeptPositions<'_> {
    /// Returns the height of the last block that is not later than a time.
    async fn get(&mut self, time: i64) -> Result<Option<i64>, Error> {
        let mut key = self.key(time);
        let found = self.chain(&key).noted(|| self.cache.get(&key, self.list.record(), now(self.list.client()))).await;
        let Some((removals, Some(Entry { facts, .. }))) = found else { return Ok(None) };
        key.removals = removals;
        let chain = self.chain(&key);
        let Extent::Position { height, newest } = facts.extent else { return Ok(None) };
        // Another client may have kept it as settled by less.
        if !is_settled(height + 1, newest, self.cache.settle()) {
            return Ok(None);
        }
        if self.compared.is_none_or(|anchor| anchor <= height) {
            let Some((anchor, _)) = chain.unchanged_anchor(height + 1, true).await? else { return Ok(None) };
            self.compared = Some(anchor.height);
        }
        Ok(Some(height))
    }

    /// Keeps the position that a search has found.
    async fn put(&self, time: i64, height: i64, heights: &ChainHeights<'_>) {
        let Some(newest) = heights.known_newest_block() else { return };
        let Some(next) = heights.known_block(height + 1) else {
            // It may have one that a part of the service lacks.
            if heights.is_absent(height + 1) {
                note(self.report, BESIDE_ABSENT);
            }
            return;
        };
        if !is_settled(next.height, newest.height, self.cache.settle()) {
            return;
        }
        let mut key = self.key(time);
        let Some(removals) = self.chain(&key).removals().await else { return };
        key.removals = removals;
        let chain = self.chain(&key);
        let Some(anchor) = chain.anchor_by_request(&next).await else { return };
        // The search read blocks of one chain if the newest of them is still there. The query does not fail with it.
        if chain.block(newest.height).await.ok().flatten().as_ref() != Some(&newest) {
            return;
        }
        let now = now(self.list.client());
        let facts = Facts { extent: Extent::Position { height, newest: newest.height }, read_at: now };
        let entry = Entry { facts, rows: [].into() };
        let below = Some((self.list.chain(), &anchor));
        chain.noted(|| self.cache.put_below(&key, self.list.record(), &entry, now, below)).await;
    }

    fn key(&self, time: i64) -> Key {
        let asked = serde_json::json!({ "chain": self.list.chain(), "time": time });
        key(&self.list, "height_at", &asked)
    }

    fn chain<'a>(&'a self, key: &'a Key) -> KeptChain<'a> {
        KeptChain { cache: &self.cache, key, query: &self.list, report: self.report }
    }
}

/// True if a reorganization that replaces up to `settle` blocks does not reach the block of a height.
fn is_settled(height: i64, newest: i64, settle: i64) -> bool {
    height <= newest - settle
}
