//! `SetPage`: how a set continues after any row of a page of one of its lists.

use std::sync::Arc;

use super::Set;
use super::ended::EndedLists;
use crate::columns::ColumnsBuilder;
use crate::decode::Paging;
use crate::message::Message;
use crate::query::execution::unique::Unique;
use crate::query::request::Query;
use crate::query::results::{
    Checkpoint, Cursor, Page, Partial, Resume, SearchState, SeenLog, SetCursor, SharedReport, bits_of,
};
use crate::query::snapshot::ListCheckpoint;

/// A page of a list of a set.
pub(super) struct MemberPage {
    pub list: usize,
    /// Position after the page in its list.
    pub after: Checkpoint,
    /// Rows of the page that the set returned, where another list had returned the others; all if `None`.
    pub kept: Option<Vec<u32>>,
}

/// State of a set when a page of one of its lists was returned. Lists are indices.
pub(super) struct SetPage {
    pub query: Query,
    /// `None` if lists have moved or ended without records.
    pub page: Option<MemberPage>,
    /// Positions of the other lists that are being read.
    pub open: Vec<(usize, Checkpoint)>,
    /// Positions of the lists of which this run has returned nothing: an earlier run had begun them.
    pub begun: Vec<(usize, Arc<Cursor>)>,
    pub ended: EndedLists,
    /// Heights that ended without a block, and the lowest and the highest height with one, if blocks are missed.
    pub empty: Vec<usize>,
    pub ends: Option<(i64, i64)>,
    /// Lists that ended with an error, and the error.
    pub refused: Vec<(usize, Message)>,
    /// Records that another list may return again.
    pub seen: SeenLog,
    /// Reasons why ended lists are incomplete.
    pub reasons: Vec<Message>,
    /// State of the searches for the heights of times, for the lists that are not read yet.
    pub search: Option<Arc<SearchState>>,
}

impl Set {
    /// The position of the set after a page of a list, or after lists that ended or moved without records.
    pub(super) fn position(&self, page: Option<MemberPage>, report: &SharedReport) -> SetPage {
        let list = page.as_ref().map(|page| page.list);
        let others = self.open.iter().filter(|(other, _)| Some(**other) != list);
        let begun = self.begun.iter().filter_map(|other| Some((*other, self.starts.get(other)?.clone())));
        let has_block_of_each_value = self.has_block_of_each_value();
        let mut ended = self.ended.clone();
        // A run that continues from here reads them again.
        if self.has_false_counts() {
            self.empty.difference(&self.opened_again).for_each(|list| ended.remove(*list));
        }
        let empty = self.empty.iter().copied().filter(|list| has_block_of_each_value && ended.contains(*list));
        SetPage {
            query: self.query.clone(),
            page,
            open: others.filter_map(|(other, list)| Some((*other, list.checkpoint.clone()?))).collect(),
            begun: begun.collect(),
            empty: empty.collect(),
            ended,
            ends: self.blocks.ends().filter(|_| has_block_of_each_value),
            refused: self.outcome.refused.clone(),
            seen: self.unique.as_ref().map_or_else(SeenLog::default, Unique::log),
            reasons: self.outcome.reasons.clone(),
            search: report.search(),
        }
    }

    /// A page without records, with the position after lists that ended or moved without any; `None` if the last page has it. A
    /// run that continues from the page before would send the requests of these lists again, and may get no further with as
    /// many.
    pub(super) fn page_of_moved(&mut self, report: &SharedReport, partial: &Partial) -> Option<Page> {
        if !std::mem::take(&mut self.has_moved) {
            return None;
        }
        let checkpoint = Checkpoint::after(self.position(None, report), 0);
        partial.move_to(&checkpoint);
        let columns = ColumnsBuilder::new(self.query.record(), 0).finish();
        Some(Page { number: 1, paging: Paging::default(), columns, checkpoint })
    }
}

impl MemberPage {
    /// The position in the list after `row` rows of the set.
    fn at_row(&self, row: usize) -> Checkpoint {
        match self.kept.as_ref().map(|kept| kept.get(row)) {
            // Rows between were returned by other lists.
            Some(Some(next)) => self.after.at_row(*next as usize),
            Some(None) => self.after.at_end(),
            None => self.after.at_row(row),
        }
    }
}

impl SetPage {
    fn has_ended(&self, list: usize) -> bool {
        self.page.as_ref().is_none_or(|page| page.list != list) && self.ended.contains(list)
    }
}

impl Resume for SetPage {
    /// The lists that have ended, and the positions of those that are being read. Lists are named by ranks.
    fn cursor(&self, row: usize) -> Cursor {
        let mut at = Cursor::at(&self.query, 0, 0, ListCheckpoint::default(), None);
        let Some(members) = self.query.members() else { return at };
        let ranks = members.ranks();
        let ended = (0..ranks.len()).filter(|list| self.has_ended(*list)).map(|list| ranks[list]);
        let empty = self.empty.iter().map(|list| ranks[*list]);
        let this = self.page.iter().map(|page| (page.list, page.at_row(row).cursor()));
        let open = self.open.iter().map(|(list, page)| (*list, page.cursor()));
        let begun = self.begun.iter().map(|(list, cursor)| (*list, Cursor::clone(cursor)));
        let open: Vec<_> = this.chain(open).chain(begun).collect();
        let lists = open.len();
        let seen = self.seen.to_vec().into_iter().filter(|seen| seen.is_open(|list| self.has_ended(list)));
        let set = SetCursor {
            ended: bits_of(ended, ranks.len()),
            empty: if self.empty.is_empty() { String::new() } else { bits_of(empty, ranks.len()) },
            ends: self.ends,
            open: open
                .into_iter()
                .map(|(list, cursor)| (ranks[list], cursor.within(&at, &self.query.member(list), lists)))
                .collect(),
            refused: self.refused.iter().map(|(list, error)| (ranks[*list], error.clone())).collect(),
            seen: seen.map(|seen| seen.renumbered(|list| ranks[list as usize])).collect(),
            ..SetCursor::start(members)
        };
        at.set = Some(Box::new(set));
        at.reasons.clone_from(&self.reasons);
        at.search.clone_from(&self.search);
        at
    }
}
