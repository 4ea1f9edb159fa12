//! The requests that a run sends ahead: how many, and of which slices.

use super::Run;
use crate::query::execution::slice_fetcher::{HELD, SliceFetcher};
use crate::query::snapshot::FirstPage;

/// Requests ahead of a caller that may need no other page, until it has taken as many pages.
const MIN_AHEAD: u64 = 4;

impl Run {
    /// Sends requests until `concurrency` of them are without a response. Others may have one that waits for those before
    /// it, so that a slow response does not hold up the pages after it.
    pub(super) fn send_requests(&mut self) {
        let forked =
            self.fetchers.iter_mut().map(SliceFetcher::requeue_after_fork).filter(|is_forked| *is_forked).count();
        if forked > 0 {
            // A thread of the parent may have held its lock.
            std::mem::forget(std::mem::take(&mut self.responses));
        }
        // Later slices may hold what is left: the list that is returned now does not wait for them.
        if let Some(front) = self.fetchers.front_mut().filter(|front| front.in_flight() == 0) {
            front.send_next(&self.query, &self.output.report, &self.responses);
        }
        let mut taken: usize = self.fetchers.iter().map(SliceFetcher::in_flight).sum();
        let mut unanswered: usize = self.fetchers.iter().map(SliceFetcher::unanswered).sum();
        let concurrency = self.max_in_flight();
        let max_held = self.max_held(concurrency);
        let wanted = self.remaining().map(|left| left.div_ceil(self.query.page_size().max(1)).max(1));
        for fetcher in &mut self.fetchers {
            while unanswered < concurrency
                && taken < max_held
                && wanted.is_none_or(|wanted| (fetcher.in_flight() as u64) < wanted)
                && fetcher.send_next(&self.query, &self.output.report, &self.responses)
            {
                taken += 1;
                unanswered += 1;
            }
        }
        let max_slices = self.max_slices();
        while unanswered < concurrency
            && taken < max_held
            && self.next_slice < self.query.slices().count()
            && (self.fetchers.len() as u64) < max_slices
            && self.may_open(self.next_slice)
        {
            let mut fetcher = self.open(self.next_slice);
            fetcher.send_next(&self.query, &self.output.report, &self.responses);
            self.fetchers.push_back(fetcher);
            self.next_slice += 1;
            taken += 1;
            unanswered += 1;
        }
    }

    /// Slices that may be read at a time. With a limit, later ones may not be needed: heights are, as long as each of them
    /// has no more records than one had before.
    fn max_slices(&self) -> u64 {
        let Some(left) = self.remaining() else { return u64::MAX };
        match self.longest_slice {
            Some(longest) if self.query.slices().height(0).is_some() => (left / longest.max(1)).max(1),
            Some(_) | None => 1,
        }
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
        let most = client.concurrency().min(self.max_ahead());
        let Some(left) = client.requests_left() else { return most };
        most.min(usize::try_from(left).unwrap_or(usize::MAX).max(1))
    }

    /// Responses that are of use if the caller takes as many pages as it has taken.
    fn max_ahead(&self) -> usize {
        let wanted = match self.first_page {
            FirstPage::AtOnce => (self.output.delivered / self.query.page_size().max(1)).max(MIN_AHEAD),
            FirstPage::Located => u64::MAX,
        };
        usize::try_from(wanted).unwrap_or(usize::MAX).min(self.max_in_flight)
    }
}
