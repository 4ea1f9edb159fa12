//! `Growth`: growth that responses reported, compared with the head of the list. A list becomes longer by records above the
//! known ones, so these have moved down at least as far. Otherwise one of several servers lacks records of another one.

use super::pages::records_before;
use super::repeats::count;
use super::subject::ReaderState;
use crate::message::Message;
use crate::query::hashed::HashedSet;
use crate::query::snapshot::{PageRequest, Response, Rows};

const DOUBTFUL: &str = "Some responses reported more records than others, and none of the newest ones is new: a \
                        part of the service may lack records.";

/// Records of the first page that are kept.
const KEPT: usize = 64;
/// Requests for the head: another server may answer the next one.
const MAX_LOOKS: u32 = 3;

#[derive(Clone, Debug, Default)]
pub struct Growth {
    /// Records of the first page, by offset and key.
    head: Vec<(u64, u64)>,
    /// Keys of these records, also of those that were forgotten.
    head_keys: HashedSet,
    /// The greatest height of that page, if it was received by this run.
    top: Option<i64>,
    /// Length of the snapshot.
    length: Option<u64>,
    /// Greatest growth that was reported and is not confirmed by the head.
    unconfirmed: u64,
    looks: u32,
    look: HeadPage,
    is_contradicted: bool,
}

/// The page that is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HeadPage {
    /// The record where the first one of the list should be.
    #[default]
    One,
    /// The first page, after a record of this height, below that of the first one, was there.
    FirstPage(i64),
}

impl Growth {
    /// Takes the first records of the list.
    pub fn begin(&mut self, head: impl IntoIterator<Item = (u64, u64)>) {
        if self.head.is_empty() {
            self.head = head.into_iter().take(KEPT).collect();
            self.head_keys = self.head.iter().map(|(_, key)| *key).collect();
        }
    }

    /// Forgets records that one response shows twice: one of them may be newer than the first page.
    pub fn forget_repeated(&mut self, response: &Response<'_>) {
        let keys = (0..response.rows.len()).map(|row| response.rows.key(row));
        // Most responses show none of them.
        let shown: Vec<u64> = keys.filter(|key| self.head_keys.contains(key)).collect();
        if !shown.is_empty() {
            self.head.retain(|(_, key)| count(*key, &shown) < 2);
        }
    }

    /// Takes the greatest height of the first page.
    pub fn begin_at(&mut self, top: Option<i64>) {
        self.top = self.top.or(top);
    }

    /// Takes a response, which may show how far the head has moved.
    pub fn on_response(&mut self, request: &PageRequest, response: &Response<'_>, seen: ReaderState) {
        self.forget_repeated(response);
        if seen.length != self.length {
            // The response from which the length is known reports no growth, whatever its count says.
            self.length = seen.length;
            self.unconfirmed = 0;
            return;
        }
        let is_single = request.limit == 1 && response.rows.len() == 1;
        let length = if is_single { response.total.or(response.total_pages) } else { response.total };
        let growth = self.growth(length);
        let reported = growth.max(u64::try_from(seen.drift).unwrap_or(0));
        if reported > self.unconfirmed {
            self.unconfirmed = reported;
            self.looks = 0;
        }
        let position = request.position();
        if self.unconfirmed == 0 || position > self.unconfirmed + KEPT as u64 {
            return;
        }
        let moved = (0..response.rows.len()).find_map(|row| {
            let offset = self.head.iter().find(|(_, key)| *key == response.rows.key(row))?.0;
            (position + row as u64).checked_sub(offset)
        });
        let Some(moved) = moved else { return };
        self.is_contradicted |= is_single && moved < growth;
        if moved >= self.unconfirmed {
            self.unconfirmed = 0;
        }
    }

    /// Records by which a length is more than that of the snapshot.
    fn growth(&self, length: Option<u64>) -> u64 {
        length.zip(self.length).map_or(0, |(length, known)| length.saturating_sub(known))
    }

    /// True if a response shows a record of the head in its place by the count, and above it another one of the same height
    /// than was there.
    pub fn shows_other_head(&self, request: &PageRequest, response: &Response<'_>) -> bool {
        let Some((total, length)) = response.total.zip(self.length) else { return false };
        let first = records_before(request, response.limit) as i64 - (total as i64 - length as i64);
        let rows = response.rows;
        self.head.windows(2).any(|pair| {
            let row = row_at(pair[1].0, first, rows);
            let above = row_at(pair[0].0, first, rows);
            let (Some(above), Some(row)) = (above, row) else { return false };
            let is_same_height = rows.height(row).is_some() && rows.height(row) == rows.height(above);
            above + 1 == row && is_same_height && rows.key(row) == pair[1].1 && rows.key(above) != pair[0].1
        })
    }

    fn is_of_head(&self, key: u64) -> bool {
        self.head.iter().any(|(_, known)| *known == key)
    }

    /// Why records may be missing: a response said that the list is longer than the records of its head left room for.
    pub fn reason(&self) -> Option<Message> {
        self.is_contradicted.then(|| DOUBTFUL.into())
    }

    pub fn is_open(&self) -> bool {
        let has_looks = self.looks < MAX_LOOKS || self.look != HeadPage::One;
        self.unconfirmed > 0 && !self.head.is_empty() && !self.is_contradicted && has_looks
    }

    /// The record that was the first of the list, if it has moved as far as was reported.
    pub fn request(&mut self, max_page_size: u64) -> PageRequest {
        if let HeadPage::FirstPage(_) = self.look {
            return PageRequest::of_audit(1, max_page_size);
        }
        self.looks += 1;
        PageRequest::of_audit(self.unconfirmed + 1, 1)
    }

    /// Takes the response to that request. A record that is not known is newer, or has replaced the head. One below the head was
    /// there before, or the chain was reorganized: then none of the records above it is on the first page.
    pub fn on_look(&mut self, response: &Response<'_>) {
        let rows = response.rows;
        if let HeadPage::FirstPage(height) = self.look {
            self.is_contradicted |=
                (0..rows.len()).any(|row| self.is_of_head(rows.key(row)) && rows.height(row) > Some(height));
            self.look = HeadPage::One;
            self.unconfirmed = 0;
            return;
        }
        let growth = self.growth(response.total.or(response.total_pages));
        // A part of the service that does not know of the growth may have answered.
        if rows.len() == 1 && (self.is_of_head(rows.key(0)) || growth < self.unconfirmed && rows.height(0) < self.top) {
            return;
        }
        let height = if rows.len() == 1 { rows.height(0) } else { None };
        match height.filter(|height| self.top.is_none_or(|top| *height < top)) {
            Some(height) => self.look = HeadPage::FirstPage(height),
            None => self.unconfirmed = 0,
        }
    }
}

/// The row with the record at an offset, in a response that begins at the offset `first`.
fn row_at(offset: u64, first: i64, rows: &dyn Rows) -> Option<usize> {
    usize::try_from(offset as i64 - first).ok().filter(|row| *row < rows.len())
}
