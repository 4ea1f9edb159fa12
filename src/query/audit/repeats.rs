//! `Repeats`: records that were returned several times, in different responses. One transaction may have several equal
//! transfers. A response is of one instant: one that shows as many of them as were returned proves that there are as many.

use serde::{Deserialize, Serialize};

use super::pages::page_of_both;
use crate::message::Message;
use crate::query::hashed::HashedMap;
use crate::query::snapshot::{PageRequest, Response};

const DISTANT: &str = "The list has equal records that are too far apart to be requested together: some may be one record that \
                       was received twice.";

/// Most records that are requested again to prove that they are as many.
const MAX_PROOFS: usize = 32;
/// Requests for equal records that the list may have moved away from.
const MAX_LOOKS: u32 = 8;

/// Equal records by the offsets of the first and the last of them in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    key: u64,
    first: u64,
    second: u64,
    /// Number of these records.
    copies: u64,
}

impl Repeat {
    /// True if these records are before that offset, and as many as there can be.
    pub fn is_before(&self, offset: u64) -> bool {
        self.first < self.second && self.second < offset && (2..=self.second - self.first + 1).contains(&self.copies)
    }

    pub fn key(&self) -> u64 {
        self.key
    }

    /// True if a response shows some of these records, and leaves room for the others above and below them.
    fn is_shown(&self, keys: &[u64]) -> bool {
        let Some(top) = keys.iter().position(|key| *key == self.key) else { return false };
        let Some(bottom) = keys.iter().rposition(|key| *key == self.key) else { return false };
        let distance = (self.second - self.first) as usize;
        let margin = distance.saturating_sub(bottom - top);
        top >= margin && bottom + margin < keys.len()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Repeats {
    /// Most records with a key that one response showed.
    proven: HashedMap<u64>,
    open: Vec<Repeat>,
    /// True if some cannot be shown by one response.
    has_distant: bool,
    looks: u32,
}

impl Repeats {
    /// The equal records that an earlier run did not prove.
    pub fn continued(open: &[Repeat]) -> Self {
        Self { open: open.to_vec(), ..Self::default() }
    }

    /// The equal records that are still to be proven.
    pub fn open(&self) -> &[Repeat] {
        &self.open
    }

    /// Adds a record that was returned before, with the offsets of the equal ones before it, the latest first, and the keys
    /// of the response that has it.
    pub fn add(&mut self, key: u64, earlier: impl Iterator<Item = u64>, offset: u64, keys: &[u64], page_size: u64) {
        let proven = self.proven.entry(key).or_insert(1);
        *proven = count(key, keys).max(*proven);
        let near: Vec<u64> = earlier.take_while(|first| offset - first < page_size).collect();
        let Some(latest) = near.first().copied() else {
            self.has_distant |= *proven == 1;
            return;
        };
        // Some page size shows all records that are less than half a page apart.
        let farthest = offset.saturating_sub(page_size.saturating_sub(1) / 2);
        let group: Vec<u64> = near.into_iter().take_while(|earlier| *earlier >= farthest).collect();
        let mut first = group.last().copied().unwrap_or(latest);
        let mut copies = group.len().max(1) as u64 + 1;
        // A cursor keeps the offsets of fewer records than it has open.
        let known = self.open.iter().find(|open| open.key == key && (farthest..first).contains(&open.first));
        if let Some(open) = known {
            let later = group.iter().filter(|other| **other > open.second).count() as u64;
            first = open.first;
            copies = copies.max(open.copies + later + 1);
        }
        // One response that shows them proves the others as well.
        if *proven >= copies || self.open.iter().any(|open| open.key == key && open.copies >= copies) {
            return;
        }
        self.open.retain(|open| open.key != key);
        if self.open.len() < MAX_PROOFS {
            self.open.push(Repeat { key, first, second: offset, copies });
        } else {
            self.has_distant = true;
        }
    }

    /// Why records may have been returned twice: no response could show all of some equal ones together.
    pub fn reason(&self) -> Option<Message> {
        self.has_distant.then(|| DISTANT.into())
    }

    pub fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The page that shows equal records in a list that has moved by `drift`. If none can, they stay unproven.
    pub fn next_request(&mut self, drift: i64, max_page_size: u64) -> Option<PageRequest> {
        let repeat = self.open.first()?;
        let first = repeat.first.saturating_add_signed(drift);
        let second = repeat.second.saturating_add_signed(drift);
        let request = page_of_both(first, second, max_page_size);
        if request.is_none() {
            self.give_up();
        }
        request
    }

    /// Takes the response to such a request. False if it shows the place, which has fewer of them.
    pub fn on_look(&mut self, request: &PageRequest, response: &Response<'_>) -> bool {
        let keys = response.rows.keys();
        let Some(repeat) = self.open.first().copied() else { return true };
        self.open.retain(|open| count(open.key, &keys) < open.copies);
        if self.open.first() != Some(&repeat) {
            self.looks = 0;
            return true;
        }
        self.looks += 1;
        let is_all = request.page == 1 && response.total_pages == Some(1) && keys.len() as u64 > repeat.second;
        if is_all || repeat.is_shown(&keys) {
            return false;
        }
        if self.looks == MAX_LOOKS {
            self.give_up();
        }
        true
    }

    fn give_up(&mut self) {
        self.has_distant |= !self.open.is_empty();
        self.open.clear();
    }
}

/// Number of records with a key.
pub fn count(key: u64, keys: &[u64]) -> u64 {
    keys.iter().filter(|other| **other == key).count() as u64
}
