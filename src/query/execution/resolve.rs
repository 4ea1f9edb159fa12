//! Ranges of heights that are known only when a run starts: those of a range of times, and those up to the newest block.

use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};

use super::block_list::shown_records;
use super::heights::ChainHeights;
use super::positions::Positions;
use super::recorded_range::RecordedRange;
use super::shared_heights::SharedHeights;
use crate::client::Error;
use crate::interface::ResultLimit;
use crate::query::request::{Query, Unresolved};
use crate::query::results::{SharedReport, TimePosition};

/// Part of a year that an address list reaches back in any case, in milliseconds: a day less, for clocks.
const RECENT: i64 = 364 * 86_400_000;

/// Heights of a range, each of which is a request, from which on one more request may show that the first of them have no records.
const MANY_HEIGHTS: i64 = 1_000;

/// Heights from the beginning of a range on of which one is expected to have a block, or transactions.
const HEIGHTS_WITHOUT_BLOCK: i64 = 4;

/// Height of the newest block of a chain that shows no block.
const NO_BLOCK: i64 = -1;

const FALLING_TIMES: &str =
    "A block is earlier than a block below it: of a range of times, blocks at its ends may be missing";

/// A query with its range of heights.
pub(super) struct ResolvedRange {
    pub query: Query,
    /// Height of the newest block that a response showed, 0 without one, if the range ends with it.
    pub open_end: Option<i64>,
}

impl From<Query> for ResolvedRange {
    /// A query whose arguments, or later blocks, say where its range ends.
    fn from(query: Query) -> Self {
        Self { query, open_end: None }
    }
}

/// Returns the query with its range of heights, with the records that responses have shown by then, and notes whether all of
/// its blocks are younger than a year. Lists of a set share what they find.
pub(super) async fn resolve(
    query: &Query,
    shared: Option<&SharedHeights>,
    report: &SharedReport,
) -> Result<ResolvedRange, Error> {
    let found = find_or_replay(query, shared, report).await?;
    let shown = shown_records(&found.query, report);
    Ok(ResolvedRange { query: found.query.with_shown_records(&shown), ..found })
}

async fn find_or_replay(
    query: &Query,
    shared: Option<&SharedHeights>,
    report: &SharedReport,
) -> Result<ResolvedRange, Error> {
    // Without a lowest height, the list of an address may always have older records than the API returns.
    let is_aged = query.endpoint().limit == ResultLimit::LastYear && query.start_height().is_some();
    if query.unresolved().is_none() && (!is_aged || query.is_recent()) {
        return Ok(query.clone().into());
    }
    match RecordedRange::replay(query)? {
        Some(recorded) => {
            let found = find(&recorded.apply(query)?, shared, report).await?;
            Ok(ResolvedRange { query: found.query.with_recent(recorded.is_recent), ..found })
        }
        None => {
            // A recording has the heights that were found: later blocks would be found for the same times.
            let advice = RecordedRange::advice(query);
            let found = find(query, shared, report).await;
            let found = found.map_err(|error| RecordedRange::with_advice(error, advice.as_deref()))?;
            RecordedRange::record(query, found.query.is_recent())?;
            Ok(found)
        }
    }
}

/// Finds the heights of a query.
async fn find(query: &Query, shared: Option<&SharedHeights>, report: &SharedReport) -> Result<ResolvedRange, Error> {
    let mut positions = Positions::of(query, shared, report)?;
    loop {
        let (found, heights) = find_ends(query, &mut positions, report).await?;
        // One end may be that of an earlier run, and the search for the other one has shown that the chain has changed.
        if !positions.has_changed().await {
            let unresolved = query.unresolved().filter(|range| range.start_time.is_some() || range.end_time.is_some());
            if unresolved.is_some_and(|range| are_unordered(&range, &heights, &positions.heights)) {
                report.add_reason(FALLING_TIMES);
            }
            return Ok(found);
        }
        report.forget_shown();
    }
}

/// True if blocks that responses showed are not in the order of their times, so that a range of times may have other heights.
fn are_unordered(range: &Unresolved, heights: &RangeInclusive<i64>, known: &ChainHeights<'_>) -> bool {
    // A block above the newest one was added after the search had begun.
    let newest = known.known_newest().unwrap_or(i64::MIN);
    let wanted = range.start_height.unwrap_or(i64::MIN)..=range.end_height.unwrap_or(i64::MAX).min(newest);
    let times = range.start_time.unwrap_or(i64::MIN)..=range.end_time.unwrap_or(i64::MAX);
    let mut inside = known.shown(wanted).filter(|block| times.contains(&block.time));
    known.has_falling_times() || inside.any(|block| !heights.contains(&block.height))
}

/// Finds both ends of a range, and the heights between them. A range that no block can be in is sent as an empty one, so that
/// all that a run does in the end is done for it as well.
async fn find_ends(
    query: &Query,
    positions: &mut Positions<'_>,
    report: &SharedReport,
) -> Result<(ResolvedRange, RangeInclusive<i64>), Error> {
    let Some(unresolved) = query.unresolved() else {
        return Ok((mark_recent(query, positions).await?.into(), i64::MIN..=i64::MAX));
    };
    let Unresolved { start_time, end_time, start_height, end_height, is_expanded } = unresolved;
    let mut open_end = None;
    let mut known_newest = None;
    let end = match end_time {
        Some(time) => match positions.find(time).await? {
            TimePosition::At(height) => Some(height),
            // A height that was requested without a block is not requested again.
            TimePosition::BelowAbsent { height, end } => Some(if is_expanded { height } else { end }),
            TimePosition::Newest(height) if is_expanded => {
                open_end = Some(height);
                open_end
            }
            TimePosition::NoBlock if is_expanded => return empty(query, Some(0)),
            // The list may have later blocks than the one that shows the newest block.
            TimePosition::Newest(height) => {
                known_newest = Some(height);
                None
            }
            TimePosition::NoBlock => {
                known_newest = Some(NO_BLOCK);
                None
            }
            TimePosition::Before(_) => return empty(query, None),
            TimePosition::BeforeSampled(first) => {
                report.add_reason(first_block_unknown(first));
                return empty(query, None);
            }
        },
        None if end_height.is_some() => end_height,
        // Each height is a request: the last one has to be known. A list has its end by itself.
        None if is_expanded => match positions.heights.newest().await? {
            Some(newest) => {
                open_end = Some(newest.height);
                open_end
            }
            None => return empty(query, Some(0)),
        },
        None => None,
    };
    let start = match start_time {
        // Both ends of a range of times are included: it begins above the last block that is earlier.
        Some(time) => match positions.find(time - 1).await? {
            TimePosition::At(height) | TimePosition::BelowAbsent { height, .. } => Some(height + 1),
            TimePosition::Newest(height) => {
                known_newest = Some(height);
                Some(height + 1)
            }
            TimePosition::NoBlock if is_expanded => return empty(query, Some(0)),
            TimePosition::NoBlock => {
                known_newest = Some(NO_BLOCK);
                None
            }
            TimePosition::Before(first) => Some(first),
            TimePosition::BeforeSampled(first) => {
                report.add_reason(first_block_unknown(first));
                Some(first)
            }
        },
        None => match start_height.zip(end) {
            Some((start, end)) if is_expanded && end - start >= MANY_HEIGHTS => {
                positions.heights.first_listed().await?.map(|first| first.max(start)).or(start_height)
            }
            _ => start_height,
        },
    };
    let resolved = query.with_heights(start, end)?.with_later_blocks(known_newest);
    let query = resolved.with_recent(start_time.is_some_and(|time| is_recent(query, time)));
    Ok((ResolvedRange { query, open_end }, start.unwrap_or(i64::MIN)..=end.unwrap_or(i64::MAX)))
}

fn empty(query: &Query, open_end: Option<i64>) -> Result<(ResolvedRange, RangeInclusive<i64>), Error> {
    Ok((ResolvedRange { query: query.with_heights(Some(1), Some(0))?, open_end }, RangeInclusive::new(1, 0)))
}

fn first_block_unknown(lowest: i64) -> String {
    format!(
        "The first block is unknown: the list does not reach back to it, and samples below height {lowest} found none; \
         pass start_height= instead of start_time="
    )
}

/// A list of an address has the last year only: it is complete if its lowest block is younger than that.
async fn mark_recent(query: &Query, positions: &mut Positions<'_>) -> Result<Query, Error> {
    if let Some((Some(start_time), _)) = query.options().times {
        // The run that this one continues has found the heights of these times.
        return Ok(query.clone().with_recent(is_recent(query, start_time)));
    }
    let Some(start) = query.start_height() else { return Ok(query.clone()) };
    // A range from the beginning of a chain on may begin far below the first block that the API has.
    let looks = if start > 1 { HEIGHTS_WITHOUT_BLOCK } else { 1 };
    for height in start..start.saturating_add(looks) {
        if let Some(block) = positions.block(height).await? {
            return Ok(query.clone().with_recent(is_recent(query, block.time)));
        }
    }
    Ok(query.clone())
}

/// True if an address list reaches back to a time, in Unix milliseconds.
pub(super) fn is_recent(query: &Query, time: i64) -> bool {
    time >= DateTime::<Utc>::from(query.client().now()).timestamp_millis() - RECENT
}
