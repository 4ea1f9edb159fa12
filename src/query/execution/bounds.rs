//! `Bounds`: an expected number, and what it lies between.

/// An expected number with its lower and upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub expected: u64,
    pub low: u64,
    /// `None` if only the lower bound is known, which is then expected.
    pub high: Option<u64>,
}

impl Bounds {
    pub fn exact(number: u64) -> Self {
        Self { expected: number, low: number, high: Some(number) }
    }

    pub fn at_least(number: u64) -> Self {
        Self { expected: number, low: number, high: None }
    }

    pub fn between(low: u64, expected: u64, high: u64) -> Self {
        Self { expected: expected.clamp(low, high.max(low)), low, high: Some(high.max(low)) }
    }

    pub fn is_exact(self) -> bool {
        self.high == Some(self.low)
    }

    /// Applies a function that does not decrease.
    pub fn map(self, function: impl Fn(u64) -> u64) -> Self {
        Self { expected: function(self.expected), low: function(self.low), high: self.high.map(&function) }
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            expected: self.expected.saturating_add(other.expected),
            low: self.low.saturating_add(other.low),
            high: self.high.zip(other.high).map(|(left, right)| left.saturating_add(right)),
        }
    }

    /// At most `max`.
    pub fn limited_to(self, max: u64) -> Self {
        let high = self.high.map_or(max, |high| high.min(max));
        Self {
            expected: if self.high.is_some() { self.expected.min(max) } else { max },
            low: self.low.min(max),
            high: Some(high),
        }
    }

    /// The same bounds, but any smaller number is possible.
    pub fn or_fewer(self) -> Self {
        Self { low: 0, ..self }
    }

    pub fn minus(self, offset: u64) -> Self {
        self.map(|number| number.saturating_sub(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_stay_in_order() {
        let about = Bounds::between(3, 9, 7);
        assert_eq!(about, Bounds { expected: 7, low: 3, high: Some(7) });
        assert_eq!(about.plus(Bounds::exact(2)).minus(6), Bounds { expected: 3, low: 0, high: Some(3) });
        assert_eq!(about.plus(Bounds::at_least(1)).high, None);
        assert_eq!(about.limited_to(5), Bounds { expected: 5, low: 3, high: Some(5) });
        assert_eq!(Bounds::at_least(10).limited_to(7), Bounds::exact(7));
        assert_eq!(Bounds::at_least(3).limited_to(7), Bounds { expected: 7, low: 3, high: Some(7) });
        assert_eq!(Bounds::between(0, u64::MAX, u64::MAX).plus(about).expected, u64::MAX);
        assert!(Bounds::exact(4).is_exact() && !about.is_exact());
    }
}
