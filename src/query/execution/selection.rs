//! `Selection`: the rows of a response that belong to the result.

use std::collections::HashMap;

use crate::columns::{Column, Columns};
use crate::interface::{Kind, ResultLimit};
use crate::query::request::Query;
use crate::query::results::SharedReport;

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

pub(super) fn select_rows(query: &Query, report: &SharedReport, slice: u64, columns: &Columns) -> Selection {
    if let Some((low, high)) = query.slices().time_range(slice) {
        return rows_between(low, high, query.includes_undated(slice), columns);
    }
    if let Some(height) = query.slices().height(slice) {
        let heights = columns.record().position("height").map(|index| columns.column(index));
        if let Some(Column::Integer(heights)) = heights
            && heights.iter().flatten().any(|other| other != height)
        {
            report.add_reason("The API returned records of other blocks than the requested one");
        }
    }
    let requested = query.slices().hashes(slice);
    if requested.is_empty() || matches!(query.endpoint().limit, ResultLimit::Logs) {
        return Selection::All;
    }
    rows_in_requested_order(requested, report, columns)
}

fn rows_between(low: i64, high: i64, includes_undated: bool, columns: &Columns) -> Selection {
    let time = (0..columns.record().fields.len()).find(|index| columns.kind(*index) == Kind::Time);
    let Some(Column::Time(times)) = time.map(|index| columns.column(index)) else { return Selection::All };
    let kept: Vec<u32> = (0..columns.rows() as u32)
        .zip(times.iter())
        .filter(|(_, time)| time.map_or(includes_undated, |time| (low..=high).contains(&time)))
        .map(|(row, _)| row)
        .collect();
    if kept.len() == columns.rows() { Selection::All } else { Selection::Rows(kept) }
}

fn rows_in_requested_order(requested: &[String], report: &SharedReport, columns: &Columns) -> Selection {
    let Some(hash) = columns.record().position("tx_id") else { return Selection::All };
    let mut returned = HashMap::new();
    let mut repeated = 0;
    for row in 0..columns.rows() {
        let key = columns.text(hash, row).unwrap_or_default().to_ascii_lowercase();
        if returned.insert(key, row as u32).is_some() {
            repeated += 1;
        }
    }
    let (mut rows, mut found, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (index, hash) in (0..).zip(requested) {
        match returned.remove(&hash.to_ascii_lowercase()) {
            Some(row) => {
                rows.push(row);
                found.push(index);
            }
            None => missing.push(index),
        }
    }
    report.update(|report| report.duplicates_dropped += repeated);
    if !returned.is_empty() {
        report.add_reason(format!("The API returned {} transactions that were not requested", returned.len()));
    }
    report.add_missing(missing.iter().map(|index| requested[*index as usize].clone()).collect());
    Selection::Hashes { rows, found, missing }
}
