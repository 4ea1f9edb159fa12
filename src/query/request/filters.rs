//! `Filters`: what a validated call sends with every request, and the slices that it is split into.

use super::slices::{Slices, TimeRange, split_by_year};
use super::values::{CheckedValue, shown};
use crate::client::Error;
use crate::interface::{Endpoint, Number, Param, ParamKind, ParamRole, RangeEnd};
use crate::message::Message;

/// Filters and slices of a validated call.
#[derive(Clone, Debug)]
pub(super) struct Filters {
    /// Sent with every request.
    pub sent: Vec<(&'static str, String)>,
    pub slices: Slices,
    pub unresolved: Option<Unresolved>,
}

/// A range that becomes one of heights when a run starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unresolved {
    /// Unix milliseconds, both ends included.
    pub start_time: Option<i64>,
    pub end_time: Option<i64>,
    pub start_height: Option<i64>,
    pub end_height: Option<i64>,
    /// True if the range is read height by height, and so ends at the newest block unless a time is given.
    pub is_expanded: bool,
}

impl Filters {
    /// Sorts validated values into filters sent with every request and the slices that the query is split into.
    pub fn new(endpoint: &Endpoint, values: Vec<(&'static Param, CheckedValue)>) -> Result<Self, Error> {
        let mut filters = Self { sent: Vec::new(), slices: Slices::One, unresolved: unresolved(endpoint, &values)? };
        check_ranges(&values)?;
        check_height(&values)?;
        let mut times: Option<TimeRange> = None;
        let mut heights: Option<ExpandedRange> = None;
        for (param, value) in values {
            match (param.role, value) {
                (ParamRole::ExpandedRange(wire, _), CheckedValue::Number(height)) => {
                    let range = heights.get_or_insert(ExpandedRange { wire, low: None, high: None });
                    let is_lower = param.range_end() == Some(RangeEnd::Lower);
                    *(if is_lower { &mut range.low } else { &mut range.high }) = Some(height);
                }
                // Part of `unresolved`.
                (ParamRole::TimeOfHeight(..), _) => {}
                (role, CheckedValue::Number(time)) if param.kind == ParamKind::Time => {
                    let (low, high) = times.get_or_insert((None, None));
                    *(if matches!(role, ParamRole::RangeStart(..)) { low } else { high }) = Some(time);
                }
                (_, CheckedValue::Hashes(hashes)) => {
                    let ParamKind::Hashes { per_request } = param.kind else { continue };
                    let wire = param.wire().unwrap_or_default();
                    let batches = hashes.chunks(per_request).map(<[String]>::to_vec).collect();
                    filters.slices = Slices::Hashes { wire, batches };
                }
                (_, CheckedValue::String(text) | CheckedValue::Amount(text)) => {
                    filters.sent.push((param.wire().unwrap_or_default(), text))
                }
                (_, CheckedValue::Number(number)) => {
                    filters.sent.push((param.wire().unwrap_or_default(), number.to_string()))
                }
            }
        }
        if let Some((low, high)) = times {
            filters.slices = Slices::Times(split_by_year(low, high));
        }
        if let Some(range) = heights {
            filters.expand(endpoint, range)?;
        }
        Ok(filters)
    }

    /// Splits the query by the heights of a range, or leaves that to the run where an end of it is not known yet.
    fn expand(&mut self, endpoint: &Endpoint, range: ExpandedRange) -> Result<(), Error> {
        // A parameter that selects records in all blocks, or one block, is a list of its own.
        if let Some((wire, _)) = self.sent.first() {
            let param = endpoint.params.iter().find(|param| param.wire() == Some(wire));
            return Err(combined(param.map_or(*wire, |param| param.name), "start_height", Some("end_height")));
        }
        if self.unresolved.is_some() {
            return Ok(());
        }
        let Some(low) = range.low else {
            let problem = Message::new("is required with ").parameter("end_height");
            return Err(Error::parameter("start_height", problem));
        };
        match range.high {
            Some(high) => self.slices = Slices::Heights { wire: range.wire, low, high },
            None => {
                let unresolved = Unresolved { start_height: Some(low), is_expanded: true, ..Unresolved::default() };
                self.unresolved = Some(unresolved);
            }
        }
        Ok(())
    }
}

/// A range of heights that is read height by height, by the parameter `wire`.
struct ExpandedRange {
    wire: &'static str,
    low: Option<i64>,
    high: Option<i64>,
}

/// The range of times, where heights are to be found for it.
fn unresolved(endpoint: &Endpoint, values: &[(&'static Param, CheckedValue)]) -> Result<Option<Unresolved>, Error> {
    let start_time = time_of_height("start_time", endpoint, values);
    let end_time = time_of_height("end_time", endpoint, values);
    if start_time.is_none() && end_time.is_none() {
        return Ok(None);
    }
    let start_height = number("start_height", values);
    let end_height = number("end_height", values);
    if start_time.and(start_height).is_some() {
        return Err(combined("start_height", "start_time", None));
    }
    if end_time.and(end_height).is_some() {
        return Err(combined("end_height", "end_time", None));
    }
    if let Some((param, _)) = values.iter().find(|(param, _)| matches!(param.name, "height" | "block_hash")) {
        return Err(combined(param.name, "start_time", Some("end_time")));
    }
    let is_expanded = endpoint.params.iter().any(|param| matches!(param.role, ParamRole::ExpandedRange(..)));
    if is_expanded && start_time.is_none() && start_height.is_none() {
        return Err(Error::parameter("start_time", Message::new("is required with ").parameter("end_time")));
    }
    Ok(Some(Unresolved { start_time, end_time, start_height, end_height, is_expanded }))
}

/// Value of a parameter that is a number.
fn number(name: &str, values: &[(&'static Param, CheckedValue)]) -> Option<i64> {
    values.iter().find_map(|(param, value)| match value {
        CheckedValue::Number(number) if param.name == name => Some(*number),
        _ => None,
    })
}

/// Time for which a height is to be found.
fn time_of_height(name: &str, endpoint: &Endpoint, values: &[(&'static Param, CheckedValue)]) -> Option<i64> {
    match endpoint.param(name)?.role {
        ParamRole::TimeOfHeight(..) => number(name, values),
        _ => None,
    }
}

fn combined(name: &str, other: &'static str, another: Option<&'static str>) -> Error {
    let problem = Message::new("cannot be combined with ").parameter(other);
    match another {
        Some(another) => Error::parameter(name, problem.text(" and ").parameter(another)),
        None => Error::parameter(name, problem),
    }
}

/// A range that begins after its end would come back empty, which is hardly what was meant.
fn check_ranges(values: &[(&'static Param, CheckedValue)]) -> Result<(), Error> {
    for (param, low) in values {
        let (ParamRole::RangeStart(_, partner)
        | ParamRole::ExpandedRange(_, partner)
        | ParamRole::TimeOfHeight(_, partner)) = param.role
        else {
            continue;
        };
        let Some((_, high)) = values.iter().find(|(other, _)| other.name == partner) else { continue };
        let reversed = match (low, high) {
            (CheckedValue::Number(low), CheckedValue::Number(high)) if param.range_end() == Some(RangeEnd::Lower) => {
                // A range between two milliseconds begins at the second one.
                *low > high + i64::from(param.kind == ParamKind::Time)
            }
            (CheckedValue::Amount(low), CheckedValue::Amount(high)) => {
                Number::parse(low).zip(Number::parse(high)).is_some_and(|(low, high)| high.is_less_than(&low))
            }
            _ => false,
        };
        if reversed {
            let low = shown(param, low);
            let high = shown(param, high);
            let problem = Message::new(format!("({low}) must be <= ")).parameter(partner).text(format!(" ({high})"));
            return Err(Error::parameter(param.name, problem));
        }
    }
    Ok(())
}

/// A height outside a range that is sent with it would come back empty.
fn check_height(values: &[(&'static Param, CheckedValue)]) -> Result<(), Error> {
    let Some(height) = number("height", values) else { return Ok(()) };
    for (param, value) in values {
        // A range that is read height by height cannot be combined with a height at all.
        let (ParamKind::Height, ParamRole::RangeStart(..) | ParamRole::Plain(_), CheckedValue::Number(bound)) =
            (param.kind, param.role, value)
        else {
            continue;
        };
        let problem = match param.range_end() {
            Some(RangeEnd::Lower) if height < *bound => format!("({height}) must be >= "),
            Some(RangeEnd::Upper) if height > *bound => format!("({height}) must be <= "),
            _ => continue,
        };
        return Err(Error::parameter(
            "height",
            Message::new(problem).parameter(param.name).text(format!(" ({bound})")),
        ));
    }
    Ok(())
}
