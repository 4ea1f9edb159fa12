//! Search for the last block that is not later than a time, by interpolation between blocks whose times are known.

use std::collections::{BTreeMap, BTreeSet};

use crate::query::results::{Floor, SearchState, TimePosition};

/// A block and its time in Unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimedBlock {
    pub height: i64,
    pub time: i64,
}

impl TimedBlock {
    /// The block of an entry of a map of times by height.
    pub fn of((height, time): (&i64, &i64)) -> Self {
        Self { height: *height, time: *time }
    }

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

/// Lowest height that is searched.
fn lowest_of(floor: Floor) -> i64 {
    match floor {
        Floor::Unknown => 0,
        Floor::Oldest(height) | Floor::Assumed { height, .. } => height,
    }
}

/// Heights that another run needs to continue a search.
#[derive(Debug, Default)]
pub(super) struct Needed {
    /// Those of the blocks on both sides of the time.
    pub sides: Vec<i64>,
    pub newest: Option<i64>,
    /// Heights without a block.
    pub empty: Vec<i64>,
}

/// State of a search. Times are assumed not to decrease with height.
#[derive(Debug)]
pub(super) struct Search {
    time: i64,
    /// Last known block that is not later.
    low: Option<TimedBlock>,
    /// First known block that is later.
    high: TimedBlock,
    /// A later block, for the slope while `low` is unknown.
    above: Option<TimedBlock>,
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
    pub fn new(head: BTreeMap<i64, i64>, newest: TimedBlock) -> Self {
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
        if time == self.time {
            return;
        }
        self.time = time;
        self.begin();
    }

    fn begin(&mut self) {
        self.place();
        self.remaining = [i64::MAX; 3];
        if let Floor::Assumed { distance, .. } = &mut self.floor {
            *distance = ABSENT_RUN;
        }
    }

    /// Finds the known blocks on both sides of the time.
    fn place(&mut self) {
        let time = self.time;
        let blocks = self.known.iter().map(TimedBlock::of);
        self.low = blocks.clone().take_while(|block| block.time <= time).last();
        let mut later = blocks.skip_while(|block| block.time <= time);
        self.high = later.next().unwrap_or(self.high);
        self.above = later.last();
    }

    /// A search that an earlier run has begun.
    pub fn restored(state: &SearchState) -> Option<Self> {
        let known: BTreeMap<i64, i64> = state.blocks.iter().map(|block| (block.height, block.time)).collect();
        let newest = known.last_key_value().map(TimedBlock::of)?;
        let empty = state.empty.iter().map(|(height, _)| *height).collect();
        let SearchState { time, floor, remaining, .. } = *state;
        let mut search = Self { time, floor, remaining, empty, ..Self::new(known, newest) };
        search.place();
        Some(search)
    }

    /// Writes into a state what another run needs to continue this search: the heights of the blocks on both sides of the time
    /// and of the newest one, and the heights without a block between them.
    pub fn store(&self, state: &mut SearchState) -> Needed {
        state.time = self.time;
        state.remaining = self.remaining;
        state.floor = self.floor;
        let sides = [self.low.map(|low| low.height), Some(self.high.height)];
        let between = self.low.map_or(i64::MIN, |low| low.height)..=self.high.height;
        Needed {
            sides: sides.into_iter().flatten().collect(),
            newest: self.known.last_key_value().map(|(height, _)| *height),
            empty: self.empty.range(between).copied().collect(),
        }
    }

    pub fn floor(&self) -> Floor {
        self.floor
    }

    /// Fields that a step changes before it has a response.
    pub fn before_step(&self) -> (Floor, [i64; 3]) {
        (self.floor, self.remaining)
    }

    /// Takes a step back whose request failed.
    pub fn step_back(&mut self, (floor, remaining): (Floor, [i64; 3])) {
        self.floor = floor;
        self.remaining = remaining;
    }

    /// Time of a known block.
    pub fn time_of(&self, height: i64) -> Option<i64> {
        self.known.get(&height).copied()
    }

    /// Heights of the known blocks from a height on.
    pub fn known_from(&self, height: i64) -> impl Iterator<Item = i64> + '_ {
        self.known.range(height..).map(|(height, _)| *height)
    }

    /// Next request, or `None` once the search is over.
    pub fn next_step(&mut self) -> Option<SearchStep> {
        let lowest = self.low.map_or(lowest_of(self.floor), |low| low.height + 1);
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

    pub fn on_block(&mut self, block: TimedBlock) {
        self.known.insert(block.height, block.time);
        if block.time <= self.time {
            if self.low.is_none() {
                self.remaining = [i64::MAX; 3];
            }
            self.low = Some(block);
        } else {
            self.above = Some(self.high);
            self.high = block;
            if block.height < lowest_of(self.floor) {
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
    pub fn on_oldest(&mut self, oldest: Option<TimedBlock>, reaches_back: bool) {
        self.floor = match oldest {
            Some(TimedBlock { height, .. }) if reaches_back => Floor::Oldest(height),
            _ => Floor::Assumed { height: self.absent_run(ABSENT_RUN).map_or(0, |end| end + 1), distance: ABSENT_RUN },
        };
        if let Some(oldest) = oldest {
            self.known.insert(oldest.height, oldest.time);
            self.begin();
        }
        if self.high.height < lowest_of(self.floor) {
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

    /// The position of the time, and the heights without a block above it.
    pub fn found_with_absent(&self) -> TimePosition {
        let found = self.found();
        let TimePosition::At(height) = found else { return found };
        let end = self.high.height - 1;
        if end > height { TimePosition::BelowAbsent { height, end } } else { found }
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
