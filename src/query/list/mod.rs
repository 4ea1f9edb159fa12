//! One list, read page by page while it moves: which page to ask for next, and which of an answer's records come next.
//! It speaks to nobody: questions go out, answers come in, so that every schedule of them can be tried. The argument
//! why the result is exact is in docs/completeness.md.

mod place;
mod proof;
mod resume;
#[cfg(test)]
mod tests;

use super::pace::Pace;
use super::seams::Trail;
use crate::client::Error;
use crate::decode::Page;
use crate::message::{Hint, Message};
use place::Found;
pub use resume::Seam;

/// Answers in a row that bring nothing new before a list counts as unreadable.
const STALLS: u32 = 12;

/// Looks at whether a list holds still that has to do so to be read on.
const LOOKS: u32 = 3;

/// Records that a page has at least which is to share some with what was delivered.
const SHARING: u64 = 20;

/// A question: a page, of so many records, of the list up to a height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    pub page: u64,
    pub limit: u64,
    pub top: Option<i64>,
    pub purpose: Purpose,
}

impl Ask {
    pub fn first(limit: u64) -> Self {
        Self { page: 1, limit, top: None, purpose: Purpose::Records }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Records,
    /// The first record alone: with pages of one, their number is the list's length.
    Length,
    /// The first page once more.
    Head,
}

/// What is known of a list before it is read.
#[derive(Clone, Debug)]
pub struct Terms {
    pub endpoint: &'static str,
    /// Records in a page.
    pub size: u64,
    /// The most that may be asked for in one page.
    pub size_max: u64,
    /// Whether it is a list of pages, and not one answer.
    pub paged: bool,
    /// Whether new records may come to its head.
    pub moves: bool,
    /// Whether the list can be cut off above a height, and where the caller cut it.
    pub top: Option<i64>,
    /// Records within reach, where the service sets a limit.
    pub cap: Option<u64>,
    /// What its reader can do where it cannot be read.
    pub way_on: Vec<Hint>,
}

/// What the first page said.
#[derive(Clone, Copy, Debug, Default)]
pub struct First {
    pub pages: Option<u64>,
    pub total: Option<u64>,
    pub top: Option<i64>,
}

/// What of an answer is to be delivered, and whether the questions asked after it are void.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub from: usize,
    pub to: usize,
    pub void: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Page after page, as many at a time as may be.
    Ahead { next: u64 },
    /// One page at a time, each beginning with records that were delivered.
    Overlapping,
}

/// The list cut off above a height: what comes above is not in the way any more.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pin {
    top: i64,
    /// Place of the pinned list's first record.
    base: u64,
}

#[derive(Debug)]
pub struct List {
    terms: Terms,
    pub trail: Trail,
    pub first: Option<First>,
    /// Records of the list as its first page had it, once that is known.
    pub length: Option<u64>,
    /// How far the list had moved at the latest answer that was placed.
    shift: i64,
    pace: Pace,
    /// Answers since then.
    since: u64,
    way: Way,
    pin: Option<Pin>,
    pin_failed: bool,
    /// Whether the service keeps to the limits it is asked for, and the size of its pages where that is another.
    flexible: bool,
    actual: Option<u64>,
    /// Pages of the list as last heard.
    pages: Option<u64>,
    /// Whether a page before the last was not full.
    short: bool,
    /// Why it cannot be read any further.
    pub broken: Option<Error>,
    /// Whether the length, and the head, were asked for.
    checked: bool,
    checking: bool,
    measured: bool,
    head_checked: bool,
    pub moved: bool,
    /// How often a list that had come to rest moved on.
    relapses: u32,
    /// A miss: the next guess is on the safe side.
    careful: bool,
    /// Whether nothing spoke of its having moved since it was seen to hold still, and whether that alone gave a place.
    still: bool,
    trusted: bool,
    /// How often it may still be looked at whether it holds still, and at which place it was.
    looks: u32,
    looked: Option<u64>,
    /// The place that identical records left open, and the one up to which a page was found to belong.
    doubted: Option<u64>,
    settled: Option<u64>,
    stalls: u32,
    /// The latest page that brought nothing, since which page it was the same, and how often.
    missed: (u64, Vec<u64>),
    alike: u32,
    /// The shift without a pin.
    unpinned: i64,
    ended: bool,
    /// Whether it ends where the service lets nobody go on.
    pub capped: bool,
    /// Heights of the latest record and how many in a row have it; none once they are out of order.
    latest: Option<(i64, u64)>,
    ordered: bool,
    heights: Option<usize>,
    /// Sentences for the report.
    pub notes: Vec<Message>,
}

impl List {
    pub fn new(terms: Terms) -> Self {
        Self {
            terms,
            trail: Trail::default(),
            first: None,
            length: None,
            shift: 0,
            pace: Pace::default(),
            since: 0,
            way: Way::Ahead { next: 1 },
            pin: None,
            pin_failed: false,
            flexible: true,
            actual: None,
            pages: None,
            short: false,
            relapses: 0,
            broken: None,
            checked: false,
            checking: false,
            measured: false,
            head_checked: false,
            moved: false,
            careful: false,
            still: true,
            trusted: false,
            looks: 0,
            looked: None,
            doubted: None,
            settled: None,
            stalls: 0,
            missed: (0, Vec::new()),
            alike: 0,
            unpinned: 0,
            ended: false,
            capped: false,
            latest: None,
            ordered: true,
            heights: None,
            notes: Vec::new(),
        }
    }

    /// Records that were delivered, and so the place of the next.
    pub fn next(&self) -> u64 {
        self.trail.end()
    }

    /// About how many are still to come.
    pub fn to_come(&self) -> u64 {
        let length = self.length.or(self.pages.map(|pages| pages.saturating_mul(self.page_rows())));
        length.unwrap_or(0).saturating_sub(self.next())
    }

    pub fn is_ended(&self) -> bool {
        self.ended
    }

    fn counted(&self) -> bool {
        self.first.is_some_and(|first| first.total.is_some())
    }

    /// What to ask next while so many questions are open.
    pub fn ask(&mut self, open: usize) -> Option<Ask> {
        if self.broken.is_some() {
            return None;
        }
        if self.ended {
            return self.last_check(open);
        }
        if self.first.is_none() {
            return (open == 0).then(|| Ask::first(self.terms.size));
        }
        if self.looks > 0 {
            return (open == 0).then(|| self.look());
        }
        if self.unchecked() {
            // What is asked before it is known whether the list holds still may be asked in vain.
            self.checked = true;
            self.checking = true;
            return Some(Ask { page: 1, limit: 1, top: None, purpose: Purpose::Length });
        }
        if let Some(ask) = self.measure(open) {
            return Some(ask);
        }
        match self.way {
            _ if self.checking => None,
            Way::Ahead { next } => {
                let goes_on = self.pages.map_or(open == 0, |pages| next <= pages || open == 0);
                goes_on.then(|| {
                    self.way = Way::Ahead { next: next + 1 };
                    Ask { page: next, limit: self.terms.size, top: self.top(), purpose: Purpose::Records }
                })
            }
            Way::Overlapping => (open == 0).then(|| self.overlapping()),
        }
    }

    /// Whether the length of a list that says nothing of it is still to be asked for.
    fn unchecked(&self) -> bool {
        self.terms.moves
            && self.terms.paged
            && !self.counted()
            && !self.checked
            && self.first.is_some_and(|first| first.pages.is_some_and(|pages| pages > 1))
    }

    fn top(&self) -> Option<i64> {
        self.pin.map(|pin| pin.top)
    }

    /// Where a record of that place is to be found by now, as far as is known.
    fn position(&self, place: u64) -> u64 {
        let base = self.pin.map_or(0, |pin| pin.base);
        (place as i64 - base as i64 + self.shift).max(0) as u64
    }

    /// Records that a page may have which shares some with what was delivered: small pages would be used up by them.
    fn most(&self) -> u64 {
        let size = self.page_rows();
        if self.flexible { size.max(SHARING).min(self.terms.size_max.max(size)) } else { size }
    }

    /// The page that begins a little before the next record and goes furthest beyond it. Where pages begin depends on
    /// how many records they have, so a smaller page may reach further.
    fn overlapping(&mut self) -> Ask {
        let (size, most) = (self.page_rows(), self.most());
        let least = if self.flexible { 1 } else { size };
        let (mut grown, mean) = self.pace.expected();
        if mean - grown > most / 2 {
            grown = mean - most / 2;
        }
        let grown = if self.careful { 0 } else { grown };
        let next = self.next();
        let to_tell = if self.doubted == Some(next) { self.trail.margin() } else { None };
        let margin = to_tell.unwrap_or(0).max(if self.counted() { 1 } else { 2 }).min(most - 1).min(next);
        let mut best = (i64::MIN, Ask { page: 1, limit: self.terms.size, top: self.top(), purpose: Purpose::Records });
        for margin in [margin, 0] {
            let from = self.position(next - margin) + grown;
            for limit in (least..=most).rev() {
                let page = from / limit + 1;
                let fresh = (page * limit) as i64 - (self.position(next) + mean.max(grown)) as i64;
                if fresh > best.0 {
                    let limit = if limit == size { self.terms.size } else { limit };
                    best = (fresh, Ask { page, limit, ..best.1 });
                }
            }
            // A service that keeps to its own pages may have none that overlaps and still brings something.
            let to_settle = self.doubted == Some(next) && self.settled != Some(next);
            if best.0 > 0 || self.flexible || to_settle {
                break;
            }
        }
        best.1
    }

    /// The page size as the service understood it: it may give less than was asked for, or keep to a size of its own.
    fn size(&mut self, ask: &Ask, page: &Page) -> u64 {
        let rows = page.columns.rows() as u64;
        let said = page.limit.filter(|limit| *limit > 0).unwrap_or(ask.limit).min(ask.limit);
        let size = match self.actual {
            Some(actual) if ask.limit == self.terms.size => actual,
            _ => said,
        };
        let keeps_to_its_own = ask.limit != self.terms.size && page.limit.is_some_and(|limit| limit != ask.limit);
        self.flexible &= rows <= size && !keeps_to_its_own;
        size.max(rows).max(1)
    }

    /// Records in a page of full size.
    pub fn page_rows(&self) -> u64 {
        self.actual.unwrap_or(self.terms.size)
    }

    /// Takes the answer to the oldest open question.
    pub fn take(&mut self, ask: &Ask, page: &Page) -> Result<Taken, Error> {
        self.since += 1;
        let taken = match ask.purpose {
            Purpose::Records if self.first.is_none() => Ok(self.take_first(ask, page)),
            Purpose::Records => self.take_more(ask, page),
            Purpose::Length => {
                self.checking = false;
                Ok(match (self.looks, self.measured) {
                    (1.., _) => self.take_look(ask, page),
                    (0, true) => self.take_measure(ask, page),
                    (0, false) => self.take_length(page),
                })
            }
            Purpose::Head => self.take_head(page),
        };
        taken.inspect_err(|error| self.broken = Some(error.clone()))
    }

    /// Questions from this one on were given up.
    pub fn give_up(&mut self, ask: &Ask) {
        match (ask.purpose, self.way) {
            (Purpose::Length, _) if self.looks > 0 => {}
            (Purpose::Length, _) if self.measured => self.measured = false,
            (Purpose::Length, _) => (self.checked, self.checking) = (false, false),
            (Purpose::Head, _) => self.head_checked = false,
            (Purpose::Records, Way::Ahead { .. }) => self.way = Way::Ahead { next: ask.page },
            _ => {}
        }
    }

    fn take_first(&mut self, ask: &Ask, page: &Page) -> Taken {
        let (rows, columns) = (page.columns.rows(), &page.columns);
        let size = if self.terms.paged { self.size(ask, page) } else { rows as u64 };
        self.actual = Some(size);
        let pages = page.total_pages.filter(|pages| *pages > 0);
        self.heights = ["height", "zone_block_height"].iter().find_map(|name| columns.record().position(name));
        let top = self.heights_of(columns, 0).and_then(|heights| heights.iter().copied().max());
        self.first = Some(First { pages, total: page.total, top });
        (self.length, self.pages) = (page.total, pages);
        if self.terms.moves && page.total.is_none() {
            self.trail.keep();
        }
        self.since = 0;
        self.way = Way::Ahead { next: 2 };
        self.deliver(columns, 0);
        self.ended = !self.terms.paged || self.is_last(ask, page, size);
        self.capped = self.ended && self.is_capped(ask, page, size);
        Taken { from: 0, to: rows, void: false }
    }

    /// Whether nothing follows an answer, by what it says itself.
    fn is_last(&self, ask: &Ask, page: &Page, size: u64) -> bool {
        let rows = page.columns.rows() as u64;
        match (page.total_pages.filter(|pages| *pages > 0), page.total) {
            (Some(pages), _) => ask.page >= pages,
            (None, Some(total)) => (ask.page - 1) * size + rows >= total || rows == 0,
            // Pages end with the first that is not full.
            (None, None) => rows < size,
        }
    }

    fn take_more(&mut self, ask: &Ask, page: &Page) -> Result<Taken, Error> {
        if ask.top != self.top() {
            return Ok(Taken { void: true, ..Taken::default() });
        }
        let size = self.size(ask, page);
        let start = ((ask.page - 1) * size) as i64 + self.pin.map_or(0, |pin| pin.base as i64);
        let last = self.is_last(ask, page, size);
        match self.find(page, start, size) {
            Found::At(place) => self.accept(ask, page, start, place, last, size),
            Found::Gap(place) => {
                self.observe(start - place);
                self.miss(ask, page)
            }
            Found::Doubt => {
                self.doubted = Some(self.next());
                self.careful = true;
                self.miss(ask, page)
            }
            Found::Blind if self.looked != Some(self.next()) => {
                (self.looked, self.looks) = (Some(self.next()), LOOKS);
                Ok(Taken { void: true, ..Taken::default() })
            }
            Found::Unknown if self.pin.is_some_and(|pin| pin.base == 0) => {
                self.unpin();
                self.miss(ask, page)
            }
            Found::Blind => Err(self.indistinct()),
            Found::Unknown => {
                self.look_elsewhere(ask, page, start, size);
                self.miss(ask, page)
            }
        }
    }

    fn observe(&mut self, shift: i64) {
        let grown = shift - self.shift;
        self.pace.observe(grown, self.since);
        self.moved |= grown != 0;
        self.still &= grown == 0;
        (self.shift, self.since, self.careful) = (shift, 0, false);
    }

    fn accept(
        &mut self,
        ask: &Ask,
        page: &Page,
        start: i64,
        place: i64,
        last: bool,
        size: u64,
    ) -> Result<Taken, Error> {
        let (next, rows) = (self.next() as i64, page.columns.rows());
        let grown = start - place - self.shift;
        self.observe(start - place);
        let from = ((next - place) as usize).min(rows);
        // No more at a time than was wanted.
        let to = if ask.limit > self.terms.size { rows.min(from + self.terms.size as usize) } else { rows };
        self.deliver(&page.columns.slice(0, to), from);
        self.ended =
            to == rows && last && place + rows as i64 >= next || self.moved && self.length == Some(self.next());
        if !last && (rows as u64) < size && self.length.is_none() {
            self.notes.push("A page before the last was not full: records may be missing.".into());
            self.shift += size as i64 - rows as i64;
            self.short = true;
        }
        if self.ended {
            self.capped = self.is_capped(ask, page, size);
            if self.capped && self.go_on_below() {
                self.stalls = 0;
                return Ok(Taken { from, to, void: true });
            }
            self.check_length()?;
        } else if from == rows {
            // A service that keeps to its own pages can show no more than that.
            self.settled = (!self.flexible && grown == 0).then(|| self.next());
            let taken = self.miss(ask, page)?;
            return Ok(Taken { void: taken.void && !self.counted(), ..taken });
        }
        self.stalls = 0;
        let mut void = self.ended;
        match self.way {
            Way::Ahead { .. } if grown != 0 => {
                self.relapses += 1;
                // By the count, what was asked ahead may still be of use.
                (self.way, void) = (Way::Overlapping, void || !self.counted());
                self.pin_at_top();
            }
            Way::Overlapping if self.pace.is_still(self.relapses) => {
                self.way = self.ahead();
            }
            _ => {}
        }
        if ask.limit == self.terms.size {
            self.pages = self.pages.max(page.total_pages);
        }
        Ok(Taken { from, to, void })
    }
}
