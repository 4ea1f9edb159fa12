//! `Copies`: equal records of a list. A response is of one moment: if it shows a record twice, the list has two of them.

use std::collections::hash_map::Entry;

use super::forks::{BlockOfRow, Forks};
use super::known_keys::KnownKeys;
use super::repeats::count;
use super::strays::ReadHeights;
use crate::query::hashed::{HashedMap, HashedSet};
use crate::query::snapshot::Rows;

/// Records that are kept.
const KEPT: usize = 1_024;

/// Records of which a response showed several, or several were returned, by their keys.
#[derive(Debug, Default)]
pub struct Copies(HashedMap<Copied>);

#[derive(Clone, Copy, Debug)]
struct Copied {
    returned: u64,
    shown: Option<Shown>,
}

/// The most that one response showed.
#[derive(Clone, Copy, Debug)]
struct Shown {
    copies: u64,
    block: BlockOfRow,
    /// Number of the response; 0 for those of a reading that was discarded.
    received: u64,
}

impl Copies {
    /// The latest records of an earlier run.
    pub fn of_earlier_run(latest: &[u64]) -> Self {
        let (mut copies, mut keys) = (Self::default(), HashedSet::default());
        latest.iter().for_each(|key| copies.on_returned(*key, keys.insert(*key)));
        copies
    }

    /// These records in a reading of the same list that takes the place of the one that received them.
    pub fn of_earlier_reading(self) -> Self {
        let shown = self.0.into_iter().filter_map(|(key, copied)| Some((key, copied.shown?)));
        Self(
            shown
                .map(|(key, shown)| (key, Copied { returned: 0, shown: Some(Shown { received: 0, ..shown }) }))
                .collect(),
        )
    }

    /// Takes a record that is about to be returned.
    pub fn on_returned(&mut self, key: u64, is_new: bool) {
        // As in nearly every list.
        if is_new && self.0.is_empty() {
            return;
        }
        let is_full = self.0.len() == KEPT;
        match self.0.entry(key) {
            Entry::Occupied(mut copied) => copied.get_mut().returned += 1,
            Entry::Vacant(entry) if !is_new && !is_full => {
                entry.insert(Copied { returned: 2, shown: None });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Takes the response with this number, of which these rows are not returned, before the others are.
    pub fn on_response(
        &mut self,
        rows: &dyn Rows,
        unreturned: impl Iterator<Item = usize>,
        forks: &Forks,
        known: &KnownKeys,
        number: u64,
    ) {
        let keys = rows.keys();
        for row in unreturned {
            let key = keys[row];
            let copies = count(key, &keys);
            let Some(block) = forks.block_of(rows, row).filter(|_| copies > 1) else { continue };
            if self.0.len() < KEPT || self.0.contains_key(&key) {
                let returned = u64::from(known.contains(key));
                let copied = self.0.entry(key).or_insert(Copied { returned, shown: None });
                if copied.shown.is_none_or(|shown| shown.copies < copies) {
                    copied.shown = Some(Shown { copies, block, received: number });
                }
            }
        }
    }

    /// True if a response showed more of these records than were returned.
    pub fn lack_some(&self, read: ReadHeights<'_>) -> bool {
        self.0.values().any(|copied| {
            copied
                .shown
                .is_some_and(|shown| copied.returned < shown.copies && read.are_due(shown.block, shown.received))
        })
    }
}
