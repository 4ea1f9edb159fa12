//! Partitions: queries that together return what one query returns, each record in one of them, and that can be read
//! independently, on other machines and at other times.

use super::fetch::fetch;
use super::list_spec::{list_spec, response};
use super::positions::reject_empty_responses;
use super::query_start::QueryStart;
use crate::client::Error;
use crate::interface::{ParamKind, ParamRole};
use crate::message::{Hint, Message};
use crate::query::audit::{check_count, page_of_both};
use crate::query::request::{Arg, Members, Query};
use crate::query::results::SharedReport;
use crate::query::snapshot::{Cut, ListReader, PageRequest};

/// Largest number of partitions of one query.
const MAX_PARTITIONS: u64 = 100_000;

/// A range of heights or times that the call can be narrowed to.
struct Range {
    low: &'static str,
    high: &'static str,
    kind: ParamKind,
    /// True if the API reads the range as one list, newest first; false if it is read slice by slice.
    is_list: bool,
}

impl QueryStart {
    /// Splits the run into up to `num_partitions`; into one where it cannot be split.
    pub async fn partitions(self, num_partitions: u64) -> Result<Vec<Self>, Error> {
        if num_partitions > MAX_PARTITIONS {
            let problem = format!("({num_partitions}) must be <= {MAX_PARTITIONS}");
            return Err(Error::parameter("num_partitions", problem));
        }
        // What is left of a run cannot be split without reading it.
        if self.resumed_from().is_some() {
            return Ok(vec![self]);
        }
        if let Some(members) = self.query().members() {
            return split_set(self.query(), members, num_partitions);
        }
        let report = SharedReport::default();
        let start = if self.query().unresolved().is_some() {
            let query = self.resolve(&report).await?;
            self.with_query(query)
        } else {
            self
        };
        let partitions = start.split(num_partitions, &report).await?;
        // A partition would begin and end where a list seemed to be empty, and read nothing of what it lacks.
        reject_empty_responses(start.query().endpoint().chain, &report)?;
        let reasons = report.read().reasons.to_vec();
        Ok(partitions.into_iter().map(|partition| partition.with_reasons(&reasons)).collect())
    }

    /// Splits the run of a query whose heights are known.
    async fn split(&self, num_partitions: u64, report: &SharedReport) -> Result<Vec<Self>, Error> {
        let query = self.query();
        // How many records a partition by hash, by height or by time has is unknown until it is read.
        if query.max_items().is_some() {
            return split_list(query, num_partitions, report).await;
        }
        let hashes = query.endpoint().params.iter().find(|param| matches!(param.kind, ParamKind::Hashes { .. }));
        if let Some(param) = hashes {
            return split_hashes(query, param.name, num_partitions);
        }
        let Some(range) = range(query) else { return split_list(query, num_partitions, report).await };
        let Some((low, high)) = bounds(query, &range)? else { return split_list(query, num_partitions, report).await };
        // A range without an end is cut below the newest block that was known.
        let open_at = query.options().known_newest.filter(|_| !query.args().iter().any(|(name, _)| name == range.high));
        let mut partitions = Vec::new();
        for (index, (low, high)) in split(low, high, num_partitions).into_iter().enumerate() {
            let high = (open_at != Some(high)).then_some(high);
            partitions.push(Self::from(within(query, &range, low, high, index > 0)?));
        }
        if range.is_list {
            partitions.reverse();
        }
        Ok(partitions)
    }
}

fn unsplit(query: &Query) -> Result<Vec<QueryStart>, Error> {
    Ok(vec![query.clone().into()])
}

/// Splits a set by its values. Each part is a set, so that its records have the same columns.
fn split_set(query: &Query, members: &Members, num_partitions: u64) -> Result<Vec<QueryStart>, Error> {
    if query.options().unique {
        let problem = "must not be given where a set is split: several parts may have a record";
        return Err(Error::parameter("unique", Message::new(problem).hint(Hint::Omit("unique".into()))));
    }
    let ranges = split(1, members.values.len() as i64, num_partitions.max(1));
    let partitions = ranges.into_iter().map(|(first, last)| {
        let values = members.values[first as usize - 1..last as usize].to_vec();
        query.with_args(vec![(members.name.to_owned(), Arg::List(values))], false).map(QueryStart::from)
    });
    partitions.collect()
}

fn split_hashes(query: &Query, name: &str, num_partitions: u64) -> Result<Vec<QueryStart>, Error> {
    let slices = query.slices().count();
    if slices == 0 {
        return unsplit(query);
    }
    let each = slices.div_ceil(num_partitions.max(1)).max(1);
    let starts = (0..slices).step_by(each as usize);
    let partitions = starts.map(|first| {
        let slices = first..(first + each).min(slices);
        let hashes = slices.flat_map(|slice| query.slices().hashes(slice).to_vec()).collect();
        query.with_args(vec![(name.to_owned(), Arg::List(hashes))], false).map(QueryStart::from)
    });
    partitions.collect()
}

/// Splits a list that the API counts by offsets: counted from its end they do not change. Two partitions are cut between
/// records that one response showed next to each other; each has to begin and to end with them.
async fn split_list(query: &Query, num_partitions: u64, report: &SharedReport) -> Result<Vec<QueryStart>, Error> {
    if !query.endpoint().counts() || !query.may_grow() {
        return unsplit(query);
    }
    let mut list = ListReader::new(list_spec(query, None));
    let request = PageRequest::first(query.page_size());
    let page = fetch(query, 0, request, false, report).await?;
    let accepted = list.on_response(&request, &response(&page, list.spec()))?;
    // A count that may be that of the result window says nothing of the list.
    let Some(total) = response(&page, list.spec()).total else { return unsplit(query) };
    // The reader of the list decides what a count means that is less than the records of the first page.
    if check_count(&request, &response(&page, list.spec())).is_err() {
        return unsplit(query);
    }
    let Some(pages) = response(&page, list.spec()).total_pages else { return unsplit(query) };
    let rows = list.snapshot().page_rows();
    let end = total.min(pages.saturating_mul(rows)).min(query.max_items().unwrap_or(u64::MAX));
    let mut cuts: Vec<Cut> = Vec::new();
    for (first, _) in split(1, end.div_ceil(rows) as i64, num_partitions).into_iter().skip(1) {
        let offset = (first as u64 - 1) * rows;
        let max_page_size = query.endpoint().page_size_max().map_or(1, u64::from);
        let Some(request) = page_of_both(offset - 1, offset, max_page_size) else { break };
        let page = fetch(query, 0, request, false, report).await?;
        check_count(&request, &response(&page, list.spec())).map_err(|problem| list.drift_error(problem))?;
        let before = cuts.last().map_or(0, |cut| cut.offset);
        let cut = list.cut_near(offset, &request, &response(&page, list.spec()));
        cuts.extend(cut.filter(|cut| (before + 1..end).contains(&cut.offset)));
    }
    // The last partition reads to the end of the list, and so checks that all of it was there; of an empty one nothing.
    let last = query.max_items().or((end == 0).then_some(0));
    let starts = std::iter::once(None).chain(cuts.iter().map(Some));
    let ends = cuts.iter().map(Some).chain([None]);
    let partitions = starts.zip(ends).map(|(start, end)| {
        let offset = start.map_or(0, |start| start.offset);
        let remaining = end.map(|end| end.offset).or(last).map(|end| end.saturating_sub(offset));
        let position = accepted.before.clone().between(start, end);
        let partition = QueryStart::from_position(query, offset, position, remaining)?;
        Ok(match start {
            Some(start) => partition.below(start),
            None => partition,
        })
    });
    partitions.collect()
}

fn range(query: &Query) -> Option<Range> {
    query.endpoint().params.iter().find_map(|param| match param.role {
        ParamRole::RangeStart(_, high) | ParamRole::ExpandedRange(_, high)
            if matches!(param.kind, ParamKind::Height | ParamKind::Time) =>
        {
            let is_list = matches!(param.role, ParamRole::RangeStart(..)) && param.kind == ParamKind::Height;
            Some(Range { low: param.name, high, kind: param.kind, is_list })
        }
        _ => None,
    })
}

/// Both ends of a range, if both are given, or the upper one is that of the newest block.
fn bounds(query: &Query, range: &Range) -> Result<Option<(i64, i64)>, Error> {
    let args = query.canonical_args()?;
    let low = args.get(range.low).and_then(serde_json::Value::as_i64);
    let high = args.get(range.high).and_then(serde_json::Value::as_i64);
    let newest = query.options().known_newest.filter(|newest| low.is_some_and(|low| low <= *newest));
    Ok(low.zip(high.or(newest)))
}

fn within(query: &Query, range: &Range, low: i64, high: Option<i64>, is_later: bool) -> Result<Query, Error> {
    let ends = [(range.low, Some(low)), (range.high, high)].into_iter().filter_map(|(name, value)| {
        let value = value?;
        let arg = match range.kind {
            ParamKind::Time => Arg::Time(value * 1_000),
            _ => Arg::Integer(value.to_string()),
        };
        Some((name.to_owned(), arg))
    });
    // Records without a time are returned with any range of times; the first partition includes them.
    let exclude_undated = is_later && range.kind == ParamKind::Time;
    query.with_args(ends.collect(), exclude_undated)
}

/// Splits a range of integers, both ends included, into up to `num_parts` as even as possible, none empty.
fn split(low: i64, high: i64, num_parts: u64) -> Vec<(i64, i64)> {
    let numbers = (i128::from(high) - i128::from(low) + 1).max(0);
    let parts = i128::from(num_parts).min(numbers);
    let ranges = (0..parts).map(|part| {
        let start = i128::from(low) + numbers * part / parts;
        let next = i128::from(low) + numbers * (part + 1) / parts;
        (start as i64, (next - 1) as i64)
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn ranges_are_adjacent_and_disjoint() {
        assert_eq!(split(0, 9, 3), [(0, 2), (3, 5), (6, 9)]);
        assert_eq!(split(5, 6, 8), [(5, 5), (6, 6)]);
        assert_eq!(split(7, 7, 1), [(7, 7)]);
        assert_eq!(split(7, 6, 4), []);
        let all = split(0, i64::MAX, 7);
        assert_eq!((all[0].0, all[6].1), (0, i64::MAX));
        assert!(all.windows(2).all(|two| two[0].1 + 1 == two[1].0));
    }
}
