//! A call's arguments, checked against the declaration before anything is sent.

use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};

use super::plan::{Filters, Windows};
use crate::client::Error;
use crate::interface::{Endpoint, Number, Param, ParamKind, Role};

/// An argument as a caller gave it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Arg {
    Text(String),
    /// Whole numbers, by their digits, which may be too many for 64 bits.
    Integer(String),
    Decimal(String),
    /// An instant in Unix microseconds.
    Instant(i64),
    Many(Vec<String>),
}

/// What every call takes besides its own parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Options {
    pub chain: Option<String>,
    pub page_size: Option<i64>,
    pub max_items: Option<i64>,
    /// Whether this is a later part of a query by time, and so without the records that have none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub later: bool,
}

/// A checked value.
#[derive(Serialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Number(i64),
    Amount(String),
    Hashes(Vec<String>),
}

/// A year that holds in every calendar, less the millisecond that is added at either end.
const YEAR: i64 = 365 * 86_400_000 - 2;

const YEAR_10000: i64 = 253_402_300_800_000;

pub(super) fn bind(endpoint: &Endpoint, args: &[(String, Arg)]) -> Result<Filters, Error> {
    for (name, _) in args {
        if endpoint.param(name).is_none() {
            return Err(Error::parameter(name, format!("is no parameter of {}", endpoint.name)));
        }
    }
    let given = |name: &str| args.iter().find(|(other, _)| other == name).map(|(_, arg)| arg);
    let mut values = Vec::new();
    for param in endpoint.params {
        match given(param.name) {
            Some(arg) => values.push((param, check(param, arg)?)),
            None if param.required => return Err(Error::parameter(param.name, "is required")),
            None => {}
        }
    }
    arrange(endpoint, values)
}

/// The arguments as they are understood, by name.
pub(super) fn stated(
    endpoint: &Endpoint,
    args: &[(String, Arg)],
) -> Result<impl Iterator<Item = (String, serde_json::Value)>, Error> {
    let mut stated = Vec::new();
    for (name, arg) in args {
        let Some(param) = endpoint.param(name) else { continue };
        stated.push((name.clone(), serde_json::json!(check(param, arg)?)));
    }
    Ok(stated.into_iter())
}

/// The arguments as people read them.
pub(super) fn described(endpoint: &Endpoint, args: &[(String, Arg)]) -> Vec<(&'static str, String)> {
    let given = args.iter().filter_map(|(name, arg)| endpoint.param(name).zip(Some(arg)));
    let checked = given.filter_map(|(param, arg)| Some((param, check(param, arg).ok()?)));
    checked.map(|(param, value)| (param.name, shown(param, &value))).collect()
}

fn shown(param: &Param, value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Amount(text) => text.clone(),
        Value::Number(time) if param.kind == ParamKind::Time => DateTime::from_timestamp_millis(*time)
            .map_or_else(|| time.to_string(), |time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
        Value::Number(number) => number.to_string(),
        Value::Hashes(hashes) => match hashes.as_slice() {
            [hash] => hash.clone(),
            _ => format!("{} hashes", hashes.len()),
        },
    }
}

fn check(param: &Param, arg: &Arg) -> Result<Value, Error> {
    let refuse = |problem: String| Err(Error::parameter(param.name, problem));
    match (param.kind, arg) {
        (ParamKind::Text, Arg::Text(text)) if text.is_empty() && param.required => {
            refuse("is empty, and is required".into())
        }
        (ParamKind::Text, Arg::Text(text)) if text.is_empty() => refuse("is empty; leave it out instead".into()),
        (ParamKind::Text, Arg::Text(text)) => Ok(Value::Text(text.clone())),
        (ParamKind::Text, _) => refuse("is not text".into()),
        (ParamKind::Height, Arg::Integer(digits) | Arg::Text(digits)) => {
            match digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse()) {
                Some(Ok(height)) => Ok(Value::Number(height)),
                _ => refuse(format!("{digits:?} is not a block height, a whole number from 0 to 2^63-1")),
            }
        }
        (ParamKind::Height, _) => refuse("is not a block height, a whole number".into()),
        (ParamKind::Time, arg) => match instant(arg) {
            Ok(time) if (0..YEAR_10000).contains(&time) => Ok(Value::Number(time)),
            Ok(_) => refuse("is not within the years 1970 to 9999".into()),
            Err(problem) => refuse(problem.into()),
        },
        (ParamKind::Amount { min }, Arg::Integer(text) | Arg::Decimal(text) | Arg::Text(text)) => {
            match Number::parse(text).map(|number| (number, number.at_least(min))) {
                Some((number, true)) => Ok(Value::Amount(number.plain())),
                Some((_, false)) => refuse(format!("{text} is under {min}, the least that the service takes")),
                None => refuse(format!("{text:?} is not a decimal number")),
            }
        }
        (ParamKind::Amount { .. }, _) => refuse("is not a decimal number".into()),
        (ParamKind::OneOf(choices), Arg::Text(text)) if choices.contains(&text.as_str()) => {
            Ok(Value::Text(text.clone()))
        }
        (ParamKind::OneOf(choices), arg) => {
            let shown = if let Arg::Text(text) = arg { format!("{text:?}") } else { "this value".into() };
            refuse(format!("{shown} is none of {}", choices.join(", ")))
        }
        (ParamKind::Hashes { .. }, Arg::Text(hash)) => hashes(param, std::slice::from_ref(hash)),
        (ParamKind::Hashes { .. }, Arg::Many(many)) => hashes(param, many),
        (ParamKind::Hashes { .. }, _) => refuse("is neither a hash nor a list of hashes".into()),
    }
}

/// Each hash once, in the order asked; letters of either case are the same hash.
fn hashes(param: &Param, given: &[String]) -> Result<Value, Error> {
    let mut seen = std::collections::HashSet::new();
    let mut hashes = Vec::new();
    for (index, hash) in given.iter().enumerate() {
        if hash.is_empty() || hash.contains(|c: char| c == ',' || c.is_whitespace()) {
            let problem = format!("{hash:?} is not a transaction hash; pass several as a list");
            return Err(Error::parameter(format!("{}[{index}]", param.name), problem));
        }
        if seen.insert(hash.to_ascii_lowercase()) {
            hashes.push(hash.clone());
        }
    }
    Ok(Value::Hashes(hashes))
}

/// Unix milliseconds, of an instant or of text that says its offset from UTC.
fn instant(arg: &Arg) -> Result<i64, &'static str> {
    const FORM: &str = "is not a time; use an aware datetime, ISO 8601 text with its UTC offset, or epoch milliseconds";
    match arg {
        Arg::Instant(microseconds) => Ok(microseconds.div_euclid(1_000)),
        Arg::Integer(digits) => digits.parse().map_err(|_| FORM),
        Arg::Text(text) => {
            if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
                return text.parse().map_err(|_| FORM);
            }
            let aware = DateTime::parse_from_rfc3339(text)
                .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M%:z"))
                .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z"))
                .or_else(|_| DateTime::parse_from_str(&text.replace('Z', "+00:00"), "%Y-%m-%dT%H:%M%:z"));
            aware.map(|time| time.timestamp_millis()).map_err(|_| {
                let naive = text.len() >= 10 && text.is_ascii() && text.as_bytes()[4] == b'-';
                if naive { "has no UTC offset; end it with Z or an offset such as +02:00" } else { FORM }
            })
        }
        _ => Err(FORM),
    }
}

/// Puts checked values where they go: sent as they are, or spread over windows.
fn arrange(endpoint: &Endpoint, values: Vec<(&'static Param, Value)>) -> Result<Filters, Error> {
    let mut filters = Filters { sent: Vec::new(), windows: Windows::One };
    check_ranges(&values)?;
    let (mut times, mut span) = (None, None);
    for (param, value) in values {
        match (param.role, value) {
            (Role::Spans(wire, _), Value::Number(height)) => {
                let (_, low, high) = span.get_or_insert((wire, None, None));
                *(if param.is_low_end() == Some(true) { low } else { high }) = Some(height);
            }
            (role, Value::Number(time)) if param.kind == ParamKind::Time => {
                let (low, high) = times.get_or_insert((None, None));
                *(if matches!(role, Role::From(..)) { low } else { high }) = Some(time);
            }
            (_, Value::Hashes(hashes)) => {
                let ParamKind::Hashes { per_request } = param.kind else { continue };
                let wire = param.wire().unwrap_or_default();
                let chunks = hashes.chunks(per_request).map(<[String]>::to_vec).collect();
                filters.windows = Windows::Hashes { wire, chunks };
            }
            (_, Value::Text(text) | Value::Amount(text)) => filters.sent.push((param.wire().unwrap_or_default(), text)),
            (_, Value::Number(number)) => filters.sent.push((param.wire().unwrap_or_default(), number.to_string())),
        }
    }
    if let Some((low, high)) = times {
        filters.windows = Windows::Times(years(low, high));
    }
    if let Some((wire, low, high)) = span {
        let (Some(low), Some(high)) = (low, high) else {
            let (missing, other) =
                if low.is_none() { ("start_height", "end_height") } else { ("end_height", "start_height") };
            return Err(Error::parameter(missing, format!("is required for a range, of which {other} is given")));
        };
        if let Some((other, _)) = filters.sent.first() {
            let name = endpoint.params.iter().find(|param| param.wire() == Some(other)).map_or(*other, |p| p.name);
            return Err(Error::parameter(name, "does not go with start_height and end_height; give one or the other"));
        }
        filters.windows = Windows::Heights { wire, low, high };
    }
    Ok(filters)
}

/// A range that begins after its end would come back empty, which is hardly what was meant.
fn check_ranges(values: &[(&'static Param, Value)]) -> Result<(), Error> {
    for (param, low) in values {
        let (Role::From(_, partner) | Role::Spans(_, partner)) = param.role else { continue };
        let Some((_, high)) = values.iter().find(|(other, _)| other.name == partner) else { continue };
        let reversed = match (low, high) {
            (Value::Number(low), Value::Number(high)) => low > high && param.is_low_end() == Some(true),
            (Value::Amount(low), Value::Amount(high)) => {
                Number::parse(low).zip(Number::parse(high)).is_some_and(|(low, high)| high.is_less_than(&low))
            }
            _ => false,
        };
        if reversed {
            let (low, high) = (shown(param, low), shown(param, high));
            return Err(Error::parameter(param.name, format!("is above {partner}: {low} to {high}; exchange them")));
        }
    }
    Ok(())
}

/// The service takes at most a year at a time; both ends belong to the range.
fn years(low: Option<i64>, high: Option<i64>) -> Vec<(Option<i64>, Option<i64>)> {
    let (Some(start), Some(end)) = (low, high) else { return vec![(low, high)] };
    let mut windows = Vec::new();
    let mut from = start;
    loop {
        let to = end.min(from.saturating_add(YEAR));
        windows.push((Some(from), Some(to)));
        if to == end {
            return windows;
        }
        from = to + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::endpoint;

    fn refused(call: &str, args: &[(&str, Arg)]) -> String {
        let args: Vec<_> = args.iter().map(|(name, arg)| ((*name).to_owned(), arg.clone())).collect();
        bind(endpoint(call).unwrap(), &args).map(|_| ()).unwrap_err().to_string()
    }

    fn text(text: &str) -> Arg {
        Arg::Text(text.into())
    }

    #[test]
    fn refusals_name_the_parameter() {
        for (call, args, expected) in [
            ("token_transfers", vec![], "token_contract_address: is required"),
            ("tokens", vec![("protocol_type", text("ERC20"))], "protocol_type: \"ERC20\" is none of token_20"),
            ("tokens", vec![("start_time", text("2024-01-01"))], "start_time: has no UTC offset"),
            ("tokens", vec![("start_time", text("soon"))], "start_time: is not a time"),
            ("large_transactions", vec![("min_amount", text("99.99"))], "min_amount: 99.99 is under 100"),
            ("large_transactions", vec![("min_amount", text("NaN"))], "min_amount: \"NaN\" is not a decimal"),
            ("blocks", vec![("height", Arg::Integer("-1".into()))], "height: \"-1\" is not a block height"),
            ("blocks", vec![("hight", Arg::Integer("1".into()))], "hight: is no parameter of blocks"),
            ("logs", vec![("tx_ids", text("0x1,0x2"))], "tx_ids[0]: \"0x1,0x2\" is not a transaction hash"),
            ("transactions", vec![("start_height", Arg::Integer("1".into()))], "end_height: is required"),
            (
                "cross_chain_transactions",
                vec![("start_height", Arg::Integer("2".into())), ("end_height", Arg::Integer("1".into()))],
                "start_height: is above end_height",
            ),
        ] {
            let message = refused(call, &args);
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn more_than_a_year_is_asked_year_by_year_without_gap_or_overlap() {
        let end = 4 * 365 * 86_400_000;
        let windows = years(Some(0), Some(end));
        assert_eq!(windows.len(), 5);
        assert_eq!((windows[0].0, windows[4].1), (Some(0), Some(end)));
        for pair in windows.windows(2) {
            assert_eq!(pair[0].1.unwrap() + 1, pair[1].0.unwrap());
        }
        assert_eq!(years(None, Some(5)), [(None, Some(5))]);
    }

    #[test]
    fn times_are_read_in_every_form() {
        let expected = Ok(1_700_000_000_123);
        for arg in [
            Arg::Instant(1_700_000_000_123_456),
            Arg::Integer("1700000000123".into()),
            text("1700000000123"),
            text("2023-11-14T22:13:20.123Z"),
            text("2023-11-14T23:13:20.123+01:00"),
            text("2023-11-14 22:13:20.123+00:00"),
        ] {
            assert_eq!(instant(&arg), expected, "{arg:?}");
        }
        assert_eq!(instant(&text("2023-11-14T22:13Z")), Ok(1_699_999_980_000));
    }
}
