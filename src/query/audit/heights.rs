//! `Heights`: the heights of the returned records. Where they fall on each page, they fall from page to page, too.

use std::collections::VecDeque;

use super::forks::KEPT_BLOCKS;
use crate::interface::Order;
use crate::message::{Hint, Message, counted_are};
use crate::query::hashed::{HashedMap, HashedSet};

const ABOVE_EARLIER: &str = "A record is above the last one of an earlier run, although the list is in descending order of \
                             heights: it may be one that was returned before.";

const COPY_APART: &str = "A response is in descending order of heights but for a record that it lists again at another place: \
                          the record may have been returned twice";

/// Latest blocks that are compared with those of later responses.
const RECENT: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Falling,
    /// As some services list blocks, from the first to the last page.
    Rising,
}

#[derive(Clone, Debug, Default)]
pub struct Heights {
    /// Height of the latest returned record, if its page was in order.
    latest: Option<i64>,
    direction: Option<Direction>,
    /// Key of the block that was returned last.
    latest_block: Option<u64>,
    /// Latest blocks, by height and key.
    recent: VecDeque<(i64, u64)>,
    /// The block below each block of responses that were not returned, by their keys.
    below: HashedMap<u64>,
    /// Heights of blocks that no record has.
    missing: u64,
    /// Height of the latest returned record, if its page had one height and so no order.
    latest_level: Option<i64>,
    /// Height of a page of one height and of the next one, which is above it.
    risen: Option<(i64, i64)>,
    /// True if a response was in order and had several heights.
    has_fallen: bool,
    /// Height of the record that an earlier run returned last, if those before it were in order.
    continued: Option<i64>,
    /// True if a record after those was above that height.
    is_above_continued: bool,
    /// True if a page was in order but for a second copy of a record.
    has_copy_apart: bool,
}

impl Heights {
    /// The heights of a list of which a reading was discarded: a block has the same one below it in each.
    pub fn after(mut discarded: Self) -> Self {
        let (heights, keys): (Vec<i64>, Vec<u64>) = discarded.recent.iter().copied().unzip();
        discarded.note_chain(&heights, &keys);
        Self { below: discarded.below, ..Self::default() }
    }

    /// The heights after records that an earlier run returned.
    pub fn continued(latest_block: Option<u64>) -> Self {
        Self { latest_block, ..Self::default() }
    }

    /// The heights below this one.
    pub fn set_latest(&mut self, height: i64) {
        self.direction = Some(Direction::Falling);
        self.latest = Some(height);
        self.continued = Some(height);
        self.recent.extend(self.latest_block.map(|key| (height, key)));
    }

    /// Height of the latest returned record, if its page was in order or had one height.
    pub fn lowest(&self) -> Option<i64> {
        self.latest.or(self.latest_level)
    }

    /// Takes the heights of a response, of which not all rows are returned.
    pub fn on_response(
        &mut self,
        order: Order,
        heights: Option<&[i64]>,
        keys: impl Fn() -> Vec<u64>,
    ) -> Result<(), String> {
        if order == Order::Consecutive {
            let heights = heights.unwrap_or_default();
            let keys = keys();
            self.check_chain(heights, &keys)?;
            self.note_chain(heights, &keys);
            return Ok(());
        }
        let heights = heights.filter(|_| order == Order::NewestFirst).unwrap_or_default();
        self.has_fallen |= heights.first() > heights.last() && is_sorted(heights, Direction::Falling);
        self.check_direction()
    }

    /// Fails if the block below a returned one is not the one that was returned: a chain has one block below each.
    fn check_chain(&self, heights: &[i64], keys: &[u64]) -> Result<(), String> {
        for (height, above, below) in neighbors(heights, keys) {
            let is_same_above = self.returned(height + 1) == Some(above);
            let returned = if is_same_above { self.returned(height) } else { None };
            let known = [returned, self.below.get(&above).copied()];
            if known.into_iter().flatten().any(|known| known != below) {
                return Err(format!("block {height} is another one than before, below the same block"));
            }
        }
        Ok(())
    }

    /// Takes the blocks of a response that are not returned, or of one that contradicts others.
    pub fn note_chain(&mut self, heights: &[i64], keys: &[u64]) {
        if self.below.len() >= KEPT_BLOCKS {
            self.below.clear();
        }
        for (_, above, below) in neighbors(heights, keys) {
            self.below.entry(above).or_insert(below);
        }
    }

    /// Key of the block of this height that was returned lately.
    fn returned(&self, height: i64) -> Option<u64> {
        self.recent.iter().rev().find(|block| block.0 == height).map(|block| block.1)
    }

    fn check_direction(&self) -> Result<(), String> {
        let risen = self.risen.filter(|_| self.has_fallen);
        risen.map_or(Ok(()), |(latest, first)| Err(begins_on_the_wrong_side(first, "below", latest)))
    }

    /// True if the records that follow have no greater height than the latest one.
    pub fn are_falling(&self) -> bool {
        self.latest.is_some() && self.direction != Some(Direction::Rising)
    }

    /// Takes the heights of the returned records of a page, the first `wanted` of which are in the result, if each has one.
    /// Fails with what contradicts their order.
    pub fn on_page(
        &mut self,
        order: Order,
        heights: Option<&[i64]>,
        wanted: usize,
        keys: impl Fn() -> Vec<u64>,
    ) -> Result<(), String> {
        if order == Order::NewestFirst
            && let Some(continued) = self.continued
        {
            self.is_above_continued |= heights.unwrap_or_default().iter().any(|height| *height > continued);
        }
        match (order, heights) {
            (Order::NewestFirst, Some(heights)) if is_sorted(heights, Direction::Falling) => self.on_records(heights),
            (Order::Consecutive, Some(heights)) => self.on_blocks(heights, wanted, &keys()),
            (order, heights) => {
                let unordered = heights.filter(|_| order == Order::NewestFirst);
                self.has_copy_apart |=
                    unordered.is_some_and(|heights| falls_without_copies(&heights[..wanted], &keys()));
                self.latest = None;
                self.latest_level = None;
                Ok(())
            }
        }
    }

    fn on_records(&mut self, heights: &[i64]) -> Result<(), String> {
        self.check_first(heights, Direction::Falling)?;
        // A page of one height shows no order.
        let has_fallen = heights.first() > heights.last();
        self.has_fallen |= has_fallen;
        let is_known = has_fallen || self.latest.is_some();
        let step = self.latest_level.zip(heights.first().copied());
        self.risen = self.risen.or(step.filter(|(latest, first)| first > latest));
        self.latest = if is_known { heights.last().copied() } else { None };
        self.latest_level = heights.last().copied().filter(|_| !is_known);
        self.check_direction()
    }

    fn on_blocks(&mut self, heights: &[i64], wanted: usize, keys: &[u64]) -> Result<(), String> {
        let is_level = heights.first() == heights.last();
        let directions = [Direction::Falling, Direction::Rising];
        let Some(found) = directions.into_iter().find(|direction| is_sorted(heights, *direction)) else {
            return Err("the heights of blocks rise and fall on one page".into());
        };
        if !is_level && *self.direction.get_or_insert(found) != found {
            return Err(
                "the blocks of one page are in ascending order, those of another one in descending order".into()
            );
        }
        self.check_first(heights, self.direction.unwrap_or(Direction::Falling))?;
        if !self.below.is_empty() {
            let latest = self.latest.zip(self.latest_block);
            let (above, above_keys): (Vec<i64>, Vec<u64>) = latest.into_iter().unzip();
            self.check_chain(&[&above, heights].concat(), &[&above_keys, keys].concat())?;
        }
        // A response may list the blocks of two forks, each once.
        if is_repeated(self.latest_block.into_iter().chain(keys.iter().copied())) {
            return Err("a block was received again".into());
        }
        let in_result = &heights[..wanted];
        let pairs = self.latest.iter().chain(in_result).zip(in_result.iter().skip(usize::from(self.latest.is_none())));
        self.missing += pairs.map(|(height, next)| height.abs_diff(*next).saturating_sub(1)).sum::<u64>();
        self.latest = heights.last().copied();
        self.latest_block = keys.last().copied();
        self.recent.extend(heights.iter().copied().zip(keys.iter().copied()));
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
        Ok(())
    }

    fn check_first(&self, heights: &[i64], direction: Direction) -> Result<(), String> {
        let Some(latest) = self.latest else { return Ok(()) };
        let Some(first) = heights.first() else { return Ok(()) };
        if is_sorted(&[latest, *first], direction) {
            return Ok(());
        }
        let side = if direction == Direction::Falling { "below" } else { "above" };
        Err(begins_on_the_wrong_side(*first, side, latest))
    }

    /// True if the height of the latest record is known. Those of blocks repeat none.
    pub fn are_in_order(&self) -> bool {
        self.latest.is_some()
    }

    /// True if a height is beyond that of the record that was returned last.
    pub fn ended_before(&self, height: i64) -> bool {
        self.latest.is_some_and(|latest| match self.direction {
            Some(Direction::Rising) => height > latest,
            _ => height < latest,
        })
    }

    /// Why a record may be one that an earlier run returned: it is above the last of those.
    pub fn above_earlier(&self) -> Option<Message> {
        self.is_above_continued.then(|| ABOVE_EARLIER.into())
    }

    /// Why a record may have been returned twice.
    pub fn copy_apart(&self) -> Option<Message> {
        self.has_copy_apart.then(|| Message::new(COPY_APART).hint(Hint::RunAgain))
    }

    /// Why blocks whose heights are not consecutive may lack some.
    pub fn gaps(&self) -> Option<Message> {
        if self.missing == 0 {
            return None;
        }
        let blocks = counted_are(self.missing, "block");
        Some(format!("The heights of blocks have gaps: {blocks} missing between the others").into())
    }
}

/// The blocks that are one height below the row above them: the height, the key of that row, and their own.
fn neighbors<'a>(heights: &'a [i64], keys: &'a [u64]) -> impl Iterator<Item = (i64, u64, u64)> + 'a {
    let rows = heights.windows(2).zip(keys.windows(2));
    rows.filter(|(heights, _)| heights[0] - heights[1] == 1).map(|(heights, keys)| (heights[1], keys[0], keys[1]))
}

fn begins_on_the_wrong_side(first: i64, side: &str, latest: i64) -> String {
    format!("a page begins at height {first}, {side} records of height {latest}")
}

fn is_sorted(heights: &[i64], direction: Direction) -> bool {
    match direction {
        Direction::Falling => heights.is_sorted_by(|above, below| above >= below),
        Direction::Rising => heights.is_sorted(),
    }
}

/// True if heights that do not fall would do so without the later, or without the earlier, copies of records.
fn falls_without_copies(heights: &[i64], keys: &[u64]) -> bool {
    let rows = heights.iter().copied().zip(keys.iter().copied());
    !is_sorted(heights, Direction::Falling)
        && (is_sorted(&first_copies(rows.clone()), Direction::Falling)
            || is_sorted(&first_copies(rows.rev()), Direction::Rising))
}

/// Heights of the rows without those that repeat a key.
fn first_copies(rows: impl Iterator<Item = (i64, u64)>) -> Vec<i64> {
    let mut seen = HashedSet::default();
    rows.filter(|(_, key)| seen.insert(*key)).map(|(height, _)| height).collect()
}

fn is_repeated(keys: impl Iterator<Item = u64> + Clone) -> bool {
    keys.clone().zip(keys.skip(1)).any(|(above, below)| above == below)
}
