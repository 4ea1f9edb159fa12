//! What a later run needs to go on within a list, and how it begins.

use serde::{Deserialize, Serialize};

use super::{Ask, First, List, Pin, Purpose, Taken, Terms, Way};
use crate::columns::Columns;
use crate::decode::Page;
use crate::query::seams::{Trail, identities, identity};

/// Records that a cursor remembers: so many, and more where they are identical.
const REMEMBERED: u64 = 8;

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
    /// The list's first record, by a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<u64>,
    /// The latest that were delivered, oldest first: each by a hash, and how often it comes in a row.
    records: Vec<(u64, u64)>,
    /// Pages delivered after those, whose hashes are made when somebody asks where the run stands.
    #[serde(skip)]
    untold: Vec<Columns>,
}

impl Seam {
    /// The same with all its hashes.
    pub fn told(mut self) -> Self {
        for page in std::mem::take(&mut self.untold) {
            self = self.after(&identities(&page));
        }
        self
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn without_records(self) -> Self {
        Self { records: Vec::new(), untold: Vec::new(), latest: None, ..self }
    }

    /// The same after some more records.
    pub fn after(&self, fresh: &[u64]) -> Self {
        let all = fresh.iter().rev().map(|record| (*record, 1)).chain(self.records.iter().rev().copied());
        let oldest = self.records.first().map(|(record, _)| *record);
        Self { records: latest(all), head: self.head.or(oldest).or(fresh.first().copied()), ..self.clone() }
    }
}

/// The latest of these records, which come newest first: as many as tell a place, also among identical ones.
fn latest(records: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let (mut kept, mut count): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
    for (record, times) in records {
        if count >= REMEMBERED && kept.len() > 1 {
            break;
        }
        count += times;
        match kept.last_mut() {
            Some((last, in_a_row)) if *last == record => *in_a_row += times,
            _ => kept.push((record, times)),
        }
    }
    kept.reverse();
    kept
}

impl List {
    /// Goes on from a place in the list.
    pub fn resumed(terms: Terms, next: u64, seam: &Seam) -> Self {
        let mut list = Self::new(terms);
        // What came to a counted list before its first record can be told by that record.
        if next == 0 && (seam.total.is_none() || seam.head.is_none()) {
            return list;
        }
        list.trail = Trail::resumed(next, &seam.records, seam.head);
        list.first = Some(First { pages: seam.pages, total: seam.total, top: seam.top });
        (list.length, list.shift, list.moved, list.latest) = (seam.length, seam.shift, seam.moved, seam.latest);
        list.ordered = seam.latest.is_some() || next == 0;
        list.pages = seam.pages;
        list.pin = seam.pin.map(|(top, base)| Pin { top, base });
        // An uncounted list shows by its records alone that it did not move meanwhile.
        let shows = list.terms.moves && seam.total.is_none();
        if shows {
            list.trail.keep();
        }
        (list.checked, list.still) = (true, !shows);
        list.way = if seam.moved || shows { Way::Overlapping } else { list.ahead() };
        list
    }

    /// What a run needs that goes on after the records delivered so far.
    pub fn seam(&self) -> Seam {
        let first = self.first.unwrap_or_default();
        let (known, untold) = self.trail.parts();
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
            records: latest(known.map(|record| (record, 1))),
            untold,
        }
    }

    /// Where a page ends in a list that is counted, and what a run needs that goes on there.
    pub fn seam_after(&self, ask: &Ask, page: &Page) -> Option<(u64, Seam)> {
        let shift = (page.total? as i64).checked_sub(self.first?.total? as i64)?;
        let end = (((ask.page - 1) * self.page_rows()) as i64 + page.columns.rows() as i64).checked_sub(shift)?;
        let heights = self.heights_of(&page.columns, 0).unwrap_or_default();
        let latest = heights.last().map(|last| {
            let run = heights.iter().rev().take_while(|height| *height == last).count();
            (*last, run as u64)
        });
        let seam = Seam { shift, moved: shift != 0, ..self.seam().without_records() };
        Some((u64::try_from(end).ok()?, Seam { latest, ..seam.after(&identities(&page.columns)) }))
    }

    /// Page after page, from the next record's on.
    pub(super) fn ahead(&self) -> Way {
        Way::Ahead { next: self.position(self.next()) / self.page_rows() + 1 }
    }

    /// Among more identical records than a page has, only a list that holds still can be read on: the head alone, where
    /// it should be by now, tells.
    pub(super) fn look(&self) -> Ask {
        Ask { page: self.shift.max(0) as u64 + 1, limit: 1, top: self.top(), purpose: Purpose::Length }
    }

    pub(super) fn take_look(&mut self, ask: &Ask, page: &Page) -> Taken {
        self.looks -= 1;
        let rows = page.columns.rows();
        let now = page.total_pages.filter(|pages| *pages > 0 && rows == 1);
        let shift = now.zip(self.length).map(|(now, then)| now as i64 - then as i64);
        if rows > 1 {
            (self.flexible, self.actual) = (false, Some(rows as u64));
        }
        let head = (rows > 0).then(|| identity(&page.columns, 0));
        // Where the length was not known, a head that is identical to what follows could be another one.
        let alone = || head != self.trail.backwards().next();
        let same = head.is_some() && head == self.trail.head() && self.pin.is_none_or(|pin| pin.base == 0);
        let holds = match shift {
            Some(shift) => ask.page as i64 - 1 == shift,
            None => alone() && self.is_plausible(page, rows as u64, self.shift) != Some(false),
        };
        self.shift = shift.unwrap_or(self.shift);
        if same && holds {
            let most = self.terms.cap.map_or(u64::MAX, |cap| cap - cap / 100);
            self.length = self.length.or(now.filter(|now| *now < most && self.shift == 0));
            (self.looks, self.still, self.way) = (0, true, self.ahead());
        }
        Taken::default()
    }
}
