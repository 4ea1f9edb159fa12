//! Texts that must not be shown, overwritten wherever they occur, however escaped or encoded.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use zeroize::Zeroizing;

const MASK: u8 = b'*';
/// Shortest text that is overwritten.
const MIN_SECRET_LEN: usize = 2;
/// Minimum length of base64 that is redacted.
const MIN_ENCODED_LEN: usize = 8;
/// Levels of escapes that are undone, as of a URL within JSON within HTML.
const MAX_ESCAPE_DEPTH: usize = 3;

/// Longer texts are searched in chunks, which overlap by more than any secret is long, however escaped.
const CHUNK: usize = 1 << 20;
const OVERLAP: usize = 32 << 10;

/// The bytes with every occurrence of the texts, however escaped or encoded, overwritten, so that positions stay the same.
pub fn redacted(text: &[u8], texts: &[&str]) -> Vec<u8> {
    let mut masked = text.to_vec();
    overwrite(&mut masked, texts);
    masked
}

/// Overwrites texts, however escaped or encoded.
pub fn overwrite(body: &mut [u8], texts: &[&str]) {
    Encodings::of(texts).overwrite(body);
}

/// The encodings of texts, as they are compared.
pub struct Encodings(Vec<Zeroizing<Vec<u8>>>);

impl Encodings {
    pub fn of(texts: &[&str]) -> Self {
        let encodings = texts.iter().flat_map(|text| encodings(text.as_bytes()));
        Self(encodings.map(|encoding| Zeroizing::new(encoding.iter().copied().map(fold_byte).collect())).collect())
    }

    /// True if any of the texts occurs, however escaped or encoded.
    #[cfg(feature = "service")]
    pub fn are_in(&self, text: &str) -> bool {
        let mut masked = text.as_bytes().to_vec();
        self.overwrite(&mut masked);
        masked != text.as_bytes()
    }

    fn overwrite(&self, body: &mut [u8]) {
        let mut from = 0;
        loop {
            let chunk = &mut body[from..];
            let length = chunk.len().min(CHUNK);
            let last = length == chunk.len();
            let mut view = DecodedView::of(&chunk[..length]);
            for _ in 0..=MAX_ESCAPE_DEPTH {
                for encoding in &self.0 {
                    view.overwrite(encoding, chunk);
                }
                match view.unescape_once() {
                    Some(unescaped) => view = unescaped,
                    None => break,
                }
            }
            if last {
                return;
            }
            from += CHUNK - OVERLAP;
        }
    }
}

/// A secret as it is, without the padding of base64, as HTML forms send it, in hex, and within base32 and base64, where it
/// may begin at any of five or three positions in a group.
fn encodings(secret: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let unpadded = &secret[..secret.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1)];
    let of_form: Zeroizing<Vec<u8>> =
        Zeroizing::new(secret.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect());
    let long_enough = [secret, unpadded, &of_form].into_iter().filter(|encoding| encoding.len() >= MIN_SECRET_LEN);
    let mut encodings: Vec<_> = long_enough.map(|encoding| Zeroizing::new(encoding.to_vec())).collect();
    // Comparison ignores case, so each alphabet is written in one.
    let hex: Vec<String> = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    for hex in [hex.concat(), hex.join(":")] {
        encodings.extend(Some(Zeroizing::new(hex.into_bytes())).filter(|hex| hex.len() >= MIN_ENCODED_LEN));
    }
    // Within base32 a secret may begin at any of five positions in a group.
    for before in 0..5 {
        let shifted = Zeroizing::new([&[0; 4][..before], secret].concat());
        let encoded = base32(&shifted);
        // The first and the last character may hold bits of the neighbors.
        let part = encoded.get((before * 8).div_ceil(5)..shifted.len() * 8 / 5);
        let long_enough = part.filter(|part| part.len() >= MIN_ENCODED_LEN);
        encodings.extend(long_enough.map(|part| Zeroizing::new(part.to_vec())));
    }
    for (before, begun) in [(0, 0), (1, 2), (2, 3)] {
        let shifted = Zeroizing::new([&[0; 2][..before], secret].concat());
        let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(&*shifted));
        // The last character is the secret's alone only where a group ends with it.
        let end = encoded.len() - usize::from(!(before + secret.len()).is_multiple_of(3));
        let part = encoded.as_bytes().get(begun..end).filter(|part| part.len() >= MIN_ENCODED_LEN);
        encodings.extend(part.map(|part| Zeroizing::new(part.to_vec())));
    }
    encodings
}

/// Base32 of RFC 4648, without padding.
fn base32(bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let digits = (0..(bytes.len() * 8).div_ceil(5)).map(|index| base32_digit(bytes, index));
    Zeroizing::new(digits.map(|digit| ALPHABET[usize::from(digit)]).collect())
}

/// The five bits of a digit, of which those beyond the end are 0.
fn base32_digit(bytes: &[u8], index: usize) -> u8 {
    (index * 5..index * 5 + 5).fold(0, |digit, at| {
        let bit = bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
        digit << 1 | bit
    })
}

/// Bytes without some levels of escapes, and the range in the original that each of them comes from.
struct DecodedView {
    bytes: Vec<u8>,
    /// The bytes as they are compared.
    folded: Vec<u8>,
    ranges: Vec<(u32, u32)>,
}

impl DecodedView {
    fn of(text: &[u8]) -> Self {
        let folded = text.iter().copied().map(fold_byte).collect();
        Self { bytes: text.to_vec(), folded, ranges: (0..text.len() as u32).map(|at| (at, at + 1)).collect() }
    }

    /// The view without one more level of escapes, if it has any.
    fn unescape_once(&self) -> Option<Self> {
        let mut unescaped =
            Self { bytes: Vec::with_capacity(self.bytes.len()), folded: Vec::new(), ranges: Vec::new() };
        let mut at = 0;
        while at < self.bytes.len() {
            let (character, length) = escape(&self.bytes[at..]).unwrap_or((Unescaped::Byte(self.bytes[at]), 1));
            let range = (self.ranges[at].0, self.ranges[at + length - 1].1);
            let mut utf8 = [0; 4];
            let bytes = match character {
                Unescaped::Byte(byte) => &[byte][..],
                Unescaped::Char(character) => character.encode_utf8(&mut utf8).as_bytes(),
            };
            unescaped.bytes.extend_from_slice(bytes);
            unescaped.ranges.resize(unescaped.bytes.len(), range);
            at += length;
        }
        unescaped.folded = unescaped.bytes.iter().copied().map(fold_byte).collect();
        (unescaped.bytes != self.bytes).then_some(unescaped)
    }

    /// Overwrites the original where a folded form occurs.
    fn overwrite(&self, form: &[u8], original: &mut [u8]) {
        for (at, window) in self.folded.windows(form.len()).enumerate() {
            if window[0] == form[0] && *window == *form {
                let from = self.ranges[at].0;
                let to = self.ranges[at + form.len() - 1].1;
                original[from as usize..to as usize].fill(MASK);
            }
        }
    }
}

/// A byte without regard to case and to the alphabet of base64.
const fn fold_byte(byte: u8) -> u8 {
    match byte {
        b'-' => b'+',
        b'_' => b'/',
        byte => byte.to_ascii_lowercase(),
    }
}

enum Unescaped {
    Byte(u8),
    Char(char),
}

/// The number of these digits.
fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u32::from_str_radix(digits, radix).ok()
}

/// The character whose code has these digits.
fn character(digits: &[u8], radix: u32) -> Option<Unescaped> {
    char::from_u32(number(digits, radix)?).map(Unescaped::Char)
}

/// The escape of JSON, of a URL or of HTML that `text` begins with, and its length.
fn escape(text: &[u8]) -> Option<(Unescaped, usize)> {
    match text {
        [b'\\', b'u', rest @ ..] => Some((character(rest.get(..4)?, 16)?, 6)),
        [b'\\', byte @ (b'"' | b'/' | b'\\'), ..] => Some((Unescaped::Byte(*byte), 2)),
        [b'%', rest @ ..] => Some((Unescaped::Byte(number(rest.get(..2)?, 16)? as u8), 3)),
        [b'&', rest @ ..] => {
            let end = rest.iter().take(10).position(|byte| *byte == b';')?;
            let unescaped = match &rest[..end] {
                b"amp" => Unescaped::Byte(b'&'),
                b"lt" => Unescaped::Byte(b'<'),
                b"gt" => Unescaped::Byte(b'>'),
                b"quot" => Unescaped::Byte(b'"'),
                b"apos" => Unescaped::Byte(b'\''),
                [b'#', b'x' | b'X', code @ ..] => character(code, 16)?,
                [b'#', code @ ..] => character(code, 10)?,
                _ => return None,
            };
            Some((unescaped, end + 2))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_of(echo: &str) -> String {
        let masked = String::from_utf8(redacted(echo.as_bytes(), &["KEY-1234"])).unwrap();
        assert_eq!(masked.len(), echo.len());
        masked.replace('*', "")
    }

    #[test]
    fn echoed_secrets_are_redacted_in_hex_and_base32() {
        for echo in ["4b45592d31323334", "4B45592D31323334", "4b:45:59:2d:31:32:33:34"] {
            assert_eq!(left_of(&format!("before {echo} after")), "before  after", "{echo}");
        }
        assert_eq!(**base32(b"foobar"), *b"MZXW6YTBOI");
        for before in ["", "a", "ab", "abc", "abcd", "abcde"] {
            let encoded = base32(format!("{before}KEY-1234xyz").as_bytes());
            let echo = std::str::from_utf8(&encoded).unwrap();
            for echo in [echo.to_lowercase(), echo.to_owned()] {
                let left = left_of(&echo).len();
                assert!(left <= (before.len() + 3) * 8 / 5 + 3, "{echo}: {left}");
            }
        }
    }

    #[test]
    fn echoed_secret_across_two_chunks_is_redacted() {
        for at in [CHUNK - 4, CHUNK - OVERLAP - 4, 2 * CHUNK] {
            let mut text = vec![b' '; 3 * CHUNK];
            text[at..at + 8].copy_from_slice(b"KEY-1234");
            let masked = redacted(&text, &["KEY-1234"]);
            assert_eq!(&masked[at - 1..at + 9], b" ******** ");
        }
    }
}
