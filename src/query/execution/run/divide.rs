//! A list that is longer than the result window, if the API can filter it by ranges of a column's values. Its newest
//! records come from the list itself, down to a height near the window; the others from lists of ranges of values, each of
//! which is shorter than the window, and in each of which they are the records up to that height. They are all, if they
//! are as many as the first response counted. A final look at the list shows that no block of theirs was replaced.
//!
//! | List | Step |
//! |---|---|
//! | itself, most of the window | is read down to the end of a height, and looked at once more |
//! | of a range, longer than the window | is split by the values of its first page |
//! | of a range | is read, without the records that the list itself returned |
//! | itself | a final look, then the count |

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::slice::CurrentSlice;
use super::{Run, SliceFetcher};
use crate::client::log;
use crate::columns::Columns;
use crate::decode;
use crate::query::evidence::Evidence;
use crate::query::request::{Query, ValueRange};
use crate::query::results::{Cursor, Division, KeyedRows, Progress};
use crate::query::snapshot::{FirstPage, ListReader, PageRequest, Rows};

const GROWN: &str = "The list has grown by more than the result window while it was read: whether blocks of it were replaced \
                     meanwhile is not known";

/// Shares of the result window are in fifths.
const FIFTHS: u64 = 5;
/// Share from which on the list itself is cut, so that a fifth is left for records that are added while it is read.
const CUT_FIFTHS: u64 = 4;
/// Share that a range is to have. One with more than the whole window is split again, which costs its first page: ranges that are
/// expected to have less may have two thirds more than that.
const RANGE_FIFTHS: u64 = 3;

/// Reading of a list beyond the result window.
pub(super) enum Dividing {
    /// The list ends there: its order matters.
    Never,
    /// The list itself is read. The sample is of the values of its records.
    Undivided {
        sample: Vec<String>,
    },
    /// The list was read up to its cut. The division begins once it was looked at again.
    Cut {
        sample: Vec<String>,
        division: Division,
    },
    Divided(DividedList),
}

/// A list that is read by ranges of values.
pub(super) struct DividedList {
    /// Values of the records that the list itself returned in this run.
    sample: Vec<String>,
    /// The division, as it was when this run began to read ranges.
    division: Division,
    /// Records that this run has delivered when none remains.
    end: u64,
    /// Records of the list that were returned before this run.
    before: u64,
}

/// The page that may have the cut.
pub(super) struct CutPage<'a> {
    pub query: &'a Query,
    pub list: &'a ListReader,
    pub page: &'a decode::Page,
    /// Page size of its request.
    pub limit: u64,
    /// Rows that come next, of which the first has this offset.
    pub rows: &'a Range<usize>,
    pub offset: u64,
    /// Records still wanted, where there is a limit.
    pub left: Option<u64>,
}

impl CutPage<'_> {
    /// Length of the list, if it is longer than what can be paged through, and all of it is wanted.
    fn total(&self) -> Option<u64> {
        let total = self.list.snapshot().total?;
        let is_wanted = self.left.is_none_or(|left| left >= total.saturating_sub(self.offset));
        (is_wanted && self.reachable()? < self.page.paging.total?).then_some(total)
    }

    /// Records of the list that can be paged through.
    fn reachable(&self) -> Option<u64> {
        let page_rows = self.list.snapshot().page_sizes.served(self.limit);
        Some(self.page.paging.total_pages?.saturating_mul(page_rows))
    }

    /// True if the page is the last but few that can be requested.
    fn is_near_window(&self) -> bool {
        let end = (self.offset + self.rows.len() as u64).saturating_add_signed(self.list.drift());
        self.reachable().is_some_and(|reachable| end > reachable / FIFTHS * CUT_FIFTHS)
    }

    /// Rows before those of the lowest height, and that height, if the page shows where it begins.
    fn before_lowest_height(&self) -> Option<(usize, i64)> {
        let heights = self.rows.clone().map(|row| Rows::height(&self.page.columns, row));
        let heights: Vec<i64> = heights.collect::<Option<_>>()?;
        let lowest = *heights.last()?;
        let rows = heights.iter().position(|height| *height == lowest)?;
        (rows > 0 && heights.is_sorted_by(|above, below| above >= below)).then_some((rows, lowest))
    }

    /// Records that a final look finds again: they differ from all those above them.
    fn anchors(&self, rows: usize) -> Vec<(u64, u64)> {
        let keys = KeyedRows::new(&self.page.columns);
        let mut above = HashSet::new();
        let records = (self.offset..).zip(self.rows.clone().take(rows).map(|row| keys.key(row)));
        records.filter(|(_, key)| above.insert(*key)).skip(1).collect()
    }
}

impl Dividing {
    /// The state of a run that continues from a cursor, or begins.
    pub fn of(start: Option<&Cursor>) -> Self {
        let Some(division) = start.and_then(|start| start.division.clone()) else { return Self::Never };
        let end = division.remaining;
        let before = division.total - division.remaining;
        Self::Divided(DividedList { sample: Vec::new(), division, end, before })
    }

    /// The list, if it was divided, so that its records are not in their order.
    pub fn divided(&self) -> Option<&DividedList> {
        if let Self::Divided(list) = self { Some(list) } else { None }
    }

    pub fn is_cut(&self) -> bool {
        matches!(self, Self::Cut { .. })
    }

    /// Greatest height of the records of ranges.
    pub fn top(&self) -> Option<i64> {
        self.divided().map(|list| list.division.top)
    }

    /// The division after this run has delivered `delivered` records.
    pub fn at(&self, delivered: u64) -> Option<Division> {
        self.divided().map(|list| list.at(delivered))
    }

    /// The state before the list was read, which is read again.
    pub fn restart(&mut self) {
        if let Self::Undivided { .. } | Self::Cut { .. } = self {
            *self = Self::Undivided { sample: Vec::new() };
        }
    }

    /// Returns the number of rows before the cut, if the list is to be cut in this page, and the division after them.
    pub fn cut(&mut self, page: &CutPage<'_>) -> Option<(usize, Division)> {
        let divider = page.query.endpoint().divider()?;
        let Self::Undivided { sample } = self else { return None };
        let total = page.total()?;
        let columns = &page.page.columns;
        let column = columns.record().position(divider.column)?;
        sample.extend(page.rows.clone().filter_map(|row| columns.text(column, row).map(str::to_owned)));
        if !page.is_near_window() {
            return None;
        }
        let (rows, top) = page.before_lowest_height()?;
        let values = sample.iter().map(String::as_str);
        let ranges = ValueRange::all().split(values, parts(total, page.list.spec().window()), total);
        if ranges.is_empty() {
            return None;
        }
        let division = Division {
            top,
            total,
            remaining: total - page.offset - rows as u64,
            ranges: ranges.into(),
            list: page.list.checkpoint().at_end(&page.anchors(rows)),
        };
        let sample = std::mem::take(sample);
        *self = Self::Cut { sample, division: division.clone() };
        Some((rows, division))
    }
}

impl DividedList {
    /// The division after this run has delivered `delivered` records.
    fn at(&self, delivered: u64) -> Division {
        Division { remaining: self.end.saturating_sub(delivered), ..self.division.clone() }
    }

    /// Progress of the list after this run has delivered `delivered` records.
    pub fn progress(&self, delivered: u64) -> Progress {
        let Division { total, remaining, .. } = self.at(delivered);
        Progress { unit: "records", start: self.before, done: total - remaining, total: Some(total) }
    }
}

/// Number of ranges that a list of `records` records is split into, which have most of a window each.
fn parts(records: u64, window: u64) -> u64 {
    records.div_ceil((window / FIFTHS * RANGE_FIFTHS).max(1)).max(2)
}

impl Run {
    /// Reads a list beyond the result window, if the API can filter it by ranges of values; its older records are then not
    /// in their order.
    #[must_use]
    pub fn dividing(mut self) -> Self {
        if let Dividing::Never = self.dividing {
            self.dividing = Dividing::Undivided { sample: Vec::new() };
        }
        self
    }

    /// Reads a list in its order, as far as it can be paged through.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        if let Dividing::Undivided { .. } = self.dividing {
            self.dividing = Dividing::Never;
        }
        self
    }

    /// A fetcher of a slice from its beginning.
    pub(super) fn open(&self, slice: u64) -> SliceFetcher {
        match self.dividing.divided() {
            Some(list) if self.query.slices().is_final_look(slice) => {
                SliceFetcher::final_look(&self.query, slice, &list.division.list)
            }
            _ => SliceFetcher::new(&self.query, slice, self.remaining(), self.first_page),
        }
    }

    /// True if a slice may be opened next to those that are open. The final look is at a list that nothing is read of. The
    /// beginning of a list that may grow is proven for the number of records that are wanted of it.
    pub(super) fn may_open(&self, slice: u64) -> bool {
        let is_beginning = self.query.may_grow() && self.query.max_items().is_some();
        self.fetchers.is_empty() || !(is_beginning || self.query.slices().is_final_look(slice))
    }

    /// Begins to read the ranges of a list that was read up to its cut.
    pub(super) fn divide(&mut self) {
        let Dividing::Cut { sample, division } = &mut self.dividing else { return };
        let sample = std::mem::take(sample);
        let division = division.clone();
        for reason in self.fetchers.pop_front().into_iter().flat_map(|fetcher| fetcher.doubts()) {
            self.output.report.add_contradiction(reason);
        }
        log::emit(log::Level::Debug, || {
            let Division { total, remaining, ranges, .. } = &division;
            let name = self.query.endpoint().name;
            format!("{name}: {remaining} of {total} records are read by {} ranges of amounts", ranges.len())
        });
        self.query = self.query.clone().unlimited().divided(&division.ranges);
        let end = self.output.delivered + division.remaining;
        let before = (division.total - division.remaining).saturating_sub(self.output.delivered);
        self.dividing = Dividing::Divided(DividedList { sample, division, end, before });
        // The laws of the evidence are about records in their order, which the ranges do not have.
        self.output.evidence = Evidence::default();
        self.current = CurrentSlice::default();
        self.next_slice = 1;
    }

    /// Splits the range of which this is the first response, if it is too long. True if the response is of no more use.
    pub(super) fn split(&mut self, request: &PageRequest, page: &decode::Page) -> bool {
        let Some(fetcher) = self.fetchers.front() else { return false };
        let slice = fetcher.slice;
        let Some(range) = self.query.slices().value_range(slice) else { return false };
        let Some(list) = self.dividing.divided() else { return false };
        let window = fetcher.list.spec().window();
        let size = page.paging.limit.unwrap_or(request.limit).max(page.columns.rows() as u64);
        let shown = page.paging.total_pages.unwrap_or(1).saturating_mul(size);
        let records = page.paging.total.unwrap_or(shown);
        // A list grows while it is read.
        if !self.is_at_new_range() || records < window - window / 10 {
            return false;
        }
        let values = self.values(&page.columns);
        let is_ignored = values.iter().any(|value| range.is_foreign(value)) || shown.saturating_add(size) < window;
        if records >= range.of() && is_ignored {
            self.give_up();
            return true;
        }
        let sample = list.sample.iter().chain(&values).map(String::as_str);
        let parts = range.split(sample, parts(records, window), records);
        if parts.is_empty() {
            return false;
        }
        self.replace(slice, parts);
        true
    }

    /// True if nothing of the range was received whose response comes next.
    pub(super) fn is_at_new_range(&self) -> bool {
        let Some(fetcher) = self.fetchers.front() else { return false };
        let is_new = fetcher.list.snapshot().min_length == 0 && fetcher.list.returned() == 0;
        is_new && self.query.slices().value_range(fetcher.slice).is_some()
    }

    /// Ends a divided list whose final look would be beyond the result window.
    pub(super) fn skip_final_look(&mut self) {
        let Some(fetcher) = self.fetchers.front() else { return };
        if self.query.slices().is_final_look(fetcher.slice) && fetcher.list.is_look_beyond_window() {
            self.output.report.add_reason(GROWN);
            self.sum_up();
            self.fetchers.clear();
        }
    }

    fn values(&self, columns: &Columns) -> Vec<String> {
        let divider = self.query.endpoint().divider();
        let Some(column) = divider.and_then(|divider| columns.record().position(divider.column)) else {
            return Vec::new();
        };
        (0..columns.rows()).filter_map(|row| columns.text(column, row).map(str::to_owned)).collect()
    }

    /// Reads parts of a range in place of it.
    fn replace(&mut self, slice: u64, parts: Vec<ValueRange>) {
        let Dividing::Divided(DividedList { division, .. }) = &mut self.dividing else { return };
        let added = parts.len() as u64 - 1;
        let mut ranges = division.ranges.to_vec();
        let index = slice as usize - 1;
        ranges.splice(index..=index, parts);
        division.ranges = Arc::from(ranges);
        self.query = self.query.clone().divided(&division.ranges);
        self.fetchers.pop_front();
        for fetcher in &mut self.fetchers {
            fetcher.slice += added;
        }
        self.next_slice += added;
        for slice in (slice..=slice + added).rev() {
            self.fetchers.push_front(SliceFetcher::new(&self.query, slice, None, FirstPage::default()));
        }
    }

    /// Ends a list that the filter does not divide.
    pub(super) fn give_up(&mut self) {
        let Some(division) = self.dividing.at(self.output.delivered) else { return };
        let total = division.total;
        let returned = total - division.remaining;
        self.output.report.add_reason(self.query.with_narrowing(format!(
            "The API reports {total} records but only the first {returned} can be paged through, since it ignores ranges"
        )));
        self.fetchers.clear();
        self.next_slice = self.query.slices().count();
    }

    /// Compares the number of records that all ranges returned with that of the list.
    pub(super) fn sum_up(&self) {
        let Some(DividedList { division, end, .. }) = self.dividing.divided() else { return };
        let returned = (division.total + self.output.delivered).saturating_sub(*end);
        if returned != division.total && self.output.report.read().reasons.is_empty() {
            let total = division.total;
            self.output.report.add_reason(format!(
                "The API reports {total} records but its ranges of amounts have {returned}: some may have no amount, or the \
                 list has changed"
            ));
        }
    }
}
