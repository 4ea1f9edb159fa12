//! Services that break one of the assumptions about the API.

use super::super::{PageRequest, Purpose};
use super::choices::Choices;
use super::served::Record;

/// An assumption that does not hold. Nothing tells the reader which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Records of one height come in another order in some responses.
    TiesReordered,
    /// One of two replicas lacks a record.
    ReplicaWithGap,
    /// Each page is the first.
    PageIgnored,
    /// Some counts, and the numbers of pages with them, are one too many.
    CountOneMore,
    /// Some are one too few.
    CountOneLess,
    /// Some counts are those of the first response.
    CountCached,
    /// A record is listed late, below others of its height.
    LateRecord,
}

/// Most times that a service changes between right and wrong.
const MAX_CHANGES: usize = 2;

#[derive(Clone, Debug, Default)]
pub struct Adversary {
    /// Position from the end of the record that one replica lacks.
    gap: Option<usize>,
    first_length: Option<usize>,
    is_wrong: bool,
    changes: usize,
    has_inserted: bool,
    /// Three records next to each other of each response, if one replica lacks a record.
    shown: Vec<Vec<u64>>,
}

impl Adversary {
    /// True if this response is a wrong one.
    fn is_wrong_now(&mut self, choices: &mut dyn Choices) -> bool {
        if self.changes < MAX_CHANGES && choices.choose(2) == 1 {
            self.changes += 1;
            self.is_wrong = !self.is_wrong;
        }
        self.is_wrong
    }

    /// The list as one response shows it.
    pub fn list(&mut self, defect: Option<Defect>, mut list: Vec<Record>, choices: &mut dyn Choices) -> Vec<Record> {
        match defect {
            Some(Defect::TiesReordered) if self.is_wrong_now(choices) => {
                list.chunk_by_mut(|left, right| left.height == right.height).for_each(<[Record]>::reverse);
            }
            Some(Defect::ReplicaWithGap) if list.len() > 1 => {
                let gap = *self.gap.get_or_insert_with(|| choices.choose(list.len()));
                if self.is_wrong_now(choices) && gap < list.len() {
                    list.remove(list.len() - 1 - gap);
                }
            }
            _ => {}
        }
        list
    }

    pub fn page(&self, defect: Option<Defect>, request: &PageRequest) -> u64 {
        let is_ignored = defect == Some(Defect::PageIgnored) && request.purpose != Purpose::Probe;
        if is_ignored { 1 } else { request.page }
    }

    /// The length that a response reports.
    pub fn length(&mut self, defect: Option<Defect>, length: usize, limit: usize, choices: &mut dyn Choices) -> usize {
        let first = *self.first_length.get_or_insert(length);
        match defect {
            Some(Defect::CountOneMore) if self.is_wrong_now(choices) => length + 1,
            // Nothing contradicts a count that is that of full pages.
            Some(Defect::CountOneLess) if length % limit != 1 && self.is_wrong_now(choices) => length.saturating_sub(1),
            Some(Defect::CountCached) if first != length && self.is_wrong_now(choices) => first,
            _ => length,
        }
    }

    /// Takes the rows of a response.
    pub fn show(&mut self, defect: Option<Defect>, rows: &[Record]) {
        if defect == Some(Defect::ReplicaWithGap) {
            self.shown.extend(rows.windows(3).map(|rows| rows.iter().map(|record| record.key).collect()));
        }
    }

    /// True if a response showed a record between two of these, which are next to each other here.
    pub fn showed_another_between(&self, got: &[u64]) -> bool {
        self.shown.iter().any(|rows: &Vec<u64>| got.windows(2).any(|pair| pair == [rows[0], rows[2]]))
    }

    /// True if a record is listed late now.
    pub fn inserts(&mut self, defect: Option<Defect>, length: usize, choices: &mut dyn Choices) -> bool {
        let may_insert = defect == Some(Defect::LateRecord) && !self.has_inserted && length > 1;
        self.has_inserted |= may_insert && choices.choose(2) == 1;
        may_insert && self.has_inserted
    }

    /// True if these are the keys of a state of the list, or of a replica: where the order of equal heights is not fixed, in
    /// any order.
    pub fn is_right(&self, defect: Defect, states: &[Vec<Record>], got: &[u64], wanted: usize) -> bool {
        let keys = |state: &[Record]| state.iter().take(wanted).map(|record| record.key).collect::<Vec<_>>();
        let sorted = |mut keys: Vec<u64>| {
            keys.sort_unstable();
            keys
        };
        let oldest_new = states.first().into_iter().flatten().map(|record| record.id + 1).max().unwrap_or(0);
        states.iter().any(|state| {
            // Newer records may be left out, as the list grows while its length is requested.
            let all_newer = |newer: &usize| state[..*newer].iter().all(|record| record.id >= oldest_new);
            (0..=state.len()).take_while(all_newer).any(|newer| match defect {
                Defect::TiesReordered => sorted(keys(&state[newer..])) == sorted(got.to_vec()),
                Defect::ReplicaWithGap => {
                    let mut replica = state.clone();
                    if let Some(gap) = self.gap.filter(|gap| *gap < state.len()) {
                        replica.remove(state.len() - 1 - gap);
                    }
                    keys(&state[newer..]) == got || replica.get(newer..).is_some_and(|rest| keys(rest) == got)
                }
                _ => keys(&state[newer..]) == got,
            })
        })
    }
}
