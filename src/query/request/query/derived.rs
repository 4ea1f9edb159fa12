//! Queries made from another one: of a part of its records or columns, or with other values for some of its arguments.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Query;
use crate::client::Error;
use crate::columns::Projection;
use crate::interface::{ParamKind, ParamRole, meaning};
use crate::query::request::args::{Arg, Options};
use crate::query::request::filters::Filters;
use crate::query::request::ranges::ValueRange;
use crate::query::request::shown_records::{ShownRecord, ShownRecords};
use crate::query::request::slices::Slices;

impl Query {
    /// Query for a follower, which needs the height of each record.
    #[must_use]
    pub(in crate::query) fn followed(self) -> Self {
        Self { is_followed: true, ..self }
    }

    #[must_use]
    pub(in crate::query) fn with_recent(self, is_recent: bool) -> Self {
        Self { is_recent, ..self }
    }

    /// Query whose slices have these records as well.
    #[must_use]
    pub(in crate::query) fn with_shown_records(self, records: &ShownRecords) -> Self {
        if records.is_empty() {
            return self;
        }
        let mut all = ShownRecords::clone(&self.shown_records);
        all.extend(records);
        Self { shown_records: Arc::new(all), ..self }
    }

    /// True if a response of the run showed records of that slice.
    pub(in crate::query) fn is_shown(&self, slice: u64) -> bool {
        !self.shown_records(slice).is_empty()
    }

    /// Records of a slice that responses of the run showed before it was read.
    pub(in crate::query) fn shown_records(&self, slice: u64) -> &[ShownRecord] {
        self.slices().height(slice).map_or(&[], |height| self.shown_records.at(height))
    }

    /// Query for a range of heights in place of the times of this one. An empty range has no records.
    pub(in crate::query) fn with_heights(&self, start: Option<i64>, end: Option<i64>) -> Result<Self, Error> {
        let mut args: Vec<_> = self.args.iter().filter(|(name, _)| !self.is_of_range(name)).cloned().collect();
        if start.zip(end).is_some_and(|(start, end)| start > end) {
            // No range is sent: nothing is wanted of the list.
            let options = Options { max_items: Some(0), ..self.options.clone() };
            return Self::new(&self.client, self.endpoint, args, options);
        }
        for (name, height) in [("start_height", start), ("end_height", end)] {
            args.extend(height.map(|height| (name.to_owned(), Arg::Integer(height.to_string()))));
        }
        let times = self.filters.unresolved.map(|range| (range.start_time, range.end_time));
        let times = times.filter(|(start, end)| start.is_some() || end.is_some()).or(self.options.times);
        let options = Options { times, ..self.options.clone() };
        let query = Self::new(&self.client, self.endpoint, args, options)?;
        let Self { max_items, page_size, projection, is_followed, .. } = *self;
        Ok(Self { max_items, page_size, projection, is_followed, ..query })
    }

    /// Query for a range of heights as `with_heights` makes it, of which records of blocks above `newest` are selected by
    /// their times.
    pub(in crate::query) fn with_later_blocks(self, newest: Option<i64>) -> Self {
        let known_newest = newest.or(self.options.known_newest);
        Self { options: Options { known_newest, ..self.options }, ..self }
    }

    /// True if an argument says which heights or times are wanted.
    fn is_of_range(&self, name: &str) -> bool {
        let param = self.endpoint.param(name);
        matches!(name, "start_height" | "end_height")
            || param.is_some_and(|param| matches!(param.role, ParamRole::TimeOfHeight(..)))
    }

    /// Canonical arguments by which the query of a cursor is recognized: the values of a set, and what a run of one value replaces
    /// in its cursor, are not among them.
    pub(in crate::query) fn fixed_args(&self) -> Result<Map<String, Value>, Error> {
        let mut args = self.canonical_args()?;
        match &self.members {
            Some(members) => {
                args.remove(members.name);
            }
            None => args.retain(|name, _| !self.is_of_range(name) && !self.is_hashes(name)),
        }
        for value in args.values_mut() {
            if let Value::String(text) = value {
                *text = meaning(text);
            }
        }
        Ok(args)
    }

    fn is_hashes(&self, name: &str) -> bool {
        self.endpoint.param(name).is_some_and(|param| matches!(param.kind, ParamKind::Hashes { .. }))
    }

    /// Query for what its range of heights or times has from `height` on.
    pub fn from_height(&self, height: i64) -> Result<Self, Error> {
        let end = self.args.iter().find(|(name, _)| name == "end_height");
        if let Some((_, Arg::Integer(digits) | Arg::String(digits))) = end
            && digits.parse().is_ok_and(|end: i64| end < height)
        {
            return self.with_heights(Some(1), Some(0));
        }
        let start = ("start_height".to_owned(), Arg::Integer(height.to_string()));
        let rest = self.args.iter().filter(|(name, _)| !matches!(name.as_str(), "start_height" | "start_time"));
        let args: Vec<_> = rest.cloned().chain([start]).collect();
        Self::new(&self.client, self.endpoint, args, self.options.clone())
    }

    /// Query that decodes fewer columns: the named ones, those that an argument bounds, and the column that divides the
    /// list.
    #[must_use]
    pub fn with_columns(&self, names: &[String]) -> Self {
        let given = self.args.iter().filter_map(|(name, _)| self.endpoint.param(name));
        let bounded = given.flat_map(|param| param.bounds).map(|(column, _)| (*column).to_owned());
        let divider = self.endpoint.divider().map(|divider| divider.column.to_owned());
        let needed: Vec<String> = names.iter().cloned().chain(bounded).chain(divider).collect();
        Self { projection: Projection::with_keys(self.endpoint.record(), &needed), ..self.clone() }
    }

    /// Query with the decoded columns of another one.
    #[must_use]
    pub(in crate::query) fn with_projection_of(self, other: &Self) -> Self {
        Self { projection: other.projection, ..self }
    }

    /// Query for the first `limit` records.
    #[must_use]
    pub fn limited_to(&self, limit: u64) -> Self {
        let limited = self.with_max_items(limit);
        let max_items = limited.max_items.unwrap_or(limit).max(1);
        let page_size = self.page_size.map(|size| u64::from(size).min(max_items) as u32);
        Self { page_size, ..limited }
    }

    /// Query for the first `limit` records, in pages of the same size.
    #[must_use]
    pub(in crate::query) fn with_max_items(&self, limit: u64) -> Self {
        let limit = self.max_items.map_or(limit, |given| given.min(limit));
        Self { max_items: Some(limit), ..self.clone() }
    }

    /// Query without a limit of its records.
    #[must_use]
    pub(in crate::query) fn unlimited(self) -> Self {
        Self { max_items: None, ..self }
    }

    /// Query that is read by these ranges of values, where the API has a filter for them.
    #[must_use]
    pub(in crate::query) fn divided(self, ranges: &Arc<[ValueRange]>) -> Self {
        let Some(divider) = self.endpoint.divider() else { return self };
        let slices = Slices::Divided { divider, ranges: ranges.clone() };
        Self { filters: Arc::new(Filters { slices, ..Filters::clone(&self.filters) }), ..self }
    }

    /// Query with other values for some arguments.
    pub(in crate::query) fn with_args(&self, values: Vec<(String, Arg)>, exclude_undated: bool) -> Result<Self, Error> {
        let args = self.replace_args(values);
        let mut options = self.options.clone();
        options.exclude_undated |= exclude_undated;
        Self::new(&self.client, self.endpoint, args, options)
    }

    /// Arguments of a lookup for its hashes from index `index` of a slice on.
    pub(in crate::query) fn args_from_hash(&self, slice: u64, index: usize) -> Vec<(String, Arg)> {
        let slices = slice..self.slices().count();
        let hashes = slices.flat_map(|slice| self.slices().hashes(slice)).skip(index).cloned().collect();
        let param = self.endpoint.params.iter().find(|param| matches!(param.kind, ParamKind::Hashes { .. }));
        self.replace_args(param.map(|param| (param.name.to_owned(), Arg::List(hashes))).into_iter().collect())
    }

    /// Arguments with other values for some of them.
    fn replace_args(&self, values: Vec<(String, Arg)>) -> Vec<(String, Arg)> {
        let mut args = self.args.to_vec();
        args.retain(|(name, _)| !values.iter().any(|(replaced, _)| replaced == name));
        args.extend(values);
        args
    }
}
