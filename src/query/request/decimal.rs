//! `Decimal`: a number that is not negative, of any size, with the arithmetic that ranges of values need.

use std::cmp::Ordering;
use std::fmt;

use crate::interface::{AMOUNT_SCALE, Number};

#[derive(Clone, Debug)]
pub(super) struct Decimal {
    /// Digits, of which the last `scale` are decimals.
    digits: Vec<u8>,
    scale: usize,
}

impl Decimal {
    /// Reads a number; `None` if it is negative or has an exponent that is not expanded.
    pub fn parse(text: &str) -> Option<Self> {
        let text = Number::parse(text)?.shortest();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits = whole.bytes().chain(fraction.bytes());
        let digits: Option<Vec<u8>> = digits.map(|digit| digit.is_ascii_digit().then(|| digit - b'0')).collect();
        Some(Self { digits: digits?, scale: fraction.len() })
    }

    /// Both numbers with equally many digits and decimals.
    fn aligned(&self, other: &Self) -> (Vec<u8>, Vec<u8>, usize) {
        let scale = self.scale.max(other.scale);
        let whole = (self.digits.len() - self.scale).max(other.digits.len() - other.scale);
        (self.padded(whole, scale), other.padded(whole, scale), scale)
    }

    fn padded(&self, whole: usize, scale: usize) -> Vec<u8> {
        let before = (whole + self.scale).saturating_sub(self.digits.len());
        let after = scale - self.scale;
        [vec![0; before], self.digits.clone(), vec![0; after]].concat()
    }

    /// The number with as few decimals as leave it above another one.
    pub fn shortened_above(&self, least: &Self) -> Self {
        let cut =
            |scale: usize| Self { digits: self.digits[..self.digits.len() - (self.scale - scale)].to_vec(), scale };
        (0..self.scale).map(cut).find(|short| short > least).unwrap_or_else(|| self.clone())
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let (this, that, _) = self.aligned(other);
        this.cmp(&that)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        text.insert(self.digits.len() - self.scale, '.');
        formatter.write_str(&Number::parse(&text).map_or_else(|| text.clone(), |number| number.shortest()))
    }
}

/// The number at `percent` of the way from one to another.
pub(super) fn between(low: &Decimal, high: &Decimal, percent: u32) -> Decimal {
    let (low, high, scale) = low.aligned(high);
    let mut carry = 0;
    let mut reversed = Vec::with_capacity(low.len() + 3);
    for (low, high) in low.iter().zip(&high).rev() {
        carry += u32::from(*low) * (100 - percent) + u32::from(*high) * percent;
        reversed.push((carry % 10) as u8);
        carry /= 10;
    }
    while carry > 0 {
        reversed.push((carry % 10) as u8);
        carry /= 10;
    }
    reversed.reverse();
    // It was multiplied by a hundred.
    let missing = (scale + 3).saturating_sub(reversed.len());
    Decimal { digits: [vec![0; missing], reversed].concat(), scale: scale + 2 }
}

/// The number before another one in steps of 10^-18, or of its own last decimal if that is smaller. `None` of zero.
pub(super) fn previous(value: &Decimal) -> Option<Decimal> {
    let mut stepped = in_steps(value);
    let last = stepped.digits.iter().rposition(|digit| *digit > 0)?;
    stepped.digits[last] -= 1;
    stepped.digits[last + 1..].fill(9);
    Some(stepped)
}

/// The number after another one, in steps as those of `previous`.
pub(super) fn next(value: &Decimal) -> Decimal {
    let mut stepped = in_steps(value);
    stepped.digits.insert(0, 0);
    for digit in stepped.digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            break;
        }
        *digit = 0;
    }
    stepped
}

fn in_steps(value: &Decimal) -> Decimal {
    let scale = value.scale.max(AMOUNT_SCALE.unsigned_abs().into());
    Decimal { digits: value.padded(value.digits.len() - value.scale, scale), scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn steps_and_fractions_are_exact() {
        assert_eq!(previous(&decimal("1")).unwrap().to_string(), "0.999999999999999999");
        assert_eq!(next(&decimal("0.999999999999999999")).to_string(), "1");
        assert_eq!(next(&decimal("9")).to_string(), "9.000000000000000001");
        assert!(previous(&decimal("0.0")).is_none());
        assert_eq!(previous(&decimal("0.00000000000000000001")).unwrap().to_string(), "0");
        assert_eq!(between(&decimal("1"), &decimal("2"), 48).to_string(), "1.48");
        assert_eq!(between(&decimal("0"), &decimal("0.001"), 50).to_string(), "0.0005");
        assert_eq!(between(&decimal("9.99"), &decimal("1000"), 50).to_string(), "504.995");
    }

    #[test]
    fn numbers_are_ordered_by_value() {
        let texts = ["0", "0.1", "0.10", "1e-3", "1.5", "12", "115792089237316195423570985008687907853269984665"];
        for one in texts {
            for other in texts {
                let expected = one.parse::<f64>().unwrap().partial_cmp(&other.parse().unwrap()).unwrap();
                assert_eq!(decimal(one).cmp(&decimal(other)), expected, "{one} {other}");
            }
        }
        assert!(Decimal::parse("-1").is_none() && Decimal::parse("x").is_none());
    }

    #[test]
    fn short_numbers_stay_above_the_least() {
        assert_eq!(decimal("12.654321").shortened_above(&decimal("12.6")).to_string(), "12.65");
        assert_eq!(decimal("12.654321").shortened_above(&decimal("3")).to_string(), "12");
        assert_eq!(decimal("0.0005").shortened_above(&decimal("0")).to_string(), "0.0005");
    }
}
