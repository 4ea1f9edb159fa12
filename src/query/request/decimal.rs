//! `Decimal`: a number that is not negative, of any size, with the arithmetic that ranges of values need.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigUint;

use crate::interface::{AMOUNT_SCALE, Number};

/// `units` / 10^`scale`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    units: BigUint,
    scale: u32,
}

impl Decimal {
    /// Reads a number; `None` if it is negative or has an exponent that is not expanded.
    pub fn parse(text: &str) -> Option<Self> {
        let text = Number::parse(text)?.shortest();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let units = format!("{whole}{fraction}").parse().ok()?;
        Some(Self { units, scale: fraction.len() as u32 })
    }

    /// The units of the number at a scale that is not less than its own.
    fn units_at(&self, scale: u32) -> BigUint {
        &self.units * power_of_ten(scale - self.scale)
    }

    /// The number with as few decimals as leave it above `limit`.
    pub fn shortened_above(&self, limit: &Self) -> Self {
        (0..self.scale)
            .map(|scale| Self { units: &self.units / power_of_ten(self.scale - scale), scale })
            .find(|short| short > limit)
            .unwrap_or_else(|| self.clone())
    }
}

fn power_of_ten(exponent: u32) -> BigUint {
    BigUint::from(10_u8).pow(exponent)
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
        let scale = self.scale.max(other.scale);
        self.units_at(scale).cmp(&other.units_at(scale))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = self.scale as usize;
        let digits = format!("{:0>width$}", self.units, width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let text = format!("{whole}.{fraction}");
        formatter.write_str(&Number::parse(&text).map_or_else(|| text.clone(), |number| number.shortest()))
    }
}

/// The number at `percent` of the way from one to another.
pub(super) fn between(low: &Decimal, high: &Decimal, percent: u32) -> Decimal {
    let scale = low.scale.max(high.scale);
    let hundredfold = low.units_at(scale) * (100 - percent) + high.units_at(scale) * percent;
    Decimal { units: hundredfold, scale: scale + 2 }
}

/// The number before another one in steps of 10^-18, or of its own last decimal if that is smaller. `None` of zero.
pub(super) fn previous(value: &Decimal) -> Option<Decimal> {
    if value.units == BigUint::ZERO {
        return None;
    }
    let scale = step_scale(value);
    Some(Decimal { units: value.units_at(scale) - 1_u8, scale })
}

/// The number after another one, in steps as those of `previous`.
pub(super) fn next(value: &Decimal) -> Decimal {
    let scale = step_scale(value);
    Decimal { units: value.units_at(scale) + 1_u8, scale }
}

fn step_scale(value: &Decimal) -> u32 {
    value.scale.max(AMOUNT_SCALE.unsigned_abs().into())
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
        for left in texts {
            for right in texts {
                let expected = left.parse::<f64>().unwrap().partial_cmp(&right.parse().unwrap()).unwrap();
                assert_eq!(decimal(left).cmp(&decimal(right)), expected, "{left} {right}");
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
