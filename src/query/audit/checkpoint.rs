//! `AuditCheckpoint`: what a cursor has of the audit of a list, by which the audit of the next run compares the records of both.

use serde::{Deserialize, Serialize};

use super::latest::Latest;
use super::list::ListAudit;
use super::repeats::Repeat;
use super::subject::Subject;
use super::unreturned::{PAIRS_IN_CURSOR, Pair, UNRETURNED_IN_CURSOR, UnreturnedRecord};
use crate::query::snapshot::{ListCheckpoint, PageRequest, Rows};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditCheckpoint {
    /// Keys of the latest records that were returned. Of a look-up, one key of all of them, and one of all records of the
    /// response.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latest: Vec<u64>,
    /// Height of the last of them, if those after it are not above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<i64>,
    /// Height and block of the last of them. Where records do not show their blocks, a height takes the place of its block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<(i64, u64)>,
    /// Records that were returned twice and are still to be proven to be two.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Repeat>,
    /// Records that were received and are not before the position.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreturned: Vec<UnreturnedRecord>,
    /// Records that were received below others and not returned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Pair>,
}

/// The audit of a list with a page that it has accepted. Its checkpoints are made when a cursor is asked for.
pub struct AuditedPage {
    /// The latest records before the page.
    latest: Latest,
    /// True if records after the page are not above its last one.
    has_falling_heights: bool,
    repeats: Vec<Repeat>,
    /// `None` if no record is compared with another run.
    unreturned: Option<Vec<UnreturnedRecord>>,
    /// `None` if the keys of the records are not kept, or if they have no order.
    pairs: Option<Vec<Pair>>,
    /// True if a height takes the place of its block, which the records do not show.
    has_heights_for_blocks: bool,
}

impl AuditCheckpoint {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if it may be that of a list of which `offset` records were returned.
    pub fn is_plausible(&self, offset: u64) -> bool {
        self.repeats.iter().all(|repeat| repeat.is_before(offset))
    }

    /// The part of it that the position of one of several lists has.
    #[must_use]
    pub fn of_one_list(self, lists: usize) -> Self {
        Self {
            latest: Latest::of_one_list(self.latest, lists),
            unreturned: self.unreturned.into_iter().take(UNRETURNED_IN_CURSOR / lists).collect(),
            pairs: self.pairs.into_iter().take((PAIRS_IN_CURSOR / lists).max(1)).collect(),
            ..self
        }
    }
}

impl ListAudit {
    /// The audit of a list that continues after `offset` records.
    pub fn resumed(subject: Subject, offset: u64, at: &AuditCheckpoint, list: &ListCheckpoint) -> Self {
        Self::new(subject, offset, &at.latest)
            .at_position(list)
            .after_first_page(list.first_page(), list.newer(offset))
            .after_places(list)
            .after_short_page(list.short_page())
            .between(list.ends())
            .below(at.height.filter(|_| offset > 0))
            .after_block(at.block)
            .with_repeats(&at.repeats)
            .with_unreturned(&at.unreturned)
            .with_pairs(&at.pairs)
    }

    /// The audit with the page that it has just accepted, before which these records were the latest.
    pub fn audited_page(&self, request: &PageRequest, latest: Latest) -> AuditedPage {
        AuditedPage {
            latest,
            has_falling_heights: self.has_falling_heights(),
            repeats: self.open_repeats().to_vec(),
            unreturned: self.open_records(),
            pairs: self.keeps_neighbors(request).then(|| self.open_pairs()),
            has_heights_for_blocks: self.has_heights_for_blocks(),
        }
    }
}

impl AuditedPage {
    /// True if records are still to be proven to be two.
    pub fn has_open_repeats(&self) -> bool {
        !self.repeats.is_empty()
    }

    /// The checkpoint after some of the received rows, with which `offset` records of the list were returned.
    pub fn checkpoint(&self, received: &dyn Rows, rows: usize, offset: u64) -> AuditCheckpoint {
        let mut latest = self.latest.clone();
        latest.push(received, 0..rows);
        let height = latest.height();
        let block = match height {
            Some(height) if self.has_heights_for_blocks => Some(height.cast_unsigned()),
            _ => rows.checked_sub(1).and_then(|last| received.block(last)),
        };
        let repeats = self.repeats.iter().filter(|repeat| repeat.is_before(offset));
        let unreturned = self.unreturned.as_ref().map_or_else(Vec::new, |open| {
            let after = (rows..received.len()).filter_map(|row| UnreturnedRecord::after_cursor(received, row));
            open.iter().copied().chain(after).take(UNRETURNED_IN_CURSOR).collect()
        });
        let open = self.pairs.iter().flatten().filter(|pair| pair.is_below_one_before(offset)).copied();
        // Before the first record, the list is read from its beginning again, and the offsets are others.
        let following = if offset > 0 && self.pairs.is_some() { rows.max(1)..received.len() } else { 0..0 };
        let first = offset.saturating_sub(rows as u64);
        let pairs_after = following.map(|row| Pair::after_cursor(received, row, first + row as u64 - 1));
        AuditCheckpoint {
            latest: latest.keys().to_vec(),
            height: height.filter(|_| self.has_falling_heights),
            block: height.zip(block),
            repeats: repeats.copied().collect(),
            unreturned,
            pairs: open.chain(pairs_after).take(PAIRS_IN_CURSOR).collect(),
        }
    }
}
