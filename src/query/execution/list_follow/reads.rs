//! `RoundReads`: what a follower has read for its round, and the reads that it requests.

use super::ListFollow;
use crate::client::Error;
use crate::message::Message;
use crate::query::execution::heights::ChainHeights;
use crate::query::execution::range_run::RangeRead;
use crate::query::execution::read_down::{ReadDown, ReadPage};
use crate::query::execution::run::MAX_REREADS;
use crate::query::follow::{Event, Request, RowFacts, Stop};
use crate::query::results::SharedReport;
use crate::query::snapshot::End;

#[derive(Default)]
pub(super) struct RoundReads {
    pub down: Option<ReadDown>,
    /// A second read, which proves the first one.
    pub recheck: Option<ReadDown>,
    /// Pages of the round, in the order of the list.
    pub pages: Vec<ReadPage>,
    /// Rows of the reading that belong to the ranges after it.
    kept: Option<Vec<ReadPage>>,
}

impl RoundReads {
    /// Drops all but a read of which no page has arrived.
    pub fn release(&mut self) {
        let down = self.down.take().filter(|down| down.returned == 0);
        *self = Self { down, ..Self::default() };
    }

    /// True if a record without a height is below one of a height that is settled. Those above wait for a block.
    pub fn has_unplaced(&self, settled: i64) -> bool {
        let rows = self.pages.iter().flat_map(|page| &page.facts);
        let mut below = rows.skip_while(|row| row.height.is_none_or(|height| height > settled));
        below.any(|row| row.height.is_none())
    }

    /// Adds the cost of the reads so far to the report.
    pub fn absorb(&mut self, report: &SharedReport) {
        for reading in self.down.iter_mut().chain(&mut self.recheck) {
            reading.add_cost(report);
        }
    }
}

impl ListFollow {
    /// Takes note of what the reads so far cost and showed.
    pub(super) fn absorb(&mut self) {
        self.reads.absorb(&self.report);
        let shown = self.plan.shown.take();
        self.follower().on_shown(shown);
    }

    pub(super) async fn respond(&mut self, request: Request) -> Result<Vec<Event>, Error> {
        match request {
            Request::Finished | Request::Wait(_) => Ok(Vec::new()),
            Request::Head => {
                let head = self.plan.head(&self.report).await?;
                self.reads.down = None;
                self.plan.shown.discard_reasons();
                self.follower().on_head(head);
                Ok(Vec::new())
            }
            Request::Oldest => {
                let Some(first) = ChainHeights::of(&self.plan.list, &self.report).first().await? else {
                    let problem = "(\"beginning\") needs the first height of the chain, to which the list does not \
                                   reach back; pass ";
                    let problem = Message::new(problem).parameter("start_height").text(" to the call");
                    return Err(Error::parameter("start", problem));
                };
                self.follower().on_oldest(first)
            }
            Request::Newest => {
                // A read of which no page has arrived continues after an interrupt.
                if self.reads.down.as_ref().is_none_or(|down| down.returned > 0) {
                    self.reads.down = Some(ReadDown::new(&self.plan.list, self.repeats, &self.plan.shown));
                }
                self.reads.pages.clear();
                self.reads.kept = None;
                self.read_page(1).await
            }
            Request::Older { pages } => self.read_page(pages).await,
            Request::Verify => {
                let Some(down) = &mut self.reads.down else { return Ok(Vec::new()) };
                // The rest of the list is not wanted; the run proves what it has returned.
                down.run.end_here();
                while down.run.next().await?.is_some() {}
                self.absorb();
                self.follower().on_verified()
            }
            Request::Recheck { page } => self.recheck(page).await,
            Request::Range { low, high, max_rows } => self.read_range(low, high, max_rows).await,
        }
    }

    /// Reads a range. What was read down of it is not requested again.
    async fn read_range(&mut self, low: i64, high: i64, max_rows: u64) -> Result<Vec<Event>, Error> {
        let kept_from = self.follower().kept_from().unwrap_or(i64::MAX);
        if self.reads.kept.is_none() && kept_from < i64::MAX {
            let pages = std::mem::take(&mut self.reads.pages);
            self.reads.kept = Some(pages.iter().map(|page| page.rows_from(kept_from)).collect());
        }
        let (end, mut pages) = match &self.reads.kept {
            Some(kept) if kept_from <= high => (kept_from - 1, kept.clone()),
            _ => (high, Vec::new()),
        };
        let mut up_to = high;
        if low <= end {
            let first = self.follower().first_due();
            match self.plan.read_range(low..=end, first, max_rows, &self.report).await? {
                RangeRead::TooLarge { rows, reached } => {
                    self.follower().on_large_range(end, rows, reached);
                    return Ok(Vec::new());
                }
                RangeRead::Complete(read) => {
                    up_to = if read.up_to < end { read.up_to } else { high };
                    pages.extend(read.pages.into_iter().map(ReadPage::new));
                }
            }
        }
        self.absorb();
        self.reads.down = None;
        self.reads.pages = pages;
        // The follower is told of complete heights only.
        let rows = self.reads.pages.iter().flat_map(|page| &page.facts).copied();
        let rows: Vec<RowFacts> = rows.filter(|row| row.height.is_none_or(|height| height <= up_to)).collect();
        self.follower().on_range(up_to, &rows)
    }

    /// Reads the next page of the reading, and up to `pages` at once.
    async fn read_page(&mut self, pages: u64) -> Result<Vec<Event>, Error> {
        let Some(down) = &mut self.reads.down else { return Ok(Vec::new()) };
        let pages = usize::try_from(pages).unwrap_or(usize::MAX);
        down.run.set_max_in_flight(pages.min(self.plan.max_in_flight));
        let page = down.next().await?;
        let lost_length = down.lost_length();
        let is_ended = page.is_none();
        let stop = match down.run.end() {
            Some(End::ResultWindow) => Stop::Window,
            Some(End::List | End::UnknownLength | End::Unsettled | End::Shrunk | End::Lacking) => Stop::List,
            None if is_ended => Stop::List,
            None => Stop::Page(page.as_ref().and_then(|page| page.paging.total_pages?.checked_sub(page.number))),
        };
        self.check_length(lost_length)?;
        self.absorb();
        let page = page.map(|page| ReadPage::new(page.columns));
        let rows = page.as_ref().map_or(&[][..], |page| &page.facts);
        if let Some(down) = &mut self.reads.down {
            down.check_order(rows)?;
        }
        let events = self.follower().on_page(rows, stop);
        self.reads.pages.extend(page);
        events
    }

    /// Fails a few times in a row, so that the round is repeated. A service that contradicts itself each time has a reason.
    fn check_length(&mut self, lost_length: Option<Error>) -> Result<(), Error> {
        match lost_length {
            Some(error) if self.lost_lengths < MAX_REREADS => {
                self.lost_lengths += 1;
                Err(error)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Reads a page of the list once more.
    async fn recheck(&mut self, page: u32) -> Result<Vec<Event>, Error> {
        if page == 1 || self.reads.recheck.is_none() {
            self.reads.recheck = Some(ReadDown::new(&self.plan.list, self.repeats, &self.plan.shown));
        }
        let Some(recheck) = &mut self.reads.recheck else { return Ok(Vec::new()) };
        recheck.run.set_max_in_flight(1);
        let page = recheck.next().await?;
        let lost_length = recheck.lost_length();
        let stop = match &page {
            Some(_) if recheck.run.end().is_none() => Stop::Page(None),
            _ => Stop::List,
        };
        self.check_length(lost_length)?;
        self.absorb();
        let page = page.map(|page| ReadPage::new(page.columns));
        self.follower().on_recheck(page.as_ref().map_or(&[], |page| &page.facts), stop)
    }
}
