//! Proofs that nothing was lost, and what to do where an answer proves nothing: look elsewhere, a bounded number of
//! times.

use serde::{Deserialize, Serialize};

use super::super::pace::Pace;
use super::super::seams::{Trail, identities, identity};
use super::{Ask, First, List, Pin, Purpose, STALLS, Taken, Terms, Way};
use crate::client::Error;
use crate::decode::Page;

/// Records that a cursor remembers.
const REMEMBERED: usize = 8;

/// What a later run needs to find its place in a list again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Seam {
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest: Option<(i64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<(i64, u64)>,
    shift: i64,
    moved: bool,
    /// The list's first record, and the latest that were delivered, each by a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<u64>,
    records: Vec<u64>,
}

impl Seam {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn without_records(self) -> Self {
        Self { records: Vec::new(), latest: None, ..self }
    }

    /// The same after some more records.
    pub fn after(&self, fresh: &[u64]) -> Self {
        let mut records = self.records.clone();
        records.extend_from_slice(fresh);
        let dropped = records.len().saturating_sub(REMEMBERED);
        let head = self.head.or_else(|| records.first().copied());
        Self { records: records.split_off(dropped), head, ..self.clone() }
    }
}

impl List {
    /// Goes on from a place in the list.
    pub fn resumed(terms: Terms, next: u64, seam: &Seam) -> Self {
        let mut list = Self::new(terms);
        // What came to a counted list before its first record can be told by that record.
        if next == 0 && (seam.total.is_none() || seam.head.is_none()) {
            return list;
        }
        // More records than come before the place cannot have been remembered.
        let known = (seam.records.len() as u64).min(next) as usize;
        let records = seam.records[seam.records.len() - known..].to_vec();
        list.trail = Trail::resumed(next, records, seam.head);
        list.first = Some(First { pages: seam.pages, total: seam.total, top: seam.top });
        (list.length, list.shift, list.moved, list.latest) = (seam.length, seam.shift, seam.moved, seam.latest);
        list.ordered = seam.latest.is_some() || next == 0;
        list.pages = seam.pages;
        list.pin = seam.pin.map(|(top, base)| Pin { top, base });
        if list.terms.moves && seam.total.is_none() {
            list.trail.keep();
        }
        let size = list.terms.size;
        // An uncounted list shows by its records alone that it did not move meanwhile.
        list.checked = true;
        list.way = if seam.moved || list.terms.moves && seam.total.is_none() {
            Way::Overlapping
        } else {
            Way::Ahead { next: list.position(next) / size + 1 }
        };
        list
    }

    /// What a run needs that goes on after the records delivered so far.
    pub fn seam(&self) -> Seam {
        let first = self.first.unwrap_or_default();
        Seam {
            total: first.total,
            length: self.length,
            pages: first.pages,
            top: first.top,
            latest: self.latest.filter(|_| self.ordered),
            pin: self.pin.map(|pin| (pin.top, pin.base)),
            shift: self.shift,
            moved: self.moved && !self.pace.is_still(0),
            head: self.trail.head(),
            records: self.trail.latest(REMEMBERED),
        }
    }

    /// Where a page ends in a list that is counted, and what a run needs that goes on there.
    pub fn seam_after(&self, ask: &Ask, page: &Page) -> Option<(u64, Seam)> {
        let shift = page.total? as i64 - self.first?.total? as i64;
        let end = ((ask.page - 1) * self.page_rows()) as i64 + page.columns.rows() as i64 - shift;
        let heights = self.heights_of(&page.columns, 0).unwrap_or_default();
        let latest = heights.last().map(|last| {
            let run = heights.iter().rev().take_while(|height| *height == last).count();
            (*last, run as u64)
        });
        let seam = Seam { shift, moved: shift != 0, ..self.seam().without_records() };
        Some((u64::try_from(end).ok()?, Seam { latest, ..seam.after(&identities(&page.columns)) }))
    }

    /// An answer brought nothing new: a list that does so again and again cannot be read.
    pub(super) fn miss(&mut self, ask: &Ask, page: &Page) -> Result<Taken, Error> {
        self.way = Way::Overlapping;
        if self.moved {
            self.pin_at_top();
        }
        let records = identities(&page.columns);
        self.stalls += 1;
        if self.stalls == 1 || self.missed.1 != records {
            self.missed = (ask.page, records);
            self.alike = 0;
        }
        self.alike += 1;
        if self.stalls <= STALLS {
            return Ok(Taken { void: true, ..Taken::default() });
        }
        let (same, records) = &self.missed;
        let problem = if self.alike > 2 && !records.is_empty() {
            format!("page {same} is the same as the page before it; narrow the query or try later")
        } else if self.moved {
            "the list grows faster than it can be read, or records vanish from it; use a larger page_size, narrow the \
             query or try later"
                .into()
        } else {
            "the records that come next cannot be told from identical ones; use another page_size or try later".into()
        };
        Err(self.drift(problem))
    }

    fn drift(&self, problem: impl Into<String>) -> Error {
        Error::Drift { endpoint: self.terms.endpoint, problem: problem.into() }
    }

    /// An answer that shares nothing with what was delivered lies before it or beyond it. How far it was asked for, the
    /// heights in it and the number of pages tell.
    pub(super) fn look_elsewhere(&mut self, ask: &Ask, page: &Page, start: i64, size: u64) {
        let rows = page.columns.rows() as i64;
        let safe = start - self.shift <= self.next() as i64;
        let first = self.heights_of(&page.columns, 0).and_then(|heights| heights.first().copied());
        let older =
            matches!((first, self.latest), (Some(first), Some((latest, _))) if self.descends() && first < latest);
        let mut shift = self.shift;
        match (safe, older) {
            // Nothing was skipped and yet it lies beyond: records above have vanished.
            (true, true) => shift -= size as i64 / 2,
            // All of it is newer than anything remembered.
            (true, false) => shift = shift.max(start + rows - self.trail.base() as i64),
            (false, _) => {}
        }
        if let (false, Some(pages)) = (older, page.total_pages.filter(|_| self.pin.is_none())) {
            shift = shift.max(self.moved_at_least((pages.saturating_sub(1) * ask.limit.min(size) + 1) as i64));
        }
        if shift != self.shift {
            self.observe(shift);
        }
        self.careful = true;
    }

    /// How far a list has moved at least, that has so many records by now.
    fn moved_at_least(&self, length: i64) -> i64 {
        let pages = self.first.and_then(|first| first.pages);
        let then = self.length.or(pages.map(|pages| pages * self.page_rows()));
        let cap = self.terms.cap.unwrap_or(u64::MAX);
        then.filter(|_| (length as u64) < cap - cap / 100).map_or(0, |then| length - then as i64)
    }

    /// Whether a list that has moved by so much would have as many pages as an answer says, if that tells.
    pub(super) fn is_plausible(&self, page: &Page, size: u64, shift: i64) -> Option<bool> {
        let then = self.first.and_then(|first| first.pages).filter(|_| self.pin.is_none())?;
        let now = page.total_pages.filter(|pages| *pages > 0)? as i64;
        let least = self.length.unwrap_or((then - 1) * self.page_rows() + 1) as i64 + shift;
        let most = self.length.unwrap_or(then * self.page_rows()) as i64 + shift;
        let size = size as i64;
        let capped = self.terms.cap.is_some_and(|cap| now * size >= (cap - cap / 100) as i64);
        (!capped).then_some(least <= now * size && most > (now - 1) * size)
    }

    /// The list without what comes above its first page's top, if the service can cut it there.
    pub(super) fn pin_at_top(&mut self) {
        let top = self.first.and_then(|first| first.top);
        if let (None, false, Some(most), Some(top), true) =
            (self.pin, self.pin_failed, self.terms.top, top, self.descends())
        {
            self.pin = Some(Pin { top: top.min(most), base: 0 });
            (self.unpinned, self.shift) = (self.shift, 0);
            self.pace = Pace::default();
        }
    }

    /// The service does not cut as it should: on without.
    pub(super) fn unpin(&mut self) {
        (self.pin, self.pin_failed, self.careful) = (None, true, true);
        self.shift = self.unpinned;
        self.pace = Pace::default();
    }

    /// Whether an answer ends where the service lets nobody go on.
    pub(super) fn is_capped(&self, ask: &Ask, page: &Page, size: u64) -> bool {
        let end = (ask.page - 1) * size + page.columns.rows() as u64;
        // The limits are about so much.
        let near = |cap: u64| (cap - cap / 100..=cap + cap / 20).contains(&end);
        let uncounted = page.total.is_none_or(|total| total > end);
        let said = page.total.zip(page.total_pages).is_some_and(|(total, pages)| pages * size < total);
        uncounted && self.terms.cap.is_some_and(|cap| near(cap) || said)
    }

    /// Beyond the reach of a list lies another: that of the heights from the latest one down.
    pub(super) fn go_on_below(&mut self) -> bool {
        let (Some((height, run)), Some(_), true) = (self.latest, self.terms.top, self.descends()) else { return false };
        if self.pin.map(|pin| pin.top).or(self.first.and_then(|first| first.top)).is_none_or(|top| height >= top) {
            return false;
        }
        self.pin = Some(Pin { top: height, base: self.next() - run });
        (self.shift, self.way, self.ended, self.capped) = (0, Way::Overlapping, false, false);
        self.pace = Pace::default();
        self.length = self.first.and_then(|first| first.total);
        true
    }

    pub(super) fn take_length(&mut self, page: &Page) -> Taken {
        let (rows, said) = (page.columns.rows(), page.total_pages.filter(|pages| *pages > 0));
        let Some(head) = (rows > 0).then(|| identity(&page.columns, 0)) else { return Taken::default() };
        self.flexible &= rows == 1;
        let length = said.filter(|_| rows == 1);
        let same = self.trail.head() == Some(head);
        let size = self.page_rows();
        let within = |length: &u64| {
            let pages = self.first.and_then(|first| first.pages);
            pages.is_none_or(|pages| length.div_ceil(size) == pages)
        };
        match (length.filter(within), self.length) {
            (Some(now), Some(then)) if same && now == then => return Taken::default(),
            (Some(now), None) if same => {
                self.length = self.terms.cap.is_none_or(|cap| now < cap - cap / 100).then_some(now);
                return Taken::default();
            }
            // A service that does not keep to the limit shows its head all the same.
            (None, _) if same && (rows > 1 || length.is_none_or(|length| !within(&length))) => return Taken::default(),
            _ => {}
        }
        // A service that gives a whole page all the same shows whether it has moved by the records in it.
        if rows > 1 && !self.trail.alignments(&identities(&page.columns)).iter().any(|at| at.firm && at.place < 0) {
            return Taken::default();
        }
        (self.moved, self.careful, self.way) = (true, true, Way::Overlapping);
        let shift = length.map_or(self.shift, |length| self.shift.max(self.moved_at_least(length as i64)));
        self.observe(shift);
        self.pin_at_top();
        Taken { void: true, ..Taken::default() }
    }

    /// The length of a list that was moving already when it was asked for. One record alone, from among those that were
    /// delivered, tells both how long the list is by now and how far it has moved.
    pub(super) fn measure(&mut self, open: usize) -> Option<Ask> {
        let placed = self.moved && self.way == Way::Overlapping && self.since == 0 && self.trail.base() == 0;
        if !placed || open > 0 || self.measured || self.counted() || self.length.is_some() || !self.flexible {
            return None;
        }
        // Far enough from either end of them, however fast the list grows.
        let grown = self.pace.expected().1;
        if self.stalls > 0 || self.next() < 4 * grown || self.first.is_none_or(|first| first.pages.is_none()) {
            return None;
        }
        self.measured = true;
        let page = self.position(self.next() / 2) + grown + 1;
        Some(Ask { page, limit: 1, top: self.pin.map(|pin| pin.top), purpose: Purpose::Length })
    }

    pub(super) fn take_measure(&mut self, ask: &Ask, page: &Page) -> Taken {
        let rows = page.columns.rows();
        let place = (rows == 1).then(|| self.trail.place_of(identity(&page.columns, 0))).flatten();
        if let (Some(place), Some(pages)) = (place, page.total_pages)
            && ask.top == self.pin.map(|pin| pin.top)
            && self.terms.cap.is_none_or(|cap| pages < cap - cap / 100)
        {
            let shift = ask.page as i64 - 1 - place as i64 + self.pin.map_or(0, |pin| pin.base as i64);
            self.length = u64::try_from(pages as i64 + self.pin.map_or(0, |pin| pin.base as i64) - shift).ok();
            self.observe(shift);
        }
        Taken::default()
    }

    /// Where the length could not be had, the head is looked at once more in the end.
    pub(super) fn last_check(&mut self, open: usize) -> Option<Ask> {
        let of_one_page = self.next() <= self.page_rows();
        let known = self.counted() || self.length.is_some() || self.moved || of_one_page || self.head_checked;
        if known || open > 0 || !self.terms.moves || !self.terms.paged {
            return None;
        }
        self.head_checked = true;
        Some(Ask { page: 1, limit: self.terms.size, top: None, purpose: Purpose::Head })
    }

    pub(super) fn take_head(&mut self, page: &Page) -> Result<Taken, Error> {
        let same = page.columns.rows() > 0 && self.trail.head() == Some(identity(&page.columns, 0));
        let grown =
            || self.trail.clone().alignments(&identities(&page.columns)).iter().any(|at| at.firm && at.place < 0);
        if same || grown() {
            return Ok(Taken::default());
        }
        if !self.flexible {
            self.notes.push("The list changed while it was read: records may be repeated or missing.".into());
            return Ok(Taken::default());
        }
        Err(self.drift("the head of the list changed while it was read; try again"))
    }

    /// A list was read as it was only if it has as many records as it had at first.
    pub(super) fn check_length(&self) -> Result<(), Error> {
        let read = self.next();
        // A count that never changed and is not met, and pages that are not full, are said in the report.
        if self.capped || self.short || self.counted() && !self.moved {
            return Ok(());
        }
        let pages = self.first.and_then(|first| first.pages).filter(|_| !self.counted());
        let least = pages.map_or(0, |pages| (pages - 1) * self.page_rows() + 1);
        let (least, most) = self.length.map_or((least, u64::MAX), |length| (length, length));
        if (least..=most).contains(&read) || read == 0 {
            return Ok(());
        }
        Err(self.drift(format!(
            "the list had {least} records or more at first, of which {read} could be read: it changed meanwhile; try again"
        )))
    }
}
