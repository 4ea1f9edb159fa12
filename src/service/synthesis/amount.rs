//! Decimal numbers in the spellings seen on the wire: bare, with zeros at the end, with an exponent.

use super::random::Random;

/// Decimals of the main chain's coin.
pub const COIN_SCALE: u32 = 18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    Bare,
    /// All decimals, needed or not.
    Padded,
    /// One digit, a point, the rest and a power of ten.
    Exponent,
}

impl Spelling {
    /// Mostly bare; an exponent only where the number is small, as programs print doubles.
    pub fn any(random: &mut Random, units: u128, scale: u32) -> Self {
        let small = units > 0 && units < 10_u128.saturating_pow(scale.saturating_sub(3));
        match random.below(20) {
            0 | 1 => Self::Padded,
            2..=9 if small => Self::Exponent,
            _ => Self::Bare,
        }
    }
}

/// `units` divided by 10^`scale`, exactly, in any of the spellings.
pub fn spelled(units: u128, scale: u32, random: &mut Random) -> String {
    decimal(units, scale, Spelling::any(random, units, scale))
}

/// `units` divided by 10^`scale`, exactly.
pub fn decimal(units: u128, scale: u32, spelling: Spelling) -> String {
    let scale = scale as usize;
    let digits = format!("{units:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    match spelling {
        Spelling::Padded if scale > 0 => format!("{whole}.{fraction}"),
        Spelling::Exponent if units > 0 => {
            let significant = digits.trim_start_matches('0');
            let power = significant.len() as i64 - 1 - scale as i64;
            let (first, rest) = significant.split_at(1);
            let rest = rest.trim_end_matches('0');
            format!("{first}.{}E{power}", if rest.is_empty() { "0" } else { rest })
        }
        _ => {
            let fraction = fraction.trim_end_matches('0');
            if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
        }
    }
}

/// A random amount from `low` to below `high` whole units, with up to `decimals` decimals.
pub fn units(random: &mut Random, low: u64, high: u64, decimals: u32, scale: u32) -> u128 {
    let decimals = decimals.min(scale);
    let whole = u128::from(low + random.below(high - low));
    let fraction = u128::from(random.below(10_u64.pow(decimals)));
    whole * 10_u128.pow(scale) + fraction * 10_u128.pow(scale - decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Number;

    #[test]
    fn formats_of_an_amount_are_equal() {
        for (units, scale, expected) in [
            (2_625_000_000_000, 18, ["0.000002625", "0.000002625000000000", "2.625E-6"]),
            (1_500_000, 6, ["1.5", "1.500000", "1.5E0"]),
            (1, 18, ["0.000000000000000001", "0.000000000000000001", "1.0E-18"]),
            (120, 0, ["120", "120", "1.2E2"]),
            (0, 2, ["0", "0.00", "0"]),
        ] {
            let spelt = [Spelling::Bare, Spelling::Padded, Spelling::Exponent].map(|way| decimal(units, scale, way));
            assert_eq!(spelt, expected);
            let numbers = spelt.each_ref().map(|text| Number::parse(text).unwrap().canonical());
            assert!(numbers.iter().all(|number| *number == numbers[0]));
        }
    }

    #[test]
    fn amounts_have_at_most_the_given_decimals() {
        let mut random = Random::new(3, "");
        for _ in 0..100 {
            let units = units(&mut random, 5, 9, 2, 18);
            assert_eq!(units % 10_u128.pow(16), 0);
            assert!((5..9).contains(&(units / 10_u128.pow(18))));
        }
    }
}
