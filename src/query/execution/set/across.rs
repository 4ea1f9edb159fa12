//! Comparisons of the lists of a set with each other.

use std::collections::HashSet;

use super::Set;
use super::outcome::first_of;
use crate::columns::Columns;
use crate::interface::{Bound, Order};
use crate::message::{Hint, Message, counted_are};
use crate::query::audit::{InCommon, Reach, SharedBlock, Source};
use crate::query::execution::shown_lists::ShownLists;
use crate::query::request::{Members, Query};
use crate::query::results::{ANY_LIST, SharedReport, transaction_keys};
use crate::query::snapshot::Rows as _;

/// `None` if a transaction need not be in the list of each address that it shows, or does not show its block.
pub(in crate::query::execution) fn in_common_of(
    query: &Query,
    members: &Members,
    shown_lists: Option<&ShownLists>,
) -> Option<InCommon> {
    let endpoint = query.endpoint();
    if !shown_lists.is_some_and(ShownLists::shows_several) || endpoint.record().block().is_none() {
        return None;
    }
    let has_sides = query.args().iter().filter_map(|(name, _)| endpoint.param(name)).any(|param| {
        let mut bounds = param.bounds.iter();
        bounds.any(|(_, bound)| matches!(bound, Bound::Side { other, .. } if *other == members.name))
    });
    // The list of one side of an address need not have what another one shows.
    (!has_sides).then(InCommon::default)
}

/// Compares the records of a page with those of the other lists, by the hashes of their transactions: lists may show other
/// values of a transaction differently. Those up to the time `newest_old`, in Unix milliseconds, are old.
/// False if one has no hash: its list may be the one that seems to lack it.
pub(in crate::query::execution) fn add_records(
    in_common: &mut InCommon,
    list: usize,
    page: &Columns,
    others: &[Vec<u32>],
    newest_old: i64,
) -> bool {
    for (row, ((key, time), others)) in transaction_keys(page).into_iter().zip(page.times()).zip(others).enumerate() {
        let Some(key) = key else { return false };
        let others = if others.contains(&ANY_LIST) { &[] } else { others.as_slice() };
        let is_old = time.is_some_and(|time| time <= newest_old);
        let block = page.height(row).zip(page.block(row));
        let block = block.map(|(height, hash)| SharedBlock { height, hash, is_old });
        in_common.add(list as u32, key, block, others);
    }
    true
}

/// Lists that lack a record which another list shows, and the reason.
pub(in crate::query::execution) fn lacking_reason(
    in_common: &InCommon,
    members: &Members,
    reach: impl Fn(usize) -> Reach,
) -> Option<(Vec<usize>, Message)> {
    let lacking = in_common.lacking(|list| reach(list as usize));
    if lacking.is_empty() {
        return None;
    }
    let lists: Vec<usize> = lacking.iter().map(|(_, list)| *list as usize).collect();
    let names = lacking.iter().map(|(height, list)| format!("{} (height {height})", members.values[*list as usize]));
    let reason = format!("{} of the lists may lack a record that another list shows: {}", lists.len(), first_of(names));
    Some((lists, Message::new(reason).hint(Hint::RunAgain)))
}

impl Set {
    /// Compares the blocks of a page with those of the other lists.
    pub(super) fn compare_blocks(&mut self, index: usize, rows: &Columns, report: &SharedReport) {
        self.blocks.add(Source::List(index as u64), rows);
        for reason in self.blocks.reasons() {
            self.outcome.add_reason(reason, report);
        }
    }

    /// Rows of a page that no other list has returned; `None` if these are all rows. The records are compared with those of the
    /// other lists.
    pub(super) fn fresh_rows(&mut self, index: usize, page: &Columns) -> Option<Vec<u32>> {
        if self.unique.is_none() && self.in_common.is_none() {
            return None;
        }
        let others = self.shown_lists.as_ref()?.of_rows(index as u32, page);
        if let Some(known) = &mut self.in_common
            && !(known.has_room(page.rows())
                && add_records(known, index, page, &others, self.query.client().newest_old_time()))
        {
            self.in_common = None;
        }
        // One that was empty may be opened again.
        let has_ended = |list| self.ended.contains(list) && !self.empty.contains(&list);
        self.unique.as_mut()?.fresh(index, page, &others, has_ended)
    }

    /// Gives a reason for records that one list shows, and another list, which should have them, lacks.
    pub(super) fn doubt_records_in_common(&mut self, report: &SharedReport) {
        let Some(in_common) = &self.in_common else { return };
        let outcome = &self.outcome;
        let complete = outcome.complete_lists(report);
        let lacking = lacking_reason(in_common, &self.members, |list| match list {
            list if outcome.refused.iter().any(|(other, _)| *other == list) => Reach::Nowhere,
            list if complete.contains(&list) => Reach::End,
            _ => Reach::LowestRecord,
        });
        if let Some((lists, reason)) = lacking {
            self.outcome.doubt(&lists, &reason, report);
        }
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
        absent
    }

    /// Lists that have ended without records, although other lists show some of theirs.
    fn empty_in_spite_of_others(&self) -> Vec<usize> {
        let lacking = self.in_common.as_ref().map_or_else(HashSet::new, InCommon::without_some);
        self.empty.iter().copied().filter(|list| lacking.contains(&(*list as u32))).collect()
    }

    /// Opens lists without records again, once: those of absent blocks and those of which other lists show records, since a
    /// chain that grows may have had none of them before, and all of them if the service was seen to throttle by pages that
    /// count none.
    pub(super) fn read_empty_again(&mut self, report: &SharedReport) -> bool {
        let mut lists: Vec<usize> = if self.has_false_counts() {
            self.empty.iter().copied().collect()
        } else {
            [self.absent_blocks(), self.empty_in_spite_of_others()].concat()
        };
        lists.retain(|list| self.opened_again.insert(*list));
        self.empty.retain(|list| !lists.contains(list));
        for list in &lists {
            self.ended.remove(*list);
            self.outcome.begin_again(*list, report);
            self.unopened.push_back(*list);
        }
        !lists.is_empty()
    }

    /// True if lists that have ended without records may have some.
    pub(super) fn has_false_counts(&self) -> bool {
        self.query.client().empty_responses().has_false_counts()
    }

    /// Gives a reason for lists that are still empty, although other lists show records of them.
    pub(super) fn doubt_empty_lists(&mut self, report: &SharedReport) {
        let lists = self.empty_in_spite_of_others();
        if lists.is_empty() {
            return;
        }
        let names = lists.iter().map(|list| self.members.values[*list].clone());
        let reason = format!(
            "{} of the lists have no records, although another list shows some of theirs: {}",
            lists.len(),
            first_of(names)
        );
        self.outcome.doubt(&lists, &Message::new(reason).hint(Hint::RunAgain), report);
    }

    /// Gives a reason for blocks that the API does not have, and has others below and above them.
    pub(super) fn doubt_absent_blocks(&mut self, report: &SharedReport) {
        let absent = self.absent_blocks();
        let Some(first) = absent.first() else { return };
        let height = &self.members.values[*first];
        let blocks = counted_are(absent.len() as u64, "block");
        let reason = format!(
            "The API returned no block of height {height}, although it has blocks below and above it: {blocks} missing"
        );
        self.outcome.doubt(&absent, &Message::new(reason).hint(Hint::RunAgain), report);
    }
}
