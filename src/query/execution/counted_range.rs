//! `CountedRange`: the lowest heights of a range, as pages of a list with a count. Counted from the end of the list, the
//! offsets of records do not change, so that its pages are requested where the heights are expected.

use std::ops::RangeInclusive;

use super::fetch::fetch;
use super::list_spec::{list_spec, response};
use super::query_start::QueryStart;
use super::range_run::{CompleteRows, end_of_part};
use super::run::Run;
use super::shown_log::ShownLog;
use crate::client::Error;
use crate::columns::Columns;
use crate::decode::Page;
use crate::query::audit::Arguments;
use crate::query::request::Query;
use crate::query::results::SharedReport;
use crate::query::snapshot::{ListReader, PageRequest};

/// Pages that are requested to find the one of a height. In a list with one record for each height, it is one.
const MAX_LOOKS: u32 = 8;

pub(super) struct CountedRange<'q> {
    list: &'q Query,
    report: &'q SharedReport,
    shown: &'q ShownLog,
}

/// A page of the list, by its greatest and its lowest height.
#[derive(Clone, Copy)]
struct PageHeights {
    page: u64,
    first: i64,
    last: i64,
}

impl PageHeights {
    fn new(page: u64, columns: &Columns) -> Option<Self> {
        let heights = columns.heights().flatten();
        Some(Self { page, first: heights.clone().max()?, last: heights.min()? })
    }
}

impl<'q> CountedRange<'q> {
    pub fn new(list: &'q Query, report: &'q SharedReport, shown: &'q ShownLog) -> Self {
        Self { list, report, shown }
    }

    /// Reads a range from its lowest height on, up to about `max_rows` records. None if they are not found.
    pub async fn read(&self, heights: RangeInclusive<i64>, max_rows: u64) -> Result<Option<CompleteRows>, Error> {
        let low = *heights.start();
        let high = *heights.end();
        let mut reader = ListReader::new(list_spec(self.list, None));
        let request = PageRequest::first(self.list.page_size());
        let page = self.fetch(request, false).await?;
        reader.on_response(&request, &response(&page, reader.spec()))?;
        let Some(pages) = page.paging.total_pages else { return Ok(None) };
        let Some(newest) = PageHeights::new(1, &page.columns) else { return Ok(None) };
        let rows = reader.snapshot().page_rows();
        let Some(bottom) = self.locate(low, newest, pages, rows).await? else { return Ok(None) };
        // A run reads downwards: it begins as many pages above `low` as may be held, and ends with the page of `low`.
        let top = bottom.saturating_sub((max_rows / rows).max(1) - 1);
        let (start, up_to) = if top <= 1 {
            (self.list.clone().into(), high)
        } else {
            // The run continues after this page as from a cursor, so that its reader proves the rest as it proves any list.
            let request = PageRequest { page: top - 1, ..request };
            let page = self.fetch(request, true).await?;
            let Some((offset, list)) = reader.checkpoint_after(&request, &response(&page, reader.spec())) else {
                return Ok(None);
            };
            let Some(above) = PageHeights::new(top - 1, &page.columns) else { return Ok(None) };
            // More records of the height above may be on that page.
            (QueryStart::from_position(self.list, offset, list, None)?, high.min(above.last - 1))
        };
        if up_to < low {
            return Ok(None);
        }
        let all = self.read_down(&start, low, bottom + 2 - top.max(1)).await?;
        let pages = all.iter().map(|columns| within(columns, low..=up_to)).collect();
        Ok(Some(CompleteRows { up_to, pages }))
    }

    /// The page with the newest records that are not above `height`, or one just above it.
    async fn locate(&self, height: i64, newest: PageHeights, pages: u64, rows: u64) -> Result<Option<u64>, Error> {
        let mut at = newest;
        // At first as dense as the newest page, then as it was between the last two pages.
        let mut pages_per_height = 1.0 / (at.first - at.last + 1) as f64;
        for _ in 0..MAX_LOOKS {
            let is_below = at.first < height;
            if !is_below && (at.last <= height || at.page >= pages) {
                return Ok(Some(at.page));
            }
            let heights = height.abs_diff(if is_below { at.first } else { at.last });
            let distance = (heights as f64 * pages_per_height).ceil().max(1.0) as u64;
            let next = if is_below {
                at.page.saturating_sub(distance).max(1)
            } else {
                at.page.saturating_add(distance).min(pages)
            };
            // One page further, a look would tell nothing: a page just above will do.
            if next == at.page || next == at.page + 1 {
                return Ok(Some(next));
            }
            let request = PageRequest { page: next, ..PageRequest::first(rows) };
            let Some(found) = PageHeights::new(next, &self.fetch(request, true).await?.columns) else {
                return Ok(None);
            };
            let heights = at.first.abs_diff(found.first).max(1);
            pages_per_height = at.page.abs_diff(next) as f64 / heights as f64;
            at = found;
        }
        Ok(None)
    }

    /// Reads from the beginning of a run down to the records below `low`; about `pages` pages.
    async fn read_down(&self, start: &QueryStart, low: i64, pages: u64) -> Result<Vec<Columns>, Error> {
        let mut run = Run::new(start);
        run.log_responses(self.shown.clone());
        let mut all = Vec::new();
        let mut to_come = pages;
        let read = loop {
            run.set_max_in_flight(usize::try_from(to_come.max(1)).unwrap_or(usize::MAX));
            match run.next().await {
                Ok(Some(page)) => {
                    to_come = to_come.saturating_sub(1);
                    if PageHeights::new(page.number, &page.columns).is_some_and(|place| place.last < low) {
                        run.end_here();
                        to_come = 0;
                    }
                    all.push(page.columns);
                }
                Ok(None) => break Ok(all),
                Err(error) => break Err(error),
            }
        };
        end_of_part(&run, self.list, self.report, read)
    }

    async fn fetch(&self, request: PageRequest, must_have_rows: bool) -> Result<Page, Error> {
        let page = fetch(self.list, 0, request, must_have_rows, self.report).await?;
        self.shown.add(self.list, &request, &page, &Arguments::of(self.list));
        Ok(page)
    }
}

/// The records of these heights.
fn within(columns: &Columns, heights: RangeInclusive<i64>) -> Columns {
    let rows = columns.heights().zip(0..).filter(|(height, _)| height.is_some_and(|height| heights.contains(&height)));
    columns.take(&rows.map(|(_, row)| row).collect::<Vec<_>>())
}
