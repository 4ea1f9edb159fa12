//! Requests of the audit once the reader has ended, and what their responses show.

use super::ListAudit;
use crate::interface::Order;
use crate::query::audit::small_pages::EndedList;
use crate::query::audit::subject::{End, Extent, Subject};
use crate::query::snapshot::{ListKind, PageRequest, Response};

pub(super) const RECORD_BETWEEN: &str = "a record that was not returned is below a returned one of a greater height";

/// The proof for which the audit sends a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sought {
    /// The first page of one block.
    Block,
    /// The number of records, or records after the last one, where pages are small.
    SmallPages,
    /// The last record of a beginning with short pages.
    ShortPages,
    /// Records that were received and not returned.
    Unreturned,
    /// Records after the last one.
    Longer,
    /// Records at the head of a list that is said to have grown.
    Head,
    /// Equal records.
    #[default]
    Repeats,
}

impl ListAudit {
    /// True if something is still to be proven once the reader has ended.
    pub fn is_open(&self, end: &End) -> bool {
        self.due(end).is_some()
    }

    /// The next proof.
    fn due(&self, end: &End) -> Option<Sought> {
        if self.has_open_block() {
            Some(Sought::Block)
        } else if end.is_whole() && self.small_pages.request(&self.ended_list(end)).is_some() {
            Some(Sought::SmallPages)
        } else if self.has_open_short_pages(end) {
            Some(Sought::ShortPages)
        } else if self.may_continue(end) {
            Some(Sought::Unreturned)
        } else if self.may_be_longer(end) {
            Some(Sought::Longer)
        } else if self.may_not_have_grown(end) {
            Some(Sought::Head)
        } else {
            self.repeats.are_open().then_some(Sought::Repeats)
        }
    }

    /// True if a record followed a returned one and was not returned. Those after the last one that is wanted need not be.
    fn may_continue(&self, end: &End) -> bool {
        end.extent != Extent::Reachable && self.unreturned.below.may_follow(self.returned.known(end.extent))
    }

    /// True if a reading before this one received more records, or a response showed another end. The keys of blocks are not
    /// kept.
    fn may_be_longer(&self, end: &End) -> bool {
        let keeps_keys = self.subject.order != Order::Consecutive;
        end.is_whole()
            && self.lengths.may_exceed(self.returned.next, |key| !keeps_keys || self.returned.keys.contains(key))
    }

    /// True if the list has grown by some responses, and its head is not known to have moved.
    fn may_not_have_grown(&self, end: &End) -> bool {
        end.is_whole() && !self.returned.has_equal && self.growth.is_open()
    }

    fn ended_list(&self, end: &End) -> EndedList {
        EndedList {
            is_one_block: self.subject.kind == ListKind::Fixed,
            is_one_page: self.responses == 1 && !self.returned.is_continued,
            records: self.returned.next,
            page_size: self.subject.page_size,
            page_rows: end.page_rows,
        }
    }

    /// True if the beginning of a list is still to be compared with the positions of its records.
    fn has_open_short_pages(&self, end: &End) -> bool {
        // A row that contradicts the arguments has a position, too. Blocks that were left out show in the heights.
        let is_beginning = !end.is_whole() && self.returned.next == self.returned.count && self.returned.count > 0;
        let is_compared = self.subject.kind == ListKind::Growing && self.subject.order != Order::Consecutive;
        is_compared && is_beginning && self.short_pages.are_open()
    }

    /// True if the pages of one block are still to be compared.
    fn has_open_block(&self) -> bool {
        let has_several = self.responses > 1 || self.returned.is_continued;
        self.subject.kind == ListKind::Fixed && has_several && self.one_block.is_open()
    }

    /// Request for what is still to be proven once the reader has ended.
    pub fn next_request(&mut self, end: &End) -> Option<PageRequest> {
        self.extent = end.extent;
        self.sought = self.due(end)?;
        let Subject { page_size, max_page_size, .. } = self.subject;
        let max_page_size = max_page_size.max(page_size);
        match self.sought {
            Sought::Block => {
                Some(self.one_block.request(&self.subject, end.page_rows, end.is_whole().then_some(self.returned.next)))
            }
            Sought::SmallPages => self.small_pages.request(&self.ended_list(end)),
            Sought::ShortPages => Some(self.short_pages.request(self.returned.count, end.drift)),
            Sought::Unreturned => {
                self.unreturned.below.request(end.drift, max_page_size, self.returned.known(end.extent))
            }
            Sought::Longer => {
                let last = self.returned.next.saturating_add_signed(end.drift);
                Some(self.lengths.request(last, page_size, end.page_rows))
            }
            Sought::Head => Some(self.growth.request(max_page_size)),
            Sought::Repeats => self.repeats.next_request(end.drift, max_page_size),
        }
    }

    /// Takes the response to such a request, from a list that has moved by `drift`.
    pub(super) fn on_look(&mut self, request: &PageRequest, response: &Response<'_>, drift: i64) -> Result<(), String> {
        if self.extent == Extent::Whole && self.has_record_below(response) {
            return Err("a record follows the last one of the list".into());
        }
        if self.extent == Extent::Whole && self.has_record_between(response) {
            return Err(RECORD_BETWEEN.into());
        }
        if self.heights_read().is_some_and(|read| read.lacks_some(response.rows)) {
            return Err("a record was not returned with the others of its block".into());
        }
        let contradiction = match self.sought {
            Sought::Block => return self.one_block.on_look(request, response),
            Sought::SmallPages => {
                let has_unknown_record = self.shows_unknown_record(response);
                let has_length = self.small_pages.on_look(request, response, self.returned.next, has_unknown_record);
                (!has_length).then_some("the list has another number of records than its pages")
            }
            Sought::ShortPages => {
                let is_known = response.rows.len() == 1 && self.returned.keys.contains(response.rows.key(0));
                let latest = self.returned.recent.make_contiguous();
                let problem = "a page that has fewer records than it says lacks some of them";
                (!self.short_pages.on_look(response, drift, latest, is_known)).then_some(problem)
            }
            Sought::Head => {
                self.growth.on_look(response);
                None
            }
            Sought::Unreturned => {
                let is_possible =
                    self.unreturned.below.on_look(request, response, drift, self.returned.known(self.extent));
                (!is_possible).then_some(if self.extent == Extent::Whole {
                    "records follow the last one that the reported number of records leaves room for"
                } else {
                    "a record that responses showed between returned ones was not returned"
                })
            }
            Sought::Longer => self
                .shows_unknown_record(response)
                .then_some("the list ended before records that an earlier response showed"),
            Sought::Repeats => (!self.repeats.on_look(request, response))
                .then_some("a record was received twice, in responses that do not agree in the order of the list"),
        };
        contradiction.map_or(Ok(()), |contradiction| Err(contradiction.into()))
    }

    /// True if a record that is not known follows the two that were returned last. In a list that grows, newer records may
    /// be equal to those.
    fn has_record_below(&self, response: &Response<'_>) -> bool {
        if self.returned.has_equal && self.subject.kind != ListKind::Fixed {
            return false;
        }
        let latest: Vec<u64> = self.returned.recent.iter().rev().take(2).rev().copied().collect();
        let keys = response.rows.keys();
        keys.windows(3).any(|rows| rows[..2] == latest && !self.returned.keys.contains(rows[2]))
    }

    /// True if a record that is not known is below a returned one of a greater height, and above one of a lesser height, or in a
    /// list that was read to its end: the list had all of them.
    pub(super) fn has_record_between(&self, response: &Response<'_>) -> bool {
        if self.subject.order != Order::NewestFirst || self.returned.lacks_keys {
            return false;
        }
        let rows = response.rows;
        let mut highest = None;
        let mut lacking = None;
        for row in 0..rows.len() {
            let Some(height) = rows.height(row) else { continue };
            if !self.returned.keys.contains(rows.key(row)) {
                lacking = lacking.max(Some(height).filter(|height| highest > Some(*height)));
            } else if rows.block(row).is_some() {
                if lacking > Some(height) {
                    return true;
                }
                highest = highest.max(Some(height));
            }
        }
        lacking.is_some() && self.extent == Extent::Whole
    }

    /// True if a response has a record that was not returned. The keys of blocks are not kept, but their heights.
    fn shows_unknown_record(&self, response: &Response<'_>) -> bool {
        (0..response.rows.len()).any(|row| match response.rows.height(row) {
            Some(height) if self.subject.order == Order::Consecutive => self.heights.ended_before(height),
            _ => !self.returned.keys.contains(response.rows.key(row)),
        })
    }
}
