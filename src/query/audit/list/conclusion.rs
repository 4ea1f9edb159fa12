//! The end of a list: contradictions of what was read, and the reasons why it may lack records.

use super::ListAudit;
use crate::interface::Order;
use crate::message::Message;
use crate::query::audit::returned::Returned;
use crate::query::audit::subject::{End, Extent};
use crate::query::audit::unreturned::{Pair, ReadHeights, UnreturnedRecord};
use crate::query::snapshot::ListKind;

impl ListAudit {
    /// Fails if the result contradicts itself, once nothing is left to request.
    pub fn on_end(&self, end: &End) -> Result<(), String> {
        let is_shown = self.subject.kind == ListKind::Fixed && self.lengths.are_shown_to_exceed(self.returned.next);
        if end.is_whole() && (is_shown || self.lengths.exceed(self.returned.next)) {
            return Err("the list has more records than were returned".into());
        }
        if end.is_whole() && (self.has_records || self.had_records) && self.returned.next == 0 {
            return Err("the list became empty while it was read".into());
        }
        if end.is_whole() && self.one_block.lacks_discarded(&self.returned.keys) {
            return Err(
                "a record of the block was received by a reading that was discarded, and is not in the list".into()
            );
        }
        if self.returned.lacks_top_of_earlier_reading(|block| self.forks.have_hash(block)) {
            return Err("the first record of an earlier reading of the list is missing, although others of its block were returned".into());
        }
        if self.heights_read_to(end).is_some_and(|read| self.unreturned.copies.lack_some(read)) {
            return Err("a response showed more equal records than were returned".into());
        }
        if self.lacks_of_first_page(end) {
            return Err("a page has fewer records than it says, and others may belong to it".into());
        }
        if !self.places.are_confirmed() {
            return Err("no response confirms the first page".into());
        }
        // If a reason says what is missing, the list is not read again: another reading may have no evidence of it.
        if self.places.are_contradicted() && self.doubts(end).is_empty() {
            return Err("a response has another record in the place of a returned one".into());
        }
        Ok(())
    }

    /// True if the first page had fewer records than it said, and others that are not returned may be of it: newer ones, or any
    /// of a list whose records move.
    fn lacks_of_first_page(&self, end: &End) -> bool {
        match self.subject.kind {
            _ if end.is_whole() => self.short_pages.may_lack_newest(self.returned.next),
            ListKind::Ranked => end.extent == Extent::Beginning && self.short_pages.are_of_several_sizes(),
            _ => self.short_pages.lack_rows() || self.short_pages.are_uneven() && end.drift > 0,
        }
    }

    /// True if a record with one of these keys was not received, in a list that this run read from its beginning.
    pub fn lacks(&self, mut keys: impl Iterator<Item = u64>) -> bool {
        !self.returned.is_continued && keys.any(|key| !self.returned.keys.contains(key))
    }

    /// Records for a cursor that were received and not returned; `None` if no record has to be returned with others.
    pub fn open_records(&self) -> Option<Vec<UnreturnedRecord>> {
        let read = self.heights_read().filter(|_| self.subject.has_blocks)?;
        Some(self.unreturned.in_blocks.open(read))
    }

    /// For a cursor: true if a height takes the place of its block, which the records do not show.
    pub fn has_heights_for_blocks(&self) -> bool {
        self.subject.kind == ListKind::Growing && self.subject.order == Order::NewestFirst && !self.subject.has_blocks
    }

    /// For a cursor: records below a returned one that were received and not returned.
    pub fn open_pairs(&self) -> Vec<Pair> {
        self.unreturned.below.open(self.returned.known(Extent::Whole))
    }

    /// The heights of a list in descending order of which all records were returned.
    pub(super) fn heights_read(&self) -> Option<ReadHeights<'_>> {
        let (newest, lowest) = (self.returned.newest?, self.heights.lowest()?);
        let is_list = self.subject.kind == ListKind::Growing;
        let Returned { keys, began_after, .. } = &self.returned;
        is_list.then_some(ReadHeights { known: keys, forks: &self.forks, newest, lowest, began_after: *began_after })
    }

    /// These heights once the list has ended: if it was read to its end, all records of the lowest height were returned as well.
    fn heights_read_to(&self, end: &End) -> Option<ReadHeights<'_>> {
        let has_lowest = end.is_whole() && !self.subject.drops_oldest;
        self.heights_read().map(|read| if has_lowest { ReadHeights { lowest: i64::MIN, ..read } } else { read })
    }

    /// Height from which on no record may leave the list. Those below the last one may have become too old.
    fn min_due_height(&self) -> i64 {
        if self.subject.drops_oldest { self.heights.lowest().unwrap_or(i64::MAX) } else { i64::MIN }
    }

    pub fn doubtful_height(&self) -> Option<Message> {
        self.forks.doubtful_height()
    }

    /// Contradictions that are no error, as reasons, of a list that has ended or is read so far.
    pub fn doubts(&self, end: &End) -> Vec<Message> {
        let doubts = [
            self.forks.reason(),
            self.forks.doubtful_height(),
            self.forks.moved_transaction(),
            self.heights.gaps(),
            self.distances.reason(),
            self.repeats.reason(),
            self.growth.reason(),
            self.unreturned.below.reason(self.min_due_height()),
            self.heights_read_to(end).and_then(|read| self.unreturned.in_blocks.reason(read)),
            self.heights.above_earlier(),
            self.heights.copy_apart(),
            self.short_pages.reason(),
        ];
        doubts.into_iter().flatten().collect()
    }
}
