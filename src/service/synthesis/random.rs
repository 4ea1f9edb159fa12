//! Chance from a seed: splitmix64, written out, since a library's generator may change and the chain must not.

#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Streams of different names are independent: what one takes does not change what another gives.
    pub fn new(seed: u64, stream: &str) -> Self {
        let mut random = Self(seed);
        for byte in stream.bytes() {
            random.0 = random.next() ^ u64::from(byte);
        }
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Takes a number that is no longer used, so that what follows stays what it was.
    pub fn skip(&mut self) {
        self.next();
    }

    /// From 0 to one less than `limit`; 0 if there is no room.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as u64) as i64
    }

    pub fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1_000) < chance
    }

    /// Small numbers far more often than large ones, as with anything popular.
    pub fn popular(&mut self, len: usize) -> usize {
        let first = self.below(1 << 20);
        let second = self.below(1 << 20);
        ((u128::from(first) * u128::from(second) * len as u128) >> 40) as usize
    }

    /// Random bytes in hexadecimal, with the prefix `0x`.
    pub fn hex(&mut self, bytes: usize) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(2 + 2 * bytes);
        text.push_str("0x");
        let mut bits = 0;
        for index in 0..bytes * 2 {
            if index % 16 == 0 {
                bits = self.next();
            }
            text.push(char::from(DIGITS[(bits & 15) as usize]));
            bits >>= 4;
        }
        text
    }

    pub fn hash(&mut self) -> String {
        self.hex(32)
    }

    pub fn address(&mut self) -> String {
        self.hex(20)
    }

    /// A random integer of `count` decimal digits.
    pub fn digits(&mut self, count: usize) -> String {
        let first = char::from(b'1' + self.below(9) as u8);
        std::iter::once(first).chain((1..count).map(|_| char::from(b'0' + self.below(10) as u8))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_and_name_determine_the_stream() {
        let first = |seed, name| Random::new(seed, name).next();
        assert_eq!(first(7, "a"), first(7, "a"));
        assert_ne!(first(7, "a"), first(8, "a"));
        assert_ne!(first(7, "a"), first(7, "b"));
        // The reference output of splitmix64 for seed 0.
        assert_eq!(first(0, ""), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn numbers_stay_in_range() {
        let mut random = Random::new(1, "");
        for _ in 0..1_000 {
            assert!((-3..=3).contains(&random.between(-3, 3)));
            assert!(random.popular(10) < 10);
        }
        assert_eq!(random.below(0), 0);
        assert_eq!(random.hash().len(), 66);
        assert_eq!(random.digits(78).len(), 78);
    }
}
