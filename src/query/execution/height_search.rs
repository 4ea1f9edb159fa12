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
    /// The last block that is not later, below a later one.
    At(i64),
    /// The newest block, which is not later: the chain may have others that are not.
    Newest(i64),
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

/// State of a search. Times are assumed not to decrease with height.
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

    /// Heights with which another run can begin to search these times: the known blocks on both sides of each of them that are
    /// below the first page of the list, which every run requests.
    pub fn hints(&self, times: &[i64], first_page: Option<i64>) -> Vec<i64> {
        let mut hints = BTreeSet::new();
        for time in times {
            let later = self.known.iter().find(|(_, known)| *known > time).map(|(height, _)| *height);
            hints.extend(self.known.range(..later.unwrap_or(i64::MAX)).next_back().map(|(height, _)| *height));
            hints.extend(later);
        }
        hints.into_iter().filter(|height| first_page.is_none_or(|lowest| *height < lowest)).collect()
    }

    /// Takes what was requested by a hint of an earlier run. The next step halves what is left, so that runs of few requests
    /// come to an end.
    pub fn on_hint(&mut self, height: i64, block: Option<Block>) {
        match block {
            Some(block) => {
                self.known.insert(block.height, block.time);
            }
            None => self.on_empty(height),
        }
        self.retarget(self.time);
        if self.low.is_some() {
            self.remaining[0] = 0;
        }
    }

    /// True if responses of this run show whether a height has a block.
    pub fn knows(&self, height: i64) -> bool {
        self.known.contains_key(&height) || self.empty.contains(&height)
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

    /// True if a height has no block, or one without transactions.
    pub fn is_empty(&self, height: i64) -> bool {
        self.empty.contains(&height)
    }

    /// True if a known block is earlier than one below it, although times are assumed not to decrease with height.
    pub fn has_falling_times(&self) -> bool {
        !self.known.values().is_sorted()
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
mod tests;
