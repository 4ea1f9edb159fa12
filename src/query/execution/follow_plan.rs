//! Plan of following a query, by the declaration of its call, and the queries that read it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::block_list;
use super::counted_range::CountedRange;
use super::follow_cursor::FollowCursor;
use super::heights::ChainHeights;
use super::list_spec::list_spec;
use super::query_start::QueryStart;
use super::range_run::{CompleteRows, RangeRead, RangeRun, ReadLimit};
use super::resolve::resolve;
use super::shared_heights::SharedHeights;
use super::shown_log::ShownLog;
use crate::client::Error;
use crate::interface::{Bound, ParamRole, ResultLimit, Shape};
use crate::message::{Hint, Message};
use crate::query::follow::{
    ChainHead, Changes, FollowSpec, Forgets, HeadSource, OldestKnown, Poll, Ranges, RoundProof,
};
use crate::query::request::{Arg, GrowthOrder, Query};
use crate::query::results::SharedReport;

/// Delivered heights that are remembered beyond twice the settle distance. Without that distance, they are all by which a
/// replaced block is noticed; each of them makes every cursor longer.
const REMEMBERED: usize = 16;
/// Delivered heights of each list of a set that are remembered below the settle distance: thousands of lists have one cursor.
const REMEMBERED_OF_SET: usize = 8;
/// Largest settle distance: the remembered heights are part of a cursor.
const MAX_SETTLE: u64 = 10_000;
/// Fewest blocks that a chain makes in 12 months: those of the slowest one, Bitcoin, are 52,560, one in ten minutes.
const MIN_HEIGHTS_OF_A_YEAR: i64 = 40_000;

/// The start of following, as the caller passes it.
#[derive(Clone, Debug)]
pub enum FollowStart {
    Now,
    Beginning,
    Cursor(FollowCursor),
    /// After an export. These are the keys and heights of its records above the oldest known one.
    Export {
        newest: Vec<(u64, i64)>,
        oldest_known: OldestKnown,
    },
}

#[derive(Clone, Debug)]
pub struct FollowOptions {
    pub start: FollowStart,
    /// Cursor of the last event to deliver, by a follower whose changes are held.
    pub end: Option<String>,
    pub settle: u64,
    pub poll: Poll,
    pub changes: Changes,
    /// Most records that a round holds.
    pub max_rows: u64,
}

impl FollowOptions {
    /// As many as the API lets one page through, as a rule.
    pub const MAX_ROWS: u64 = 10_000;

    /// The options of a follower that ends once it has caught up, and takes nothing back.
    pub fn once(start: FollowStart, settle: u64) -> Self {
        let changes = Changes::Held;
        Self { start, end: None, settle, poll: Poll::Once, changes, max_rows: Self::MAX_ROWS }
    }

    /// Most delivered heights that are remembered with a settle distance.
    pub fn num_remembered(settle: u64) -> usize {
        2 * settle as usize + REMEMBERED
    }
}

/// A query that can be followed.
#[derive(Clone)]
pub(super) struct FollowPlan {
    /// As the caller made it.
    pub query: Query,
    /// The whole list, newest record first.
    pub list: Query,
    pub spec: FollowSpec,
    /// Most requests in flight.
    pub max_in_flight: usize,
    /// Responses that were not taken yet.
    pub shown: ShownLog,
    /// Facts that the lists of a set request once for all.
    shared: Option<Arc<SharedHeights>>,
}

/// Greatest age of a head that is shared. An earlier head is never wrong: what is above it is due later.
const MAX_HEAD_AGE: Duration = Duration::from_secs(5);
/// Greatest age where lists are polled at the rate of their heights: the shortest interval of that.
const MAX_POLLED_HEAD_AGE: Duration = Duration::from_secs(1);

/// Fails for a call that is no list, or of which only a part is wanted.
fn check_call(start: &QueryStart) -> Result<(), Error> {
    let query = start.query();
    query.reject_set("follow()")?;
    if matches!(query.endpoint().shape, Shape::Direct) {
        return Err(reject(query, "a lookup by hash; follow a list and look its hashes up"));
    }
    let end =
        query.args().iter().map(|(name, _)| name.as_str()).find(|name| matches!(*name, "end_height" | "end_time"));
    let limit = if query.max_items().is_some() { Some("max_items") } else { None };
    if let Some(name) = end.or(limit) {
        let message = Message::new("must not be given where new records are followed").hint(Hint::Omit(name.into()));
        return Err(Error::parameter(name, message));
    }
    if start.resumed_from().is_some() {
        return Err(reject(
            query,
            "which resumes from a cursor; make the call again and pass the cursor of a follower",
        ));
    }
    Ok(())
}

/// Fails for a list of which it is not known where new records come in.
fn check_list(list: &Query) -> Result<(), Error> {
    if !list.may_grow() {
        return Err(reject(list, "whose block has all its records; omit the filter by block"));
    }
    if list.growth_order() != Some(GrowthOrder::NewestFirst) || list.endpoint().record().height().is_none() {
        return Err(reject(list, "whose list is not ordered by age; collect it again and compare"));
    }
    Ok(())
}

fn reject(query: &Query, problem: &str) -> Error {
    let problem = format!("is not possible for {}(), {problem}", query.endpoint().name);
    Error::parameter("follow", problem)
}

impl FollowPlan {
    pub fn new(start: &QueryStart, options: &FollowOptions) -> Result<Self, Error> {
        let query = start.query().clone();
        check_call(start)?;
        let list = query.with_heights(None, None)?.followed();
        check_list(&list)?;
        if options.settle > MAX_SETTLE {
            return Err(Error::parameter("settle", format!("({}) must be <= {MAX_SETTLE}", options.settle)));
        }
        let endpoint = list.endpoint();
        let shared = start.shared_heights();
        let spec = FollowSpec {
            endpoint: endpoint.name,
            // The lowest height takes requests, which come with the first step.
            low: 0,
            changes: options.changes,
            settle: options.settle as i64,
            poll: options.poll,
            head: head_source(&list),
            ranges: ranges(&list),
            proof: if endpoint.counts() { RoundProof::Count } else { RoundProof::Recheck },
            until: None,
            forgets: match endpoint.limit {
                ResultLimit::LastYear => Forgets::LastYear { heights: MIN_HEIGHTS_OF_A_YEAR },
                ResultLimit::Unlimited | ResultLimit::Window | ResultLimit::Logs => Forgets::Never,
            },
            page_size: list_spec(&list, None).page_size,
            max_rows: options.max_rows.min(list.result_window().unwrap_or(u64::MAX)),
            remembered: match shared {
                None => options.settle as usize + REMEMBERED,
                Some(_) => REMEMBERED_OF_SET,
            },
            is_of_set: shared.is_some(),
        };
        Ok(Self { query, list, spec, max_in_flight: usize::MAX, shown: ShownLog::default(), shared })
    }

    fn max_head_age(&self) -> Duration {
        match self.spec.poll {
            Poll::Once => MAX_HEAD_AGE,
            Poll::Auto => MAX_POLLED_HEAD_AGE,
            Poll::Every(interval) => interval.min(MAX_HEAD_AGE),
        }
    }

    /// The head of the chain.
    pub async fn head(&self, report: &SharedReport) -> Result<Option<ChainHead>, Error> {
        let mut heights = ChainHeights::of(&self.list, report);
        let Some(shared) = &self.shared else { return heights.head().await };
        shared.heads.get((), async || Ok((heights.head().await?, self.max_head_age()))).await
    }

    /// The changes of a delivered height that its records do not show, as a sentence of the report.
    pub fn blind_spot(&self) -> Option<Message> {
        let has_hash = self.list.endpoint().record().block().is_some();
        let is_blind = self.spec.changes == Changes::Held && !has_hash;
        let sentence = "The list has no block hashes: a reorganization that keeps the record keys of a height is not \
                        noticed without ";
        is_blind.then(|| Message::new(sentence).parameter("undo").text("."))
    }

    /// Returns the query with its lowest height and, if `needs_age` is true, notes whether its blocks are younger than what
    /// the API drops. This takes requests.
    pub async fn resolved(&self, needs_age: bool, report: &SharedReport) -> Result<Query, Error> {
        let has_time = self.query.args().iter().any(|(name, _)| name == "start_time");
        if has_time || needs_age {
            return resolve(&self.query, self.shared.as_deref(), report).await.map(|range| range.query);
        }
        Ok(self.query.clone())
    }

    /// Reads all records of a range of heights, which has new records from `first` on only.
    pub async fn read_range(
        &self,
        heights: RangeInclusive<i64>,
        first: i64,
        max_rows: u64,
        report: &SharedReport,
    ) -> Result<RangeRead, Error> {
        let low = *heights.start();
        let high = *heights.end();
        match self.spec.ranges {
            Ranges::None => Ok(RangeRead::TooLarge { rows: 0, reached: high }),
            Ranges::List => {
                // No request whether the list reaches back so far: the follower notices a gap by itself.
                let query = self.list.with_heights(Some(low), Some(high))?.with_recent(true);
                let limit = ReadLimit { max_rows, heights: first.min(high)..=high };
                RangeRun::new(&query, report, &self.shown).read_within(&limit, self.max_in_flight).await
            }
            Ranges::ByHeight => self.read_heights(heights, max_rows, report).await.map(RangeRead::Complete),
            Ranges::ByCount => {
                // A few heights are read one by one, and so are those whose pages are not found.
                let counted = match max_rows {
                    u64::MAX => None,
                    _ => CountedRange::new(&self.list, report, &self.shown).read(heights, max_rows).await?,
                };
                if let Some(read) = counted {
                    return Ok(RangeRead::Complete(read));
                }
                let first = if low > 0 { None } else { ChainHeights::of(&self.list, report).first().await? };
                let low = first.unwrap_or(low);
                self.read_heights(low..=high, max_rows, report).await.map(RangeRead::Complete)
            }
        }
    }

    /// The error of a height whose records cannot all be paged through.
    fn too_large(&self, height: i64, error: Error) -> Error {
        let Error::Window { endpoint, .. } = error else { return error };
        let Some(window) = self.list.result_window() else { return error };
        let problem = format!("the records of height {height} exceed the API's result window ({window})");
        Error::Gap { endpoint, first: height, last: height, problem: problem.into() }
    }

    async fn read_heights(
        &self,
        heights: RangeInclusive<i64>,
        max_rows: u64,
        report: &SharedReport,
    ) -> Result<CompleteRows, Error> {
        let high = *heights.end();
        let each = stream::iter(heights).map(|height| async move {
            let query = self.list.with_args(vec![("height".into(), Arg::Integer(height.to_string()))], false)?;
            let read = RangeRun::new(&query, report, &self.shown).read().await;
            let rows = read.map_err(|error| self.too_large(height, error))?;
            Ok::<_, Error>((height, rows))
        });
        let mut each = std::pin::pin!(each.buffered(self.max_in_flight.min(self.list.client().concurrency())));
        let mut all = Vec::new();
        let mut count = 0;
        while let Some((height, rows)) = each.try_next().await? {
            count += rows.iter().map(|columns| columns.rows() as u64).sum::<u64>();
            all.extend(rows);
            if count > max_rows || height == high {
                return Ok(CompleteRows { up_to: height, pages: all });
            }
        }
        Ok(CompleteRows { up_to: high, pages: all })
    }
}

/// The list of all blocks' records shows the head of its chain by itself.
fn head_source(list: &Query) -> HeadSource {
    let is_of_all = block_list::call(list.endpoint().chain) == list.endpoint().name && list.args().is_empty();
    if is_of_all { HeadSource::List } else { HeadSource::Chain }
}

/// Way to read the heights that reading down does not reach: that with the fewest requests.
fn ranges(list: &Query) -> Ranges {
    let endpoint = list.endpoint();
    let start = endpoint.param("start_height");
    let is_range = start.is_some_and(|param| matches!(param.role, ParamRole::RangeStart(..)));
    let height = endpoint.param("height");
    let by_height = height.is_some_and(|param| param.bounds.contains(&("height", Bound::Equal)));
    if is_range {
        Ranges::List
    } else if !by_height {
        Ranges::None
    } else if endpoint.counts() {
        Ranges::ByCount
    } else {
        Ranges::ByHeight
    }
}
