//! A decimal number as the service writes it: checked once, then converted exactly.
//!
//! Numbers are parsed here and nowhere else. Casts through Arrow corrupt them: one library turns the string of 2^256-1
//! into -1 silently.

/// Digits of the decimal columns.
pub const AMOUNT_PRECISION: u8 = 38;
/// Decimals of the decimal columns.
pub const AMOUNT_SCALE: i8 = 18;

/// Longest string that is read as a number: longer ones are implausible and would make conversions slow.
const MAX_LEN: usize = 1_024;
/// Largest exponent: beyond it a number has more digits than fit into memory.
const MAX_EXPONENT: i32 = 999_999;
/// Most digits to which an exponent is expanded: more than twice those of 2^256.
const MAX_EXPANDED: usize = 1_000;

/// Up to the largest scale that is converted with 64-bit integers.
const POWERS_OF_TEN: [i64; 19] = {
    let mut powers = [1; 19];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// A well-formed decimal number: sign, digits, fraction, exponent; borrowed from its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<'a> {
    text: &'a str,
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i32,
}

impl<'a> Number<'a> {
    /// Reads `[+-]digits[.digits][e[+-]digits]`, and nothing else: no `NaN`, `inf`, `0x10`, `1,000`, blanks.
    pub fn parse(text: &'a str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() > MAX_LEN {
            return None;
        }
        let start = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
        let whole_end = digits_end(bytes, start);
        let (fraction_start, fraction_end) = match bytes.get(whole_end) {
            Some(b'.') => (whole_end + 1, digits_end(bytes, whole_end + 1)),
            _ => (whole_end, whole_end),
        };
        if whole_end == start && fraction_end == fraction_start {
            return None;
        }
        let exponent = match bytes.get(fraction_end) {
            None => 0,
            Some(b'e' | b'E') => parse_exponent(&text[fraction_end + 1..])?,
            Some(_) => return None,
        };
        Some(Self {
            text,
            negative: bytes[0] == b'-',
            whole: &text[start..whole_end],
            fraction: &text[fraction_start..fraction_end],
            exponent,
        })
    }

    /// The digits as sent.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The number times 10^`scale` if that is an integer of at most 38 digits. Never rounded.
    pub fn scaled(&self, scale: i8) -> Option<i128> {
        if let Some(value) = self.scaled_at_once(scale) {
            return Some(value);
        }
        let shift = self.exponent + i32::from(scale) - self.fraction.len() as i32;
        let dropped = usize::try_from(-shift).unwrap_or(0);
        let kept = (self.whole.len() + self.fraction.len()).saturating_sub(dropped);
        if dropped > 0 && self.digits().skip(kept).any(|digit| digit != 0) {
            return None;
        }
        let zeros = self.digits().take(kept).take_while(|digit| *digit == 0).count();
        let significant = kept - zeros;
        let added = u32::try_from(shift).unwrap_or(0);
        if significant == 0 {
            return Some(0);
        }
        if significant + added as usize > usize::from(AMOUNT_PRECISION) {
            return None;
        }
        // Thirty-eight digits fit, whatever zeros stand before them.
        let value =
            self.digits().take(kept).fold(0, |value, digit| value * 10 + i128::from(digit)) * 10_i128.pow(added);
        Some(if self.negative { -value } else { value })
    }

    /// Fast path of `scaled` for nearly every amount: no exponent, at most 18 digits on either side of the point.
    fn scaled_at_once(&self, scale: i8) -> Option<i128> {
        let missing = usize::try_from(scale).ok()?.checked_sub(self.fraction.len())?;
        if self.exponent != 0 || scale > 18 || self.whole.len() > 18 {
            return None;
        }
        let fraction = parse_digits(self.fraction)? * POWERS_OF_TEN[missing];
        let whole = parse_digits(self.whole)?;
        let value = i128::from(whole) * i128::from(POWERS_OF_TEN[scale as usize]) + i128::from(fraction);
        Some(if self.negative { -value } else { value })
    }

    /// The nearest double, unless the number is beyond the largest.
    pub fn to_f64(&self) -> Option<f64> {
        self.text.parse::<f64>().ok().filter(|value| value.is_finite())
    }

    /// As a 64-bit integer, where it is one (`4307974.0` is, `4307974.5` is not).
    pub fn to_i64(&self) -> Option<i64> {
        self.scaled(0).and_then(|value| i64::try_from(value).ok())
    }

    /// The digits of an integer of any size: no point, no exponent, no leading zeros.
    pub fn to_integer_text(&self) -> Option<String> {
        let whole_len = i64::try_from(self.whole.len()).ok()? + i64::from(self.exponent);
        let mut digits = String::new();
        for (position, digit) in self.digits().enumerate() {
            if (position as i64) < whole_len {
                digits.push(char::from(b'0' + digit));
            } else if digit != 0 {
                return None;
            }
        }
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Some("0".into());
        }
        let zeros = usize::try_from(whole_len).ok()?.saturating_sub(self.whole.len() + self.fraction.len());
        if digits.len() + zeros > MAX_EXPANDED {
            return None;
        }
        let sign = if self.negative { "-" } else { "" };
        Some(format!("{sign}{digits}{}", "0".repeat(zeros)))
    }

    /// The digits without an exponent if that is short, since not every service reads exponents.
    pub fn plain(&self) -> String {
        if self.exponent == 0 && !self.whole.is_empty() && !self.text.ends_with('.') && !self.text.contains(['e', 'E'])
        {
            return self.text.trim_start_matches('+').into();
        }
        self.shortest()
    }

    /// The digits without an exponent and without outer zeros: equal for equal values, unless they are too many.
    pub fn shortest(&self) -> String {
        let (negative, digits, power) = self.canonical();
        let sign = if negative { "-" } else { "" };
        let digits: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let point = digits.len() as i64 + i64::from(power);
        // The result must be a number that `parse` accepts.
        if point.unsigned_abs() as usize + digits.len() > MAX_EXPANDED {
            return self.text.into();
        }
        match (digits.is_empty(), usize::try_from(point)) {
            (true, _) => "0".into(),
            (_, Ok(point)) if point >= digits.len() => format!("{sign}{digits}{}", "0".repeat(point - digits.len())),
            (_, Ok(point)) if point > 0 => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
            _ => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        }
    }

    pub fn at_least(&self, min: u32) -> bool {
        let min = min.to_string();
        Number::parse(&min).is_some_and(|min| !self.is_less_than(&min))
    }

    pub fn is_less_than(&self, other: &Self) -> bool {
        let (sign, magnitude) = self.sign_and_magnitude();
        let (other_sign, other_magnitude) = other.sign_and_magnitude();
        match sign - other_sign {
            0 if sign < 0 => magnitude > other_magnitude,
            0 if sign == 0 => false,
            0 => magnitude < other_magnitude,
            difference => difference < 0,
        }
    }

    /// -1, 0 or 1, and the size and digits, by which numbers of one sign are in order.
    fn sign_and_magnitude(&self) -> (i32, (i64, Vec<u8>)) {
        let (negative, digits, power) = self.canonical();
        let sign = match (digits.is_empty(), negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        (sign, (digits.len() as i64 + i64::from(power), digits))
    }

    /// Sign, significant digits without outer zeros, and power of ten: equal for equal values in any notation.
    pub fn canonical(&self) -> (bool, Vec<u8>, i32) {
        let digits: Vec<u8> = self.digits().skip_while(|&digit| digit == 0).collect();
        let kept = digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1);
        if kept == 0 {
            return (false, Vec::new(), 0);
        }
        let power = self.exponent - self.fraction.len() as i32 + (digits.len() - kept) as i32;
        (self.negative, digits[..kept].to_vec(), power)
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.bytes().chain(self.fraction.bytes()).map(|byte| byte - b'0')
    }
}

fn digits_end(bytes: &[u8], mut from: usize) -> usize {
    while bytes.get(from..).and_then(<[u8]>::first_chunk).is_some_and(are_digits) {
        from += 8;
    }
    bytes[from..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |length| from + length)
}

/// Eight at once: digits are 0x30 to 0x39, so that six more is still no 0x40.
fn are_digits(bytes: &[u8; 8]) -> bool {
    const HIGH: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    const THREES: u64 = 0x3030_3030_3030_3030;
    let word = u64::from_le_bytes(*bytes);
    word & HIGH == THREES && (word + 0x0606_0606_0606_0606) & HIGH == THREES
}

fn parse_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|exponent: &i32| exponent.abs() <= MAX_EXPONENT)
}

fn parse_digits(digits: &str) -> Option<i64> {
    if digits.is_empty() { Some(0) } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: i128 = 1_000_000_000_000_000_000;
    const MAX_256: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639935";

    fn amount(text: &str) -> Option<i128> {
        Number::parse(text).unwrap_or_else(|| panic!("{text} is a number")).scaled(AMOUNT_SCALE)
    }

    #[test]
    fn amounts_are_exact_or_none() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1", Some(ONE)),
            ("-1", Some(-ONE)),
            ("+1", Some(ONE)),
            ("0.000000000000000001", Some(1)),
            ("0.0000000000000000010", Some(1)),
            ("0.0000000000000000001", None),
            ("9007199254740993", Some(9_007_199_254_740_993 * ONE)),
            ("18446744073709551616", Some(18_446_744_073_709_551_616 * ONE)),
            ("99999999999999999999.999999999999999999", Some(10_i128.pow(38) - 1)),
            ("100000000000000000000", None),
            ("1e38", None),
            (MAX_256, None),
            ("2.625E-6", Some(2_625_000_000_000)),
            ("1e18", Some(ONE * ONE)),
            ("00012.50", Some(12 * ONE + ONE / 2)),
            ("0e999999", Some(0)),
            ("0e-999999", Some(0)),
            ("1e999999", None),
            ("1e-999999", None),
            (".5", Some(ONE / 2)),
            ("5.", Some(5 * ONE)),
        ] {
            assert_eq!(amount(text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_numbers_are_rejected() {
        for text in [
            "",
            "-",
            "+",
            ".",
            "e5",
            "1e",
            "1e+",
            "NaN",
            "inf",
            "-inf",
            "0x10",
            "1,000",
            "1_000",
            " 1",
            "1 ",
            "1.2.3",
            "--1",
            "1e1000000",
            "1e99999999999",
            "١",
            "1e5.0",
        ] {
            assert_eq!(Number::parse(text), None, "{text:?}");
        }
        assert_eq!(Number::parse(&"1".repeat(MAX_LEN + 1)), None);
    }

    #[test]
    fn integers_with_a_point_are_integers() {
        let int = |text: &str| Number::parse(text).unwrap().to_i64();
        assert_eq!(int("4307974.0"), Some(4_307_974));
        assert_eq!(int("4307974.5"), None);
        assert_eq!(int("1779161496872"), Some(1_779_161_496_872));
        assert_eq!(int("9223372036854775807"), Some(i64::MAX));
        assert_eq!(int("9223372036854775808"), None);
        assert_eq!(int("1.5e1"), Some(15));
    }

    #[test]
    fn raw_integers_keep_every_digit() {
        let raw = |text: &str| Number::parse(text).unwrap().to_integer_text();
        assert_eq!(raw(MAX_256).as_deref(), Some(MAX_256));
        assert_eq!(raw("1e3").as_deref(), Some("1000"));
        assert_eq!(raw("12.50e1").as_deref(), Some("125"));
        assert_eq!(raw("-007.0").as_deref(), Some("-7"));
        assert_eq!(raw("0.00").as_deref(), Some("0"));
        assert_eq!(raw("0e-400").as_deref(), Some("0"));
        assert_eq!(raw("1.5"), None);
        assert_eq!(raw("1e-1"), None);
        assert_eq!(raw("1e999999"), None);
    }

    #[test]
    fn doubles_are_nearest_or_none() {
        let double = |text: &str| Number::parse(text).unwrap().to_f64();
        assert_eq!(double("9007199254740993"), Some(9_007_199_254_740_992.0));
        assert_eq!(double("2.625E-6"), Some(2.625e-6));
        assert_eq!(double("1e400"), None);
        assert_eq!(double(".5"), Some(0.5));
        assert_eq!(double("5."), Some(5.0));
    }

    #[test]
    fn equal_values_have_one_canonical_form() {
        let canonical = |text: &str| Number::parse(text).unwrap().canonical();
        assert_eq!(canonical("1.50"), canonical("0.15e1"));
        assert_eq!(canonical("-0.0"), canonical("0"));
        assert_eq!(canonical("100"), canonical("1e2"));
        assert_ne!(canonical("1"), canonical("-1"));
        assert_ne!(canonical("1"), canonical("10"));
    }

    #[test]
    fn numbers_compare_by_value() {
        let sorted = ["-1e3", "-2", "-1.5", "0", "1e-5", "0.02", "99.99", "100", "1e3"];
        for (i, low) in sorted.iter().enumerate() {
            for (j, high) in sorted.iter().enumerate() {
                let less = Number::parse(low).unwrap().is_less_than(&Number::parse(high).unwrap());
                assert_eq!(less, i < j, "{low} < {high}");
            }
        }
        assert!(Number::parse("100.0").unwrap().at_least(100));
    }

    #[test]
    fn plain_digits_have_no_exponent() {
        for (text, plain) in [
            ("1E+2", "100"),
            ("2.625E-6", "0.000002625"),
            ("12.5e1", "125"),
            ("1.25e1", "12.5"),
            ("+7", "7"),
            ("0e9", "0"),
            ("1.50", "1.50"),
            ("-1e-1", "-0.1"),
            ("7.", "7"),
            (".5", "0.5"),
            ("5e0", "5"),
        ] {
            assert_eq!(Number::parse(text).unwrap().plain(), plain);
        }
    }

    proptest! {
        #[test]
        fn scaling_reverses_formatting(value in -(10_i128.pow(38) - 1)..10_i128.pow(38)) {
            let (sign, digits) = (if value < 0 { "-" } else { "" }, format!("{:019}", value.unsigned_abs()));
            let (whole, fraction) = digits.split_at(digits.len() - 18);
            prop_assert_eq!(amount(&format!("{sign}{whole}.{fraction}")), Some(value));
            prop_assert_eq!(amount(&format!("{sign}{digits}e-18")), Some(value));
        }

        #[test]
        fn digits_are_counted_exactly(bytes in "[0-9]{0,20}[/:;0-9e.@é٣]{0,9}", from in 0_usize..4) {
            let (bytes, from) = (bytes.as_bytes(), from.min(bytes.len()));
            let plain = (from..bytes.len()).find(|at| !bytes[*at].is_ascii_digit()).unwrap_or(bytes.len());
            prop_assert_eq!(digits_end(bytes, from), plain);
        }

        #[test]
        fn arbitrary_strings_do_not_panic(text in "[-+0-9.eE]{0,40}") {
            if let Some(number) = Number::parse(&text) {
                let _ = (number.scaled(18), number.to_i64(), number.to_integer_text(), number.canonical());
                prop_assert!(text.parse::<f64>().is_ok());
            }
        }
    }
}
