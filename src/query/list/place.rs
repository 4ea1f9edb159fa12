//! Where an answer stands in the list: by the service's count, by heights, or by the records it shares with what was
//! delivered.

use super::{List, Pin, Way};
use crate::columns::{Column, Columns};
use crate::decode::Page;
use crate::query::seams::{Alignment, identities, identity};

pub(super) enum Found {
    /// Its first record has that place.
    At(i64),
    /// It begins beyond the next record, by the count.
    Gap(i64),
    /// Identical records leave the place open: ask for more of what precedes them.
    Doubt,
    /// Identical records leave the place open, and no page could show more: only a list that holds still is read on.
    Blind,
    Unknown,
}

impl List {
    /// The place of an answer's first record in the list as its first page had it.
    pub(super) fn find(&mut self, page: &Page, start: i64, size: u64) -> Found {
        let (next, rows) = (self.next() as i64, page.columns.rows() as i64);
        let expected = start - self.shift;
        let counted = match (self.first.and_then(|first| first.total), page.total) {
            (Some(then), Some(now)) => Some(start_of(start, self.pin) + then as i64 - now as i64),
            _ => self.by_height(&page.columns),
        };
        let in_order = counted.is_some()
            || self.is_plausible(page, size, self.shift).unwrap_or_else(|| self.goes_on_below(&page.columns));
        if counted.is_none_or(|place| place == expected)
            && expected == next
            && in_order
            && !self.trail.may_repeat(&page.columns)
        {
            return Found::At(next);
        }
        let found = self.trail.alignments(&identities(&page.columns));
        let firm: Vec<&Alignment> = found.iter().filter(|found| found.firm).collect();
        if let Some(place) = counted {
            let head = self.shows_head(page, place);
            let agrees = found.iter().any(|found| found.place == place) || head == Some(true);
            return match place - next {
                ..0 if agrees || place + rows <= next => Found::At(place),
                0 if head == Some(false) => Found::Unknown,
                0 if firm.is_empty() => match found.as_slice() {
                    // One record twice, at the seam: identical ones, or a record that moved while another vanished.
                    [only]
                        if only.overlap == 1 && rows > 1 && self.settled != Some(next as u64) && self.can_settle() =>
                    {
                        Found::Doubt
                    }
                    _ => Found::At(place),
                },
                1.. if firm.is_empty() => Found::Gap(place),
                _ => firm_place(&firm),
            };
        }
        // With no growth at all the page would begin with what was delivered: it does, or has nothing of it.
        let safe = expected < next;
        match (firm.as_slice(), found.as_slice()) {
            ([only], _) => Found::At(only.place),
            ([], [only]) if safe && (self.way == Way::Overlapping || only.place == expected) => Found::At(only.place),
            (_, []) if expected == next && in_order && self.way != Way::Overlapping => Found::At(next),
            (_, []) => self.after_loss(&page.columns),
            ([], _) if self.settled != Some(next as u64) && self.can_settle() => Found::Doubt,
            ([], many) if self.still || self.settled == Some(next as u64) => {
                self.trusted = true;
                match many.iter().any(|one| one.place == expected) {
                    _ if expected == next => Found::At(next),
                    true if safe => Found::At(expected),
                    _ => Found::Unknown,
                }
            }
            ([], _) => Found::Blind,
            _ => Found::Unknown,
        }
    }

    /// Before anything was delivered of a list that is gone on with: whether a page of that place shows its first record
    /// where that should be.
    fn shows_head(&self, page: &Page, place: i64) -> Option<bool> {
        let head = self.trail.head().filter(|_| self.next() == 0 && place <= 0)?;
        let row = place.unsigned_abs() as usize;
        Some(row < page.columns.rows() && identity(&page.columns, row) == head)
    }

    /// Whether a page could begin with as many delivered records as tell identical ones apart, and bring more.
    fn can_settle(&mut self) -> bool {
        let Some(margin) = self.trail.margin() else { return false };
        let (next, most) = (self.next(), self.most());
        let from = self.position(next - margin.min(next));
        let reaches = |limit| (from / limit + 1) * limit > self.position(next);
        // A service that keeps to its own pages is asked for what it has.
        margin < most && (!self.flexible || (1..=most).any(reaches))
    }

    /// Heights that follow each other without a gap are places of their own.
    fn by_height(&self, columns: &Columns) -> Option<i64> {
        let top = self.first?.top.filter(|_| columns.record().name == "Block" && self.ordered)?;
        let heights = self.heights_of(columns, 0)?;
        let dense = |heights: &[i64]| heights.windows(2).all(|pair| pair[0] == pair[1] + 1);
        let (latest, run) = self.latest?;
        // So far each height has had its place.
        (heights.len() > 1 && dense(&heights) && run == 1 && top - latest + 1 == self.next() as i64)
            .then(|| top - heights.first().copied().unwrap_or(top))
    }

    /// Delivered records at the end of those known have vanished since: the page goes on after the last that is left.
    fn after_loss(&mut self, columns: &Columns) -> Found {
        match self.trail.after_loss(&identities(columns)) {
            Some(row) => {
                self.moved = true;
                Found::At(self.next() as i64 - row as i64)
            }
            None => Found::Unknown,
        }
    }

    /// Newest first: a page whose first record is above the latest one is new itself.
    fn goes_on_below(&self, columns: &Columns) -> bool {
        let (Some((latest, _)), true) = (self.latest, self.descends()) else { return true };
        self.heights_of(columns, 0).and_then(|heights| heights.first().copied()).is_none_or(|first| first <= latest)
    }

    /// Appends what is delivered, and follows its heights.
    pub(super) fn deliver(&mut self, columns: &Columns, from: usize) {
        let fresh = columns.slice(from, columns.rows() - from);
        match self.heights_of(&fresh, 0) {
            Some(heights) if self.ordered => {
                for height in heights {
                    match self.latest {
                        Some((latest, run)) if latest == height => self.latest = Some((height, run + 1)),
                        Some((latest, _)) if latest < height => self.ordered = false,
                        Some((latest, _)) if latest > height + 1 && columns.record().name == "Block" => {
                            self.notes.push(
                                format!("The blocks {} to {} are not in the list.", height + 1, latest - 1).into(),
                            );
                            self.latest = Some((height, 1));
                        }
                        _ => self.latest = Some((height, 1)),
                    }
                }
            }
            _ => self.ordered = false,
        }
        self.trail.push(fresh);
    }

    /// Whether heights are known to fall, and so tell what is newer.
    pub(super) fn descends(&self) -> bool {
        let top = self.first.and_then(|first| first.top);
        self.ordered && top.zip(self.latest).is_some_and(|(top, (latest, _))| latest < top)
    }

    /// The heights of a page, if each record has one.
    pub(super) fn heights_of(&self, columns: &Columns, from: usize) -> Option<Vec<i64>> {
        let Column::Integer(heights) = columns.column(self.heights?) else { return None };
        heights.iter().skip(from).collect()
    }
}

/// A count is of the whole list, so what a pin has before it does not matter to places told by it.
fn start_of(start: i64, pin: Option<Pin>) -> i64 {
    start - pin.map_or(0, |pin| pin.base as i64)
}

fn firm_place(firm: &[&Alignment]) -> Found {
    match firm {
        [only] => Found::At(only.place),
        _ => Found::Unknown,
    }
}
