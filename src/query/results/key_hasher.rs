//! `KeyHasher`: the hash of a record's values. The values of a page are added column by column: the type of a column is
//! looked at once, and the processor works on several rows at a time.

use arrow_array::ArrayAccessor;
use arrow_array::cast::AsArray;
use wide::u8x16;

use crate::columns::{Column, Columns};
use crate::interface::{Kind, Number, is_shortest};

/// Hash of a sequence of byte strings. Each string is read in words of eight bytes, little-endian, the last one padded
/// with zeros; each word is mixed with its number of bytes, then multiplied and folded. 0xff ends a string.
#[derive(Clone, Copy)]
pub struct KeyHasher(u64);

/// Bytes of two words.
type TwoWords = [u8; 16];

impl KeyHasher {
    pub fn new() -> Self {
        Self(0x5851_f42d_4c95_7f2d)
    }

    pub fn finish(self) -> u64 {
        self.0
    }

    /// Adds the values of a column to the hashes of as many rows, from the row `first` on.
    pub fn write_column(rows: &mut [Self], columns: &Columns, column: usize, first: usize) {
        let is_number = matches!(columns.kind(column), Kind::Amount | Kind::ApproxDecimal | Kind::Uint256);
        match columns.column(column) {
            Column::Integer(values) => write_each(rows, values, first, |row, value| row.mix(value.cast_unsigned(), 8)),
            Column::Time(values) => write_each(rows, values, first, |row, value| row.mix(value.cast_unsigned(), 8)),
            Column::Boolean(values) => write_each(rows, values, first, |row, value| row.mix(value.into(), 1)),
            Column::Utf8(texts) if is_number => write_each(rows, texts, first, Self::write_number),
            Column::Utf8(texts) => write_each(rows, texts, first, Self::write_text),
            Column::Utf8View(texts) if is_number => write_each(rows, texts, first, Self::write_number),
            Column::Utf8View(texts) => write_each(rows, texts, first, Self::write_text),
            Column::Utf8List(lists) => write_each(rows, lists, first, |row, list| {
                for text in list.as_string::<i32>() {
                    row.write_text(text.unwrap_or_default());
                    row.end_string();
                }
            }),
            Column::Skipped(_) => rows.iter_mut().for_each(Self::end_string),
        }
    }

    /// Adds the key of a record.
    pub fn write_key(&mut self, key: u64) {
        self.mix(key, 8);
    }

    fn end_string(&mut self) {
        self.mix(0xff, 1);
    }

    /// Hashes and addresses mean the same in either letter case, and services send both.
    #[inline]
    pub fn write_text(&mut self, text: &str) {
        match text.as_bytes() {
            hex @ [b'0', b'x' | b'X', ..] => self.write_pairs(hex, ascii_lowercase),
            other => self.write_pairs(other, |pair| pair),
        }
    }

    /// A number by its value.
    fn write_number(&mut self, text: &str) {
        let other = if is_shortest(text) { None } else { Number::parse(text).map(|number| number.shortest()) };
        self.write_pairs(other.as_deref().unwrap_or(text).as_bytes(), |pair| pair);
    }

    #[inline]
    fn write_pairs(&mut self, bytes: &[u8], mapped: impl Fn(TwoWords) -> TwoWords) {
        let (pairs, rest) = bytes.as_chunks();
        for pair in pairs {
            let [low, high] = words(mapped(*pair));
            self.mix(low, 8);
            self.mix(high, 8);
        }
        if rest.is_empty() {
            return;
        }
        let [low, high] = words(mapped(last_pair(bytes, rest)));
        self.mix(low, rest.len().min(8));
        if rest.len() > 8 {
            self.mix(high, rest.len() - 8);
        }
    }

    #[inline]
    fn mix(&mut self, word: u64, bytes: usize) {
        self.0 = (self.0 ^ word ^ bytes as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }
}

#[inline]
fn write_each<A: ArrayAccessor>(
    rows: &mut [KeyHasher],
    values: A,
    first: usize,
    write: impl Fn(&mut KeyHasher, A::Item),
) {
    for (row, hasher) in (first..).zip(rows) {
        if values.is_valid(row) {
            write(hasher, values.value(row));
        }
        hasher.end_string();
    }
}

/// The rest of the bytes after whole pairs, padded with zeros.
#[inline]
fn last_pair(bytes: &[u8], rest: &[u8]) -> TwoWords {
    match bytes.last_chunk() {
        // One read of the pair that ends there, which is faster than a copy of some bytes.
        Some(end) => (u128::from_le_bytes(*end) >> (128 - 8 * rest.len())).to_le_bytes(),
        None => {
            let mut pair = [0; 16];
            pair[..rest.len()].copy_from_slice(rest);
            pair
        }
    }
}

#[inline]
fn words(pair: TwoWords) -> [u64; 2] {
    let pair = u128::from_le_bytes(pair);
    [pair as u64, (pair >> 64) as u64]
}

/// The capital letters of ASCII in lower case, sixteen bytes at once: every record has some 300 bytes of hex.
#[inline]
fn ascii_lowercase(pair: TwoWords) -> TwoWords {
    let text = u8x16::new(pair);
    // The place of a letter in the alphabet; other bytes are beyond its end.
    let place = text - u8x16::splat(b'A');
    let is_capital = place.min(u8x16::splat(25)).simd_eq(place);
    (text | is_capital & u8x16::splat(b'a' - b'A')).to_array()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capital_letters_of_ascii_and_no_other_bytes_become_lower_case() {
        for byte in 0..=u8::MAX {
            for place in 0..16 {
                let mut pair = [b'0'; 16];
                pair[place] = byte;
                let expected = pair.map(|byte| byte.to_ascii_lowercase());
                assert_eq!(ascii_lowercase(pair), expected, "{byte:#x} at {place}");
            }
        }
    }

    /// Compares texts of every length with the definition: words of eight bytes, the last one padded.
    #[test]
    fn texts_are_hashed_by_words_of_eight_bytes() {
        let text = "0xFEDCBA9876543210ABCDEFabcdef0123456789";
        for length in 0..=text.len() {
            let mut hasher = KeyHasher::new();
            hasher.write_text(&text[..length]);
            let mut expected = KeyHasher::new();
            let lower = if length < 2 { text.to_owned() } else { text.to_ascii_lowercase() };
            for word in lower.as_bytes()[..length].chunks(8) {
                let value = word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
                expected.mix(value, word.len());
            }
            assert_eq!(hasher.finish(), expected.finish(), "{length}");
        }
    }
}
