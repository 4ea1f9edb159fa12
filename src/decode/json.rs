//! A cursor over JSON text. Texts without escapes, which is nearly all, are borrowed from it.

use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peek {
    Null,
    True,
    False,
    Number,
    String,
    Array,
    Object,
}

/// Where the text stops being JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken {
    pub index: usize,
    pub problem: &'static str,
}

/// Values nested deeper than this are passed over by nobody's stack.
const DEEPEST: usize = 200;

pub(super) struct Json<'j> {
    text: &'j str,
    at: usize,
    /// Bytes that are no UTF-8 follow the text.
    cut: bool,
    /// The last text that had escapes.
    unescaped: String,
}

/// A text in the JSON, or none if it had escapes.
type Span = Option<Range<usize>>;

impl<'j> Json<'j> {
    pub fn new(body: &'j [u8]) -> Self {
        let (text, cut) = match simdutf8::compat::from_utf8(body) {
            Ok(text) => (text, false),
            Err(error) => (std::str::from_utf8(&body[..error.valid_up_to()]).unwrap_or_default(), true),
        };
        Self { text, at: 0, cut, unescaped: String::new() }
    }

    pub fn current_index(&self) -> usize {
        self.at
    }

    fn here(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn broken<T>(&self, problem: &'static str) -> Result<T, Broken> {
        let ended = self.at >= self.text.len();
        let problem = match (ended, self.cut) {
            (true, true) => "not UTF-8",
            (true, false) => "it breaks off",
            _ => problem,
        };
        Err(Broken { index: self.at, problem })
    }

    fn blanks(&mut self) {
        while matches!(self.here(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// What kind of value comes next.
    #[inline]
    pub fn peek(&mut self) -> Result<Peek, Broken> {
        self.blanks();
        Ok(match self.here() {
            Some(b'"') => Peek::String,
            Some(b'{') => Peek::Object,
            Some(b'[') => Peek::Array,
            Some(b'-' | b'0'..=b'9') => Peek::Number,
            Some(b't') => Peek::True,
            Some(b'f') => Peek::False,
            Some(b'n') => Peek::Null,
            _ => return self.broken("expected a value"),
        })
    }

    /// Steps over `expected`, if it stands here.
    #[inline]
    pub fn take(&mut self, expected: &str) -> bool {
        let found = begins(&self.text.as_bytes()[self.at..], expected.as_bytes());
        if found {
            self.at += expected.len();
        }
        found
    }

    /// Steps into the object or array that stands here; whether there is anything in it.
    pub fn open(&mut self, close: u8) -> Result<bool, Broken> {
        self.at += 1;
        self.blanks();
        let empty = self.here() == Some(close);
        self.at += usize::from(empty);
        Ok(!empty)
    }

    /// Steps to the next member or item, or out of what has no more.
    #[inline]
    pub fn more(&mut self, close: u8) -> Result<bool, Broken> {
        self.blanks();
        match self.here() {
            Some(b',') => {
                self.at += 1;
                self.blanks();
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => self.broken("expected a comma or an end"),
        }
    }

    /// The name of a member, up to its value.
    pub fn key(&mut self) -> Result<&str, Broken> {
        if self.here() != Some(b'"') {
            return self.broken("expected a member's name");
        }
        let span = self.string()?;
        self.blanks();
        if self.here() != Some(b':') {
            return self.broken("expected a colon");
        }
        self.at += 1;
        Ok(self.shown(span))
    }

    /// The text that stands here.
    #[inline]
    pub fn text(&mut self) -> Result<&str, Broken> {
        let span = self.string()?;
        Ok(self.shown(span))
    }

    fn shown(&self, span: Span) -> &str {
        span.map_or(&self.unescaped, |span| &self.text[span])
    }

    #[inline]
    fn string(&mut self) -> Result<Span, Broken> {
        let start = self.at + 1;
        let end = special(self.text.as_bytes(), start);
        if self.text.as_bytes().get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(Some(start..end));
        }
        self.escaped(start, end)
    }

    /// The rest of a text that does not end where its first special character is.
    #[cold]
    fn escaped(&mut self, start: usize, mut at: usize) -> Result<Span, Broken> {
        let bytes = self.text.as_bytes();
        while bytes.get(at) == Some(&b'\\') {
            at = special(bytes, (at + 2).min(bytes.len()));
        }
        self.at = at;
        if self.here() != Some(b'"') {
            return self.broken("a control character in a text");
        }
        match serde_json::from_str(&self.text[start - 1..=at]) {
            Ok(text) => self.unescaped = text,
            Err(_) => return self.broken("an escape that is none"),
        }
        self.at += 1;
        Ok(None)
    }

    /// The digits of the number that stands here.
    pub fn number(&mut self) -> Result<&'j str, Broken> {
        let start = self.at;
        self.at += usize::from(self.here() == Some(b'-'));
        let zero = self.here() == Some(b'0');
        let whole = self.digits()?;
        if zero && whole > 1 {
            return self.broken("a number with a leading zero");
        }
        if self.here() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.here(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.here(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> Result<usize, Broken> {
        let start = self.at;
        while matches!(self.here(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { self.broken("expected a digit") } else { Ok(self.at - start) }
    }

    fn word(&mut self, word: &str) -> Result<(), Broken> {
        if self.take(word) { Ok(()) } else { self.broken("expected a value") }
    }

    pub fn flag(&mut self, peek: Peek) -> Result<bool, Broken> {
        let value = peek == Peek::True;
        self.word(if value { "true" } else { "false" })?;
        Ok(value)
    }

    /// Passes over a value of any kind.
    pub fn skip(&mut self) -> Result<(), Broken> {
        self.skip_at(0)
    }

    fn skip_at(&mut self, depth: usize) -> Result<(), Broken> {
        if depth > DEEPEST {
            return self.broken("values nested too deep");
        }
        match self.peek()? {
            Peek::Null => self.word("null"),
            peek @ (Peek::True | Peek::False) => self.flag(peek).map(drop),
            Peek::Number => self.number().map(drop),
            Peek::String => self.string().map(drop),
            Peek::Array => {
                let mut more = self.open(b']')?;
                while more {
                    self.skip_at(depth + 1)?;
                    more = self.more(b']')?;
                }
                Ok(())
            }
            Peek::Object => {
                let mut more = self.open(b'}')?;
                while more {
                    self.key()?;
                    self.skip_at(depth + 1)?;
                    more = self.more(b'}')?;
                }
                Ok(())
            }
        }
    }

    /// Nothing but blanks may follow.
    pub fn finish(&mut self) -> Result<(), Broken> {
        self.blanks();
        if self.at == self.text.len() && !self.cut { Ok(()) } else { self.broken("something follows the answer") }
    }
}

fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

/// Where the next quote, backslash or control character stands, or the end.
#[inline]
fn special(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let found = first_special(chunk);
        at += found;
        if found < 16 {
            return at;
        }
    }
    while bytes.get(at).is_some_and(|byte| !is_special(*byte)) {
        at += 1;
    }
    at
}

/// The first special byte of sixteen, or 16: looked for at once, in a register that every x86-64 has.
#[cfg(target_arch = "x86_64")]
#[inline]
fn first_special(chunk: &[u8; 16]) -> usize {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    // SAFETY: these are of SSE2, which is part of x86-64, and the bytes that are loaded are the chunk's.
    let found = unsafe {
        let bytes = _mm_loadu_si128(chunk.as_ptr().cast());
        let controls = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
        let quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8));
        let backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
        _mm_movemask_epi8(_mm_or_si128(controls, _mm_or_si128(quotes, backslashes)))
    };
    (found | 1 << 16).trailing_zeros() as usize
}

/// The same, eight bytes at once: the lowest bit that the borrows leave is always that of a true find.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn first_special_of_halves(chunk: &[u8; 16]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    for half in [0, 8] {
        let word = u64::from_le_bytes(std::array::from_fn(|at| chunk[half + at]));
        let (quote, backslash) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5C));
        let quotes = quote.wrapping_sub(ONES) & !quote;
        let backslashes = backslash.wrapping_sub(ONES) & !backslash;
        let controls = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (quotes | backslashes | controls) & (ONES << 7);
        if found != 0 {
            return half + found.trailing_zeros() as usize / 8;
        }
    }
    16
}

#[cfg(not(target_arch = "x86_64"))]
use first_special_of_halves as first_special;

/// Whether the text begins with that word. Names are short: comparing words of a register beats a call.
#[inline]
fn begins(text: &[u8], word: &[u8]) -> bool {
    let Some(text) = text.get(..word.len()) else { return false };
    match (text.last_chunk::<8>(), word.last_chunk::<8>()) {
        (Some(end), Some(word_end)) => {
            let mut chunks = text.as_chunks::<8>().0.iter().zip(word.as_chunks::<8>().0);
            end == word_end && chunks.all(|(chunk, word_chunk)| chunk == word_chunk)
        }
        _ => text == word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_valid(bytes: &[u8]) -> bool {
        let mut json = Json::new(bytes);
        json.skip().and_then(|()| json.finish()).is_ok()
    }

    proptest! {
        #[test]
        fn what_is_json_is_no_matter_of_opinion(text in "[\\[\\]{},:\"\\\\untrefalsbd0-9.eE+ é-]{0,24}") {
            let other = serde_json::from_str::<serde_json::Value>(&text);
            // A number beyond all doubles is JSON, though not to everyone.
            let known = !other.as_ref().is_err_and(|error| error.to_string().starts_with("number out of range"));
            prop_assert!(!known || is_valid(text.as_bytes()) == other.is_ok(), "{}", text);
        }

        #[test]
        fn texts_are_read_as_written(text in any::<String>(), before in 0_usize..9) {
            let written = " ".repeat(before) + &serde_json::to_string(&text).unwrap();
            let mut json = Json::new(written.as_bytes());
            prop_assert_eq!(json.peek().unwrap(), Peek::String);
            prop_assert_eq!(json.text().unwrap(), text.as_str());
            prop_assert!(json.finish().is_ok());
        }

        #[test]
        fn what_is_special_is_found(bytes in proptest::collection::vec(0x1F_u8.., 0..90)) {
            let plain = bytes.iter().position(|byte| is_special(*byte)).unwrap_or(bytes.len());
            prop_assert_eq!(special(&bytes, 0), plain);
            if let Some(chunk) = bytes.first_chunk() {
                prop_assert_eq!(first_special(chunk), plain.min(16));
                prop_assert_eq!(first_special_of_halves(chunk), plain.min(16));
            }
        }

        #[test]
        fn words_begin_texts(text in "[ab]{0,30}", length in 0_usize..30, wrong in 0_usize..30) {
            let word = &text.as_bytes()[..length.min(text.len())];
            prop_assert!(begins(text.as_bytes(), word));
            prop_assert!(!begins(word, (text.clone() + "a").as_bytes()));
            let mut other = word.to_vec();
            if let Some(byte) = other.get_mut(wrong) {
                *byte = b'c';
                prop_assert!(!begins(text.as_bytes(), &other));
            }
        }
    }
}
