//! `InCommon`: records that several lists have. A list that lacks one of them was read before the record was added, or after a
//! reorganization removed it; or a part of the service lacks the record.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::query::hashed::HashedMap;

/// Records, and blocks of lists, up to which lists are compared: they take up to seven megabytes. A table doubles beyond seven
/// eighths of a power of two.
const KEPT: usize = 7 << 13;

/// End of what was read of a list of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Not to its end, or not in this run.
    Nowhere,
    /// To its lowest record. There may have been others, which the API does not return any more.
    LowestRecord,
    /// To the end of a list that has all its records.
    End,
}

/// The blocks of the records of one list.
#[derive(Clone, Debug)]
struct ListBlocks {
    blocks: BTreeMap<i64, u64>,
    lowest: i64,
}

impl ListBlocks {
    /// True if the list has all its records of a height.
    fn has_read(&self, height: i64, distance: i64, reach: Reach) -> bool {
        let highest = self.blocks.last_key_value().map(|(highest, _)| highest.saturating_sub(distance));
        let is_reached = match reach {
            Reach::Nowhere => false,
            Reach::LowestRecord => self.lowest < height,
            Reach::End => true,
        };
        is_reached && highest.is_some_and(|settled| height <= settled)
    }
}

/// The block of a record.
#[derive(Clone, Copy, Debug)]
pub struct SharedBlock {
    pub height: i64,
    pub hash: u64,
    /// True if each list that shows the block is taken to have all of its records in the block.
    pub is_old: bool,
}

#[derive(Debug)]
struct Record {
    /// The record's block, if every list shows the same one.
    block: Option<SharedBlock>,
    shown_by: Vec<u32>,
    /// Other lists that should have it, by the values that it shows.
    others: Vec<u32>,
}

/// Lists are indices.
#[derive(Debug, Default)]
pub struct InCommon {
    lists: HashMap<u32, ListBlocks>,
    records: HashedMap<Record>,
    num_blocks: usize,
    /// Lists that an earlier run began.
    continued: HashSet<u32>,
    /// Heights below the highest block of a list where it may still change.
    distance: i64,
}

impl InCommon {
    pub fn of_lists_that_change(distance: i64) -> Self {
        Self { distance, ..Self::default() }
    }

    /// Takes note that an earlier run began a list: it may have returned the other records of the highest block.
    pub fn continue_list(&mut self, list: u32) {
        self.continued.insert(list);
    }

    /// Takes a record of a list, with its height and block where they are known, and the other lists that should have it.
    pub fn add(&mut self, list: u32, key: u64, block: Option<SharedBlock>, others: &[u32]) {
        if let Some(SharedBlock { height, hash, .. }) = block {
            let of_list =
                self.lists.entry(list).or_insert_with(|| ListBlocks { blocks: BTreeMap::new(), lowest: height });
            of_list.lowest = of_list.lowest.min(height);
            self.num_blocks += usize::from(of_list.blocks.insert(height, hash).is_none());
        }
        let record = self.records.entry(key).or_insert_with(|| Record { block, shown_by: vec![], others: vec![] });
        let is_other = record
            .block
            .zip(block)
            .is_none_or(|(known, block)| (known.height, known.hash) != (block.height, block.hash));
        if is_other {
            record.block = None;
        }
        if !record.shown_by.contains(&list) {
            record.shown_by.push(list);
        }
        for other in others {
            if !record.others.contains(other) {
                record.others.push(*other);
            }
        }
    }

    /// Forgets the records of a list above a height, where it has changed.
    pub fn forget(&mut self, list: u32, after_height: i64) {
        let Some(of_list) = self.lists.get_mut(&list) else { return };
        self.num_blocks -= of_list.blocks.split_off(&(after_height + 1)).len();
        for record in self.records.values_mut() {
            if record.block.is_some_and(|block| block.height > after_height) {
                record.shown_by.retain(|shown_by| *shown_by != list);
            }
        }
    }

    /// True if as many further records can be taken.
    pub fn has_room(&self, records: usize) -> bool {
        self.records.len().max(self.num_blocks) + records <= KEPT
    }

    /// Lists that do not show a record which another list shows and they should have.
    pub fn without_some(&self) -> HashSet<u32> {
        let records = self.records.values();
        records
            .flat_map(|record| record.others.iter().filter(|list| !record.shown_by.contains(*list)))
            .copied()
            .collect()
    }

    /// Lists that lack a record which another list shows, and the lowest height of such a record, in the order of the heights.
    ///
    /// Both lists show a higher block, so that they are of one chain up to there, and had the heights below it. The block of the
    /// record is enough if it is old, as other records of a new block may have been listed later, and if this run began the list
    /// that lacks the record. That list reaches down to it.
    pub fn lacking(&self, reach: impl Fn(u32) -> Reach) -> Vec<(i64, u32)> {
        let mut joints: HashMap<(u32, u32), Option<i64>> = HashMap::new();
        let mut lowest: BTreeMap<u32, i64> = BTreeMap::new();
        for record in self.records.values() {
            let Some(SharedBlock { height, is_old, .. }) = record.block else { continue };
            for list in record.others.iter().filter(|list| !record.shown_by.contains(*list)) {
                let of_list = self.lists.get(list);
                let has_read_it = of_list.is_some_and(|of_list| of_list.has_read(height, self.distance, reach(*list)));
                let is_known = lowest.get(list).is_some_and(|lowest| *lowest <= height);
                if !has_read_it || is_known {
                    continue;
                }
                let is_whole = is_old && !self.continued.contains(list);
                let min_joint = if is_whole { height } else { height + 1 };
                for other in &record.shown_by {
                    let joint = *joints.entry((*list, *other)).or_insert_with(|| self.joint(*list, *other));
                    if joint.is_some_and(|joint| joint >= min_joint) && reach(*other) != Reach::Nowhere {
                        lowest.insert(*list, height);
                    }
                }
            }
        }
        let mut lacking: Vec<(i64, u32)> = lowest.into_iter().map(|(list, height)| (height, list)).collect();
        lacking.sort_unstable();
        lacking
    }

    /// The greatest height at which two lists show the same block.
    fn joint(&self, list: u32, other: u32) -> Option<i64> {
        let other = self.lists.get(&other)?;
        let mut blocks = self.lists.get(&list)?.blocks.iter().rev();
        blocks.find(|(height, block)| other.blocks.get(*height) == Some(*block)).map(|(height, _)| *height)
    }
}
