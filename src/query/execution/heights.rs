//! Heights by time: interpolation between blocks whose times are known.

use std::collections::{BTreeMap, BTreeSet};

use super::in_flight::fetch;
use crate::client::{Client, Error};
use crate::columns::{Column, Columns};
use crate::interface::{Chain, Kind, endpoint};
use crate::query::request::{Arg, Options, Query};
use crate::query::results::SharedReport;
use crate::query::snapshot::PageRequest;

/// Requests after which a search is given up: far more than interpolation and bisection take among blocks that are not
/// empty.
const MAX_REQUESTS: usize = 200;

/// A block and its time in Unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    pub height: i64,
    pub time: i64,
}

/// Distance of the second block fetched from the newest one, to measure how fast blocks follow each other.
const FIRST_STEP: i64 = 1_000;

/// Consecutive heights without a block that are taken for the part of the chain before its first block, at first.
const ABSENT_RUN: i64 = 8;

/// Heights sampled in the part taken to be absent before a time is rejected as earlier than the first block.
const SAMPLES: i64 = 16;

/// State of a search for the last block that is not later than `time`. Times do not decrease with height.
#[derive(Debug)]
struct Search {
    time: i64,
    /// Last known block that is not later.
    low: Option<Block>,
    /// First known block that is later.
    high: Block,
    /// Block that was `high` before, for the slope while `low` is unknown.
    above: Option<Block>,
    /// Times of all blocks that were fetched, by height.
    known: BTreeMap<i64, i64>,
    /// Heights without a block, or with one without transactions.
    empty: BTreeSet<i64>,
    /// Lowest height that is searched while `low` is unknown.
    floor: i64,
    /// Sampled heights below the floor.
    samples: i64,
    /// Widths of the range at the last two requests.
    widths: [i64; 2],
}

impl Search {
    fn new(time: i64, head: Block) -> Self {
        let (known, empty) = (BTreeMap::from([(head.height, head.time)]), BTreeSet::new());
        Self { time, low: None, high: head, above: None, known, empty, floor: 0, samples: 0, widths: [i64::MAX; 2] }
    }

    /// Starts over for another time, which is before that of the newest block, with the blocks that are known.
    fn retarget(&mut self, time: i64) {
        let is_low = |(_, other): &(&i64, &i64)| **other <= time;
        let block = |(height, time): (&i64, &i64)| Block { height: *height, time: *time };
        self.low = self.known.iter().take_while(is_low).last().map(block);
        let mut later = self.known.iter().skip_while(is_low).map(block);
        self.high = later.next().unwrap_or(self.high);
        self.above = later.next();
        (self.time, self.samples, self.widths) = (time, 0, [i64::MAX; 2]);
    }

    /// Next height to fetch, or `None` once the wanted block is known, or known not to exist.
    fn next_height(&mut self) -> Option<i64> {
        let lowest = self.low.map_or(self.floor, |low| low.height + 1);
        let highest = self.high.height - 1;
        let width = highest - lowest + 1;
        // Interpolation that narrows too slowly alternates with bisection.
        let is_slow = self.widths[0] / 2 < width;
        self.widths = [self.widths[1], width];
        let guess = if is_slow { None } else { self.interpolate() };
        let guess = guess.filter(|guess| *guess > lowest || self.low.is_some() || lowest == 0);
        let guess = guess.unwrap_or(lowest + (width - 1) / 2).clamp(lowest, highest.max(lowest));
        let above = (guess..=highest).find(|height| !self.empty.contains(height));
        let next = above.or_else(|| (lowest..guess).rev().find(|height| !self.empty.contains(height)));
        if next.is_some() || self.low.is_some() {
            return next;
        }
        let sample = (self.samples..SAMPLES).find_map(|sample| {
            self.samples = sample + 1;
            let height = self.floor / SAMPLES * sample;
            (!self.empty.contains(&height)).then_some(height)
        });
        sample.filter(|height| *height < self.high.height)
    }

    fn interpolate(&self) -> Option<i64> {
        let slope = |from: Block, to: Block| {
            let (blocks, duration) = (to.height - from.height, to.time - from.time);
            (duration > 0).then(|| blocks as f64 / duration as f64)
        };
        match (self.low, self.above) {
            (Some(low), _) => Some(low.height + ((self.time - low.time) as f64 * slope(low, self.high)?) as i64),
            // A little too far, so that both sides are known after it.
            (None, Some(above)) => {
                let distance = (self.high.time - self.time) as f64 * slope(self.high, above)?;
                Some(self.high.height - (distance * 1.02) as i64 - 1)
            }
            (None, None) => Some(self.high.height - FIRST_STEP),
        }
    }

    fn on_block(&mut self, block: Block) {
        self.known.insert(block.height, block.time);
        if block.time <= self.time {
            self.low = Some(block);
        } else {
            self.above = Some(self.high);
            self.high = block;
            if block.height < self.floor {
                // A sample was found where nothing was supposed to be.
                self.floor = 0;
            }
        }
    }

    fn on_empty(&mut self, height: i64) {
        self.empty.insert(height);
        let run = if self.floor == 0 { ABSENT_RUN } else { 2 };
        if self.low.is_none() && (height - run + 1..=height).all(|height| self.empty.contains(&height)) {
            self.floor = self.floor.max(height + 1);
        }
    }
}

/// Returns the height of the last block of a chain that is not later than `time`, in Unix milliseconds. Blocks without
/// transactions count as absent on a chain whose blocks the API does not list.
pub async fn height_at(client: &Client, chain: Chain, name: Option<&str>, time: i64) -> Result<i64, Error> {
    match Heights::new(client, chain, name, &SharedReport::default()).find(time).await? {
        Found::At(height) => Ok(height),
        Found::Before(_) => Err(Error::parameter("time", "must not be before the first block")),
        Found::NoBlock => Err(Error::parameter("time", "must not be before the first block: no block is listed yet")),
    }
}

/// Position of a time among the blocks of a chain.
pub(super) enum Found {
    /// The last block that is not later.
    At(i64),
    /// The time is before the first block, which has this height.
    Before(i64),
    NoBlock,
}

/// Searches heights of one chain. Each search starts from the blocks that earlier ones fetched.
pub(super) struct Heights<'c> {
    client: &'c Client,
    chain: Chain,
    name: Option<&'c str>,
    report: &'c SharedReport,
    newest: Option<Block>,
    search: Option<Search>,
}

impl<'c> Heights<'c> {
    pub fn new(client: &'c Client, chain: Chain, name: Option<&'c str>, report: &'c SharedReport) -> Self {
        Self { client, chain, name, report, newest: None, search: None }
    }

    async fn fetch(&self, height: Option<i64>) -> Result<Option<Block>, Error> {
        fetch_block(self.client, self.chain, self.name, height, self.report).await
    }

    /// The newest block as of the first call.
    pub async fn newest(&mut self) -> Result<Option<Block>, Error> {
        if self.newest.is_none() {
            self.newest = self.fetch(None).await?;
        }
        Ok(self.newest)
    }

    pub async fn find(&mut self, time: i64) -> Result<Found, Error> {
        let Some(newest) = self.newest().await? else { return Ok(Found::NoBlock) };
        if newest.time <= time {
            return Ok(Found::At(newest.height));
        }
        let mut search = self.search.take().unwrap_or_else(|| Search::new(time, newest));
        search.retarget(time);
        for _ in 0..MAX_REQUESTS {
            let Some(height) = search.next_height() else {
                let found = search.low.map_or(Found::Before(search.high.height), |low| Found::At(low.height));
                self.search = Some(search);
                return Ok(found);
            };
            match self.fetch(Some(height)).await? {
                Some(block) => search.on_block(block),
                None => search.on_empty(height),
            }
        }
        let problem =
            format!("no block with transactions found in {MAX_REQUESTS} requests; pass heights instead of times");
        Err(Error::Drift { endpoint: call(self.chain), problem: problem.into() })
    }
}

fn call(chain: Chain) -> &'static str {
    match chain {
        Chain::Main => "transactions",
        Chain::Zone => "blocks",
    }
}

/// Fetches the block of a height, or the newest one.
pub(super) async fn fetch_block(
    client: &Client,
    chain: Chain,
    name: Option<&str>,
    height: Option<i64>,
    report: &SharedReport,
) -> Result<Option<Block>, Error> {
    let endpoint = endpoint(call(chain)).expect("a declared call");
    let names: &[&str] = match chain {
        // A range of one height: its empty responses are fetched twice before they are believed.
        Chain::Main => &["start_height", "end_height"],
        Chain::Zone => &["height"],
    };
    let args: Vec<(String, Arg)> = height
        .map(|height| names.iter().map(|name| ((*name).to_owned(), Arg::Integer(height.to_string()))).collect())
        .unwrap_or_default();
    let options = Options { chain: name.map(str::to_owned), max_items: Some(1), ..Options::default() };
    let query = Query::new(client, endpoint, args, options)?;
    let page = fetch(&query, 0, PageRequest::first(1), false, report).await?;
    match (block(&page.columns), height) {
        (Some(block), Some(height)) if block.height != height => {
            let problem = format!("the API returned block {} for height {height}", block.height);
            Err(Error::Drift { endpoint: endpoint.name, problem: problem.into() })
        }
        (block, _) => Ok(block),
    }
}

fn block(columns: &Columns) -> Option<Block> {
    let height = columns.record().position("height").map(|index| columns.column(index))?;
    let time = (0..columns.record().fields.len()).find(|index| columns.kind(*index) == Kind::Time)?;
    let (Column::Integer(heights), Column::Time(times)) = (height, columns.column(time)) else { return None };
    let (height, time) = (heights.iter().next()??, times.iter().next()??);
    Some(Block { height, time })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a chain given by the times of its blocks (`None` is empty); returns the height, if any, and the number
    /// of requests.
    fn search(times: &[Option<i64>], time: i64) -> (Option<i64>, usize) {
        let head = times.iter().rposition(Option::is_some).unwrap();
        let mut search = Search::new(time, Block { height: head as i64, time: times[head].unwrap() });
        if search.high.time <= time {
            return (Some(search.high.height), 1);
        }
        let mut requests = 1;
        while let Some(height) = search.next_height() {
            requests += 1;
            assert!(requests <= times.len() + 1, "a height is fetched once");
            match times[height as usize] {
                Some(time) => search.on_block(Block { height, time }),
                None => search.on_empty(height),
            }
        }
        (search.low.map(|low| low.height), requests)
    }

    fn expected(times: &[Option<i64>], time: i64) -> Option<i64> {
        times.iter().rposition(|block| block.is_some_and(|block| block <= time)).map(|height| height as i64)
    }

    #[test]
    fn every_time_of_small_chains_is_found() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2_000 {
            let mut now = random.i64(0..5);
            let mut times: Vec<Option<i64>> = (0..random.usize(1..12))
                .map(|_| {
                    now += random.i64(0..4);
                    (random.u8(0..4) > 0).then_some(now)
                })
                .collect();
            times.push(Some(now));
            for time in -1..now + 2 {
                assert_eq!(search(&times, time).0, expected(&times, time), "{times:?} at {time}");
            }
        }
    }

    #[test]
    fn later_searches_of_small_chains_use_what_is_known() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2_000 {
            let mut now = random.i64(0..5);
            let mut times: Vec<Option<i64>> = (0..random.usize(1..30))
                .map(|_| {
                    now += random.i64(0..4);
                    (random.u8(0..4) > 0).then_some(now)
                })
                .collect();
            times.push(Some(now));
            let mut search = Search::new(0, Block { height: times.len() as i64 - 1, time: now });
            let mut fetched = BTreeSet::new();
            for time in (0..6).map(|_| random.i64(-1..now.max(0))) {
                search.retarget(time);
                while let Some(height) = search.next_height() {
                    assert!(fetched.insert(height), "a height is fetched once");
                    match times[height as usize] {
                        Some(time) => search.on_block(Block { height, time }),
                        None => search.on_empty(height),
                    }
                }
                assert_eq!(search.low.map(|low| low.height), expected(&times, time), "{times:?} at {time}");
            }
        }
    }

    #[test]
    fn chains_that_begin_high_are_found() {
        let mut times = vec![None; 100_000];
        times.extend((0..800).map(|block| Some(1_000 + block * 10)));
        for (time, height) in [(1_000, Some(100_000)), (5_555, Some(100_455)), (8_990, Some(100_799)), (999, None)] {
            let (found, requests) = search(&times, time);
            assert_eq!(found, height, "at {time}");
            assert!(requests <= 50, "{requests} requests");
        }
    }

    #[test]
    fn long_chains_take_few_requests() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut now = 1_500_000_000_000;
        // Block times vary, and their mean changes at half of the chain.
        let times: Vec<Option<i64>> = (0..1_000_000)
            .map(|height| {
                now += random.i64(1..if height < 500_000 { 28_000 } else { 24_000 });
                Some(now)
            })
            .collect();
        let mut total = 0;
        for _ in 0..200 {
            let time = random.i64(times[0].unwrap()..now);
            let (height, requests) = search(&times, time);
            assert_eq!(height, Some(times.partition_point(|block| block.unwrap() <= time) as i64 - 1));
            assert!(requests <= 20, "{requests} requests");
            total += requests;
        }
        assert!(total <= 200 * 9, "{total} requests");
    }
}
