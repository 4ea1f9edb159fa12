//! Proofs that nothing was lost, and what to do where an answer proves nothing: look elsewhere, a bounded number of
//! times.

use super::{Ask, List, Pin, Purpose, STALLS, Taken, Way};
use crate::client::Error;
use crate::decode::Page;
use crate::message::{Hint, Message};
use crate::query::pace::Pace;
use crate::query::seams::{identities, identity};

impl List {
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
            Message::new(format!("page {same} is identical to the page before it")).hints(self.terms.way_on.clone())
        } else if self.moved {
            let problem = format!(
                "gave up after {} responses without new records: the list changes faster than it can be read",
                self.stalls
            );
            Message::new(problem).hints(self.larger())
        } else {
            return Err(self.indistinct());
        };
        Err(self.drift(problem))
    }

    pub(super) fn indistinct(&self) -> Error {
        let problem = "cannot continue past a run of duplicate records";
        match self.length {
            Some(_) => self.drift(Message::new(format!("{problem} while the list is changing")).hints(self.larger())),
            None => self.drift(Message::new(format!("{problem} in a list of unknown length")).hint(Hint::RetryLater)),
        }
    }

    fn larger(&self) -> impl Iterator<Item = Hint> {
        let larger = (self.terms.size < self.terms.size_max).then(|| Hint::raise(&["page_size"]));
        larger.into_iter().chain(self.terms.way_on.clone())
    }

    fn drift(&self, problem: impl Into<Message>) -> Error {
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
        let told = self.counted() || self.length.is_some() || self.moved && !self.trusted;
        let known = told || of_one_page || self.head_checked;
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
        if same || !self.trusted && grown() {
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
