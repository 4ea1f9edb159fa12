//! Comparisons of the lists of a set with each other.

use super::Set;
use crate::columns::Columns;
use crate::interface::{Bound, Order};
use crate::query::audit::{InCommon, Source};
use crate::query::execution::shown_lists::ShownLists;
use crate::query::results::{ANY_LIST, SharedReport};
use crate::query::snapshot::Rows as _;

impl Set {
    /// Compares the blocks of a page with those of the other lists.
    pub(super) fn compare_blocks(&mut self, index: usize, rows: &Columns, report: &SharedReport) {
        self.blocks.add(Source::List(index as u64), rows);
        for reason in self.blocks.reasons() {
            self.outcome.add_reason(reason.into(), report);
        }
    }

    /// The lists that a record shows, if each of them has it in whichever order they are read.
    pub(super) fn comparable(&self) -> Option<(ShownLists, InCommon)> {
        let endpoint = self.query.endpoint();
        let has_sides = self.query.args().iter().filter_map(|(name, _)| endpoint.param(name)).any(|param| {
            let mut bounds = param.bounds.iter();
            bounds.any(|(_, bound)| matches!(bound, Bound::Side { other, .. } if *other == self.members.name))
        });
        // The list of one side of an address need not have what another one shows.
        if has_sides {
            return None;
        }
        Some((ShownLists::of(&self.query, &self.members)?, InCommon::default()))
    }

    /// Takes the records of a page, which other lists may have as well.
    pub(super) fn compare_records(&mut self, index: usize, page: &Columns) {
        let Some((lists, in_common)) = &mut self.in_common else { return };
        let list = index as u32;
        for row in 0..page.rows() {
            let (Some(height), Some(block)) = (page.height(row), page.block(row)) else { continue };
            let mut others = lists.others(list, page, row);
            others.retain(|other| *other != ANY_LIST);
            in_common.add_block(list, height, block);
            if !others.is_empty() {
                in_common.add_record(list, page.key(row), height, others);
            }
        }
    }

    /// Gives a reason for a record that one list shows, and another one lacks which has it by its values.
    pub(super) fn doubt_records_in_common(&mut self, report: &SharedReport) {
        let Some((_, in_common)) = &self.in_common else { return };
        let Some((height, list)) = in_common.lacking(|list| self.was_read_here(list as usize)) else { return };
        let value = &self.members.values[list as usize];
        let reason = format!(
            "The list of {value} lacks a record of height {height} that another list shows: a part of the service lacks it. Run \
             the query again."
        );
        self.outcome.add_reason(reason.into(), report);
    }

    /// False of a list of which an earlier run may have returned records, or which ended with an error.
    fn was_read_here(&self, list: usize) -> bool {
        !self.starts.contains_key(&list) && !self.outcome.refused.iter().any(|(refused, _)| *refused == list)
    }

    /// True if the API has one block for each value.
    pub(super) fn has_block_of_each_value(&self) -> bool {
        self.query.endpoint().order == Order::Consecutive && self.members.name == "height"
    }

    /// Lists of heights that have ended without a block, between heights that have one.
    fn absent_blocks(&self) -> Vec<usize> {
        let mut absent = Vec::new();
        if !self.has_block_of_each_value() {
            return absent;
        }
        for list in &self.empty {
            let height = self.members.values[*list].parse();
            if height.is_ok_and(|height| self.blocks.have_both_sides_of(height)) {
                absent.push(*list);
            }
        }
        // The reason names the first one, in whichever order they were received.
        absent.sort_unstable();
        absent
    }

    /// Opens the lists of absent blocks again, once: a chain that grows may have had none of them before.
    pub(super) fn read_absent_again(&mut self, report: &SharedReport) -> bool {
        let mut absent = self.absent_blocks();
        absent.retain(|list| self.absent.insert(*list));
        self.empty.retain(|list| !absent.contains(list));
        for list in &absent {
            self.ended.remove(*list);
            self.outcome.begin_again(*list, report);
            self.unopened.push_back(*list);
        }
        !absent.is_empty()
    }

    /// Gives a reason for blocks that the API does not have, and has others below and above them.
    pub(super) fn doubt_absent_blocks(&mut self, report: &SharedReport) {
        let absent = self.absent_blocks();
        let Some(first) = absent.first() else { return };
        let height = &self.members.values[*first];
        let missing = if absent.len() == 1 { "1 block is".to_owned() } else { format!("{} blocks are", absent.len()) };
        let reason = format!(
            "The API returned no block of height {height}, although it has blocks below and above it: {missing} missing. Run the \
             query again."
        );
        self.outcome.doubt_empty(&absent, &reason.into(), report);
    }
}
