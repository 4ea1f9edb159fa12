//! `HeldList`: a list that is kept, and where its first pages of now meet it.

use super::is_provisional;
use super::lacking::Contradicted;
use crate::cache::{Entry, Extent, Shape};
use crate::columns::{Columns, Value};
use crate::interface::ResultLimit;
use crate::query::execution::block_list::call;
use crate::query::execution::resolve::is_recent;
use crate::query::request::Query;
use crate::query::results::Records;

/// True if the list has each block of its chain.
fn shows_head(query: &Query) -> bool {
    query.endpoint().name == call(query.endpoint().chain) && query.args().is_empty()
}

/// True if the last record is younger than a year.
pub(super) fn ends_recently(records: &Records, query: &Query) -> bool {
    let last = records.len().checked_sub(1).and_then(|last| records.locate(last));
    let Some((time, (columns, row))) = records.record().time().zip(last) else { return false };
    matches!(columns.value(time, row), Value::Time(time) if is_recent(query, time))
}

/// A list as it was kept, newest record first.
pub(super) struct HeldList {
    records: Records,
    settled: Option<Settled>,
    shape: Shape,
    /// True if each block of the chain is in the list.
    shows_head: bool,
    /// True if the API drops the oldest records of the list, and may have dropped the last of these.
    may_have_aged: bool,
    /// True if the records are all that the pages have.
    counts_pages: bool,
    /// Number of records that are wanted of the list; `None` if all are.
    wanted: Option<usize>,
}

/// The point where the pages of now meet the list that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Joint {
    /// Records that come before those that are kept.
    pub fresh: usize,
    /// Index of the first record that is kept and follows them.
    held_from: usize,
    /// True if the list is not the one that is kept.
    pub has_news: bool,
}

/// Why pages are not of a list that continues the one that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// The chain changed where it was settled, or the service has other records there.
    Contradiction,
    /// The list has lost its oldest records, as lists of addresses do.
    Aged,
}

impl HeldList {
    pub fn new(entry: Entry, query: &Query, settle: i64) -> Option<Self> {
        let Extent::List { shape } = entry.facts.extent else { return None };
        let records = Records::new(query.record(), entry.rows.to_vec());
        let drops_old = query.endpoint().limit == ResultLimit::LastYear;
        Some(Self {
            // By the distance of now: another one may be set since.
            settled: Settled::of(&records, settle),
            wanted: query.max_items().map(|max_items| usize::try_from(max_items).unwrap_or(usize::MAX)),
            shows_head: shows_head(query),
            may_have_aged: drops_old && !records.is_empty() && !ends_recently(&records, query),
            counts_pages: !query.options().exclude_undated,
            records,
            shape,
        })
    }

    /// All records that were kept, if they are not served.
    pub fn contradicted(self) -> Contradicted {
        Contradicted { settled: self.settled.map(|settled| settled.height), records: self.records }
    }

    /// True if nothing would show that the list has lost its oldest records.
    pub fn cannot_be_met(&self) -> bool {
        self.may_have_aged && self.shape.total.is_none()
    }

    /// True if a page reaches down to settled heights.
    pub fn may_meet(&self, page: &Columns) -> bool {
        let Some(settled) = &self.settled else { return false };
        page.heights().any(|height| height.is_some_and(|height| height <= settled.height))
    }

    /// Returns where the first records of a list meet those that are kept; `None` if they do not reach so far.
    pub fn meet(&self, fresh: &Records, shape: Shape, is_first_page: bool) -> Result<Option<Joint>, Difference> {
        let counts = shape.total.zip(self.shape.total);
        if self.may_have_aged && counts.is_none() {
            return Err(Difference::Aged);
        }
        if is_first_page && self.is_unchanged(fresh, shape) {
            return Ok(Some(Joint { fresh: 0, held_from: 0, has_news: false }));
        }
        let Some(settled) = &self.settled else { return Ok(None) };
        let mut all = fresh.heights();
        let Some(fresh_from) = all.position(|height| height.is_some_and(|height| height <= settled.height)) else {
            return Ok(None);
        };
        let shown = fresh.len() - fresh_from;
        let held = self.records.len() - settled.from;
        if shown > held || fresh.slice(fresh_from, shown) != self.records.slice(settled.from, shown) {
            return Err(Difference::Contradiction);
        }
        let counted = counts.map(|(now, before)| i128::from(now) - i128::from(before));
        let received = fresh_from as i128 - settled.from as i128;
        if self.may_have_aged && counted.is_some_and(|counted| counted < received) {
            return Err(Difference::Aged);
        }
        if counted.is_some_and(|counted| counted != received) || self.has_other_pages(fresh_from + held, shape) {
            return Err(Difference::Contradiction);
        }
        // The beginning of a list may have become shorter than it is wanted.
        let is_enough = self.is_whole() || self.wanted.is_none_or(|wanted| fresh_from + held >= wanted);
        Ok(is_enough.then_some(Joint { fresh: fresh_from, held_from: settled.from, has_news: true }))
    }

    /// True if the first page is the one that is kept, and no record below it can have been added or changed.
    fn is_unchanged(&self, fresh: &Records, shape: Shape) -> bool {
        let shown = fresh.len();
        let is_full = shown == self.records.len().min(usize::try_from(shape.page_size).unwrap_or(usize::MAX));
        if !is_full || shape != self.shape || *fresh != self.records.slice(0, shown) {
            return false;
        }
        let settled_from = self.settled.as_ref().map_or(self.records.len(), |settled| settled.from);
        let Some(below) = settled_from.checked_sub(shown).filter(|below| *below > 0) else { return true };
        // Records below the first page change only when the chain has a new block, and the count shows a record that is listed
        // late.
        self.shows_head || shape.total.is_some() && !has_provisional(&self.records.slice(shown, below))
    }

    /// True if the list has another number of pages than as many records take, by a service whose pages are known.
    fn has_other_pages(&self, records: usize, shape: Shape) -> bool {
        let is_comparable = self.counts_pages && self.is_whole() && shape.page_size == self.shape.page_size;
        let was_right = is_comparable && self.shape.has_pages_for(self.records.len()) == Some(true);
        was_right && shape.has_pages_for(records) == Some(false)
    }

    /// True if all of the list is kept.
    fn is_whole(&self) -> bool {
        self.wanted.is_none_or(|wanted| self.records.len() < wanted)
    }

    /// The list of now.
    pub fn join(&self, fresh: &Records, joint: &Joint) -> Records {
        let fresh = fresh.slice(0, joint.fresh);
        let held = self.records.slice(joint.held_from, self.records.len());
        let joined = Records::new(fresh.record(), [fresh.chunks(), held.chunks()].concat());
        let wanted = self.wanted.unwrap_or(joined.len());
        joined.slice(0, wanted.min(joined.len()))
    }
}

/// The heights of a list from which on it is settled.
pub(super) struct Settled {
    /// The highest height of the list.
    pub top: i64,
    /// The highest settled height.
    pub height: i64,
    /// Index of the first record from which on all are settled.
    pub from: usize,
}

impl Settled {
    /// Heights `settle` below the highest one, and below all records that are to change. `None` if the list has no heights,
    /// or settled ones that do not descend.
    pub fn of(records: &Records, settle: i64) -> Option<Self> {
        let all: Vec<Option<i64>> = records.heights().collect();
        let top = all.iter().copied().flatten().max()?;
        let height = top.saturating_sub(settle).min(before_provisional(records).unwrap_or(i64::MAX));
        let from = all.iter().position(|row| row.is_some_and(|row| row <= height)).unwrap_or(all.len());
        let descends = all[from..].windows(2).all(|pair| pair[1].is_some() && pair[0] >= pair[1]);
        descends.then_some(Self { top, height, from })
    }
}

/// The height below the lowest record with a value that is to change; `None` if there is no such record.
pub(super) fn before_provisional(records: &Records) -> Option<i64> {
    let provisional = records.with_heights().filter(|(chunk, row, _)| is_provisional(chunk, *row));
    provisional.filter_map(|(_, _, height)| height).min().map(|lowest| lowest - 1)
}

/// True if some record has no height, or a value that is to change.
pub(super) fn has_provisional(records: &Records) -> bool {
    records.with_heights().any(|(chunk, row, height)| height.is_none() || is_provisional(chunk, row))
}
