//! `FollowState`: what a follower knows of the records that it delivered. It is all that a cursor needs.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::fingerprint::{Fingerprint, RowFacts, packed};
use super::reading::Reading;

/// Treatment of heights that may still change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Heights are held back until they are settled; a later change is an error.
    Held,
    /// Heights are delivered at once; a change is an event.
    Undone,
}

/// Up to where delivered heights are no longer known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OldestKnown {
    /// Following began above this height.
    Start(i64),
    /// Heights up to this one were delivered and forgotten.
    Forgotten(i64),
}

impl OldestKnown {
    pub fn height(self) -> i64 {
        let (Self::Start(height) | Self::Forgotten(height)) = self;
        height
    }
}

/// Records of one height that were delivered elsewhere: the export that is followed has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportOverlap {
    pub height: i64,
    pub keys: Vec<u64>,
}

impl ExportOverlap {
    /// Takes a record that was delivered elsewhere out of the overlap. False if it was not.
    pub fn take(&mut self, row: &RowFacts) -> bool {
        let found = self.keys.iter().position(|key| row.height == Some(self.height) && *key == row.key);
        found.map(|index| self.keys.swap_remove(index)).is_some()
    }
}

/// Beginning of a list that is followed from there, where the API returns the records of some time only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beginning {
    /// No record was delivered that would show whether there were earlier ones.
    Unseen,
    /// Records before the first one may exist, that many where their number is known.
    Cut(Option<u64>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowState {
    /// All records up to this height were delivered.
    position: i64,
    oldest_known: OldestKnown,
    /// Fingerprints of the heights above the oldest known one that have records, the lowest first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty", with = "packed")]
    known: VecDeque<Fingerprint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overlap: Option<ExportOverlap>,
    /// The last round, if it delivered all that was due: a list that still shows the same has nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_round: Option<LastRound>,
    /// `None` if nothing is missing before the first record, if a run reported what is, or if following began elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beginning: Option<Beginning>,
}

/// The head of the chain, as another list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainHead {
    pub height: i64,
    /// Hash of that list's first page.
    pub page: u64,
}

/// The end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRound {
    /// Hash of the first page.
    pub first_page: u64,
    /// The greatest height of the list.
    pub top: i64,
    /// The lowest height that was held back, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<i64>,
    /// The head of the chain when the list was read, where another list shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<ChainHead>,
}

/// Keys of the records of one height.
fn keys_at(height: i64, records: &[(u64, i64)]) -> impl Iterator<Item = u64> {
    records.iter().filter(move |(_, other)| *other == height).map(|(key, _)| *key)
}

impl LastRound {
    /// The lowest height that is not known to have no records: up to it, nothing new is due.
    pub fn first_unknown(&self) -> i64 {
        let read_to = self.head.map_or(self.top, |head| head.height);
        self.held.map_or(read_to, |held| held.min(read_to))
    }
}

impl FollowState {
    /// Nothing was delivered, and what is up to this height is not wanted.
    pub fn start_after(height: i64) -> Self {
        Self {
            position: height,
            oldest_known: OldestKnown::Start(height),
            known: VecDeque::new(),
            overlap: None,
            last_round: None,
            beginning: None,
        }
    }

    /// The state of an export, by the keys and heights of its newest records. They are all of those above the oldest known one.
    pub fn of_export(newest: &[(u64, i64)], oldest_known: OldestKnown) -> Option<Self> {
        let Some(highest) = newest.iter().map(|(_, height)| *height).max() else {
            let OldestKnown::Forgotten(height) = oldest_known else { return None };
            return Some(Self { oldest_known, ..Self::start_after(height) });
        };
        if highest <= oldest_known.height() {
            return Some(Self { oldest_known: OldestKnown::Forgotten(highest), ..Self::start_after(highest) });
        }
        let mut heights: Vec<i64> = newest.iter().map(|(_, height)| *height).collect();
        heights.sort_unstable();
        heights.dedup();
        let known = heights.into_iter().filter(|height| *height > oldest_known.height() && *height < highest);
        let known = known.map(|height| Fingerprint::of_keys(height, keys_at(height, newest))).collect();
        let overlap = Some(ExportOverlap { height: highest, keys: keys_at(highest, newest).collect() });
        Some(Self { position: highest - 1, oldest_known, known, overlap, last_round: None, beginning: None })
    }

    #[must_use]
    pub fn with_beginning(self, beginning: Option<Beginning>) -> Self {
        Self { beginning, ..self }
    }

    pub fn delivered_to(&self) -> i64 {
        self.position
    }

    pub fn oldest_known(&self) -> OldestKnown {
        self.oldest_known
    }

    pub fn overlap(&self) -> Option<&ExportOverlap> {
        self.overlap.as_ref()
    }

    pub fn last_round(&self) -> Option<LastRound> {
        self.last_round
    }

    pub fn set_last_round(&mut self, last: LastRound) {
        self.last_round = Some(last);
    }

    /// Number of heights that are remembered.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// The highest remembered height.
    pub fn highest(&self) -> Option<i64> {
        self.known.back().map(|known| known.height)
    }

    /// The height from which on the list is read again: the highest remembered one, or, if the delivered heights had no
    /// records, the first of them.
    pub fn verified_from(&self) -> i64 {
        self.highest().unwrap_or(self.oldest_known.height().saturating_add(1))
    }

    /// The highest remembered height below another one.
    pub fn below(&self, height: i64) -> Option<i64> {
        self.known.iter().rev().find(|known| known.height < height).map(|known| known.height)
    }

    /// The lowest remembered height that is not below another one.
    pub fn from(&self, height: i64) -> Option<i64> {
        self.known.iter().find(|known| known.height >= height).map(|known| known.height)
    }

    /// True if all heights below this one were delivered and forgotten.
    pub fn has_forgotten_all_below(&self, height: i64) -> bool {
        self.below(height).is_none() && matches!(self.oldest_known, OldestKnown::Forgotten(_))
    }

    /// The lowest delivered height of a reading that changed.
    pub fn lowest_change(&self, reading: &Reading, changes: Changes) -> Option<i64> {
        let low = reading.complete_from().max(self.oldest_known.height().saturating_add(1));
        let high = reading.complete_to().min(self.position);
        let known = self.known.iter().filter(|known| (low..=high).contains(&known.height));
        let changed = known.filter(|known| match (reading.get(known.height), changes) {
            (None, _) => true,
            (Some(now), Changes::Held) => !now.is_same_records(known),
            (Some(now), Changes::Undone) => !now.is_same_content(known),
        });
        let added = reading.heights(low, high).filter(|now| !self.is_known(now.height));
        let overlap = self.overlap.iter().filter(|overlap| reading.is_complete(overlap.height));
        let removed =
            overlap.filter(|overlap| reading.lacks(overlap.height, &overlap.keys)).map(|overlap| overlap.height);
        changed.chain(added).map(|fingerprint| fingerprint.height).chain(removed).min()
    }

    /// The first and the last height of which a reading lacks records, or has another block, below a block that is as it was.
    /// A reorganization replaces all blocks from some height on.
    pub fn contradicted(&self, reading: &Reading) -> Option<(i64, i64)> {
        let complete = || self.known.iter().rev().filter(|known| reading.is_complete(known.height));
        let mut with_block = complete().filter(|known| known.block != 0);
        let same = with_block.find(|known| {
            reading.get(known.height).is_some_and(|now| (now.keys, now.block) == (known.keys, known.block))
        });
        let same = same?.height;
        let mut lost = complete().filter(|known| known.height < same && reading.contradicts(known));
        let last = lost.next()?.height;
        Some((lost.next_back().map_or(last, |first| first.height), last))
    }

    /// The lowest height that both remember, and not with the same records.
    pub fn difference(&self, other: &Self) -> Option<i64> {
        let low = self.oldest_known.height().max(other.oldest_known.height()).saturating_add(1);
        let both = low..=self.position.min(other.position);
        let ours = self.known.iter().filter(|known| !other.has_same_records(known));
        let theirs = other.known.iter().filter(|known| !self.has_same_records(known));
        ours.chain(theirs).map(|known| known.height).filter(|height| both.contains(height)).min()
    }

    fn has_same_records(&self, fingerprint: &Fingerprint) -> bool {
        self.known.iter().any(|known| known.is_same_records(fingerprint))
    }

    fn is_known(&self, height: i64) -> bool {
        self.known.binary_search_by_key(&height, |known| known.height).is_ok()
    }

    /// Moves a beginning to a higher height: there is nothing below it.
    pub fn begin_after(&mut self, height: i64) {
        if self.known.is_empty() && self.oldest_known == OldestKnown::Start(self.position) && height > self.position {
            *self = Self::start_after(height);
        }
    }

    /// Takes back all heights above this one.
    pub fn undo(&mut self, after: i64) {
        self.known.retain(|known| known.height <= after);
        self.position = after;
        self.overlap = None;
        self.last_round = None;
    }

    /// Adds the heights of a reading up to `up_to`. Of those that are at least `settle` below, it forgets all but the highest
    /// `remembered`.
    pub fn deliver(&mut self, reading: &Reading, up_to: i64, settle: i64, remembered: usize) {
        self.known.extend(reading.heights(self.position.saturating_add(1), up_to).copied());
        // One fingerprint a height.
        debug_assert!(self.known.iter().is_sorted_by(|low, high| low.height < high.height));
        self.position = self.position.max(up_to);
        self.last_round = None;
        self.overlap = self.overlap.take().filter(|overlap| overlap.height > up_to);
        let settled = self.position.saturating_sub(settle);
        while self.known.get(remembered).is_some_and(|known| known.height <= settled) {
            if let Some(oldest) = self.known.pop_front() {
                self.oldest_known = OldestKnown::Forgotten(oldest.height);
            }
        }
    }
}
