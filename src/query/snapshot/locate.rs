//! The offset of a response in the snapshot, by one of three strategies: by count, by overlap and by adjacency. Pure:
//! evidence in, location out.

use std::collections::HashSet;

use super::delivered::{Delivered, Overlap, Shared};
use super::evidence::Snapshot;
use super::spec::View;

/// Offset of a response's first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    At(i64),
    /// Several offsets are possible.
    Ambiguous,
    /// The response shares nothing with the delivered records.
    Lost,
}

/// Purpose of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    /// The page follows the delivered records and shares none with them.
    Adjacent,
    /// The page begins with delivered records.
    Overlapping,
}

pub(super) fn locate(
    view: &View<'_>,
    snapshot: &Snapshot,
    delivered: &Delivered,
    shift: i64,
    expectation: Expectation,
) -> Location {
    if let Some(offset) = by_count(view, snapshot) {
        return Location::At(offset);
    }
    let keys = view.keys(0..view.rows.len());
    let overlap = by_overlap(view, &keys, snapshot, delivered, expectation);
    match (overlap, by_adjacency(view, &keys, snapshot, delivered, shift, expectation)) {
        (Location::Lost, Some(next)) if !keys.iter().any(|key| delivered.contains(*key)) => Location::At(next),
        // The shared rows may be duplicates that follow the delivered records. In pages of a fixed size, nothing could
        // tell them apart.
        (Location::At(offset), adjacent)
            if !snapshot.has_fixed_pages()
                && (adjacent.is_some() || may_lie_below(view, &keys, snapshot, delivered, shift))
                && !descends(view, delivered.end() as i64 - offset) =>
        {
            Location::Ambiguous
        }
        (overlap, _) => overlap,
    }
}

/// Counted from its end, the list does not change while it grows.
pub(super) fn by_count(view: &View<'_>, snapshot: &Snapshot) -> Option<i64> {
    let shift = view.length()? as i64 - snapshot.length.exact()? as i64;
    Some(view.position - shift)
}

/// The offset at which the page begins with delivered records.
fn by_overlap(
    view: &View<'_>,
    keys: &[u64],
    snapshot: &Snapshot,
    delivered: &Delivered,
    expectation: Expectation,
) -> Location {
    let overlaps: Vec<Overlap> =
        delivered.overlaps(keys).into_iter().filter(|overlap| fits(view, snapshot, overlap.offset)).collect();
    match overlaps.as_slice() {
        [] => Location::Lost,
        [only] if is_certain(view, snapshot, only, delivered, expectation) => Location::At(only.offset),
        _ => Location::Ambiguous,
    }
}

/// The end of the delivered records, if the page was requested to begin there.
fn by_adjacency(
    view: &View<'_>,
    keys: &[u64],
    snapshot: &Snapshot,
    delivered: &Delivered,
    shift: i64,
    expectation: Expectation,
) -> Option<i64> {
    let next = delivered.end() as i64;
    let may_follow = expectation == Expectation::Adjacent || snapshot.has_fixed_pages();
    (may_follow && view.position - shift == next && !keys.is_empty() && fits(view, snapshot, next)).then_some(next)
}

/// True if the page may begin below the delivered records, since the list has grown by less than was expected: the rows that
/// it seems to share with them are then duplicates of theirs. A list in which none were seen is taken to have none.
fn may_lie_below(view: &View<'_>, keys: &[u64], snapshot: &Snapshot, delivered: &Delivered, shift: i64) -> bool {
    let greatest = view.position - delivered.end() as i64;
    // The apparent overlap takes a longer list, and fits: only the least length of the list can contradict.
    let is_long_enough = |length: u64| *view.lengths().start() <= length as i64 + greatest;
    let is_possible = shift <= greatest && snapshot.length.exact().is_none_or(is_long_enough);
    is_possible && (delivered.has_duplicates() || keys.iter().collect::<HashSet<_>>().len() < keys.len())
}

/// True if the first `shared` rows cannot occur twice in a row: the page is in descending order of heights, and these rows
/// have at least two.
fn descends(view: &View<'_>, shared: i64) -> bool {
    let heights: Option<Vec<i64>> = (0..view.rows.len()).map(|row| view.rows.height(row)).collect();
    let last = (shared.min(view.rows.len() as i64) - 1).max(0) as usize;
    heights.is_some_and(|heights| heights.is_sorted_by(|above, below| above >= below) && heights[0] > heights[last])
}

/// One shared record is evidence only where the page was requested to begin with it. The page must show the record above
/// it if pages have room for that: its first row may be a duplicate that follows the last returned record.
fn is_certain(
    view: &View<'_>,
    snapshot: &Snapshot,
    overlap: &Overlap,
    delivered: &Delivered,
    expectation: Expectation,
) -> bool {
    let is_first_row = overlap.offset + 1 == delivered.end() as i64 && view.position > 0;
    let could_show_more = view.page_size.max(snapshot.page_rows) > 2 || delivered.has_duplicates();
    match overlap.shared {
        Shared::Distinct => true,
        Shared::Unique => expectation == Expectation::Overlapping && !(is_first_row && could_show_more),
        Shared::Repeated => false,
    }
}

/// True if the list can be as long as it would be if the page begins at `offset`: longer than the snapshot by the drift.
fn fits(view: &View<'_>, snapshot: &Snapshot, offset: i64) -> bool {
    snapshot.length.exact().is_none_or(|length| view.lengths().contains(&(length as i64 + view.position - offset)))
}
