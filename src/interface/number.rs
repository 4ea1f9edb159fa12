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

/// Most digits that are converted with 64-bit integers.
const MAX_DIGITS: usize = 18;
const POWERS_OF_TEN: [i64; MAX_DIGITS + 1] = {
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
        if digits.is_empty() {
            return "0".into();
        }
        match usize::try_from(point) {
            Ok(point) if point >= digits.len() => format!("{sign}{digits}{}", "0".repeat(point - digits.len())),
            Ok(point) if point > 0 => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
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
        let sign = if digits.is_empty() {
            0
        } else if negative {
            -1
        } else {
            1
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

/// `Number::scaled` of a text. Nearly every amount has at most 18 digits on either side of the point, and no more.
pub fn scaled(text: &str, scale: i8) -> Option<i128> {
    scaled_at_once(text.as_bytes(), scale).or_else(|| Number::parse(text)?.scaled(scale))
}

fn scaled_at_once(text: &[u8], scale: i8) -> Option<i128> {
    let scale = usize::try_from(scale).ok()?;
    let mut whole = 0_i64;
    let mut point = 0;
    while let Some(byte) = text.get(point)
        && byte.is_ascii_digit()
    {
        if point == MAX_DIGITS {
            return None;
        }
        whole = whole * 10 + i64::from(byte - b'0');
        point += 1;
    }
    let fraction = match &text[point..] {
        [] => &[],
        [b'.', fraction @ ..] => fraction,
        _ => return None,
    };
    if point == 0 {
        return None;
    }
    let power = POWERS_OF_TEN.get(scale)?;
    let missing = POWERS_OF_TEN.get(scale.checked_sub(fraction.len())?)?;
    // Both factors have at most 18 digits, and a check that their product fits costs more than the product.
    let product = i128::from(whole).wrapping_mul(i128::from(*power));
    Some(product + i128::from(digits(fraction)? * missing))
}

/// True for a number that has no other, shorter notation.
pub fn is_shortest(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let point = digits_end(digits, 0);
    let is_whole_shortest = matches!(digits[..point], [b'0'] | [b'1'..=b'9', ..]);
    let is_fraction_shortest = match digits[point..] {
        [] => true,
        [b'.', .., b'1'..=b'9'] => digits_end(digits, point + 1) == digits.len(),
        _ => false,
    };
    is_whole_shortest && is_fraction_shortest && (text.len() == digits.len() || digits != b"0")
}

/// True for digits, with a point among them or without, as nearly every number is sent: one that `Number::parse` reads.
pub fn is_plain(text: &str) -> bool {
    let text = text.as_bytes();
    let point = digits_end(text, 0);
    let is_to_end = point == text.len() || text[point] == b'.' && digits_end(text, point + 1) == text.len();
    point > 0 && is_to_end && text.len() <= MAX_LEN
}

/// The integer of 1 to 18 digits, without a sign.
pub fn whole(text: &str) -> Option<i64> {
    if text.is_empty() || text.len() > MAX_DIGITS { None } else { digits(text.as_bytes()) }
}

/// The integer of at most 18 digits.
fn digits(text: &[u8]) -> Option<i64> {
    let (words, rest) = text.as_chunks();
    let eights = words.iter().try_fold(0, |value, word| are_digits(word).then(|| value * 100_000_000 + eight(*word)));
    rest.iter().try_fold(eights?, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))
}

/// The integer of eight digits: pairs of neighbors are joined three times.
fn eight(digits: [u8; 8]) -> i64 {
    let ones = u64::from_le_bytes(digits) & 0x0F0F_0F0F_0F0F_0F0F;
    let twos = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = (twos.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_FFFF_0000_FFFF;
    (fours.wrapping_mul(10_000 << 32 | 1) >> 32).cast_signed()
}

/// Index of the first byte from `from` on that is no digit, or the length.
fn digits_end(bytes: &[u8], mut from: usize) -> usize {
    while let Some(word) = bytes.get(from..).and_then(<[u8]>::first_chunk) {
        let others = no_digits(*word);
        if others != 0 {
            return from + others.trailing_zeros() as usize / 8;
        }
        from += 8;
    }
    bytes[from..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |length| from + length)
}

fn are_digits(bytes: &[u8; 8]) -> bool {
    no_digits(*bytes) == 0
}

/// Marks the bytes that are no digits, each by its highest bit.
fn no_digits(bytes: [u8; 8]) -> u64 {
    const EACH_BYTE: u64 = u64::from_le_bytes([1; 8]);
    // Digits become 0 to 9.
    let values = u64::from_le_bytes(bytes) ^ (u64::from(b'0') * EACH_BYTE);
    let is_above_nine = (values & (0x7F * EACH_BYTE)) + (0x80 - 10) * EACH_BYTE;
    (is_above_nine | values) & (0x80 * EACH_BYTE)
}

fn parse_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|exponent: &i32| exponent.abs() <= MAX_EXPONENT)
}

#[cfg(test)]
mod tests;
