//! The kinds of value, and how each reads from the text the service sends. `""` and `null` are no value, for every kind
//! but text; that is the caller's to see before asking here.

use super::number::Number;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Integer,
    Time,
    Flag,
    /// What was moved or paid: exact, decimal128 by default.
    Amount,
    /// What was reckoned, such as a price: exact in a record, float64 by default.
    Estimate,
    /// An integer of up to 78 digits.
    RawInteger,
    Text,
    /// Text, of which the two directions are put into our neutral words.
    Direction,
    Texts,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Time => "time",
            Self::Flag => "flag",
            Self::Amount => "amount",
            Self::Estimate => "estimate",
            Self::RawInteger => "raw integer",
            Self::Text | Self::Direction => "text",
            Self::Texts => "texts",
        }
    }

    pub const fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Amount | Self::Estimate | Self::RawInteger)
    }

    /// The Python type of a record's attribute, `None` aside.
    pub const fn python(self) -> &'static str {
        match self {
            Self::Integer | Self::RawInteger => "int",
            Self::Time => "datetime",
            Self::Flag => "bool",
            Self::Amount | Self::Estimate => "Decimal",
            Self::Text | Self::Direction => "str",
            Self::Texts => "list[str]",
        }
    }
}

/// Text that is not of its kind; says what would have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Unix milliseconds within the years 1 to 9999, the reach of Python's `datetime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub i64);

const YEAR_1: i64 = -62_135_596_800_000;
const YEAR_10000: i64 = 253_402_300_800_000;
/// Some chains of the family send seconds; in milliseconds a value under this one lies before March 1973.
const LEAST_MILLISECONDS: i64 = 100_000_000_000;

impl Kind {
    pub fn integer(text: &str) -> Result<i64, Malformed> {
        // Eighteen digits cannot overflow; nearly every integer is that short and bare.
        if text.len() <= 18 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(text.bytes().fold(0, |value, byte| value * 10 + i64::from(byte - b'0')));
        }
        Number::parse(text).and_then(|number| number.to_i64()).ok_or(Malformed("a whole number of 64 bits"))
    }

    pub fn time(text: &str) -> Result<Time, Malformed> {
        let expected = Malformed("a Unix time in milliseconds or seconds, of the years 1 to 9999");
        let value = Self::integer(text).map_err(|_| expected)?;
        let milliseconds = if value.abs() < LEAST_MILLISECONDS { value * 1_000 } else { value };
        if (YEAR_1..YEAR_10000).contains(&milliseconds) { Ok(Time(milliseconds)) } else { Err(expected) }
    }

    pub fn flag(text: &str) -> Result<bool, Malformed> {
        match text {
            "true" | "True" | "TRUE" => Ok(true),
            "false" | "False" | "FALSE" => Ok(false),
            _ => Err(Malformed("true or false")),
        }
    }

    pub fn number(text: &str) -> Result<Number<'_>, Malformed> {
        Number::parse(text).ok_or(Malformed("a decimal number"))
    }

    pub fn raw_integer(text: &str) -> Result<String, Malformed> {
        Number::parse(text)
            .and_then(|number| number.to_integer_text())
            .ok_or(Malformed("a whole number of at most 1,000 digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_exactly_or_refused() {
        assert_eq!(Kind::integer("1779161496872"), Ok(1_779_161_496_872));
        assert_eq!(Kind::integer("4307974.0"), Ok(4_307_974));
        assert_eq!(Kind::integer("-1"), Ok(-1));
        assert_eq!(Kind::integer("9223372036854775807"), Ok(i64::MAX));
        for text in ["", "4307974.5", "9223372036854775808", "0x10", "1,000", "abc"] {
            assert!(Kind::integer(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn times_come_in_milliseconds_or_seconds() {
        assert_eq!(Kind::time("1700000000123"), Ok(Time(1_700_000_000_123)));
        assert_eq!(Kind::time("1700000000"), Ok(Time(1_700_000_000_000)));
        assert_eq!(Kind::time("99999999999"), Ok(Time(99_999_999_999_000)));
        assert_eq!(Kind::time("100000000000"), Ok(Time(100_000_000_000)));
        assert!(Kind::time("253402300800000").is_err());
        assert!(Kind::time("2026-01-31").is_err());
    }

    #[test]
    fn flags_are_words() {
        assert_eq!(Kind::flag("true"), Ok(true));
        assert_eq!(Kind::flag("False"), Ok(false));
        assert!(Kind::flag("1").is_err());
    }
}
