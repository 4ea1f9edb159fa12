//! The requests that a run sends ahead: how many, and of which slices.

use super::Run;
use crate::query::execution::fetch::LOOKUP_ROWS;
use crate::query::execution::slice_fetcher::{HELD, SliceFetcher};
use crate::query::snapshot::FirstPage;

/// Requests ahead of a caller that may need no other page, until it has taken as many pages.
const MIN_AHEAD: u64 = 4;

/// Sizes of slices that were read.
#[derive(Default)]
pub(super) struct SliceSizes {
    slices: u64,
    /// Sum of the squares of their records.
    squares: f64,
}

impl SliceSizes {
    pub fn add(&mut self, records: u64) {
        self.slices += 1;
        self.squares += (records as f64).powi(2);
    }

    /// Root mean square of the sizes and a first guess: as few large slices are expected as cost no more than a request
    /// or two that are not needed.
    fn typical(&self, first: u64) -> u64 {
        let squares = self.squares + (first as f64).powi(2);
        (squares / (self.slices + 1) as f64).sqrt().ceil() as u64
    }
}

/// Requests that may be sent now.
struct Room {
    /// Until `concurrency` requests are without a response.
    requests: usize,
    /// Until as many responses are held or awaited as may be.
    responses: usize,
}

impl Room {
    fn is_left(&self) -> bool {
        self.requests > 0 && self.responses > 0
    }

    fn take_one(&mut self) {
        self.requests -= 1;
        self.responses -= 1;
    }
}

impl Run {
    /// Sends requests until `concurrency` of them are without a response. Others may have one that waits for those before
    /// it, so that a slow response does not hold up the pages after it.
    pub(super) fn send_requests(&mut self) {
        self.requeue_after_fork();
        // Later slices may hold what is left: the list that is returned now does not wait for them.
        if let Some(front) = self.fetchers.front_mut().filter(|front| front.in_flight() == 0) {
            front.send_next(&self.query, &self.output.report, &self.responses);
        }
        let mut room = self.room();
        let expected = self.send_for_open_slices(&mut room);
        self.open_slices(room, expected);
    }

    /// Sends the parent process's requests again in a forked child.
    fn requeue_after_fork(&mut self) {
        let mut is_forked = false;
        for fetcher in &mut self.fetchers {
            is_forked |= fetcher.requeue_after_fork();
        }
        if is_forked {
            // A thread of the parent may have held its lock.
            std::mem::forget(std::mem::take(&mut self.responses));
        }
    }

    fn room(&self) -> Room {
        let concurrency = self.max_in_flight();
        let unanswered: usize = self.fetchers.iter().map(SliceFetcher::unanswered).sum();
        let taken: usize = self.fetchers.iter().map(SliceFetcher::in_flight).sum();
        Room {
            requests: concurrency.saturating_sub(unanswered),
            responses: self.max_held(concurrency).saturating_sub(taken),
        }
    }

    /// Sends the next requests of the open slices, first come first served. Returns how many records these slices are taken to
    /// have.
    fn send_for_open_slices(&mut self, room: &mut Room) -> u64 {
        let left = self.remaining();
        let page_size = self.query.page_size().max(1);
        let size = self.typical_size();
        let mut expected: u64 = 0;
        for fetcher in &mut self.fetchers {
            fetcher.note_first_page();
            let wanted = left.map_or(u64::MAX, |left| left.saturating_sub(expected).div_ceil(page_size).max(1));
            while room.is_left()
                && (fetcher.in_flight() as u64) < wanted
                && fetcher.send_next(&self.query, &self.output.report, &self.responses)
            {
                room.take_one();
            }
            expected = expected.saturating_add(fetcher.min_to_come().unwrap_or(size));
        }
        expected
    }

    /// Opens the next slices, and sends the first request of each, as long as the open ones may have too few records.
    fn open_slices(&mut self, mut room: Room, mut expected: u64) {
        let left = self.remaining();
        let size = self.typical_size();
        let count = self.query.slices().count();
        while room.is_left()
            && self.next_slice < count
            && left.is_none_or(|left| expected < left)
            && self.may_open(self.next_slice)
        {
            let mut fetcher = self.open_next();
            fetcher.send_next(&self.query, &self.output.report, &self.responses);
            self.fetchers.push_back(fetcher);
            self.next_slice += 1;
            room.take_one();
            expected = expected.saturating_add(size);
        }
    }

    /// A fetcher of the next slice, which compares it with what an earlier run received of it.
    fn open_next(&mut self) -> SliceFetcher {
        let fetcher = self.open(self.next_slice);
        match self.discarded.take_if(|discarded| discarded.slice == self.next_slice) {
            Some(discarded) => fetcher.after_discarded(discarded),
            None => fetcher,
        }
    }

    /// Records that a slice is taken to have before its first response. Of the requests of a bound, none is for a slice that
    /// may not be reached.
    fn typical_size(&self) -> u64 {
        if self.query.client().requests_left().is_some() {
            return u64::MAX;
        }
        let first = if self.query.is_paged() { self.query.page_size() } else { LOOKUP_ROWS };
        self.sizes.typical(first)
    }

    /// Most responses that are held or awaited. A recording has one request after the other, and of the requests of a bound
    /// none is for a page that may not be reached.
    fn max_held(&self, concurrency: usize) -> usize {
        let is_bounded = self.query.client().requests_left().is_some();
        let held = if concurrency == 1 || is_bounded { concurrency } else { concurrency * HELD };
        held.min(self.max_ahead())
    }

    /// Requests that may be in flight together. The last ones of a bound are for the next pages, not for those after them.
    fn max_in_flight(&self) -> usize {
        let client = self.query.client();
        let max = client.concurrency().min(self.max_ahead());
        let Some(left) = client.requests_left() else { return max };
        max.min(usize::try_from(left).unwrap_or(usize::MAX).max(1))
    }

    /// Responses that are of use if the caller takes as many pages as it has taken.
    fn max_ahead(&self) -> usize {
        let wanted = match self.first_page {
            FirstPage::AtOnce | FirstPage::Compared => {
                (self.output.delivered / self.query.page_size().max(1)).max(MIN_AHEAD)
            }
            FirstPage::Located => u64::MAX,
        };
        usize::try_from(wanted).unwrap_or(usize::MAX).min(self.max_in_flight)
    }
}
