//! `InCommon`: records that several lists have. A list that lacks one of them was read before the record was added, or after a
//! reorganization removed it; or a part of the service lacks the record.

use std::collections::HashMap;

use crate::query::hashed::HashedMap;

/// Records, and blocks of lists, up to which a set is compared: they take a few megabytes.
const KEPT: usize = 1 << 16;

/// The blocks of the records of one list.
#[derive(Debug)]
struct ListBlocks {
    blocks: HashMap<i64, u64>,
    lowest: i64,
}

#[derive(Debug)]
struct Record {
    height: i64,
    shown_by: Vec<u32>,
    /// Lists that have it by its own values, other than the first that showed it.
    others: Vec<u32>,
}

/// Lists are indices.
#[derive(Debug, Default)]
pub struct InCommon {
    lists: HashMap<u32, ListBlocks>,
    records: HashedMap<Record>,
    num_blocks: usize,
    /// True if there were more records or blocks than are kept.
    is_full: bool,
}

impl InCommon {
    /// Takes the block of a record of a list.
    pub fn add_block(&mut self, list: u32, height: i64, block: u64) {
        if self.is_full {
            return;
        }
        let of_list = self.lists.entry(list).or_insert_with(|| ListBlocks { blocks: HashMap::new(), lowest: height });
        of_list.lowest = of_list.lowest.min(height);
        self.num_blocks += usize::from(of_list.blocks.insert(height, block).is_none());
        self.is_full = self.num_blocks >= KEPT;
    }

    /// Takes a record of a list, which `others` have as well.
    pub fn add_record(&mut self, list: u32, key: u64, height: i64, others: Vec<u32>) {
        if self.is_full {
            return;
        }
        let known = self.records.entry(key).or_insert_with(|| Record { height, shown_by: Vec::new(), others });
        if !known.shown_by.contains(&list) {
            known.shown_by.push(list);
        }
        self.is_full = self.records.len() >= KEPT;
    }

    /// The lowest height of a record that one list shows and another one lacks, and the latter.
    ///
    /// Both lists show a higher block, so that they are of one chain up to there, and had the heights below it. The list that
    /// lacks the record reaches down to it. Records of the same height may have been listed later.
    pub fn lacking(&self, is_known: impl Fn(u32) -> bool) -> Option<(i64, u32)> {
        if self.is_full {
            return None;
        }
        let mut joints: HashMap<(u32, u32), Option<i64>> = HashMap::new();
        let mut lacking = None;
        for record in self.records.values() {
            for list in record.others.iter().filter(|list| !record.shown_by.contains(*list) && is_known(**list)) {
                let reaches_down = self.lists.get(list).is_some_and(|of_list| of_list.lowest < record.height);
                let is_shown_before = lacking.is_some_and(|lowest| lowest <= (record.height, *list));
                if !reaches_down || is_shown_before {
                    continue;
                }
                for other in &record.shown_by {
                    let joint = *joints.entry((*list, *other)).or_insert_with(|| self.joint(*list, *other));
                    if joint.is_some_and(|joint| joint > record.height) {
                        lacking = Some((record.height, *list));
                    }
                }
            }
        }
        lacking
    }

    /// The greatest height at which two lists show the same block.
    fn joint(&self, list: u32, other: u32) -> Option<i64> {
        let other = self.lists.get(&other)?;
        let shared =
            self.lists.get(&list)?.blocks.iter().filter(|(height, block)| other.blocks.get(*height) == Some(*block));
        shared.map(|(height, _)| *height).max()
    }
}
