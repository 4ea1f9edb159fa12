//! A cursor over JSON. Strings without escapes, which are nearly all, are borrowed from the input.

use std::ops::Range;

use super::specials::Specials;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Null,
    True,
    False,
    Number,
    String,
    Array,
    Object,
}

/// The position and the reason of a syntax error.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyntaxError {
    pub index: usize,
    pub problem: &'static str,
}

/// Deepest nesting that is skipped: each level takes a stack frame.
const MAX_DEPTH: usize = 200;

pub(super) struct Json<'j> {
    text: &'j str,
    at: usize,
    /// True if the rest of the input has bytes that are not UTF-8.
    cut: bool,
    specials: Specials,
    /// The last string that had escapes, unescaped.
    unescaped: String,
    /// True if a surrogate without its pair was replaced since this was last cleared.
    pub has_replaced: bool,
}

/// The range of a string without escapes, or `None` if it had some: the string is then in `unescaped`.
type Span = Option<Range<usize>>;

impl<'j> Json<'j> {
    pub fn new(body: &'j [u8]) -> Self {
        let (text, cut) = match simdutf8::compat::from_utf8(body) {
            Ok(text) => (text, false),
            Err(error) => (std::str::from_utf8(&body[..error.valid_up_to()]).unwrap_or_default(), true),
        };
        Self {
            text,
            at: 0,
            cut,
            specials: Specials::of(text.as_bytes()),
            unescaped: String::new(),
            has_replaced: false,
        }
    }

    pub fn current_index(&self) -> usize {
        self.at
    }

    /// Returns to the beginning of a value or of a member.
    pub fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// The value that comes next, as it was written.
    pub fn raw(&mut self) -> Result<&'j str, SyntaxError> {
        self.skip_whitespace();
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }

    fn peek_byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn broken<T>(&self, problem: &'static str) -> Result<T, SyntaxError> {
        let ended = self.at >= self.text.len();
        let at_end = if self.cut { "not UTF-8" } else { "unexpected end of input" };
        let problem = if ended { at_end } else { problem };
        Err(SyntaxError { index: self.at, problem })
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek_byte(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// The kind of the next value.
    #[inline]
    pub fn peek(&mut self) -> Result<ValueKind, SyntaxError> {
        self.skip_whitespace();
        Ok(match self.peek_byte() {
            Some(b'"') => ValueKind::String,
            Some(b'{') => ValueKind::Object,
            Some(b'[') => ValueKind::Array,
            Some(b'-' | b'0'..=b'9') => ValueKind::Number,
            Some(b't') => ValueKind::True,
            Some(b'f') => ValueKind::False,
            Some(b'n') => ValueKind::Null,
            _ => return self.broken("expected a value"),
        })
    }

    /// Advances over `expected` if it comes next.
    #[inline]
    pub fn consume(&mut self, expected: &str) -> bool {
        let found = starts_with(&self.text.as_bytes()[self.at..], expected.as_bytes());
        if found {
            self.at += expected.len();
        }
        found
    }

    /// Enters the object or array that comes next. True if it has an element.
    pub fn enter(&mut self, close: u8) -> Result<bool, SyntaxError> {
        self.at += 1;
        self.skip_whitespace();
        let empty = self.peek_byte() == Some(close);
        self.at += usize::from(empty);
        Ok(!empty)
    }

    /// Advances to the next element, or out of the object or array. True if there is an element.
    #[inline]
    pub fn next_element(&mut self, close: u8) -> Result<bool, SyntaxError> {
        self.skip_whitespace();
        match self.peek_byte() {
            Some(b',') => {
                self.at += 1;
                self.skip_whitespace();
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => self.broken("expected a comma or a closing bracket"),
        }
    }

    /// Reads a member's name and the colon after it.
    pub fn key(&mut self) -> Result<&str, SyntaxError> {
        if self.peek_byte() != Some(b'"') {
            return self.broken("expected a member's name");
        }
        let span = self.scan_string()?;
        self.skip_whitespace();
        if self.peek_byte() != Some(b':') {
            return self.broken("expected a colon");
        }
        self.at += 1;
        Ok(self.string_at(span))
    }

    /// Reads the string that comes next.
    #[inline]
    pub fn string(&mut self) -> Result<&str, SyntaxError> {
        let span = self.scan_string()?;
        Ok(self.string_at(span))
    }

    /// The string that comes next and the index after it. `None` if it has escapes, or if another value comes next.
    #[inline]
    pub fn plain_string(&self) -> Option<(&'j str, usize)> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let end = self.special(start);
        let is_plain = bytes.get(self.at) == Some(&b'"') && bytes.get(end) == Some(&b'"');
        if is_plain { Some((&self.text[start..end], end + 1)) } else { None }
    }

    /// The boolean that comes next and the index after it.
    #[inline]
    pub fn plain_boolean(&self) -> Option<(bool, usize)> {
        match self.text.as_bytes()[self.at..] {
            [b't', b'r', b'u', b'e', ..] => Some((true, self.at + 4)),
            [b'f', b'a', b'l', b's', b'e', ..] => Some((false, self.at + 5)),
            _ => None,
        }
    }

    fn string_at(&self, span: Span) -> &str {
        span.map_or(&self.unescaped, |span| &self.text[span])
    }

    /// Index of the next quote, backslash or control character, or the length.
    #[inline]
    fn special(&self, at: usize) -> usize {
        self.specials.next(at).unwrap_or(self.text.len())
    }

    #[inline]
    fn scan_string(&mut self) -> Result<Span, SyntaxError> {
        let start = self.at + 1;
        let end = self.special(start);
        if self.text.as_bytes().get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(Some(start..end));
        }
        self.escaped(start, end)
    }

    /// Reads a string whose first special character is not its closing quote.
    #[cold]
    fn escaped(&mut self, start: usize, mut at: usize) -> Result<Span, SyntaxError> {
        let bytes = self.text.as_bytes();
        while bytes.get(at) == Some(&b'\\') {
            at = self.special((at + 2).min(bytes.len()));
        }
        self.at = at;
        if self.peek_byte() != Some(b'"') {
            return self.broken("control character in a string");
        }
        match unescape(&self.text[start..at], &mut self.unescaped) {
            Some(is_replaced) => self.has_replaced |= is_replaced,
            None => return self.broken("invalid escape"),
        }
        self.at += 1;
        Ok(None)
    }

    /// Reads the number that comes next, as it was written.
    pub fn number(&mut self) -> Result<&'j str, SyntaxError> {
        let start = self.at;
        self.at += usize::from(self.peek_byte() == Some(b'-'));
        let zero = self.peek_byte() == Some(b'0');
        let whole = self.digits()?;
        if zero && whole > 1 {
            return self.broken("number with a leading zero");
        }
        if self.peek_byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek_byte(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek_byte(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> Result<usize, SyntaxError> {
        let start = self.at;
        while matches!(self.peek_byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { self.broken("expected a digit") } else { Ok(self.at - start) }
    }

    fn literal(&mut self, literal: &str) -> Result<(), SyntaxError> {
        if self.consume(literal) { Ok(()) } else { self.broken("expected a value") }
    }

    pub fn boolean(&mut self, kind: ValueKind) -> Result<bool, SyntaxError> {
        let value = kind == ValueKind::True;
        self.literal(if value { "true" } else { "false" })?;
        Ok(value)
    }

    /// Skips a value of any kind.
    pub fn skip(&mut self) -> Result<(), SyntaxError> {
        self.skip_at(0)
    }

    fn skip_at(&mut self, depth: usize) -> Result<(), SyntaxError> {
        if depth > MAX_DEPTH {
            return self.broken("nested too deeply");
        }
        match self.peek()? {
            ValueKind::Null => self.literal("null"),
            kind @ (ValueKind::True | ValueKind::False) => self.boolean(kind).map(drop),
            ValueKind::Number => self.number().map(drop),
            ValueKind::String => self.scan_string().map(drop),
            ValueKind::Array => {
                let mut more = self.enter(b']')?;
                while more {
                    self.skip_at(depth + 1)?;
                    more = self.next_element(b']')?;
                }
                Ok(())
            }
            ValueKind::Object => {
                let mut more = self.enter(b'}')?;
                while more {
                    self.key()?;
                    self.skip_at(depth + 1)?;
                    more = self.next_element(b'}')?;
                }
                Ok(())
            }
        }
    }

    /// Checks that only whitespace follows.
    pub fn finish(&mut self) -> Result<(), SyntaxError> {
        self.skip_whitespace();
        if self.at == self.text.len() && !self.cut { Ok(()) } else { self.broken("trailing characters") }
    }
}

/// Writes the string between two quotes to `out`, or returns `None` for an invalid escape. A surrogate without its pair
/// becomes U+FFFD, and true is returned: programs that cut a name within an emoji send one.
fn unescape(mut text: &str, out: &mut String) -> Option<bool> {
    let mut is_replaced = false;
    out.clear();
    while let Some((plain, escape)) = text.split_once('\\') {
        out.push_str(plain);
        let (character, length) = match escape.as_bytes().first()? {
            byte @ (b'"' | b'\\' | b'/') => (char::from(*byte), 1),
            b'b' => ('\u{8}', 1),
            b'f' => ('\u{c}', 1),
            b'n' => ('\n', 1),
            b'r' => ('\r', 1),
            b't' => ('\t', 1),
            b'u' => {
                let unit = code_unit(escape)?;
                let low = escape[5..].strip_prefix('\\').and_then(code_unit);
                let paired = low.and_then(|low| String::from_utf16(&[unit, low]).ok()?.chars().next());
                match paired {
                    Some(character) if is_surrogate(unit) => (character, 11),
                    Some(_) | None => {
                        is_replaced |= is_surrogate(unit);
                        (char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER), 5)
                    }
                }
            }
            _ => return None,
        };
        out.push(character);
        text = &escape[length..];
    }
    out.push_str(text);
    Some(is_replaced)
}

/// The UTF-16 code unit of an escape such as `u00e9`.
fn code_unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix('u')?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

const fn is_surrogate(unit: u16) -> bool {
    matches!(unit, 0xD800..=0xDFFF)
}

/// True if `text` starts with `word`. Most member names are short: comparing their ends, eight bytes each, beats a call.
#[inline]
fn starts_with(text: &[u8], word: &[u8]) -> bool {
    let Some(text) = text.get(..word.len()) else { return false };
    let ends = |bytes: &[u8]| Some((*bytes.first_chunk::<8>()?, *bytes.last_chunk::<8>()?));
    match word.len() {
        8..=16 => ends(text) == ends(word),
        _ => text == word,
    }
}

#[cfg(test)]
mod tests;
