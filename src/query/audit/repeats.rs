//! `Repeats`: records that were returned twice, in different responses. One transaction may have several equal transfers.
//! A response is of one instant: one that shows both of them proves that there are two.

use serde::{Deserialize, Serialize};

use super::known_keys::KeySet;
use crate::query::snapshot::{PageRequest, Purpose, Response};

/// Most records that are requested again to prove that they are two.
const MAX_PROOFS: usize = 32;
/// Requests for two equal records that the list may have moved away from.
const MAX_LOOKS: u32 = 8;

/// Two equal records by their offsets in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    key: u64,
    first: u64,
    second: u64,
}

impl Repeat {
    /// True if both records are before that offset.
    pub fn is_before(&self, offset: u64) -> bool {
        self.first < self.second && self.second < offset
    }

    pub fn key(&self) -> u64 {
        self.key
    }
}

#[derive(Debug, Default)]
pub struct Repeats {
    /// Keys that one response showed twice.
    proven: KeySet,
    open: Vec<Repeat>,
    /// True if some cannot be shown by one response.
    has_distant: bool,
    looks: u32,
}

/// Outcome of a response to a request for two equal records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Both are there, or the response does not show the place.
    Open,
    /// The place has one of them only.
    Contradicted,
}

impl Repeats {
    /// Those that an earlier run did not prove.
    pub fn continued(open: &[Repeat]) -> Self {
        Self { open: open.to_vec(), ..Self::default() }
    }

    /// Those that are still to be proven.
    pub fn open(&self) -> &[Repeat] {
        &self.open
    }

    /// Adds a record that was returned before.
    pub fn add(&mut self, key: u64, first: Option<u64>, second: u64, keys: &[u64], page_size: u64) {
        if self.proven.contains(&key) {
            return;
        }
        if occurs_twice(key, keys) {
            self.prove(key);
            return;
        }
        match first.filter(|first| second - first < page_size) {
            Some(_) if self.open.iter().any(|open| open.key == key) => {}
            Some(first) if self.open.len() < MAX_PROOFS => self.open.push(Repeat { key, first, second }),
            _ => self.has_distant = true,
        }
    }

    fn prove(&mut self, key: u64) {
        self.proven.insert(key);
        self.open.retain(|open| open.key != key);
    }

    /// True if equal records were returned that no response could show together.
    pub fn are_uncertain(&self) -> bool {
        self.has_distant
    }

    pub fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The page that shows both of two equal records in a list that has moved by `drift`.
    pub fn next_request(&self, drift: i64, page_size: u64, max_page_size: u64) -> Option<PageRequest> {
        let repeat = self.open.first()?;
        let at = |offset: u64| offset.saturating_add_signed(drift);
        let (first, second) = (at(repeat.first), at(repeat.second));
        // Pages begin at multiples of their size, so the largest may begin between the two. In a list that grows, both are
        // best in the middle of a page.
        let margin = |limit: &u64| (first % limit).min(limit - 1 - second % limit);
        let sizes = (2..=max_page_size.max(page_size)).filter(|limit| first / limit == second / limit);
        let limit = sizes.max_by_key(margin)?;
        Some(PageRequest { page: first / limit + 1, limit, height_bound: None, purpose: Purpose::Audit })
    }

    /// Takes the response to such a request.
    pub fn on_look(&mut self, request: &PageRequest, response: &Response<'_>) -> Look {
        let rows = response.rows;
        self.looks += 1;
        let keys: Vec<u64> = (0..rows.len()).map(|row| rows.key(row)).collect();
        let Some(repeat) = self.open.first().copied() else { return Look::Open };
        let proven: Vec<u64> = self.open.iter().map(|open| open.key).filter(|key| occurs_twice(*key, &keys)).collect();
        proven.iter().for_each(|key| self.prove(*key));
        if proven.contains(&repeat.key) {
            self.looks = 0;
            return Look::Open;
        }
        let distance = (repeat.second - repeat.first) as usize;
        let is_shown = keys.iter().position(|key| *key == repeat.key).is_some_and(|at| {
            let above = at.checked_sub(distance);
            above.is_some() && at + distance < keys.len()
        });
        let is_all = request.page == 1 && response.total_pages == Some(1) && keys.len() as u64 > repeat.second;
        if is_shown || is_all {
            return Look::Contradicted;
        }
        if self.looks == MAX_LOOKS {
            self.give_up();
        }
        Look::Open
    }

    /// True if two equal records cannot be requested together.
    pub fn give_up(&mut self) {
        self.has_distant |= !self.open.is_empty();
        self.open.clear();
    }
}

pub fn occurs_twice(key: u64, keys: &[u64]) -> bool {
    keys.iter().filter(|other| **other == key).count() > 1
}
