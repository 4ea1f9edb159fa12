//! The three secrets: never printed, and redacted from whatever the service echoes. The copies made here are zeroed when
//! they are dropped; those in the headers of requests, and in the buffers of the HTTP client, are not.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use zeroize::Zeroizing;

/// A string that no `Debug`, `Display` or serializer shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub api_key: Secret,
    pub secret_key: Secret,
    pub passphrase: Secret,
}

const MASK: u8 = b'*';
/// Shortest secret that is redacted in messages.
const MIN_SECRET_LEN: usize = 2;
/// Shortest secret that is redacted in data: shorter strings occur there by chance.
const MIN_SECRET_LEN_IN_DATA: usize = 8;
/// Minimum length of base64 that is redacted.
const MIN_ENCODED_LEN: usize = 8;
/// Levels of escapes that are undone, as of a URL within JSON within HTML.
const MAX_ESCAPE_DEPTH: usize = 3;

/// Longer texts are searched in chunks, which overlap by more than any secret is long, however escaped.
const CHUNK: usize = 1 << 20;
const OVERLAP: usize = 32 << 10;

impl Credentials {
    /// The bytes with every occurrence of a secret or of `signature`, however escaped or encoded, overwritten in place,
    /// so that positions stay the same.
    pub fn redact(&self, text: &[u8], signature: &str) -> Vec<u8> {
        redacted(text, &[&self.all()[..], &[signature]].concat())
    }

    /// The data of a response with its secrets overwritten, apart from short ones, which are data.
    pub fn redact_data(&self, text: &[u8], signature: &str) -> Vec<u8> {
        redacted(text, &[&self.long()[..], &[signature]].concat())
    }

    /// True if a text is a secret, or holds one that is too long for chance.
    pub fn is_shown_by(&self, text: &str) -> bool {
        let is_one = self.all().iter().any(|secret| secret.eq_ignore_ascii_case(text));
        is_one || redacted(text.as_bytes(), &self.long()) != text.as_bytes()
    }

    fn all(&self) -> [&str; 3] {
        [self.api_key.expose(), self.secret_key.expose(), self.passphrase.expose()]
    }

    fn long(&self) -> Vec<&str> {
        self.all().into_iter().filter(|secret| secret.len() >= MIN_SECRET_LEN_IN_DATA).collect()
    }
}

fn redacted(text: &[u8], texts: &[&str]) -> Vec<u8> {
    let mut masked = text.to_vec();
    overwrite(&mut masked, texts);
    masked
}

/// Overwrites a text, however escaped or encoded.
pub fn redact_in_place(body: &mut [u8], text: &str) {
    overwrite(body, &[text]);
}

fn overwrite(body: &mut [u8], texts: &[&str]) {
    let encodings: Vec<_> = texts.iter().flat_map(|text| encodings(text.as_bytes())).collect();
    let mut from = 0;
    loop {
        let chunk = &mut body[from..];
        let length = chunk.len().min(CHUNK);
        let last = length == chunk.len();
        let mut view = DecodedView::of(&chunk[..length]);
        for _ in 0..=MAX_ESCAPE_DEPTH {
            for encoding in &encodings {
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
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let digit = |group: usize| (0..5).fold(0, |digit, at| digit << 1 | bit(group * 5 + at));
    Zeroizing::new((0..(bytes.len() * 8).div_ceil(5)).map(|group| ALPHABET[usize::from(digit(group))]).collect())
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

    fn overwrite(&self, form: &[u8], original: &mut [u8]) {
        let form = Zeroizing::new(form.iter().copied().map(fold_byte).collect::<Vec<u8>>());
        for (at, window) in self.folded.windows(form.len()).enumerate() {
            if window[0] == form[0] && *window == form[..] {
                let (from, to) = (self.ranges[at].0, self.ranges[at + form.len() - 1].1);
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

/// The escape of JSON, of a URL or of HTML that `text` begins with, and its length.
fn escape(text: &[u8]) -> Option<(Unescaped, usize)> {
    let digits = |digits: &[u8], radix| {
        let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
        u32::from_str_radix(digits, radix).ok()
    };
    let character = |code: Option<u32>| code.and_then(char::from_u32).map(Unescaped::Char);
    match text {
        [b'\\', b'u', rest @ ..] => Some((character(digits(rest.get(..4)?, 16))?, 6)),
        [b'\\', byte @ (b'"' | b'/' | b'\\'), ..] => Some((Unescaped::Byte(*byte), 2)),
        [b'%', rest @ ..] => Some((Unescaped::Byte(digits(rest.get(..2)?, 16)? as u8), 3)),
        [b'&', rest @ ..] => {
            let end = rest.iter().take(10).position(|byte| *byte == b';')?;
            let unescaped = match &rest[..end] {
                b"amp" => Unescaped::Byte(b'&'),
                b"lt" => Unescaped::Byte(b'<'),
                b"gt" => Unescaped::Byte(b'>'),
                b"quot" => Unescaped::Byte(b'"'),
                b"apos" => Unescaped::Byte(b'\''),
                [b'#', b'x' | b'X', code @ ..] => character(digits(code, 16))?,
                [b'#', code @ ..] => character(digits(code, 10))?,
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

    fn credentials() -> Credentials {
        let secret = |text: &str| Secret::new(text.into());
        Credentials { api_key: secret("KEY-1234"), secret_key: secret("s/cr+t="), passphrase: secret("pass \"word\"") }
    }

    fn left_of(echo: &str) -> String {
        let masked = String::from_utf8(credentials().redact(echo.as_bytes(), "sig+1/x=")).unwrap();
        assert_eq!(masked.len(), echo.len());
        masked.replace('*', "")
    }

    #[test]
    fn echoed_secrets_are_redacted_in_every_encoding() {
        for echo in [
            "KEY-1234",
            "key-1234",
            r"\u004b\u0045\u0059-1234",
            r"K\u0045Y%2D1234",
            r"\u0025\u0034\u0042EY-1234",
            "KEY&#45;12&#x33;4",
            "s/cr+t=",
            r"s\/cr+t=",
            "s%2Fcr%2Bt%3D",
            "s%252fcr%252bt%253d",
            r"s\u002fcr\u002bt\u003d",
            r#"pass \"word\""#,
            "pass &quot;word&quot;",
            "pass+%22word%22",
            "sig+1/x=",
            "sig-1_x=",
            "sig-1_x",
            "sig%2B1%2Fx%3D",
            "SIG+1/X=",
        ] {
            assert_eq!(left_of(&format!("before {echo} after")), "before  after", "{echo}");
        }
    }

    #[test]
    fn echoed_secrets_are_redacted_at_any_base64_offset() {
        use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
        for before in ["", "a", "ab", "abc"] {
            for after in ["", ":", ":x", ":xy"] {
                let text = format!("{before}KEY-1234{after}");
                for echo in
                    [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text), STANDARD.encode(&text).to_lowercase()]
                {
                    let left = left_of(&echo).len();
                    // Only the surrounding text may remain, and up to six base64 characters that encode parts of both.
                    assert!(left <= before.len() + after.len() + 6 && left + 8 <= echo.len(), "{echo}: {left}");
                }
            }
        }
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
            let masked = credentials().redact(&text, "sig+1/x=");
            assert_eq!(&masked[at - 1..at + 9], b" ******** ");
        }
    }

    #[test]
    fn incomplete_escape_is_kept() {
        let text = r"100% &c \u12 \ud800 %zz &#x110000; &amp %+1 \u+123";
        assert_eq!(left_of(text), text);
    }

    #[test]
    fn only_long_secrets_are_redacted_in_data() {
        let credentials = Credentials { passphrase: Secret::new("eth".into()), ..credentials() };
        let text = b"WETH of KEY-1234 of s/cr+t= of eth";
        assert_eq!(credentials.redact_data(text, "sig+1/x="), b"WETH of ******** of s/cr+t= of eth");
        assert_eq!(credentials.redact(text, "sig+1/x="), b"W*** of ******** of ******* of ***");
        for (text, shown) in [("0xeth", false), ("ETH", true), ("0xkey-1234", true), ("s/cr+t=", true), ("", false)] {
            assert_eq!(credentials.is_shown_by(text), shown, "{text}");
        }
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let shown = format!("{:?}", credentials());
        assert!(!shown.contains("KEY") && !shown.contains("cr+t") && !shown.contains("word"), "{shown}");
    }
}
