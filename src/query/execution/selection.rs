//! `Selection`: the rows of a response that belong to the result.

use std::collections::HashMap;

use arrow_array::{Array as _, TimestampMillisecondArray};

use super::undated::{Place, Undated, slice_times};
use crate::columns::Columns;
use crate::decode::Page;
use crate::interface::{ParamKind, ResultLimit, meaning};
use crate::message::{Message, counted};
use crate::query::audit::Arguments;
use crate::query::request::Query;
use crate::query::results::SharedReport;
use crate::query::snapshot::Rows;

/// Characters of the name of another chain that a reason shows.
const MAX_CHAIN_NAME: usize = 80;

/// Rows of a response that belong to the result, in its order.
pub(super) enum Selection {
    All,
    /// Some rows of a list.
    Rows(Vec<u32>),
    /// Rows of a lookup in the order of its hashes; each row's hash and the hashes without one, by index.
    Hashes {
        rows: Vec<u32>,
        found: Vec<u32>,
        missing: Vec<u32>,
    },
}

impl Selection {
    /// The selected rows of a list that were not returned before.
    pub fn of_fresh(self, fresh: Option<&[u32]>) -> Self {
        match (self, fresh) {
            (Self::All, Some(fresh)) => Self::Rows(fresh.to_vec()),
            (Self::Rows(mut rows), Some(fresh)) => {
                rows.retain(|row| fresh.binary_search(row).is_ok());
                Self::Rows(rows)
            }
            (selection, _) => selection,
        }
    }

    /// Drops the rows of a list after the first `count`.
    pub fn truncate(&mut self, count: usize) {
        if let Self::Rows(rows) = self {
            rows.retain(|row| (*row as usize) < count);
        }
    }

    /// Selected rows, if not all are.
    pub fn rows(&self) -> Option<&[u32]> {
        match self {
            Self::All => None,
            Self::Rows(rows) | Self::Hashes { rows, .. } => Some(rows),
        }
    }

    /// Number of received rows up to the last of the first `count` selected ones.
    pub fn received(&self, count: usize) -> usize {
        match (self.rows(), count.checked_sub(1)) {
            (Some(rows), Some(last)) => rows[last] as usize + 1,
            _ => count,
        }
    }
}

/// Selects rows of one slice; a row that contradicts the arguments is dropped, with a reason.
pub(super) struct Selector<'a> {
    pub query: &'a Query,
    pub arguments: &'a Arguments,
    pub report: &'a SharedReport,
    pub slice: u64,
    /// Records without a time that slices returned.
    pub undated: &'a Undated,
    /// Greatest height of the records of a slice of values.
    pub top: Option<i64>,
}

impl Selector<'_> {
    /// Selects among the rows of a page that the reader accepted.
    pub fn select(&self, page: &Page, columns: &Columns) -> Selection {
        if is_of_other_chain(self.query, page) {
            let short_name = page.paging.chain_short_name.as_deref().unwrap_or_default();
            let name = self.query.client().shown(short_name, MAX_CHAIN_NAME);
            let text = format!("The API returned records of the chain {name} in place of {}", self.query.chain());
            self.drop_rows(columns.rows(), text);
            return Selection::Rows(Vec::new());
        }
        let requested = self.query.slices().hashes(self.slice);
        if matches!(self.query.endpoint().limit, ResultLimit::Logs) {
            // By the declaration of the call, a request has one hash.
            return self.logs_of(&requested[0], columns);
        }
        if !requested.is_empty() {
            return self.rows_in_requested_order(requested, columns);
        }
        // All records of a list are the same in any order.
        if self.query.max_items().is_some()
            && let Some(parameter) = self.arguments.out_of_order(columns)
        {
            let text = Message::new("The API returned records that are not in the order of ").parameter(parameter);
            self.report.add_contradiction(text.text(": it may not have applied it"));
        }
        let slices = self.query.slices();
        let is_of_values = slices.value_range(self.slice).is_some();
        let is_whole = slices.height(self.slice).is_none() && slices.time_range(self.slice).is_none() && !is_of_values;
        if self.arguments.are_empty() && is_whole {
            return Selection::All;
        }
        let kept = self.rows_of_values(columns, self.rows_in_time(columns, self.possible_rows(columns)));
        if kept.len() == columns.rows() { Selection::All } else { Selection::Rows(kept) }
    }

    fn drop_rows(&self, rows: usize, reason: impl Into<Message>) {
        if rows > 0 {
            self.report.add_dropped(rows as u64, reason);
        }
    }

    /// Rows that the result can have under the arguments.
    fn possible_rows(&self, columns: &Columns) -> Vec<u32> {
        let height = self.query.slices().height(self.slice);
        let own = height.map(|height| Arguments::of_height(columns.record().height(), height));
        let mut kept = Vec::with_capacity(columns.rows());
        for row in (0..columns.rows()).filter(|row| !self.arguments.is_of_other_time(columns, *row)) {
            let by_slice = own.as_ref().and_then(|arguments| arguments.contradicted(columns, row));
            match by_slice.or_else(|| self.arguments.contradicted(columns, row)) {
                None => kept.push(row as u32),
                Some(parameter) => self.drop_rows(
                    1,
                    Message::new("The API returned records that contradict ")
                        .parameter(parameter)
                        .text(": they were dropped, and it may not have applied the filter"),
                ),
            }
        }
        kept
    }

    /// The rows of a slice of times whose times lie within the slice.
    fn rows_in_time(&self, columns: &Columns, mut rows: Vec<u32>) -> Vec<u32> {
        let Some((low, high)) = self.query.slices().time_range(self.slice) else { return rows };
        let Some(times) = slice_times(columns) else { return rows };
        let bounds = self.query.endpoint().params.iter().filter(|param| param.kind == ParamKind::Time);
        if bounds.into_iter().any(|param| self.query.may_replay_other(param, "")) {
            return rows;
        }
        // The requested range is a millisecond longer at either end, which a service may include.
        let requested = low.saturating_sub(1)..=high.saturating_add(1);
        let foreign = rows.iter().filter_map(|row| time_at(times, *row)).filter(|time| !requested.contains(time));
        self.drop_rows(
            foreign.count(),
            "The API returned records outside of the requested times: they were dropped, and it may not have applied the \
             filter",
        );
        let mut in_doubt = 0;
        rows.retain(|row| match time_at(times, *row) {
            Some(time) => (low..=high).contains(&time),
            None => {
                let place = self.undated.place(self.slice, columns, *row as usize);
                in_doubt += usize::from(place == Place::InDoubt);
                place == Place::Here
            }
        });
        self.drop_rows(
            in_doubt,
            "The API returned records without a time: they were dropped, since an earlier run or another partition may have \
             returned them; run a new query of the whole range",
        );
        rows
    }

    /// The rows of a slice of values whose values lie within the slice, and that the list itself did not return.
    fn rows_of_values(&self, columns: &Columns, mut rows: Vec<u32>) -> Vec<u32> {
        let Some(range) = self.query.slices().value_range(self.slice) else { return rows };
        let divider = self.query.endpoint().divider();
        let Some(column) = divider.and_then(|divider| columns.record().position(divider.column)) else { return rows };
        let top = self.top.unwrap_or(i64::MIN);
        rows.retain(|row| {
            let is_older = Rows::height(columns, *row as usize).is_some_and(|height| height <= top);
            is_older && columns.text(column, *row as usize).is_some_and(|value| range.contains(value))
        });
        rows
    }

    /// Logs of the requested transaction, each once.
    fn logs_of(&self, requested: &str, columns: &Columns) -> Selection {
        let record = columns.record();
        let Some(hash) = record.position("tx_id") else { return Selection::All };
        let Some(index) = record.position("log_index") else { return Selection::All };
        let mut kept = Vec::new();
        let mut seen = HashMap::new();
        let mut foreign = 0;
        for row in 0..columns.rows() {
            let tx_id = columns.text(hash, row).unwrap_or_default();
            // Nothing else was requested: a log that names no transaction is one of this.
            if !tx_id.is_empty() && meaning(tx_id) != meaning(requested) {
                foreign += 1;
                continue;
            }
            let first = columns.integer(index, row).map_or(row, |number| *seen.entry(number).or_insert(row));
            if first == row {
                kept.push(row as u32);
            } else {
                self.on_repeated(columns, first, row);
            }
        }
        self.drop_rows(
            foreign,
            "The API returned logs of other transactions than the requested one: they were dropped",
        );
        self.check_block(columns, &kept);
        if kept.len() == columns.rows() { Selection::All } else { Selection::Rows(kept) }
    }

    /// A transaction is in one block: logs of two are of two versions of it.
    fn check_block(&self, columns: &Columns, kept: &[u32]) {
        let hashes = columns.record().block().into_iter().flat_map(|index| {
            let texts = kept.iter().filter_map(move |row| columns.text(index, *row as usize));
            texts.filter(|text| !text.is_empty()).map(str::to_ascii_lowercase)
        });
        let heights = kept.iter().filter_map(|row| Rows::height(columns, *row as usize));
        if differ(hashes) || differ(heights) {
            self.report.add_reason("The API returned logs of one transaction in two blocks: it was replaced meanwhile");
        }
    }

    /// Counts a record that a response has twice; two versions of it are a reason.
    fn on_repeated(&self, columns: &Columns, first: usize, second: usize) {
        self.report.update(|report| report.duplicates_dropped += 1);
        if columns.slice(first, 1) != columns.slice(second, 1) {
            self.report.add_reason("The API returned two versions of a record: the first was kept");
        }
    }

    fn rows_in_requested_order(&self, requested: &[String], columns: &Columns) -> Selection {
        let Some(hash) = columns.record().position("tx_id") else { return Selection::All };
        let mut returned: HashMap<String, usize> = HashMap::new();
        for row in 0..columns.rows() {
            let key = meaning(columns.text(hash, row).unwrap_or_default());
            let first = *returned.entry(key).or_insert(row);
            if first != row {
                self.on_repeated(columns, first, row);
            }
        }
        let mut rows = Vec::new();
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for (index, hash) in (0..).zip(requested) {
            match returned.remove(&meaning(hash)) {
                Some(row) => {
                    rows.push(row as u32);
                    found.push(index);
                }
                None => missing.push(index),
            }
        }
        let foreign = returned.len();
        let transactions = counted(foreign as u64, "transaction");
        self.drop_rows(foreign, format!("The API returned {transactions} besides the requested ones"));
        self.report.add_missing(missing.iter().map(|index| requested[*index as usize].clone()).collect());
        Selection::Hashes { rows, found, missing }
    }
}

/// True if a page names another chain than the requested one.
pub(super) fn is_of_other_chain(query: &Query, page: &Page) -> bool {
    let mut names = [&page.paging.chain_short_name, &page.paging.chain_full_name].into_iter().flatten();
    page.paging.chain_short_name.is_some() && !names.any(|name| name.eq_ignore_ascii_case(query.chain()))
}

fn time_at(times: &TimestampMillisecondArray, row: u32) -> Option<i64> {
    let row = row as usize;
    if times.is_valid(row) { Some(times.value(row)) } else { None }
}

/// True if not all values are equal.
fn differ<T: PartialEq>(mut values: impl Iterator<Item = T>) -> bool {
    values.next().is_some_and(|first| values.any(|value| value != first))
}
