//! A query cut into queries that can be read apart, on other machines and at other times. No record is in two of them,
//! and one after the other they give what the query itself gives now.

use super::bind::Arg;
use super::cursor::Cursor;
use super::list::{Ask, List};
use super::plan::Query;
use super::report::SharedReport;
use super::run::fetch;
use crate::client::Error;
use crate::interface::{ParamKind, Role};

/// A range that the call can be narrowed to.
struct Range {
    low: &'static str,
    high: &'static str,
    kind: ParamKind,
    /// Whether the service reads it as one list, newest first, and not window by window.
    is_list: bool,
}

impl Query {
    /// At most so many; one where there is nothing to cut along.
    pub async fn partitions(self, most: u64) -> Result<Vec<Self>, Error> {
        // What is left of a run has no parts that are told apart beforehand.
        if self.start().is_some() {
            return Ok(vec![self]);
        }
        // How many records are in a part by hash, by height or by time shows when it is read.
        if self.max_items.is_some() {
            return self.cut_list(most).await;
        }
        if let Some(param) = self.endpoint().params.iter().find(|param| matches!(param.kind, ParamKind::Hashes { .. }))
        {
            return self.cut_hashes(param.name, most);
        }
        let Some(range) = self.range() else { return self.cut_list(most).await };
        let Some((low, high)) = self.bounds(&range)? else { return self.cut_list(most).await };
        let mut parts = Vec::new();
        for (index, (low, high)) in cut(low, high, most).into_iter().enumerate() {
            parts.push(self.within(&range, low, high, index > 0)?);
        }
        if range.is_list {
            parts.reverse();
        }
        Ok(parts)
    }

    fn cut_hashes(&self, name: &str, most: u64) -> Result<Vec<Self>, Error> {
        let windows = self.windows();
        if windows == 0 {
            return Ok(vec![self.clone()]);
        }
        let some = windows.div_ceil(most.max(1)).max(1);
        let starts = (0..windows).step_by(some as usize);
        let parts = starts.map(|first| {
            let hashes = (first..(first + some).min(windows)).flat_map(|window| self.asked(window).to_vec()).collect();
            self.with(&[name], vec![(name.to_owned(), Arg::Many(hashes))], false)
        });
        parts.collect()
    }

    /// By the places of its records, in a list that the service counts: counted from its end they do not move, and each
    /// part finds its own by the records before it.
    async fn cut_list(self, most: u64) -> Result<Vec<Self>, Error> {
        if !self.endpoint().counts() || !self.head_moves() {
            return Ok(vec![self]);
        }
        let mut list = List::new(self.terms());
        let mut ask = Ask::first(self.page_size());
        let page = fetch(&self, 0, ask, false, &SharedReport::default()).await?;
        list.take(&ask, &page)?;
        let (Some(total), Some(pages)) = (page.total, page.total_pages) else { return Ok(vec![self]) };
        let rows = list.page_rows();
        let end = total.min(pages.saturating_mul(rows)).min(self.max_items.unwrap_or(u64::MAX));
        let mut seams = vec![(0, list.seam().without_records())];
        for (first, _) in cut(1, end.div_ceil(rows) as i64, most).into_iter().skip(1) {
            ask.page = first as u64 - 1;
            let page = fetch(&self, 0, ask, true, &SharedReport::default()).await?;
            let before = seams.last().map_or(0, |(place, _)| *place);
            seams.extend(list.seam_after(&ask, &page).filter(|(place, _)| (before + 1..end).contains(place)));
        }
        // The last part reads to the end of the list, and so sees whether all of it was there; of an empty one nothing.
        let last = self.max_items.or((end == 0).then_some(0));
        let ends: Vec<_> = seams.iter().skip(1).map(|(place, _)| Some(*place)).chain([last]).collect();
        let parts = seams.into_iter().zip(ends).map(|((place, seam), end)| {
            let most = end.map(|end| end.saturating_sub(place));
            Cursor::part(&self, place, seam, most)
        });
        parts.collect()
    }

    fn range(&self) -> Option<Range> {
        self.endpoint().params.iter().find_map(|param| match param.role {
            Role::From(_, high) | Role::Spans(_, high) if matches!(param.kind, ParamKind::Height | ParamKind::Time) => {
                let is_list = matches!(param.role, Role::From(..)) && param.kind == ParamKind::Height;
                Some(Range { low: param.name, high, kind: param.kind, is_list })
            }
            _ => None,
        })
    }

    /// Both ends, where they are given.
    fn bounds(&self, range: &Range) -> Result<Option<(i64, i64)>, Error> {
        let stated = self.stated()?;
        let end = |name: &str| stated["arguments"][name].as_i64();
        Ok(end(range.low).zip(end(range.high)))
    }

    fn within(&self, range: &Range, low: i64, high: i64, later: bool) -> Result<Self, Error> {
        let end = |name: &str, value: i64| (name.to_owned(), Arg::Integer(value.to_string()));
        // Undated records come with any range of times; one part keeps them.
        let later = later && range.kind == ParamKind::Time;
        self.with(&[range.low, range.high], vec![end(range.low, low), end(range.high, high)], later)
    }

    /// The same call with other values for these arguments.
    fn with(&self, names: &[&str], values: Vec<(String, Arg)>, later: bool) -> Result<Self, Error> {
        let (args, options) = self.given();
        let mut args: Vec<_> = args.iter().filter(|(name, _)| !names.contains(&name.as_str())).cloned().collect();
        args.extend(values);
        let mut options = options.clone();
        options.later |= later;
        Self::new(self.client(), self.endpoint(), &args, options)
    }
}

/// Ranges of whole numbers, both ends included, as even as they get and none empty.
fn cut(low: i64, high: i64, most: u64) -> Vec<(i64, i64)> {
    let numbers = (i128::from(high) - i128::from(low) + 1).max(0);
    let parts = i128::from(most).min(numbers);
    let start = |part: i128| i128::from(low) + numbers * part / parts;
    (0..parts).map(|part| (start(part) as i64, (start(part + 1) - 1) as i64)).collect()
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn ranges_meet_and_do_not_overlap() {
        assert_eq!(cut(0, 9, 3), [(0, 2), (3, 5), (6, 9)]);
        assert_eq!(cut(5, 6, 8), [(5, 5), (6, 6)]);
        assert_eq!(cut(7, 7, 1), [(7, 7)]);
        assert_eq!(cut(7, 6, 4), []);
        let all = cut(0, i64::MAX, 7);
        assert_eq!((all[0].0, all[6].1), (0, i64::MAX));
        assert!(all.windows(2).all(|two| two[0].1 + 1 == two[1].0));
    }
}
