//! Instants as callers write them.

use chrono::{DateTime, Days, FixedOffset, NaiveDate, NaiveTime};

use super::args::Arg;
use crate::client::Error;
use crate::interface::RangeEnd;
use crate::message::{quoted, shortened};

/// Times end before this year: ISO 8601 has four digits for a year.
const YEAR_10000: i64 = 253_402_300_800_000;

/// A millisecond, or an instant between it and the next one. The API has milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instant {
    milliseconds: i64,
    is_later: bool,
}

impl Instant {
    fn at(milliseconds: i64) -> Self {
        Self { milliseconds, is_later: false }
    }

    fn of_microseconds(microseconds: i64) -> Self {
        Self { milliseconds: microseconds.div_euclid(1_000), is_later: microseconds.rem_euclid(1_000) > 0 }
    }

    /// The first or the last millisecond of a range that begins or ends here.
    fn as_end(self, end: Option<RangeEnd>) -> i64 {
        self.milliseconds + i64::from(self.is_later && end == Some(RangeEnd::Lower))
    }
}

/// Unix milliseconds of an argument, which may be an end of a range of times.
pub fn parse_time(name: &str, arg: &Arg, end: Option<RangeEnd>) -> Result<i64, Error> {
    let problem = match instant(arg).map(|instant| instant.as_end(end)) {
        Ok(time) if (0..YEAR_10000).contains(&time) => return Ok(time),
        Ok(_) => "must be within the years 1970 to 9999",
        Err(problem) => problem,
    };
    let got = match arg {
        Arg::String(text) => format!("; got {}", quoted(text)),
        Arg::Integer(digits) => format!("; got {}", shortened(digits)),
        Arg::Time(microseconds) => DateTime::from_timestamp_micros(*microseconds)
            .map_or_else(String::new, |time| format!("; got {}", time.to_rfc3339())),
        _ => String::new(),
    };
    Err(Error::parameter(name, format!("{problem}{got}")))
}

/// The instant of an argument, or of text that says its offset from UTC.
fn instant(arg: &Arg) -> Result<Instant, &'static str> {
    const FORM: &str = "must be an aware datetime, an ISO 8601 string with a UTC offset, or an integer of Unix seconds or milliseconds";
    match arg {
        Arg::Time(microseconds) => Ok(Instant::of_microseconds(*microseconds)),
        Arg::Integer(digits) => epoch(digits.parse().map_err(|_| FORM)?).map(Instant::at),
        Arg::String(text) => {
            if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
                return epoch(text.parse().map_err(|_| FORM)?).map(Instant::at);
            }
            let parsed = iso_8601(text).map(|time| Instant {
                milliseconds: time.timestamp_millis(),
                is_later: time.timestamp_subsec_nanos() % 1_000_000 > 0,
            });
            parsed.ok_or_else(|| {
                let date = text.len() >= 10 && text.is_ascii() && text.as_bytes()[4] == b'-';
                let is_naive = date && !text[10..].contains(['Z', 'z', '+', '-']);
                let is_impossible =
                    date && text.as_bytes()[7] == b'-' && NaiveDate::parse_from_str(&text[..10], "%Y-%m-%d").is_err();
                if is_impossible {
                    "must be a day of the calendar"
                } else if is_naive {
                    "must have a UTC offset: Z, or one such as +02:00"
                } else {
                    FORM
                }
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
    let text = format!("{date}T{}{}", if hour == "24" { "00" } else { hour }, time[3..].replace('z', "Z"));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Arg {
        Arg::String(text.into())
    }

    #[test]
    fn times_of_iso_8601_are_instants() {
        let millis =
            |given: &str| parse_time("time", &text(given), Some(RangeEnd::Upper)).map_err(|error| error.to_string());
        for (given, same) in [
            ("2026-01-01T24:00:00Z", "2026-01-02T00:00Z"),
            ("2024-02-29T24:00+02:00", "2024-03-01T00:00+02:00"),
            ("2025-12-31T24:00:00.000Z", "2026-01-01T00:00Z"),
            ("2026-W01-1T00:00Z", "2025-12-29T00:00Z"),
            ("2020-W53-7T12:30:15.5-05:00", "2021-01-03T12:30:15.5-05:00"),
            ("2026W011T24:00Z", "2025-12-30T00:00Z"),
            ("2026-01-02 00:00+00:00", "2026-01-02T00:00Z"),
            ("2026-01-02t00:00z", "2026-01-02T00:00Z"),
            ("2026-01-02 24:00z", "2026-01-03T00:00Z"),
        ] {
            assert_eq!(millis(given), millis(same), "{given}");
            assert!(millis(given).is_ok(), "{given}");
        }
        for wrong in [
            "2026-01-01T24:01Z",
            "2026-01-01T24:00:00.001Z",
            "2026-W54-1T00:00Z",
            "2026-W01-8T00:00Z",
            "2026-001T00:00Z",
            "2026-01-01T25:00Z",
            "TZ",
            "2026-01-01T\u{e9}Z",
        ] {
            assert!(millis(wrong).unwrap_err().contains("must be an aware datetime, an ISO 8601 string"), "{wrong}");
        }
        for impossible in ["2026-13-01T00:00Z", "2026-02-29T00:00Z", "2026-04-31"] {
            assert!(millis(impossible).unwrap_err().contains("must be a day of the calendar"), "{impossible}");
        }
        assert!(
            parse_time("time", &Arg::Time(-1), Some(RangeEnd::Upper))
                .unwrap_err()
                .to_string()
                .contains("got 1969-12-31T23:59:59")
        );
        assert!(millis("2026-01-01T24:00").unwrap_err().contains("must have a UTC offset"));
    }

    #[test]
    fn times_are_read_in_every_format() {
        let millis = |arg: &Arg| parse_time("time", arg, Some(RangeEnd::Upper)).map_err(|error| error.to_string());
        for arg in [
            Arg::Time(1_700_000_000_123_000),
            Arg::Integer("1700000000123".into()),
            text("1700000000123"),
            text("2023-11-14T22:13:20.123Z"),
            text("2023-11-14T23:13:20.123+01:00"),
            text("2023-11-14 22:13:20.123+00:00"),
        ] {
            assert_eq!(instant(&arg), Ok(Instant::at(1_700_000_000_123)), "{arg:?}");
        }
        assert_eq!(millis(&text("2023-11-14T22:13Z")), Ok(1_699_999_980_000));
        assert_eq!(millis(&text("1700000000")), Ok(1_700_000_000_000));
        assert_eq!(millis(&Arg::Integer("99999999999".into())), Ok(99_999_999_999_000));
        assert_eq!(millis(&Arg::Integer("100000000000".into())), Ok(100_000_000_000));
        assert_eq!(millis(&Arg::Integer("0".into())), Ok(0));
        for small in ["2024", "20240131", "99999999"] {
            assert!(millis(&text(small)).unwrap_err().contains("ISO 8601"), "{small}");
        }
    }

    #[test]
    fn no_millisecond_outside_a_range_belongs_to_it() {
        for arg in [
            Arg::Time(1_700_000_000_123_001),
            Arg::Time(1_700_000_000_123_999),
            text("2023-11-14T22:13:20.123001Z"),
            text("2023-11-14T23:13:20.123000001+01:00"),
        ] {
            assert_eq!(parse_time("time", &arg, Some(RangeEnd::Lower)).unwrap(), 1_700_000_000_124, "{arg:?}");
            assert_eq!(parse_time("time", &arg, Some(RangeEnd::Upper)).unwrap(), 1_700_000_000_123, "{arg:?}");
        }
    }
}
