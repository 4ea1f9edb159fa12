//! `ShortPages`: pages that have fewer records than they say, although others follow. The service may serve smaller pages, or
//! leave records out of them. A list that is read to its end shows which by its length. For the beginning of one, the record
//! that was returned last is requested alone, where it should be. If it lies further down, as many records are new.

use crate::message::Message;
use crate::query::snapshot::{PageRequest, Response};

const UNPROVEN: &str =
    "Some pages have fewer records than they say, although others follow: some records may be missing.";

/// Requests for records that the list has moved away from.
const MAX_LOOKS: u32 = 6;
/// Times that a first record may come back: two responses that are in flight at the same time may arrive in another order.
const MAX_RETURNS: u32 = 2;

#[derive(Clone, Debug, Default)]
pub struct ShortPages {
    /// The first of these pages.
    short: Option<ShortPage>,
    looks: u32,
    /// Distance by which the last record has moved beyond what the reader knows.
    moved: u64,
    stage: Stage,
    first: Option<FirstPageSize>,
    /// True if another page has more rows than the first one, which has too few.
    is_uneven: bool,
    /// Fewest rows of a page that has too few, and most rows of any page of the size of the first one.
    fewest: Option<u64>,
    most: u64,
    /// Greatest length that pages of one record have shown.
    longest: u64,
    /// Records that were the first of the list, the latest one last.
    heads: Vec<u64>,
    /// Times that one of them became the first again.
    returns: u32,
}

/// The record that is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Last,
    /// The new one right above the first one, after the last one was found further down.
    New,
    Proven,
    Unproven,
}

#[derive(Clone, Copy, Debug)]
struct FirstPageSize {
    limit: u64,
    /// Number of rows of the page, if that is less than the response says.
    too_few: Option<u64>,
}

/// A page with fewer rows than it says.
#[derive(Clone, Copy, Debug)]
struct ShortPage {
    rows: u64,
    /// Number of rows that it says.
    size: u64,
    /// Pages and records of the list, as it says.
    pages: Option<u64>,
    total: Option<u64>,
}

impl ShortPage {
    /// True if a list of this length has as many pages as the response says if they have the size that it says, and not if they
    /// are as small as this one.
    fn lacks_rows(self, length: u64) -> bool {
        self.pages.is_some_and(|pages| pages == length.div_ceil(self.size) && pages != length.div_ceil(self.rows))
    }

    /// True if the pages were not as small as this one, where a list that has moved by some records since has this length now.
    fn is_contradicted(self, length: u64, moved: i64) -> bool {
        let is_too_short = self.total.is_some_and(|total| length < total.saturating_add_signed(moved));
        let pages = length.saturating_add_signed(-moved).div_ceil(self.rows);
        is_too_short || self.pages.is_some_and(|shown| shown != pages)
    }
}

impl ShortPages {
    /// The pages of a run that continues another one, whose first page had fewer rows than were requested.
    pub fn continued(limit: u64, rows: u64) -> Self {
        Self { first: Some(FirstPageSize { limit, too_few: Some(rows) }), ..Self::default() }
    }

    /// Takes a response of which rows are returned.
    pub fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) {
        let rows = response.rows.len() as u64;
        let size = response.limit.unwrap_or(request.limit).min(request.limit);
        let is_short = rows > 0 && response.has_next(request) && rows < size;
        if is_short {
            let Response { total_pages: pages, total, .. } = *response;
            self.short.get_or_insert(ShortPage { rows, size, pages, total });
        }
        if request.position() == 0 && rows > 0 {
            self.on_head(response.rows.key(0));
        }
        if request.limit == 1 {
            self.longest = self.longest.max(response.total_pages.unwrap_or(0));
            return;
        }
        let too_few = if is_short && request.page == 1 { Some(rows) } else { None };
        let first = *self.first.get_or_insert(FirstPageSize { limit: request.limit, too_few });
        if request.limit == first.limit {
            self.is_uneven |= first.too_few.is_some_and(|of_first| rows > of_first);
            self.fewest =
                if is_short { Some(self.fewest.map_or(rows, |fewest| fewest.min(rows))) } else { self.fewest };
            self.most = self.most.max(rows);
        }
    }

    /// Takes the first record of the list.
    fn on_head(&mut self, key: u64) {
        if self.heads.last() == Some(&key) {
            return;
        }
        let before = self.heads.len();
        self.heads.retain(|head| *head != key);
        self.returns += u32::from(self.heads.len() < before);
        self.heads.push(key);
    }

    /// True if pages of the size of the first one, which has too few rows, do not begin where those of another size do.
    fn have_other_head(&self) -> bool {
        self.returns > MAX_RETURNS && self.first.is_some_and(|first| first.too_few.is_some())
    }

    /// True if records that were taken for newer ones than those of the first page may belong to it: `returned` records were
    /// all others.
    pub fn may_lack_newest(&self, returned: u64) -> bool {
        (self.is_uneven || self.have_other_head()) && self.longest > returned
    }

    /// True if the first page has fewer rows than it says, and another one has more.
    pub fn are_uneven(&self) -> bool {
        self.is_uneven
    }

    /// True if a page has fewer rows than it says, and another one has more.
    pub fn are_of_several_sizes(&self) -> bool {
        self.fewest.is_some_and(|fewest| fewest < self.most)
    }

    pub fn are_open(&self) -> bool {
        self.short.is_some() && matches!(self.stage, Stage::Last | Stage::New)
    }

    /// True if the response itself shows that such a page lacks rows, and nothing that none of them belongs to the beginning.
    pub fn lack_rows(&self) -> bool {
        let Some(short) = self.short else { return false };
        self.stage != Stage::Proven && short.total.is_some_and(|total| short.lacks_rows(total))
    }

    /// Why records may be missing: nothing showed that the pages have all of them.
    pub fn reason(&self) -> Option<Message> {
        (self.stage == Stage::Unproven).then(|| UNPROVEN.into())
    }

    /// The place of the record, in a list that has moved by `drift`.
    pub fn request(&self, returned: u64, drift: i64) -> PageRequest {
        let number = if self.stage == Stage::New { 0 } else { returned };
        PageRequest::of_audit((number + self.moved).saturating_add_signed(drift).max(1), 1)
    }

    /// Takes the response to that request from a list that has moved by `drift`, with the keys of the latest returned records,
    /// oldest first. False if it has a record that was not returned, or not there.
    pub fn on_look(&mut self, response: &Response<'_>, drift: i64, latest: &[u64], is_known: bool) -> bool {
        self.looks += 1;
        if response.rows.len() != 1 || self.looks > MAX_LOOKS {
            self.stage = Stage::Unproven;
            return true;
        }
        let key = response.rows.key(0);
        if self.stage == Stage::New {
            self.stage = Stage::Proven;
            return !is_known && !self.are_contradicted(response, drift);
        }
        let Some(row) = latest.iter().rposition(|latest| *latest == key) else {
            // The record lies further up than records are known, or was left out.
            if is_known {
                self.stage = Stage::Unproven;
            }
            return is_known;
        };
        let distance = (latest.len() - 1 - row) as u64;
        self.moved += distance;
        if distance == 0 {
            self.stage = if self.moved == 0 { Stage::Proven } else { Stage::New };
        }
        self.stage != Stage::Proven || !self.are_contradicted(response, drift)
    }

    /// True if the list cannot have grown by the distance that its records have moved, with what the reader knows.
    fn are_contradicted(&self, response: &Response<'_>, drift: i64) -> bool {
        let moved = drift.saturating_add_unsigned(self.moved);
        let length = response.total.or(response.total_pages).filter(|_| moved > 0);
        length.zip(self.short).is_some_and(|(length, short)| short.is_contradicted(length, moved))
    }
}
