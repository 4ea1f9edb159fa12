//! The kinds of values, and the reading of each from the string that the service sends. The caller handles `""` and
//! `null`, which are no value for every kind but strings.

use super::number::{Number, whole};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Integer,
    Time,
    Boolean,
    /// An amount moved or paid: exact, decimal128 by default.
    Amount,
    /// A computed number such as a price: exact in a record, float64 by default.
    ApproxDecimal,
    /// An integer of any size, where the API has up to 78 digits.
    Uint256,
    Utf8,
    /// A string, of which the two directions are given neutral names.
    Direction,
    Utf8List,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Time => "time",
            Self::Boolean => "boolean",
            Self::Amount => "amount",
            Self::ApproxDecimal => "estimate",
            Self::Uint256 => "raw integer",
            Self::Utf8 | Self::Direction => "string",
            Self::Utf8List => "list of strings",
        }
    }

    pub const fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Amount | Self::ApproxDecimal | Self::Uint256)
    }

    /// The Python type of a record's attribute, `None` aside.
    pub const fn python(self) -> &'static str {
        match self {
            Self::Integer | Self::Uint256 => "int",
            Self::Time => "datetime",
            Self::Boolean => "bool",
            Self::Amount | Self::ApproxDecimal => "Decimal",
            Self::Utf8 | Self::Direction => "str",
            Self::Utf8List => "list[str]",
        }
    }
}

/// The error for a string that is not of its kind, with the expected form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError(pub &'static str);

/// Unix milliseconds within the years 1 to 9999, the range of Python's `datetime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub i64);

const YEAR_1: i64 = -62_135_596_800_000;
const YEAR_10000: i64 = 253_402_300_800_000;
/// Some chains of the family send seconds; in milliseconds a value under this one lies before March 1973.
const MIN_MILLISECONDS: u64 = 100_000_000_000;

impl Kind {
    pub fn integer(text: &str) -> Result<i64, ParseError> {
        // Nearly every integer is written plainly. The standard library reads digits after a sign, and nothing else.
        if let Some(value) = whole(text).or_else(|| text.parse().ok()) {
            return Ok(value);
        }
        Number::parse(text).and_then(|number| number.to_i64()).ok_or(ParseError("a 64-bit integer"))
    }

    pub fn time(text: &str) -> Result<Time, ParseError> {
        let expected = ParseError("a Unix time in milliseconds or seconds, of the years 1 to 9999");
        let value = Self::integer(text).map_err(|_| expected)?;
        let milliseconds = if value.unsigned_abs() < MIN_MILLISECONDS { value * 1_000 } else { value };
        if (YEAR_1..YEAR_10000).contains(&milliseconds) { Ok(Time(milliseconds)) } else { Err(expected) }
    }

    pub fn flag(text: &str) -> Result<bool, ParseError> {
        match text {
            "true" | "True" | "TRUE" => Ok(true),
            "false" | "False" | "FALSE" => Ok(false),
            _ => Err(ParseError("true or false")),
        }
    }

    pub fn number(text: &str) -> Result<Number<'_>, ParseError> {
        Number::parse(text).ok_or(ParseError("a decimal number"))
    }

    pub fn raw_integer(text: &str) -> Result<String, ParseError> {
        Number::parse(text)
            .and_then(|number| number.to_integer_text())
            .ok_or(ParseError("an integer of at most 1,000 digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_exact_or_errors() {
        assert_eq!(Kind::integer("1779161496872"), Ok(1_779_161_496_872));
        assert_eq!(Kind::integer("4307974.0"), Ok(4_307_974));
        assert_eq!(Kind::integer("-1"), Ok(-1));
        assert_eq!(Kind::integer("9223372036854775807"), Ok(i64::MAX));
        for text in ["", "4307974.5", "9223372036854775808", "0x10", "1,000", "abc"] {
            assert!(Kind::integer(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn times_may_be_milliseconds_or_seconds() {
        assert_eq!(Kind::time("1700000000123"), Ok(Time(1_700_000_000_123)));
        assert_eq!(Kind::time("1700000000"), Ok(Time(1_700_000_000_000)));
        assert_eq!(Kind::time("99999999999"), Ok(Time(99_999_999_999_000)));
        assert_eq!(Kind::time("100000000000"), Ok(Time(100_000_000_000)));
        assert!(Kind::time("253402300800000").is_err());
        assert!(Kind::time("2026-01-31").is_err());
        assert!(Kind::time("-9223372036854775808").is_err());
    }

    #[test]
    fn booleans_may_be_strings() {
        assert_eq!(Kind::flag("true"), Ok(true));
        assert_eq!(Kind::flag("False"), Ok(false));
        assert!(Kind::flag("1").is_err());
    }
}
