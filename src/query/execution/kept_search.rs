//! `KeptSearch`: what earlier runs of few requests have found of a search, and what this run adds for those after it.
//!
//! A run may be long after the one before, and the chain may have changed in between. Blocks are chained by their hashes: a
//! block that is still there has the same blocks below it. So one block is kept that was read no later than all others on
//! which the search relies and is not below them. It is compared once the search has ended, and the search begins again if it
//! has changed.

use std::collections::BTreeMap;

use super::height_search::{Needed, Search, TimedBlock};
use crate::query::results::{Floor, SearchState, ShownBlock, TimePosition};

/// The response that showed a height.
#[derive(Clone, Copy, Debug)]
struct HeightResponse {
    /// Hash of the block's hash; 0 without one.
    block: u64,
    /// Number of the run.
    run: u32,
}

#[derive(Debug, Default)]
pub(super) struct KeptSearch {
    /// State that the run before has left, without blocks that were forgotten.
    state: SearchState,
    /// Heights that were read, by this run or an earlier one.
    read: BTreeMap<i64, HeightResponse>,
    has_discarded: bool,
}

impl KeptSearch {
    pub fn restored(state: &SearchState) -> Self {
        let blocks =
            state.blocks.iter().map(|block| (block.height, HeightResponse { block: block.block, run: block.run }));
        let empty = state.empty.iter().map(|(height, run)| (*height, HeightResponse { block: 0, run: *run }));
        let state = SearchState { run: state.run + 1, ..state.clone() };
        Self { read: blocks.chain(empty).collect(), state, has_discarded: false }
    }

    /// Notes a height that this run has read. The first response counts.
    pub fn read(&mut self, height: i64, block: u64) {
        let run = self.state.run;
        self.read.entry(height).or_insert(HeightResponse { block, run });
    }

    /// The newest block of an earlier run.
    pub fn newest(&self) -> Option<TimedBlock> {
        let newest = self.state.blocks.iter().max_by_key(|block| block.height)?;
        Some(TimedBlock { height: newest.height, time: newest.time })
    }

    pub fn pages(&self) -> Option<u64> {
        self.state.pages
    }

    pub fn had_falling_times(&self) -> bool {
        self.state.has_falling_times
    }

    /// Returns the position of a time, if this run or an earlier one has found it.
    pub fn found(&self, time: i64) -> Option<TimePosition> {
        self.state.found(time)
    }

    pub fn add_found(&mut self, time: i64, position: TimePosition) {
        if self.found(time).is_none() {
            self.state.found.push((time, position));
        }
    }

    /// Time of a block, if this run or an earlier one has requested it to learn how far a list reaches back.
    pub fn age(&self, height: i64) -> Option<TimedBlock> {
        self.state.ages.iter().find(|(other, _)| *other == height).map(|(_, time)| TimedBlock { height, time: *time })
    }

    pub fn add_age(&mut self, block: TimedBlock) {
        if self.age(block.height).is_none() {
            self.state.ages.push((block.height, block.time));
        }
    }

    /// Forgets the blocks of earlier runs, but not what was found by them.
    pub fn forget_blocks(&mut self) {
        self.state.blocks.clear();
        self.state.empty.clear();
        self.read.clear();
    }

    /// Forgets what was found by blocks that have changed.
    pub fn discard(&mut self) {
        self.state.found.clear();
        self.has_discarded = true;
    }

    /// True if positions that earlier runs have found were discarded since the last call: the chain has changed.
    pub fn take_discarded(&mut self) -> bool {
        std::mem::take(&mut self.has_discarded)
    }

    /// The blocks that were compared are those of this run.
    pub fn are_unchanged(&mut self) {
        let run = self.state.run;
        self.read.values_mut().for_each(|read| read.run = run);
    }

    /// A block that tells whether what a search has of earlier runs is still there; `None` if it has nothing of them.
    pub fn block_to_compare(&self, search: &Search) -> Option<ShownBlock> {
        let needed = search.store(&mut SearchState::default());
        if self.first_run(search, &needed) == self.state.run {
            return None;
        }
        self.shown(self.compared(search, &needed)?, search)
    }

    /// The state after this run.
    pub fn state(&self, search: &Search, pages: Option<u64>, has_falling_times: bool) -> SearchState {
        let mut state = SearchState { pages, has_falling_times, ..self.without_blocks() };
        let needed = search.store(&mut state);
        let compared = self.compared(search, &needed);
        let mut heights: Vec<i64> = needed.sides.iter().copied().chain(needed.newest).chain(compared).collect();
        heights.sort_unstable();
        heights.dedup();
        state.blocks = heights.into_iter().filter_map(|height| self.shown(height, search)).collect();
        state.empty = needed.empty.iter().map(|height| (*height, self.run_of(*height))).collect();
        state
    }

    pub fn without_blocks(&self) -> SearchState {
        let SearchState { run, found, ages, .. } = self.state.clone();
        SearchState { run, found, ages, ..SearchState::default() }
    }

    fn shown(&self, height: i64, search: &Search) -> Option<ShownBlock> {
        let time = search.time_of(height)?;
        let block = self.read.get(&height).map_or(0, |read| read.block);
        Some(ShownBlock { height, time, block, run: self.run_of(height) })
    }

    fn run_of(&self, height: i64) -> u32 {
        self.read.get(&height).map_or(self.state.run, |read| read.run)
    }

    /// The first run of which a search has something.
    fn first_run(&self, search: &Search, needed: &Needed) -> u32 {
        let heights = needed.sides.iter().chain(&needed.empty).copied();
        // Any of the runs may have found the oldest block.
        let of_floor = (search.floor() != Floor::Unknown).then(|| self.read.values().map(|read| read.run).min());
        heights.map(|height| self.run_of(height)).chain(of_floor.flatten()).min().unwrap_or(self.state.run)
    }

    /// Height of the lowest block that is not below those of a search and was read no later. Without one that has a hash, the
    /// highest block of the search is compared by its time.
    fn compared(&self, search: &Search, needed: &Needed) -> Option<i64> {
        let top = needed.sides.iter().copied().max()?;
        let first_run = self.first_run(search, needed);
        let mut known = search.known_from(top).filter_map(|height| Some((height, self.read.get(&height)?)));
        let told = known.find(|(_, read)| read.block != 0 && read.run <= first_run);
        Some(told.map_or(top, |(height, _)| height))
    }
}
