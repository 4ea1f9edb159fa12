//! The beginning of a run of a set: what an earlier run has read, and the verdicts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ListRun, Set};
use crate::message::Message;
use crate::query::execution::unique::Unique;
use crate::query::request::{Members, Query};
use crate::query::results::{ANY_LIST, Cursor, SharedReport, Verdict};

impl<L: ListRun> Set<L> {
    /// Takes over what an earlier run has read.
    pub(super) fn restore(&mut self, members: &Members<Query>, start: Option<&Cursor>) {
        let earlier = start.and_then(|start| Some((start, start.set.as_ref()?)));
        let mut seen = Vec::new();
        if let Some((start, set)) = earlier {
            let index_of = |rank: u32| if rank == ANY_LIST { ANY_LIST } else { members.by_rank[rank as usize] };
            for (rank, index) in (0..).zip(members.by_rank.iter().map(|index| *index as usize)) {
                if set.has_ended(rank) {
                    self.ended[index / 64] |= 1 << (index % 64);
                    self.num_ended += 1;
                }
                if let Some(at) = start.member(rank, &members.queries[index]) {
                    self.begun.insert(index);
                    self.starts.insert(index, Arc::new(at));
                }
            }
            self.num_skipped = self.num_ended;
            self.refused = set.refused.iter().map(|(rank, error)| (index_of(*rank) as usize, error.clone())).collect();
            seen = set.seen.iter().map(|(key, by, also)| (*key, index_of(*by), index_of(*also))).collect();
        }
        self.unique = Unique::new(&self.query, members, seen);
        let others = (0..members.values.len()).filter(|index| !self.has_ended(*index) && !self.begun.contains(index));
        self.unopened = self.begun.iter().copied().chain(others).collect();
    }

    /// Adds a verdict on each list that is left, and on those that were refused.
    pub(super) fn add_verdicts(&mut self, members: &Members<Query>, report: &SharedReport) {
        let errors: BTreeMap<usize, &Message> = self.refused.iter().map(|(index, error)| (*index, error)).collect();
        let mut verdicts = Vec::new();
        for (index, value) in members.values.iter().enumerate() {
            let error = errors.get(&index).map(|error| (*error).clone());
            let is_reported = error.is_some() || !self.has_ended(index);
            self.verdicts.push(is_reported.then_some(verdicts.len()));
            if is_reported {
                verdicts.push(Verdict { argument: value.clone(), error, ..Verdict::default() });
            }
        }
        report.update(|report| *report.verdicts.lock() = verdicts);
    }
}
