//! `Copies`: equal records of a list. A response is of one moment: if it shows a record twice, the list has two of them.

use std::collections::hash_map::Entry;

use super::OtherRows;
use super::in_blocks::{KEPT_RECORDS, ReadHeights, Sighting};
use crate::query::audit::repeats::count;
use crate::query::hashed::{HashedMap, HashedSet};

/// Records of which a response showed several, or several were returned, by their keys.
#[derive(Clone, Debug, Default)]
pub struct Copies(HashedMap<Copied>);

#[derive(Clone, Copy, Debug)]
struct Copied {
    returned: u64,
    shown: Option<Shown>,
}

impl Copied {
    fn lacks_some(&self, read: ReadHeights<'_>) -> bool {
        self.shown.is_some_and(|shown| self.returned < shown.copies && read.must_have(shown.seen))
    }
}

/// The most that one response showed.
#[derive(Clone, Copy, Debug)]
struct Shown {
    copies: u64,
    seen: Sighting,
}

impl Copies {
    /// The latest records of an earlier run.
    pub fn of_earlier_run(latest: &[u64]) -> Self {
        let mut copies = Self::default();
        let mut keys = HashedSet::default();
        latest.iter().for_each(|key| copies.on_returned(*key, keys.insert(*key)));
        copies
    }

    /// These records in a reading of the same list that takes the place of the one that received them.
    pub fn of_earlier_reading(self) -> Self {
        let shown = self.0.into_iter().filter_map(|(key, copied)| {
            let Shown { copies, seen } = copied.shown?;
            let shown = Some(Shown { copies, seen: seen.of_earlier_reading() });
            Some((key, Copied { returned: 0, shown }))
        });
        Self(shown.collect())
    }

    /// Takes a record that is about to be returned.
    pub fn on_returned(&mut self, key: u64, is_new: bool) {
        // Nearly every list has no equal records.
        if is_new && self.0.is_empty() {
            return;
        }
        let is_full = self.0.len() == KEPT_RECORDS;
        match self.0.entry(key) {
            Entry::Occupied(mut copied) => copied.get_mut().returned += 1,
            Entry::Vacant(entry) if !is_new && !is_full => {
                entry.insert(Copied { returned: 2, shown: None });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Takes rows that are not returned, before the others of their response are.
    pub fn add(&mut self, others: OtherRows<'_>) {
        let OtherRows { rows, returning, forks, known, number } = others;
        // All of nearly every page is returned.
        if returning.len() == rows.len() {
            return;
        }
        let keys = rows.keys();
        for row in others.iter() {
            let key = keys[row];
            let copies = count(key, &keys);
            let Some(block) = forks.block_of(rows, row).filter(|_| copies > 1) else { continue };
            if self.0.len() < KEPT_RECORDS || self.0.contains_key(&key) {
                let returned = u64::from(known.contains(key));
                let copied = self.0.entry(key).or_insert(Copied { returned, shown: None });
                if copied.shown.is_none_or(|shown| shown.copies < copies) {
                    copied.shown = Some(Shown { copies, seen: Sighting { block, received: number } });
                }
            }
        }
    }

    /// True if a response showed more of these records than were returned.
    pub fn lack_some(&self, read: ReadHeights<'_>) -> bool {
        self.0.values().any(|copied| copied.lacks_some(read))
    }
}
