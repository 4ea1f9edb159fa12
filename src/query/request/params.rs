//! Validation of a call's arguments against the declaration, before anything is sent.

use chrono::{DateTime, Days, FixedOffset, NaiveDate, NaiveTime, SecondsFormat};
use serde::{Deserialize, Serialize};

use super::slices::{Filters, Slices, TimeRange, Unresolved, sent_time, split_by_year};
use crate::client::Error;
use crate::interface::{Endpoint, Number, Param, ParamKind, ParamRole, RangeEnd};
use crate::message::{Hint, Message};

/// An argument as the caller passed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arg {
    String(String),
    /// Digits of an integer, which may exceed 64 bits.
    Integer(String),
    Decimal(String),
    /// Unix microseconds.
    Time(i64),
    List(Vec<String>),
}

/// Options that every call takes besides its own parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Options {
    pub chain: Option<String>,
    pub page_size: Option<i64>,
    pub max_items: Option<i64>,
    /// Unix milliseconds between which a range of heights was found, both ends included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<TimeRange>,
    /// True for all but the first partition of a time range: records without a time belong to the first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclude_undated: bool,
}

/// A validated value.
#[derive(Serialize)]
#[serde(untagged)]
enum ParamValue {
    String(String),
    Number(i64),
    Amount(String),
    Hashes(Vec<String>),
}

const YEAR_10000: i64 = 253_402_300_800_000;

pub(super) fn validate(endpoint: &Endpoint, args: &[(String, Arg)]) -> Result<Filters, Error> {
    for (name, _) in args {
        if endpoint.param(name).is_none() {
            return Err(Error::parameter(name, format!("is not a parameter of {}()", endpoint.name)));
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
    build_slices(endpoint, values)
}

/// The validated arguments as JSON, by name: equal for arguments that mean the same.
pub(super) fn canonical(
    endpoint: &Endpoint,
    args: &[(String, Arg)],
) -> Result<impl Iterator<Item = (String, serde_json::Value)>, Error> {
    let mut canonical = Vec::new();
    for (name, arg) in args {
        let Some(param) = endpoint.param(name) else { continue };
        canonical.push((name.clone(), serde_json::json!(check(param, arg)?)));
    }
    Ok(canonical.into_iter())
}

/// A value of a parameter as it is sent.
pub fn sent_value(param: &Param, arg: &Arg) -> Result<String, Error> {
    Ok(match check(param, arg)? {
        ParamValue::String(text) | ParamValue::Amount(text) => text,
        ParamValue::Number(time) if param.kind == ParamKind::Time => {
            let is_start = matches!(param.role, ParamRole::RangeStart(..));
            sent_time(time, if is_start { RangeEnd::Lower } else { RangeEnd::Upper })
        }
        ParamValue::Number(number) => number.to_string(),
        ParamValue::Hashes(hashes) => hashes.join(","),
    })
}

/// The arguments for display, by name.
pub(super) fn display(endpoint: &Endpoint, args: &[(String, Arg)]) -> Vec<(&'static str, String)> {
    let given = args.iter().filter_map(|(name, arg)| endpoint.param(name).zip(Some(arg)));
    let shown = given.filter_map(|(param, arg)| {
        let shown = match arg {
            Arg::List(values) if param.selects_list() => format!("{} values", values.len()),
            arg => shown(param, &check(param, arg).ok()?),
        };
        Some((param.name, shown))
    });
    shown.collect()
}

fn shown(param: &Param, value: &ParamValue) -> String {
    match value {
        ParamValue::String(text) | ParamValue::Amount(text) => text.clone(),
        ParamValue::Number(time) if param.kind == ParamKind::Time => DateTime::from_timestamp_millis(*time)
            .map_or_else(|| time.to_string(), |time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
        ParamValue::Number(number) => number.to_string(),
        ParamValue::Hashes(hashes) => match hashes.as_slice() {
            [hash] => hash.clone(),
            _ => format!("{} hashes", hashes.len()),
        },
    }
}

fn check(param: &Param, arg: &Arg) -> Result<ParamValue, Error> {
    let reject = |problem: Message| Err(Error::parameter(param.name, problem));
    match (param.kind, arg) {
        (ParamKind::Text, Arg::String(text)) if text.is_empty() && param.required => {
            reject("is required and must not be empty".into())
        }
        (ParamKind::Text, Arg::String(text)) if text.is_empty() => {
            reject(Message::new("must not be empty").hint(Hint::Omit(param.name.into())))
        }
        (ParamKind::Text, Arg::String(text)) => match foreign_character(text) {
            Some(found) => reject(Message::new(format!("must be one address or hash; {found}"))),
            None => Ok(ParamValue::String(text.clone())),
        },
        (ParamKind::Text, _) => reject("must be a string".into()),
        (ParamKind::Height, Arg::Integer(digits) | Arg::String(digits)) => {
            match digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse()) {
                Some(Ok(height)) => Ok(ParamValue::Number(height)),
                _ => reject(format!("must be a block height, an integer from 0 to 2^63-1; got {digits:?}").into()),
            }
        }
        (ParamKind::Height, _) => reject("must be a block height, an integer from 0 to 2^63-1".into()),
        (ParamKind::Time, arg) => parse_time(param.name, arg).map(ParamValue::Number),
        (ParamKind::Amount { min }, Arg::Integer(text) | Arg::Decimal(text) | Arg::String(text)) => {
            match Number::parse(text).map(|number| (number, number.at_least(min))) {
                Some((number, true)) => Ok(ParamValue::Amount(number.plain())),
                Some((_, false)) => reject(format!("({text}) must be >= {min}").into()),
                None => reject(format!("must be a decimal number; got {text:?}").into()),
            }
        }
        (ParamKind::Amount { .. }, _) => reject("must be a decimal number".into()),
        (ParamKind::OneOf(choices), Arg::String(text)) if choices.contains(&text.as_str()) => {
            Ok(ParamValue::String(text.clone()))
        }
        (ParamKind::OneOf(choices), arg) => {
            let got = if let Arg::String(text) = arg { format!("; got {text:?}") } else { String::new() };
            reject(format!("must be one of {}{got}", choices.join(", ")).into())
        }
        (ParamKind::Hashes { .. }, Arg::String(hash)) => hashes(param, std::slice::from_ref(hash)),
        (ParamKind::Hashes { .. }, Arg::List(many)) => hashes(param, many),
        (ParamKind::Hashes { .. }, _) => reject("must be a transaction hash or a list of them".into()),
    }
}

/// The first character that no address or hash has: white space, a control or format character, or a comma. Such
/// characters come with copied text and are hard to see; a service that ignores them, or strips them, returns a result
/// that looks right.
fn foreign_character(text: &str) -> Option<String> {
    // Fillers are letters to Unicode, although they are not drawn.
    let is_filler = |c| matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}');
    // What Rust escapes apart from these is not drawn: control and format characters, and marks without a letter.
    let is_invisible = |c: char| !matches!(c, '"' | '\'' | '\\') && c.escape_debug().len() > 1;
    let found = text.chars().find(|c| *c == ',' || c.is_whitespace() || is_filler(*c) || is_invisible(*c))?;
    let name = match found {
        ',' => "a comma",
        '\u{feff}' => "a byte order mark",
        c if c.is_whitespace() => "white space",
        c if c.is_control() => "a control character",
        _ => "an invisible character",
    };
    Some(format!("got {text:?}, which has {name} (U+{:04X})", u32::from(found)))
}

/// Each hash once, in the requested order; letters of either case are the same hash.
fn hashes(param: &Param, given: &[String]) -> Result<ParamValue, Error> {
    let mut seen = std::collections::HashSet::new();
    let mut hashes = Vec::new();
    for (index, hash) in given.iter().enumerate() {
        let found = if hash.is_empty() { Some("got \"\"".to_owned()) } else { foreign_character(hash) };
        if let Some(found) = found {
            let problem = Message::new(format!("must be one transaction hash; {found}"));
            let problem = if hash.contains(',') { problem.hint(Hint::PassSeveral) } else { problem };
            return Err(Error::parameter(format!("{}[{index}]", param.name), problem));
        }
        if seen.insert(hash.to_ascii_lowercase()) {
            hashes.push(hash.clone());
        }
    }
    Ok(ParamValue::Hashes(hashes))
}

/// Unix milliseconds of an argument.
pub fn parse_time(name: &str, arg: &Arg) -> Result<i64, Error> {
    let problem = match instant(arg) {
        Ok(time) if (0..YEAR_10000).contains(&time) => return Ok(time),
        Ok(_) => "must be within the years 1970 to 9999",
        Err(problem) => problem,
    };
    let got = match arg {
        Arg::String(text) => format!("; got {text:?}"),
        Arg::Integer(digits) => format!("; got {digits}"),
        _ => String::new(),
    };
    Err(Error::parameter(name, format!("{problem}{got}")))
}

/// Unix milliseconds, of an instant or of text that says its offset from UTC.
fn instant(arg: &Arg) -> Result<i64, &'static str> {
    const FORM: &str =
        "must be an aware datetime, an ISO 8601 string with a UTC offset, or Unix seconds or milliseconds";
    match arg {
        Arg::Time(microseconds) => Ok(microseconds.div_euclid(1_000)),
        Arg::Integer(digits) => epoch(digits.parse().map_err(|_| FORM)?),
        Arg::String(text) => {
            if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
                return epoch(text.parse().map_err(|_| FORM)?);
            }
            iso_8601(text).map(|time| time.timestamp_millis()).ok_or_else(|| {
                let date = text.len() >= 10 && text.is_ascii() && text.as_bytes()[4] == b'-';
                let is_naive = date && !text[10..].contains(['Z', 'z', '+', '-']);
                if is_naive { "must have a UTC offset: Z, or one such as +02:00" } else { FORM }
            })
        }
        _ => Err(FORM),
    }
}

/// A date and time with an offset. The date may be one of a week, and 24:00 is the end of its day.
fn iso_8601(text: &str) -> Option<DateTime<FixedOffset>> {
    let (date, time) = text.split_at_checked(text.find(['T', 't', ' '])?)?;
    let weekday = ["%G-W%V-%u", "%GW%V%u"].iter().find_map(|form| NaiveDate::parse_from_str(date, form).ok());
    let date = weekday.map_or_else(|| date.to_owned(), |day| day.format("%Y-%m-%d").to_string());
    let hour = time.get(1..3)?;
    let text = format!("{date}{}{}{}", &time[..1], if hour == "24" { "00" } else { hour }, &time[3..]);
    let parsed = DateTime::parse_from_rfc3339(&text)
        .or_else(|_| DateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M%:z"))
        .or_else(|_| DateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S%.f%z"))
        .or_else(|_| DateTime::parse_from_str(&text.replace('Z', "+00:00"), "%Y-%m-%dT%H:%M%:z"))
        .ok()?;
    match hour {
        "24" if parsed.time() != NaiveTime::MIN => None,
        "24" => parsed.checked_add_days(Days::new(1)),
        _ => Some(parsed),
    }
}

/// Unix milliseconds of a number: seconds under 100,000,000,000, as in responses, else milliseconds. Small numbers are
/// rejected: as seconds they lie before March 1973, and are more likely a year or a date without separators.
fn epoch(number: i64) -> Result<i64, &'static str> {
    match number {
        1..100_000_000 => Err("is too small for epoch seconds; write a date as ISO 8601, such as 2024-01-31T00:00Z"),
        100_000_000..100_000_000_000 => Ok(number * 1_000),
        _ => Ok(number),
    }
}

/// Sorts validated values into filters sent with every request and the slices that the query is split into.
fn build_slices(endpoint: &Endpoint, values: Vec<(&'static Param, ParamValue)>) -> Result<Filters, Error> {
    let mut filters = Filters { sent: Vec::new(), slices: Slices::One, unresolved: unresolved(endpoint, &values)? };
    check_ranges(&values)?;
    let (mut times, mut span) = (None, None);
    for (param, value) in values {
        match (param.role, value) {
            (ParamRole::ExpandedRange(wire, _), ParamValue::Number(height)) => {
                let (_, low, high) = span.get_or_insert((wire, None, None));
                *(if param.range_end() == Some(RangeEnd::Lower) { low } else { high }) = Some(height);
            }
            (ParamRole::TimeOfHeight(..), _) => {}
            (role, ParamValue::Number(time)) if param.kind == ParamKind::Time => {
                let (low, high) = times.get_or_insert((None, None));
                *(if matches!(role, ParamRole::RangeStart(..)) { low } else { high }) = Some(time);
            }
            (_, ParamValue::Hashes(hashes)) => {
                let ParamKind::Hashes { per_request } = param.kind else { continue };
                let wire = param.wire().unwrap_or_default();
                let batches = hashes.chunks(per_request).map(<[String]>::to_vec).collect();
                filters.slices = Slices::Hashes { wire, batches };
            }
            (_, ParamValue::String(text) | ParamValue::Amount(text)) => {
                filters.sent.push((param.wire().unwrap_or_default(), text))
            }
            (_, ParamValue::Number(number)) => {
                filters.sent.push((param.wire().unwrap_or_default(), number.to_string()))
            }
        }
    }
    if let Some((low, high)) = times {
        filters.slices = Slices::Times(split_by_year(low, high));
    }
    if let Some((wire, low, high)) = span {
        if let Some((other, _)) = filters.sent.first() {
            let name = endpoint.params.iter().find(|param| param.wire() == Some(other)).map_or(*other, |p| p.name);
            let problem = Message::new("cannot be combined with ");
            return Err(Error::parameter(
                name,
                problem.parameter("start_height").text(" and ").parameter("end_height"),
            ));
        }
        match (low, high, filters.unresolved) {
            (_, _, Some(_)) => {}
            (Some(low), Some(high), None) => filters.slices = Slices::Heights { wire, low, high },
            (Some(low), None, None) => {
                filters.unresolved =
                    Some(Unresolved { start_height: Some(low), is_expanded: true, ..Unresolved::default() });
            }
            (None, ..) => {
                return Err(Error::parameter(
                    "start_height",
                    Message::new("is required with ").parameter("end_height"),
                ));
            }
        }
    }
    Ok(filters)
}

/// The range of times, where heights are to be found for it.
fn unresolved(endpoint: &Endpoint, values: &[(&'static Param, ParamValue)]) -> Result<Option<Unresolved>, Error> {
    let given = |name: &str| {
        values.iter().find_map(|(param, value)| match value {
            ParamValue::Number(number) if param.name == name => Some(*number),
            _ => None,
        })
    };
    let time_of_height = |name| {
        given(name).filter(|_| matches!(endpoint.param(name), Some(Param { role: ParamRole::TimeOfHeight(..), .. })))
    };
    let (start_time, end_time) = (time_of_height("start_time"), time_of_height("end_time"));
    if start_time.is_none() && end_time.is_none() {
        return Ok(None);
    }
    let (start_height, end_height) = (given("start_height"), given("end_height"));
    let combined = |name: &'static str, other: Message| Err(Error::parameter(name, other));
    if start_time.and(start_height).is_some() {
        return combined("start_height", Message::new("cannot be combined with ").parameter("start_time"));
    }
    if end_time.and(end_height).is_some() {
        return combined("end_height", Message::new("cannot be combined with ").parameter("end_time"));
    }
    if let Some((param, _)) = values.iter().find(|(param, _)| matches!(param.name, "height" | "block_hash")) {
        let other =
            Message::new("cannot be combined with ").parameter("start_time").text(" and ").parameter("end_time");
        return combined(param.name, other);
    }
    let is_expanded = endpoint.params.iter().any(|param| matches!(param.role, ParamRole::ExpandedRange(..)));
    if is_expanded && start_time.is_none() && start_height.is_none() {
        return Err(Error::parameter("start_time", Message::new("is required with ").parameter("end_time")));
    }
    Ok(Some(Unresolved { start_time, end_time, start_height, end_height, is_expanded }))
}

/// A range that begins after its end would come back empty, which is hardly what was meant.
fn check_ranges(values: &[(&'static Param, ParamValue)]) -> Result<(), Error> {
    for (param, low) in values {
        let (ParamRole::RangeStart(_, partner)
        | ParamRole::ExpandedRange(_, partner)
        | ParamRole::TimeOfHeight(_, partner)) = param.role
        else {
            continue;
        };
        let Some((_, high)) = values.iter().find(|(other, _)| other.name == partner) else { continue };
        let reversed = match (low, high) {
            (ParamValue::Number(low), ParamValue::Number(high)) => {
                low > high && param.range_end() == Some(RangeEnd::Lower)
            }
            (ParamValue::Amount(low), ParamValue::Amount(high)) => {
                Number::parse(low).zip(Number::parse(high)).is_some_and(|(low, high)| high.is_less_than(&low))
            }
            _ => false,
        };
        if reversed {
            let (low, high) = (shown(param, low), shown(param, high));
            let problem = Message::new(format!("({low}) must be <= ")).parameter(partner).text(format!(" ({high})"));
            return Err(Error::parameter(param.name, problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::endpoint;

    fn rejected(call: &str, args: &[(&str, Arg)]) -> String {
        let args: Vec<_> = args.iter().map(|(name, arg)| ((*name).to_owned(), arg.clone())).collect();
        validate(endpoint(call).unwrap(), &args).map(|_| ()).unwrap_err().to_string()
    }

    fn text(text: &str) -> Arg {
        Arg::String(text.into())
    }

    #[test]
    fn times_of_iso_8601_are_instants() {
        let millis = |given: &str| parse_time("time", &text(given)).map_err(|error| error.to_string());
        for (given, same) in [
            ("2026-01-01T24:00:00Z", "2026-01-02T00:00Z"),
            ("2024-02-29T24:00+02:00", "2024-03-01T00:00+02:00"),
            ("2025-12-31T24:00:00.000Z", "2026-01-01T00:00Z"),
            ("2026-W01-1T00:00Z", "2025-12-29T00:00Z"),
            ("2020-W53-7T12:30:15.5-05:00", "2021-01-03T12:30:15.5-05:00"),
            ("2026W011T24:00Z", "2025-12-30T00:00Z"),
        ] {
            assert_eq!(millis(given), millis(same), "{given}");
            assert!(millis(given).is_ok(), "{given}");
        }
        for wrong in [
            "2026-01-01T24:01Z",
            "2026-01-01T24:00:00.001Z",
            "2026-W54-1T00:00Z",
            "2026-W01-8T00:00Z",
            "2026-13-01T00:00Z",
            "2026-01-01T25:00Z",
            "TZ",
            "2026-01-01T\u{e9}Z",
        ] {
            assert!(millis(wrong).unwrap_err().contains("must be an aware datetime, an ISO 8601 string"), "{wrong}");
        }
        assert!(millis("2026-01-01T24:00").unwrap_err().contains("must have a UTC offset"));
    }

    #[test]
    fn errors_name_the_parameter() {
        for (call, args, expected) in [
            ("token_transfers", vec![], "token_contract_address is required"),
            (
                "tokens",
                vec![("protocol_type", text("ERC20"))],
                "protocol_type must be one of token_20, token_721, token_1155, token_10; got \"ERC20\"",
            ),
            ("tokens", vec![("start_time", text("2024-01-01"))], "start_time must have a UTC offset"),
            ("tokens", vec![("start_time", text("soon"))], "start_time must be an aware datetime"),
            ("large_transactions", vec![("min_amount", text("99.99"))], "min_amount (99.99) must be >= 100"),
            (
                "large_transactions",
                vec![("min_amount", text("NaN"))],
                "min_amount must be a decimal number; got \"NaN\"",
            ),
            (
                "blocks",
                vec![("height", Arg::Integer("-1".into()))],
                "height must be a block height, an integer from 0 to 2^63-1; got \"-1\"",
            ),
            ("blocks", vec![("hight", Arg::Integer("1".into()))], "hight is not a parameter of blocks()"),
            (
                "logs",
                vec![("tx_ids", text("0x1,0x2"))],
                "tx_ids[0] must be one transaction hash; got \"0x1,0x2\", which has a comma (U+002C); pass several as a list",
            ),
            (
                "transactions",
                vec![("end_height", Arg::Integer("1".into()))],
                "start_height is required with end_height",
            ),
            ("transactions", vec![("end_time", text("2024-01-01T00:00Z"))], "start_time is required with end_time"),
            (
                "transactions",
                vec![("start_time", text("2024-01-01T00:00Z")), ("start_height", Arg::Integer("1".into()))],
                "start_height cannot be combined with start_time",
            ),
            (
                "address_transactions",
                vec![("address", text("0x1")), ("start_time", text("1700000001")), ("end_time", text("1700000000"))],
                "start_time (2023-11-14T22:13:21Z) must be <= end_time (2023-11-14T22:13:20Z)",
            ),
            (
                "cross_chain_transactions",
                vec![("start_height", Arg::Integer("2".into())), ("end_height", Arg::Integer("1".into()))],
                "start_height (2) must be <= end_height (1)",
            ),
        ] {
            let message = rejected(call, &args);
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn times_are_read_in_every_format() {
        let expected = Ok(1_700_000_000_123);
        for arg in [
            Arg::Time(1_700_000_000_123_456),
            Arg::Integer("1700000000123".into()),
            text("1700000000123"),
            text("2023-11-14T22:13:20.123Z"),
            text("2023-11-14T23:13:20.123+01:00"),
            text("2023-11-14 22:13:20.123+00:00"),
        ] {
            assert_eq!(instant(&arg), expected, "{arg:?}");
        }
        assert_eq!(instant(&text("2023-11-14T22:13Z")), Ok(1_699_999_980_000));
        assert_eq!(instant(&text("1700000000")), Ok(1_700_000_000_000));
        assert_eq!(instant(&Arg::Integer("99999999999".into())), Ok(99_999_999_999_000));
        assert_eq!(instant(&Arg::Integer("100000000000".into())), Ok(100_000_000_000));
        assert_eq!(instant(&Arg::Integer("0".into())), Ok(0));
        for small in ["2024", "20240131", "99999999"] {
            assert!(instant(&text(small)).unwrap_err().contains("ISO 8601"), "{small}");
        }
    }
}
