//! Inputs and outputs of the reader: its list, its requests, their responses, and the records that they bring.

use std::ops::{Range, RangeInclusive};

use crate::interface::certain_window;
use crate::message::Hint;

/// Kinds of lists by the changes to expect while they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// One response holds everything.
    Lookup,
    /// The pages of one block, which do not change.
    Fixed,
    /// New records are added at the head.
    Growing,
    /// Records are ordered by a value that changes.
    Ranked,
}

/// When the first page of a list without a count is returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstPage {
    /// Once it was found in the snapshot: it may be replaced before.
    #[default]
    Located,
    /// As it arrives, for a caller that may need no other page.
    AtOnce,
    /// As it arrives, and each page after it begins with returned records: for a caller that compares them with what it has,
    /// and may end the list after any of them.
    Compared,
}

/// Properties of a list that are known before it is read.
#[derive(Clone, Debug)]
pub struct ListSpec {
    pub endpoint: &'static str,
    pub kind: ListKind,
    /// Records per page.
    pub page_size: u64,
    pub max_page_size: u64,
    /// Greatest height of the list, where the API accepts such a bound; `i64::MAX` if none is given.
    pub height_bound: Option<i64>,
    /// Number of records up to which the list can be paged through, where the API sets a limit.
    pub result_window: Option<u64>,
    /// Number of records after which the caller stops; `None` if all are wanted.
    pub wanted: Option<u64>,
    pub first_page: FirstPage,
    /// Advice for a list that cannot be read.
    pub hints: Vec<Hint>,
    pub tuning: Tuning,
}

/// Bounds that tests vary.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Responses in a row without a new record after which the list counts as unreadable.
    pub max_misses: u32,
    /// Pages up to which the beginning of a list without a count is read by pages that all begin with returned records. It
    /// takes fewer requests than the length and a final look.
    pub overlap_pages: u64,
    /// Most keys of returned records that are kept.
    pub max_keys: usize,
    /// Most records of the first page that a final look may compare.
    pub max_anchors: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { max_misses: 20, overlap_pages: 5, max_keys: 1_024, max_anchors: 100 }
    }
}

impl ListSpec {
    /// Number of records from which a list may be longer than its pages show.
    pub fn window(&self) -> u64 {
        self.result_window.map_or(u64::MAX, certain_window)
    }

    /// True for a count that may be that of the result window: the list may have any number of records more.
    pub fn is_capped(&self, total: u64) -> bool {
        self.result_window.is_some_and(|window| (self.window()..=window.saturating_add(window / 20)).contains(&total))
    }

    /// True if a request begins where the API may return no more records, whatever it reported before.
    pub fn is_beyond_window(&self, request: &PageRequest) -> bool {
        request.purpose == Purpose::Records && request.position() >= self.window()
    }
}

/// The end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All records of the snapshot were returned, or as many as the API returns.
    List,
    /// The length of the list is unknown: a page may follow the returned records only in appearance.
    UnknownLength,
    /// The list reaches the result window.
    ResultWindow,
    /// The records of a ranked list moved: some may not have been received.
    Unsettled,
    /// Records of a ranked list were removed after they were returned.
    Shrunk,
    /// A one-record page showed a record that the pages of a ranked list do not have.
    Lacking,
}

/// One request: a page of the list up to a height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    pub page: u64,
    pub limit: u64,
    pub height_bound: Option<i64>,
    pub purpose: Purpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Records,
    /// Shows where records are: the next one alone, a later page, or the number of pages of one record, which is the length
    /// of the list.
    Probe,
    /// Shows that the list ends here: a record of the first page, once more, or no record behind the last one.
    FinalLook,
    /// Returned records, once more, for the audit. The reader does not take the response.
    Audit,
}

impl PageRequest {
    pub fn new(purpose: Purpose, page: u64, limit: u64) -> Self {
        Self { page, limit, height_bound: None, purpose }
    }

    pub fn first(limit: u64) -> Self {
        Self::new(Purpose::Records, 1, limit)
    }

    pub fn of_audit(page: u64, limit: u64) -> Self {
        Self::new(Purpose::Audit, page, limit)
    }

    /// Position of its first record.
    pub fn position(&self) -> u64 {
        self.position_by(self.limit)
    }

    /// Position of its first record if a full page has another number of records than were requested.
    pub fn position_by(&self, page_rows: u64) -> u64 {
        (self.page - 1).saturating_mul(page_rows)
    }
}

/// Rows of a response.
pub trait Rows {
    fn len(&self) -> usize;

    /// Key of a row's record: equal for equal records of the same block.
    fn key(&self, row: usize) -> u64;

    /// Keys of all rows.
    fn keys(&self) -> Vec<u64> {
        (0..self.len()).map(|row| self.key(row)).collect()
    }

    fn height(&self, row: usize) -> Option<i64>;

    /// Hash of a row's block hash, where it has one.
    fn block(&self, _row: usize) -> Option<u64> {
        None
    }

    /// Hash of a row's transaction hash, where it has one.
    fn transaction(&self, _row: usize) -> Option<u64> {
        None
    }
}

/// One response.
pub struct Response<'a> {
    pub rows: &'a dyn Rows,
    /// Number of the page that the API reports.
    pub page: Option<u64>,
    /// Page size that the API reports.
    pub limit: Option<u64>,
    pub total_pages: Option<u64>,
    pub total: Option<u64>,
}

impl Response<'_> {
    /// True if the API reports pages after the requested one.
    pub fn has_next(&self, request: &PageRequest) -> bool {
        self.total_pages.is_some_and(|pages| pages > request.page)
    }
}

/// A response with its position in the list at its instant.
pub(super) struct View<'a> {
    pub rows: &'a dyn Rows,
    pub page: u64,
    /// Position of the first row, counted from the head.
    pub position: i64,
    /// Rows of a full page, as the API serves it.
    pub page_size: u64,
    pub pages: Option<u64>,
    pub total: Option<u64>,
    /// Number of records from which the list may be longer than its pages show.
    pub window: u64,
}

impl View<'_> {
    pub fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    pub fn keys(&self, rows: Range<usize>) -> Vec<u64> {
        rows.map(|row| self.rows.key(row)).collect()
    }

    /// Exact length of the list at the instant of the response, if it shows that.
    pub fn length(&self) -> Option<u64> {
        self.total.or(self.pages.filter(|pages| self.page_size == 1 && *pages < self.window))
    }

    /// Lengths that the list may have at the instant of the response. Its last page shows the length.
    pub fn lengths(&self) -> RangeInclusive<i64> {
        let end = self.position + self.len() as i64;
        let is_capped = self.pages.is_some_and(|pages| self.records_of(pages) >= self.window);
        if self.is_last() && !is_capped {
            return end..=end;
        }
        let Some(pages) = self.pages else { return end..=i64::MAX };
        let before_last = i64::try_from(self.records_of(pages - 1)).unwrap_or(i64::MAX);
        let with_last = i64::try_from(self.records_of(pages)).unwrap_or(i64::MAX);
        before_last.saturating_add(1)..=if is_capped { i64::MAX } else { with_last }
    }

    /// Number of records on this many full pages.
    fn records_of(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.page_size)
    }

    /// True if the API reports that no page follows.
    pub fn is_last(&self) -> bool {
        match (self.pages, self.total) {
            (Some(pages), _) => self.page >= pages,
            (None, Some(total)) => self.position + self.len() as i64 >= total as i64 || self.len() == 0,
            // Without a number of pages, a short page may be all that the service returns at once.
            (None, None) => self.len() == 0,
        }
    }

    /// True for a first page that holds the whole list.
    pub fn is_whole(&self) -> bool {
        self.is_last() && self.len() < self.window
    }

    /// True if one of these records is in the response, if its first row has this offset. `None` if it does not show the last
    /// of them: those above it may be gone with the head of the list.
    pub fn shows_one(&self, records: &[(u64, u64)], offset: i64) -> Option<bool> {
        let is_shown = records.iter().any(|record| self.shows(*record, offset) == Some(true));
        if is_shown { Some(true) } else { self.shows(*records.last()?, offset) }
    }

    /// True if a record is in the response, if its first row has this offset. `None` if the response does not reach it.
    fn shows(&self, (record, key): (u64, u64), offset: i64) -> Option<bool> {
        let row = usize::try_from(record as i64 - offset).ok()?;
        if row < self.rows.len() { Some(self.rows.key(row) == key) } else { None }
    }

    /// True if the response ends where the API returns no more of the list.
    pub fn is_at_window(&self, result_window: Option<u64>) -> bool {
        let end = self.position as u64 + self.len();
        let Some(window) = result_window else { return false };
        let is_near = (self.window..=window.saturating_add(window / 20)).contains(&end);
        let has_more = self.total.is_none_or(|total| total > end);
        let is_cut = self.total.zip(self.pages).is_some_and(|(total, pages)| self.records_of(pages) < total);
        has_more && (is_near || is_cut)
    }
}
