//! `Custody`: an id has one holder at a time, so that each transfer comes from the receiver of the one before it.
//!
//! Lists begin with the newest record: the holders before the transfers of a height are those after the next lower one.

use std::collections::hash_map::Entry;

use super::finding::Finding;
use super::moves::{MAX_KEYS, Move, Protocol, hash};
use super::trail::{Holders, Trail};
use crate::interface::Law;
use crate::query::hashed::HashedMap;

#[derive(Clone, Debug)]
pub struct Custody {
    ids: HashedMap<TransferId>,
    lowest: i64,
    tally: Tally,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    checked: u64,
    missing: u64,
    violation: Option<String>,
    /// True if transfers of ids are not compared that are not in doubt: the list is not in order, too long, or without ids.
    is_partial: bool,
}

/// Transfers of one id at one height.
#[derive(Clone, Debug)]
struct TransferId {
    height: i64,
    /// Holders after this height, as far as newer transfers tell.
    after: Holders,
    trail: Trail,
    /// Number of heights, from this one down, that may have other transfers than those of the trail.
    doubtful: u8,
}

impl Custody {
    pub fn new() -> Self {
        Self { ids: HashedMap::default(), lowest: i64::MAX, tally: Tally::default() }
    }

    pub fn add(&mut self, moved: &Move<'_>) {
        if moved.protocol != Protocol::Unique {
            return;
        }
        self.lowest = moved.height.unwrap_or(self.lowest).min(self.lowest);
        if moved.id.is_empty() {
            self.tally.is_partial = true;
            return;
        }
        let Some(id) = self.at_height(moved.id, moved.height) else { return };
        match moved.done() {
            Some((from, to, _)) => id.trail.push(from, to),
            // Without a height it belongs to that of the transfers above or to that of those below.
            None => id.doubtful = if moved.height.is_some() { 1 } else { 2 },
        }
    }

    /// The transfers of an id at a height, or at that of its last one; `None` if they are not compared.
    fn at_height(&mut self, name: &str, height: Option<i64>) -> Option<&mut TransferId> {
        let is_full = self.ids.len() >= MAX_KEYS;
        let id = match self.ids.entry(hash(name)) {
            Entry::Vacant(_) if is_full => {
                self.tally.is_partial = true;
                return None;
            }
            Entry::Vacant(entry) => entry.insert(TransferId::new(height.unwrap_or(i64::MAX))),
            Entry::Occupied(entry) => entry.into_mut(),
        };
        let height = height.unwrap_or(id.height);
        if height > id.height {
            // Nothing is below this height: what is listed later is not compared either.
            *id = TransferId::new(i64::MIN);
            self.tally.is_partial = true;
            return None;
        }
        if height < id.height {
            self.tally.add(id, || format!("token id {name}"));
            id.begin(height);
        }
        Some(id)
    }

    /// The finding on the transfers so far; those of the lowest height are cut unless the list was read to its end.
    pub fn finding(&self, law: &Law, is_to_end: bool) -> Finding {
        let mut tally = self.tally.clone();
        let mut ids: Vec<&TransferId> = self.ids.values().filter(|id| is_to_end || id.height > self.lowest).collect();
        ids.sort_unstable_by_key(|id| std::cmp::Reverse(id.height));
        ids.into_iter().for_each(|id| tally.add(id, || "a token id".into()));
        Finding {
            law: law.name.into(),
            held: match tally.missing {
                0 if tally.is_partial || tally.checked == 0 => None,
                missing => Some(missing == 0),
            },
            checked: tally.checked,
            missing: tally.missing,
            violation: tally.violation,
            earlier: None,
            assumption: law.assumption.into(),
        }
    }
}

impl Tally {
    /// Counts the transfers of an id at one height.
    fn add(&mut self, id: &TransferId, name: impl Fn() -> String) {
        if id.doubtful > 0 {
            return;
        }
        self.checked += id.trail.len();
        if id.trail.holders_before(&id.after).is_some() {
            return;
        }
        self.missing += 1;
        self.violation.get_or_insert_with(|| {
            let name = name();
            let height = id.height;
            format!("{name} left an address that did not receive it last, at height {height} or next")
        });
    }
}

impl TransferId {
    fn new(height: i64) -> Self {
        Self { height, after: Holders::Unknown, trail: Trail::default(), doubtful: 0 }
    }

    /// Begins a lower height.
    fn begin(&mut self, height: i64) {
        let trail = std::mem::take(&mut self.trail);
        let before = trail.holders_before(&self.after).or_else(|| trail.holders_before(&Holders::Unknown));
        self.after = if self.doubtful == 0 { before.unwrap_or_default() } else { Holders::default() };
        self.doubtful = self.doubtful.saturating_sub(1);
        self.height = height;
    }
}
