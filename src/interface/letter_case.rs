//! The letter case of addresses and hashes.

use std::borrow::Cow;

/// True for addresses and hashes in hexadecimal digits, which mean the same in either letter case. In base58 the case of a
/// letter counts.
pub fn is_hexadecimal(value: &[u8]) -> bool {
    matches!(value, [b'0', b'x' | b'X', ..])
}

/// Returns the text that the spellings of one value have in common.
pub fn in_one_case(value: &str) -> Cow<'_, str> {
    if is_hexadecimal(value.as_bytes()) { value.to_ascii_lowercase().into() } else { value.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letter_case_is_one_for_hexadecimal_values_only() {
        assert_eq!(in_one_case("0XaBc"), "0xabc");
        assert_eq!(in_one_case("TQn9Y2"), "TQn9Y2");
    }
}
