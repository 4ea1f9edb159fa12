//! Bitmap of the bytes at which a plain part of a JSON string ends: quotes, backslashes and control characters.

use wide::u8x16;

/// Bit i of word n: byte 64 n + i.
pub(super) struct Specials(Vec<u64>);

impl Specials {
    pub fn of(text: &[u8]) -> Self {
        let (blocks, rest) = text.as_chunks();
        let mut last = [b' '; 64];
        last[..rest.len()].copy_from_slice(rest);
        Self(blocks.iter().chain([&last]).map(bits).collect())
    }

    /// Index of the first special byte from `at` on, if there is one.
    #[inline]
    pub fn next(&self, at: usize) -> Option<usize> {
        let word = at / 64;
        let first = self.0.get(word)? >> (at % 64);
        if first != 0 {
            return Some(at + first.trailing_zeros() as usize);
        }
        let (after, bits) = self.0[word + 1..].iter().enumerate().find(|(_, bits)| **bits != 0)?;
        Some((word + 1 + after) * 64 + bits.trailing_zeros() as usize)
    }
}

#[inline]
fn bits(block: &[u8; 64]) -> u64 {
    let parts = block.as_chunks().0.iter().rev();
    parts.fold(0, |bits, part| bits << 16 | u64::from(bits_of(u8x16::new(*part))))
}

#[inline]
fn bits_of(bytes: u8x16) -> u32 {
    // A quote is 0x22 and a blank 0x20. After this change of one bit, which maps the control characters to each other, a
    // quote is 0x20, and a blank is not: the bytes up to 0x20 are quotes and control characters.
    let folded = bytes ^ u8x16::splat(b'"' ^ b' ');
    let is_quote_or_control = folded.min(u8x16::splat(b' ')).simd_eq(folded);
    (is_quote_or_control | bytes.simd_eq(u8x16::splat(b'\\'))).to_bitmask()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_next_special_byte_is_found(bytes in "[\u{0}\u{1F}\\\\\" !é\u{7F}]{0,200}", plain in 0_usize..200, at in 0_usize..600) {
            let text = " ".repeat(plain) + &bytes;
            let special = |byte: u8| matches!(byte, b'"' | b'\\') || byte < 0x20;
            let expected = text.bytes().enumerate().skip(at).find(|(_, byte)| special(*byte)).map(|(index, _)| index);
            prop_assert_eq!(Specials::of(text.as_bytes()).next(at), expected);
        }
    }
}
