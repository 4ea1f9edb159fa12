//! The three secrets: held zeroed on drop, never printed, and struck out of whatever the service echoes.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use zeroize::Zeroizing;

/// Text that no `Debug`, `Display` or serialiser shows.
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
/// Shorter texts are no secrets worth garbling a message for.
const LEAST: usize = 2;
/// Shorter texts come in data by chance, and are not looked for there.
const LEAST_IN_DATA: usize = 8;
/// Shorter stretches of base64 stand for anything.
const LEAST_ENCODED: usize = 8;
/// How often a text may be escaped over, as a URL within JSON within a page for people.
const DEEPEST: usize = 3;

/// Longer texts are searched piece by piece, which overlap by more than any secret is long, however escaped.
const PIECE: usize = 1 << 20;
const OVERLAP: usize = 32 << 10;

impl Credentials {
    /// The bytes with every occurrence of a secret or of `signature`, however escaped or encoded, overwritten in place,
    /// so that positions stay what they were.
    pub fn mask(&self, text: &[u8], signature: &str) -> Vec<u8> {
        masked(text, &[&self.all()[..], &[signature]].concat())
    }

    /// The same of an answer's data, where shorter texts are data.
    pub fn mask_in_data(&self, text: &[u8], signature: &str) -> Vec<u8> {
        masked(text, &[&self.long()[..], &[signature]].concat())
    }

    /// Whether a text is a secret, or holds one that is no chance.
    pub fn is_shown_by(&self, text: &str) -> bool {
        let is_one = self.all().iter().any(|secret| secret.eq_ignore_ascii_case(text));
        is_one || masked(text.as_bytes(), &self.long()) != text.as_bytes()
    }

    fn all(&self) -> [&str; 3] {
        [self.api_key.expose(), self.secret_key.expose(), self.passphrase.expose()]
    }

    fn long(&self) -> Vec<&str> {
        self.all().into_iter().filter(|secret| secret.len() >= LEAST_IN_DATA).collect()
    }
}

fn masked(text: &[u8], texts: &[&str]) -> Vec<u8> {
    let mut masked = text.to_vec();
    overwrite(&mut masked, texts);
    masked
}

/// Overwrites a text, however escaped or encoded.
pub fn strike(body: &mut [u8], text: &str) {
    overwrite(body, &[text]);
}

fn overwrite(body: &mut [u8], texts: &[&str]) {
    let forms: Vec<Vec<u8>> = texts.iter().flat_map(|text| forms(text.as_bytes())).collect();
    let mut from = 0;
    loop {
        let piece = &mut body[from..];
        let length = piece.len().min(PIECE);
        let last = length == piece.len();
        let mut view = View::of(&piece[..length]);
        for _ in 0..=DEEPEST {
            for form in &forms {
                view.overwrite(form, piece);
            }
            match view.unfold() {
                Some(unfolded) => view = unfolded,
                None => break,
            }
        }
        if last {
            return;
        }
        from += PIECE - OVERLAP;
    }
}

/// A secret as it is, without the padding of base64, as forms send it, and as it stands within base64, where it may
/// begin at any of three places in a group.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let unpadded = &secret[..secret.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1)];
    let of_form: Vec<u8> = secret.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect();
    let mut forms: Vec<Vec<u8>> =
        [secret, unpadded, &of_form].iter().filter(|form| form.len() >= LEAST).map(|form| form.to_vec()).collect();
    for (before, begun) in [(0, 0), (1, 2), (2, 3)] {
        let encoded = STANDARD_NO_PAD.encode([&[0; 2][..before], secret].concat());
        // The last character is the secret's alone only where a group ends with it.
        let end = encoded.len() - usize::from(!(before + secret.len()).is_multiple_of(3));
        forms.extend(encoded.as_bytes().get(begun..end).filter(|form| form.len() >= LEAST_ENCODED).map(<[u8]>::to_vec));
    }
    forms
}

/// Bytes, and where in the original each of them stood.
struct View {
    bytes: Vec<u8>,
    places: Vec<(u32, u32)>,
}

impl View {
    fn of(text: &[u8]) -> Self {
        Self { bytes: text.to_vec(), places: (0..text.len() as u32).map(|at| (at, at + 1)).collect() }
    }

    /// The same without one layer of escapes, if it had any.
    fn unfold(&self) -> Option<Self> {
        let mut unfolded = Self { bytes: Vec::with_capacity(self.bytes.len()), places: Vec::new() };
        let mut at = 0;
        while at < self.bytes.len() {
            let (character, length) = escape(&self.bytes[at..]).unwrap_or((Unescaped::Byte(self.bytes[at]), 1));
            let place = (self.places[at].0, self.places[at + length - 1].1);
            let mut utf8 = [0; 4];
            let bytes = match character {
                Unescaped::Byte(byte) => &[byte][..],
                Unescaped::Char(character) => character.encode_utf8(&mut utf8).as_bytes(),
            };
            unfolded.bytes.extend_from_slice(bytes);
            unfolded.places.resize(unfolded.bytes.len(), place);
            at += length;
        }
        (unfolded.bytes != self.bytes).then_some(unfolded)
    }

    fn overwrite(&self, form: &[u8], original: &mut [u8]) {
        for (at, window) in self.bytes.windows(form.len()).enumerate() {
            if window.iter().zip(form).all(|(a, b)| alike(*a) == alike(*b)) {
                let (from, to) = (self.places[at].0, self.places[at + form.len() - 1].1);
                original[from as usize..to as usize].fill(MASK);
            }
        }
    }
}

/// What a byte is without regard to case and to which of its two alphabets base64 was written in.
const fn alike(byte: u8) -> u8 {
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
        let masked = String::from_utf8(credentials().mask(echo.as_bytes(), "sig+1/x=")).unwrap();
        assert_eq!(masked.len(), echo.len());
        masked.replace('*', "")
    }

    #[test]
    fn echoes_are_masked_in_every_form() {
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
    fn echoes_within_base64_are_masked_wherever_they_begin() {
        use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
        for before in ["", "a", "ab", "abc"] {
            for after in ["", ":", ":x", ":xy"] {
                let text = format!("{before}KEY-1234{after}");
                for echo in
                    [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text), STANDARD.encode(&text).to_lowercase()]
                {
                    let left = left_of(&echo).len();
                    // What is left are the neighbours, and characters that they share with the secret.
                    assert!(left <= before.len() + after.len() + 6 && left + 8 <= echo.len(), "{echo}: {left}");
                }
            }
        }
    }

    #[test]
    fn an_echo_where_two_pieces_meet_is_masked() {
        for at in [PIECE - 4, PIECE - OVERLAP - 4, 2 * PIECE] {
            let mut text = vec![b' '; 3 * PIECE];
            text[at..at + 8].copy_from_slice(b"KEY-1234");
            let masked = credentials().mask(&text, "sig+1/x=");
            assert_eq!(&masked[at - 1..at + 9], b" ******** ");
        }
    }

    #[test]
    fn what_only_looks_like_an_escape_stays() {
        let text = r"100% &c \u12 \ud800 %zz &#x110000; &amp %+1 \u+123";
        assert_eq!(left_of(text), text);
    }

    #[test]
    fn data_is_struck_of_long_secrets_only() {
        let credentials = Credentials { passphrase: Secret::new("eth".into()), ..credentials() };
        let text = b"WETH of KEY-1234 of s/cr+t= of eth";
        assert_eq!(credentials.mask_in_data(text, "sig+1/x="), b"WETH of ******** of s/cr+t= of eth");
        assert_eq!(credentials.mask(text, "sig+1/x="), b"W*** of ******** of ******* of ***");
        for (text, shown) in [("0xeth", false), ("ETH", true), ("0xkey-1234", true), ("s/cr+t=", true), ("", false)] {
            assert_eq!(credentials.is_shown_by(text), shown, "{text}");
        }
    }

    #[test]
    fn debug_shows_nothing() {
        let shown = format!("{:?}", credentials());
        assert!(!shown.contains("KEY") && !shown.contains("cr+t") && !shown.contains("word"), "{shown}");
    }
}
