//! The beginning of a run of a set: what an earlier run has read.

use std::sync::Arc;

use super::Set;
use super::across::in_common_of;
use crate::query::execution::shown_lists::ShownLists;
use crate::query::execution::unique::Unique;
use crate::query::results::Cursor;

impl Set {
    /// Takes over what an earlier run has read.
    pub(super) fn restore(&mut self, start: Option<&Cursor>) {
        self.outcome.reasons = start.map(|start| start.reasons.clone()).unwrap_or_default();
        let members = &self.members;
        let earlier = start.and_then(|start| Some((start, start.set.as_ref()?)));
        let mut seen = Vec::new();
        if let Some((start, set)) = earlier {
            let index_of = |rank: u32| members.by_rank[rank as usize];
            for (rank, index) in (0..).zip(members.by_rank.iter().map(|index| *index as usize)) {
                if set.has_ended(rank) {
                    self.ended.insert(index);
                }
                if set.is_empty(rank) {
                    self.empty.insert(index);
                }
                if let Some(at) = start.member(rank, &self.query.member(index)) {
                    self.begun.insert(index);
                    self.starts.insert(index, Arc::new(at));
                }
            }
            self.blocks.set_ends(set.ends);
            self.ended.skipped = self.ended.count;
            self.outcome.refused =
                set.refused.iter().map(|(rank, error)| (index_of(*rank) as usize, error.clone())).collect();
            seen = set.seen.iter().map(|seen| seen.renumbered(index_of)).collect();
        }
        self.shown_lists = ShownLists::of(&self.query, members);
        self.unique = (self.shown_lists.is_some() && self.query.options().unique).then(|| Unique::new(seen));
        self.in_common = in_common_of(&self.query, members, self.shown_lists.as_ref());
        if let Some(in_common) = &mut self.in_common {
            self.starts.keys().for_each(|list| in_common.continue_list(*list as u32));
        }
        let others =
            (0..members.values.len()).filter(|index| !self.ended.contains(*index) && !self.begun.contains(index));
        self.unopened = self.begun.iter().copied().chain(others).collect();
    }
}
