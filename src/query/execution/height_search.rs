//! Search for the last block that is not later than a time, by interpolation between blocks whose times are known.

use std::collections::{BTreeMap, BTreeSet};

/// A block and its time in Unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    pub height: i64,
    pub time: i64,
}

impl Block {
    /// `None` if both have the same time.
    fn blocks_per_millisecond(self, later: Self) -> Option<f64> {
        let duration = later.time - self.time;
        if duration > 0 { Some((later.height - self.height) as f64 / duration as f64) } else { None }
    }
}

/// Next request of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SearchStep {
    /// The block of this height.
    Block(i64),
    /// The oldest block of the list.
    Oldest,
}

/// Position of a time among the blocks of a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TimePosition {
    /// The last block that is not later.
    At(i64),
    /// The time is before the first block, which has this height.
    Before(i64),
    /// The time is before the lowest block that samples found, at this height. Lower blocks may exist.
    BeforeSampled(i64),
    NoBlock,
}

/// Milliseconds between blocks that are assumed where the first page has one block only, which does not show how fast
/// they follow each other.
const ASSUMED_INTERVAL: i64 = 12_000;

/// Distance of the second block fetched from the newest one, where there is none at the assumed distance.
const FIRST_STEP: i64 = 1_000;

/// Heights without a block after which the oldest block is requested: the search may be below it.
const ABSENT: usize = 2;

/// Consecutive heights without a block below which none is assumed, where the list does not reach back.
const ABSENT_RUN: i64 = 8;

/// Consecutive heights without a block that move an assumed floor.
const ABSENT_PAIR: i64 = 2;

/// Lowest height that may have a block.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Floor {
    Unknown,
    /// Height of the oldest block.
    Oldest(i64),
    /// The list does not reach back to the oldest block. No block was found just below this height, nor at the samples
    /// so far, whose distances from it double.
    Assumed {
        height: i64,
        distance: i64,
    },
}

impl Floor {
    fn height(self) -> i64 {
        match self {
            Self::Unknown => 0,
            Self::Oldest(height) | Self::Assumed { height, .. } => height,
        }
    }
}

/// State of a search. Times do not decrease with height.
#[derive(Debug)]
pub(super) struct Search {
    time: i64,
    /// Last known block that is not later.
    low: Option<Block>,
    /// First known block that is later.
    high: Block,
    /// A later block, for the slope while `low` is unknown.
    above: Option<Block>,
    /// Times of all known blocks, by height.
    known: BTreeMap<i64, i64>,
    /// Heights without a block, or with one without transactions.
    empty: BTreeSet<i64>,
    /// Lowest height that is searched while `low` is unknown.
    floor: Floor,
    /// Remaining range of the search at the last three requests: heights, or milliseconds while `low` is unknown.
    remaining: [i64; 3],
}

impl Search {
    /// A search that has no target yet. `head` has the times of the newest blocks by height.
    pub fn new(head: BTreeMap<i64, i64>, newest: Block) -> Self {
        Self {
            time: newest.time,
            low: None,
            high: newest,
            above: None,
            known: head,
            empty: BTreeSet::new(),
            floor: Floor::Unknown,
            remaining: [i64::MAX; 3],
        }
    }

    /// Starts over for another time, which is before that of the newest block, with the blocks that are known.
    pub fn retarget(&mut self, time: i64) {
        let blocks = self.known.iter().map(|(height, time)| Block { height: *height, time: *time });
        self.low = blocks.clone().take_while(|block| block.time <= time).last();
        let mut later = blocks.skip_while(|block| block.time <= time);
        self.high = later.next().unwrap_or(self.high);
        self.above = later.last();
        self.time = time;
        self.remaining = [i64::MAX; 3];
        if let Floor::Assumed { distance, .. } = &mut self.floor {
            *distance = ABSENT_RUN;
        }
    }

    /// Next request, or `None` once the search is over.
    pub fn next_step(&mut self) -> Option<SearchStep> {
        let lowest = self.low.map_or(self.floor.height(), |low| low.height + 1);
        let highest = self.high.height - 1;
        if self.low.is_none() && self.floor == Floor::Unknown && self.empty.len() >= ABSENT {
            return Some(SearchStep::Oldest);
        }
        let width = highest - lowest + 1;
        // Interpolation that narrows too slowly alternates with bisection.
        let remaining = if self.low.is_some() { width } else { self.high.time - self.time };
        let is_slow = self.remaining[0] / 2 < remaining;
        self.remaining = [self.remaining[1], self.remaining[2], remaining];
        let guess = if is_slow { None } else { self.interpolate() };
        let guess = guess.filter(|guess| *guess > lowest || self.low.is_some() || lowest == 0);
        let guess = guess.unwrap_or(lowest + (width - 1) / 2).clamp(lowest, highest.max(lowest));
        let above = (guess..=highest).find(|height| !self.empty.contains(height));
        let next = above.or_else(|| (lowest..guess).rev().find(|height| !self.empty.contains(height)));
        let next = next.or_else(|| if self.low.is_none() { self.next_sample() } else { None });
        next.map(SearchStep::Block)
    }

    /// Next sample of the heights below an assumed floor.
    fn next_sample(&mut self) -> Option<i64> {
        let Floor::Assumed { height, distance } = &mut self.floor else { return None };
        while *distance <= *height {
            let sample = *height - *distance;
            *distance *= 2;
            if !self.empty.contains(&sample) {
                return Some(sample);
            }
        }
        None
    }

    fn interpolate(&self) -> Option<i64> {
        match (self.low, self.above) {
            (Some(low), _) => {
                let distance = (self.time - low.time) as f64 * low.blocks_per_millisecond(self.high)?;
                Some(low.height + distance as i64)
            }
            (None, Some(above)) => {
                let distance = (self.high.time - self.time) as f64 * self.high.blocks_per_millisecond(above)?;
                Some(self.high.height - distance as i64 - 1)
            }
            (None, None) => {
                let assumed = self.high.height - (self.high.time - self.time) / ASSUMED_INTERVAL - 1;
                let is_absent = assumed < 0 || self.empty.contains(&assumed);
                Some(if is_absent { self.high.height - FIRST_STEP } else { assumed })
            }
        }
    }

    pub fn on_block(&mut self, block: Block) {
        self.known.insert(block.height, block.time);
        if block.time <= self.time {
            if self.low.is_none() {
                self.remaining = [i64::MAX; 3];
            }
            self.low = Some(block);
        } else {
            self.above = Some(self.high);
            self.high = block;
            if block.height < self.floor.height() {
                self.floor = Floor::Assumed { height: 0, distance: ABSENT_RUN };
            }
        }
    }

    pub fn on_empty(&mut self, height: i64) {
        self.empty.insert(height);
        let Floor::Assumed { height: floor, .. } = self.floor else { return };
        let run = if floor == 0 { ABSENT_RUN } else { ABSENT_PAIR };
        if self.low.is_none() && self.is_absent(height, run) && height >= floor {
            self.floor = Floor::Assumed { height: height + 1, distance: ABSENT_RUN };
        }
    }

    /// The oldest block of the list, which is that of the chain if the list reaches back to it.
    pub fn on_oldest(&mut self, oldest: Option<Block>, reaches_back: bool) {
        self.floor = match oldest {
            Some(Block { height, .. }) if reaches_back => Floor::Oldest(height),
            _ => Floor::Assumed { height: self.absent_run(ABSENT_RUN).map_or(0, |end| end + 1), distance: ABSENT_RUN },
        };
        if let Some(oldest) = oldest {
            self.known.insert(oldest.height, oldest.time);
            self.retarget(self.time);
        }
        if self.high.height < self.floor.height() {
            self.floor = Floor::Assumed { height: 0, distance: ABSENT_RUN };
        }
    }

    pub fn found(&self) -> TimePosition {
        match (self.low, self.floor) {
            (Some(low), _) => TimePosition::At(low.height),
            (None, Floor::Assumed { .. }) => TimePosition::BeforeSampled(self.high.height),
            (None, _) => TimePosition::Before(self.high.height),
        }
    }

    fn is_absent(&self, end: i64, run: i64) -> bool {
        (end - run + 1..=end).all(|height| self.empty.contains(&height))
    }

    /// Highest height at which as many heights without a block end.
    fn absent_run(&self, run: i64) -> Option<i64> {
        self.empty.iter().rev().copied().find(|end| self.is_absent(*end, run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a chain given by the times of its blocks (`None` is empty), of which the list has the last `window`.
    /// Returns the number of requests as well.
    fn search(times: &[Option<i64>], time: i64, window: usize) -> (TimePosition, usize) {
        search_from(times, time, window, 51)
    }

    /// The same for a list whose first page has the blocks of `listed` heights.
    fn search_from(times: &[Option<i64>], time: i64, window: usize, listed: usize) -> (TimePosition, usize) {
        let head = times.iter().rposition(Option::is_some).unwrap();
        let newest = Block { height: head as i64, time: times[head].unwrap() };
        if newest.time <= time {
            return (TimePosition::At(newest.height), 1);
        }
        let known = |height: usize| Some((height as i64, times[height]?));
        let mut search = Search::new(((head + 1).saturating_sub(listed)..=head).filter_map(known).collect(), newest);
        search.retarget(time);
        let mut requests = 1;
        while let Some(step) = search.next_step() {
            requests += 1;
            assert!(requests <= times.len() + 2, "a height is fetched once");
            respond(&mut search, step, times, window);
        }
        (search.found(), requests)
    }

    fn respond(search: &mut Search, step: SearchStep, times: &[Option<i64>], window: usize) {
        let block = |height: usize| Some(Block { height: height as i64, time: times[height]? });
        match step {
            SearchStep::Oldest => {
                let listed = times.len().saturating_sub(window);
                search.on_oldest((listed..times.len()).find_map(block), listed == 0);
            }
            SearchStep::Block(height) => match block(height as usize) {
                Some(block) => search.on_block(block),
                None => search.on_empty(height),
            },
        }
    }

    fn expected(times: &[Option<i64>], time: i64) -> TimePosition {
        let first = times.iter().position(Option::is_some).unwrap() as i64;
        let last = times.iter().rposition(|block| block.is_some_and(|block| block <= time));
        last.map_or(TimePosition::Before(first), |height| TimePosition::At(height as i64))
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
                assert_eq!(search(&times, time, usize::MAX).0, expected(&times, time), "{times:?} at {time}");
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
            let newest = Block { height: times.len() as i64 - 1, time: now };
            let mut search = Search::new(BTreeMap::from([(newest.height, newest.time)]), newest);
            let mut fetched = BTreeSet::new();
            for time in (0..6).map(|_| random.i64(-1..now.max(0))) {
                search.retarget(time);
                while let Some(step) = search.next_step() {
                    assert!(fetched.insert(format!("{step:?}")), "a height is fetched once");
                    respond(&mut search, step, &times, usize::MAX);
                }
                assert_eq!(search.found(), expected(&times, time), "{times:?} at {time}");
            }
        }
    }

    #[test]
    fn gaps_in_a_chain_are_not_its_beginning() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..300 {
            let (first, mut now) = (random.usize(0..5_000), 0);
            let mut times = vec![None; first];
            times.extend((0..1_000).map(|height| {
                now += 10;
                (height == 0 || height == 999 || random.u8(0..100) < 15).then_some(now)
            }));
            let time = random.i64(0..now);
            assert_eq!(search(&times, time, usize::MAX).0, expected(&times, time), "begins at {first}, at {time}");
            let (found, _) = search(&times, time, 300);
            let is_uncertain = matches!(found, TimePosition::BeforeSampled(_));
            assert!(is_uncertain || found == expected(&times, time), "{found:?}, begins at {first}, at {time}");
        }
    }

    #[test]
    fn chains_that_begin_high_are_found() {
        let mut times = vec![None; 100_000];
        times.extend((0..800).map(|block| Some(1_000 + block * 10)));
        for (time, found) in [
            (1_000, TimePosition::At(100_000)),
            (5_555, TimePosition::At(100_455)),
            (8_990, TimePosition::At(100_799)),
            (999, TimePosition::Before(100_000)),
        ] {
            let (result, requests) = search(&times, time, usize::MAX);
            assert_eq!(result, found, "at {time}");
            assert!(requests <= 20, "{requests} requests");
            let (result, requests) = search(&times, time, 100);
            assert!(result == found || result == TimePosition::BeforeSampled(100_000), "{result:?} at {time}");
            assert!(requests <= 80, "{requests} requests");
        }
    }

    /// Mean number of requests for times of a chain of a million blocks, whose first page has `listed` of them.
    fn mean_requests(interval: impl Fn(&mut fastrand::Rng, usize) -> i64, listed: usize) -> f64 {
        let mut random = fastrand::Rng::with_seed(7);
        let mut now = 1_500_000_000_000;
        let mut times = Vec::new();
        for height in 0..1_000_000 {
            now += interval(&mut random, height);
            times.push(Some(now));
        }
        let mut total = 0;
        for _ in 0..300 {
            let time = random.i64(times[0].unwrap()..now);
            let (found, requests) = search_from(&times, time, usize::MAX, listed);
            assert_eq!(found, TimePosition::At(times.partition_point(|block| block.unwrap() <= time) as i64 - 1));
            assert!(requests <= 20, "{requests} requests");
            total += requests;
        }
        total as f64 / 300.0
    }

    #[test]
    fn long_chains_take_about_six_requests() {
        for listed in [1, 50] {
            // Slots of 12 seconds, of which one in a hundred is missed.
            let requests = mean_requests(|random, _| 12_000 * if random.u8(0..100) == 0 { 2 } else { 1 }, listed);
            assert!(requests <= 5.5, "{requests} requests of a list that shows {listed} blocks");
            // Times that vary, with a mean that changes at half of the chain.
            let most = |height| if height < 500_000 { 28_000 } else { 24_000 };
            let requests = mean_requests(|random, height| random.i64(1..most(height)), listed);
            assert!(requests <= 7.0, "{requests} requests of a list that shows {listed} blocks");
        }
    }
}
