//! `CountedPlaces`: the places of records in a list with a count, counted from its end. Records that stay keep their place while
//! the list grows at its head, so that the records of the result have consecutive places.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use crate::query::snapshot::{ListCheckpoint, PageRequest, Response};

/// Returned records whose keys are kept: a response whose count is too great by a few has others in their places.
const KEPT: usize = 8;

#[derive(Clone, Debug, Default)]
pub struct CountedPlaces {
    /// Place of the record that was returned last; that of the last record of the list is 0.
    latest: Option<i64>,
    /// Keys of the records that were returned last, the latest first.
    returned: VecDeque<u64>,
    /// The lowest place of a returned record at which a response has another one.
    taken: Option<i64>,
    /// Records of a full page, as the first response shows them.
    page_rows: Option<(u64, u64)>,
    is_continued: bool,
    /// Records of the first page with their places, in order; of equal records, only the first. After records below were
    /// deleted, a record from further up is in the place of another, and an equal one would be taken for it.
    first_page: Vec<(u64, i64)>,
    /// The highest place at which a response since the latest record was returned, or that one, shows the record of the first page.
    confirmed: Option<i64>,
}

impl CountedPlaces {
    /// Places of a list that continues another run, whose first page is not known.
    pub fn continued() -> Self {
        Self { is_continued: true, ..Self::default() }
    }

    /// Takes what a cursor has of the first page, and how many rows the service has on a page of this limit.
    #[must_use]
    pub fn with_first_page(self, list: &ListCheckpoint, limit: u64) -> Self {
        if !self.is_continued {
            return self;
        }
        let first_page = list.places();
        // Its own response confirms a page that was read alone.
        let confirmed = first_page.first().map(|(_, place)| *place).filter(|_| !list.needs_final_look());
        Self { page_rows: Some((limit, list.page_rows(limit))), first_page, confirmed, ..self }
    }

    /// Place of the first row of a response, unless the service has page sizes of its own.
    fn first(&mut self, request: &PageRequest, response: &Response<'_>) -> Option<i64> {
        let total = i64::try_from(response.total?).ok()?;
        let rows = response.rows.len() as u64;
        let has_next = response.has_next(request);
        if request.page == 1 && has_next {
            self.page_rows = Some((request.limit, rows));
        }
        let learned = self.page_rows.filter(|(limit, _)| *limit == request.limit).map(|(_, rows)| rows);
        let size = learned.or(response.limit).unwrap_or(request.limit);
        let is_usual = if has_next { rows == size } else { rows <= size };
        let position = i64::try_from(request.position_by(size)).ok()?;
        is_usual.then(|| total - 1 - position)
    }

    /// Takes a response of which these rows are about to be returned. False if they do not follow the records before them.
    pub fn on_response(&mut self, request: &PageRequest, response: &Response<'_>, rows: &Range<usize>) -> bool {
        let Some(first) = self.first(request, response) else {
            // The places of the next rows are unknown, and so is what was lost.
            *self = Self { page_rows: self.page_rows, ..Self::continued() };
            return true;
        };
        let mut places = (0..response.rows.len()).map(|row| (response.rows.key(row), first - row as i64));
        if !self.is_continued && self.first_page.is_empty() && self.latest.is_none() && request.page == 1 {
            let mut above = HashSet::new();
            let returned = places.clone().skip(rows.start).take(rows.len());
            self.first_page = returned.filter(|(key, _)| above.insert(*key)).collect();
        }
        let reaches_first_page = self.first_page.last().is_some_and(|(_, lowest)| first >= *lowest);
        let confirmed =
            places.find(|place| reaches_first_page && self.first_page.contains(place)).map(|(_, place)| place);
        let known = if rows.is_empty() { 0..response.rows.len() } else { 0..rows.start };
        let mut known = known.rev().map(|row| (first - row as i64, response.rows.key(row)));
        let taken = known.find(|(place, key)| self.is_taken(*place, *key)).map(|(place, _)| place);
        self.taken = self.taken.into_iter().chain(taken).min();
        if rows.is_empty() {
            self.confirmed = self.confirmed.max(confirmed);
            return true;
        }
        self.confirmed = confirmed;
        for row in rows.clone().rev().take(KEPT).rev() {
            self.returned.push_front(response.rows.key(row));
        }
        self.returned.truncate(KEPT);
        let follows = self.latest.is_none_or(|latest| first - rows.start as i64 == latest - 1);
        self.latest = Some(first - (rows.end - 1) as i64);
        follows
    }

    /// True if another record than this one was returned at the place.
    fn is_taken(&self, place: i64, key: u64) -> bool {
        let distance = self.latest.and_then(|latest| usize::try_from(place - latest).ok());
        let returned = distance.and_then(|distance| self.returned.get(distance));
        returned.is_some_and(|returned| *returned != key)
    }

    /// True if a response lacks a record of the result, or has one more, although no record at its place or below was lost.
    pub fn are_contradicted(&self) -> bool {
        self.taken.is_some_and(|taken| Some(taken) <= self.confirmed)
    }

    /// True if the latest response confirms that no record below the first page was lost.
    pub fn are_confirmed(&self) -> bool {
        self.confirmed.is_some() || self.first_page.is_empty()
    }
}
