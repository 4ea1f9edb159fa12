//! The beginning of an audit that continues: an earlier run, a reading of the list that was discarded, or a partition before it.

use super::ListAudit;
use crate::interface::Order;
use crate::query::audit::distances::Distances;
use crate::query::audit::heights::Heights;
use crate::query::audit::lengths::Lengths;
use crate::query::audit::repeats::{Repeat, Repeats};
use crate::query::audit::short_pages::ShortPages;
use crate::query::audit::unreturned::{InBlocks, Pair, Unreturned, UnreturnedRecord};
use crate::query::snapshot::{ListCheckpoint, ListKind};

impl ListAudit {
    /// Takes records of the first page that an earlier run has read, the first of which, as many as are newer, it did not return.
    #[must_use]
    pub fn after_first_page(mut self, first_page: Vec<(u64, u64)>, newer: u64) -> Self {
        if self.subject.kind == ListKind::Fixed {
            self.one_block.set_first_page(first_page);
        } else {
            let returned = first_page.iter().filter_map(|(offset, key)| Some((offset.checked_sub(newer)?, *key)));
            let returned = returned.filter(|(offset, _)| *offset < self.returned.next);
            self.returned.of_first_page = returned.clone().map(|(_, key)| key).collect();
            if self.subject.order == Order::NewestFirst {
                let latest = self.returned.latest.keys().iter().copied();
                let latest = (0..self.returned.next).rev().zip(latest.rev());
                self.distances = Distances::of_earlier_run(returned.chain(latest));
            }
            self.growth.begin(first_page);
        }
        self
    }

    /// Takes the position from which the reader continues the list. It knows by the key of a record which were returned.
    #[must_use]
    pub fn at_position(mut self, list: &ListCheckpoint) -> Self {
        let last = list.last_key().zip(self.returned.latest.keys().last().copied());
        let is_in_order = self.subject.kind == ListKind::Growing && self.returned.is_continued;
        self.returned.is_misplaced = is_in_order && last.is_some_and(|(read, returned)| read != returned);
        self
    }

    /// Takes the places of the first page that an earlier run has read of a list with a count.
    #[must_use]
    pub fn after_places(self, list: &ListCheckpoint) -> Self {
        Self { places: self.places.with_first_page(list, self.subject.page_size), ..self }
    }

    /// Takes the limit and the rows of the first page that an earlier run has read, if these were fewer.
    #[must_use]
    pub fn after_short_page(self, short: Option<(u64, u64)>) -> Self {
        let short_pages = short.map_or(self.short_pages, |(limit, rows)| ShortPages::continued(limit, rows));
        Self { short_pages, ..self }
    }

    /// Takes records that an earlier run returned twice and did not prove to be two.
    #[must_use]
    pub fn with_repeats(mut self, open: &[Repeat]) -> Self {
        open.iter().for_each(|repeat| _ = self.returned.keys.insert(repeat.key()));
        self.returned.has_equal |= !open.is_empty();
        // They may be above the latest records, and those in between are not known.
        self.returned.lacks_keys |= !open.is_empty();
        Self { repeats: Repeats::continued(open), ..self }
    }

    /// Takes the height of the record that an earlier run returned last, if those after it are not above it.
    #[must_use]
    pub fn below(mut self, height: Option<i64>) -> Self {
        if let Some(height) = height {
            self.heights.set_latest(height);
        }
        if self.subject.order == Order::NewestFirst {
            // Others of that height may be newer if all are of it that were returned.
            let has_others_above =
                !self.returned.lacks_keys && (self.returned.latest.keys().len() as u64) < self.returned.next;
            self.returned.newest = height.map(|height| height.saturating_add(i64::from(has_others_above)));
        }
        self
    }

    /// Takes the height and the block of the record that an earlier run returned last.
    #[must_use]
    pub fn after_block(mut self, block: Option<(i64, u64)>) -> Self {
        if let Some((height, hash)) = block {
            self.forks.set_latest(height, hash);
            self.one_block.set_block(hash);
        }
        self
    }

    /// Takes records that an earlier run received and did not return.
    #[must_use]
    pub fn with_unreturned(mut self, records: &[UnreturnedRecord]) -> Self {
        self.unreturned.in_blocks = InBlocks::of_earlier_run(records);
        self
    }

    /// Takes records that an earlier run received below others, and did not return.
    #[must_use]
    pub fn with_pairs(mut self, pairs: &[Pair]) -> Self {
        self.unreturned.below = self.unreturned.below.with_pairs(pairs, self.returned.next);
        self
    }

    /// Takes the records at the ends of a partition, by offset and key.
    #[must_use]
    pub fn between(self, ends: &[(u64, u64)]) -> Self {
        Self { ends: ends.to_vec(), ..self }
    }

    /// Takes what a reading of the same list received that was discarded.
    #[must_use]
    pub fn after_discarded(mut self, mut discarded: Self) -> Self {
        // The keys of blocks are not kept, and each is a block of its own.
        if self.subject.order != Order::Consecutive {
            self.returned.take_tops(&discarded.returned);
        }
        let lengths = Lengths::after(discarded.lengths.received());
        let unreturned = Unreturned::after(discarded.unreturned, discarded.returned.recent.make_contiguous());
        let had_records = discarded.had_records || discarded.has_records;
        let one_block = match self.subject.kind {
            ListKind::Fixed => self.one_block.after_discarded(discarded.one_block, &discarded.returned.keys),
            _ => self.one_block,
        };
        let heights = match self.subject.order {
            Order::Consecutive => Heights::after(discarded.heights),
            _ => self.heights,
        };
        Self { lengths, unreturned, one_block, had_records, heights, ..self }
    }
}
