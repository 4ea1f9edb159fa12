//! Decoding errors: the member that is not what the API documents, and its value.

use std::fmt::Write as _;
use std::ops::Range;

use super::json::SyntaxError;

/// Characters of an excerpt: enough to recognize a value, too few to fill a log.
const EXCERPT: usize = 80;
/// Bytes on either side of an excerpt that are searched for secrets: longer than any, however escaped.
const MAX_ECHO: usize = 32 << 10;

/// A response that cannot be decoded. The path is collected from the inside out, so that decoding pays nothing for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    path_rev: Vec<PathStep>,
    pub problem: String,
    /// Range of the offending value in the body.
    range: Range<usize>,
    /// True if the body is not JSON or is truncated: another request may succeed.
    pub broken: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathStep {
    Member(String),
    Index(usize),
}

impl DecodeError {
    pub(super) fn new(problem: impl Into<String>, range: Range<usize>) -> Self {
        Self { path_rev: Vec::new(), problem: problem.into(), range, broken: false }
    }

    pub(super) fn member(mut self, name: &str) -> Self {
        self.path_rev.push(PathStep::Member(name.into()));
        self
    }

    pub(super) fn index(mut self, index: usize) -> Self {
        self.path_rev.push(PathStep::Index(index));
        self
    }

    /// The path of the value, such as `data[0].transactionList[3].height`; `$` is the whole body. Its member names are
    /// those of the response.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.path_rev.iter().rev() {
            match step {
                PathStep::Member(name) if path.is_empty() => path.push_str(name),
                PathStep::Member(name) => _ = write!(path, ".{name}"),
                PathStep::Index(index) => _ = write!(path, "[{index}]"),
            }
        }
        if path.is_empty() { "$".into() } else { path }
    }

    /// The value as sent in `body`, shortened to one line. `mask` hides secrets first and keeps lengths: cutting first
    /// could leave half a secret, which is then not recognized.
    pub fn excerpt(&self, body: &[u8], mask: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
        let body = super::strip_bom(body);
        let start = self.range.start.min(body.len());
        let range_end = self.range.end.min(body.len());
        let end = range_end.min(self.range.start + 4 * EXCERPT);
        let from = start.saturating_sub(MAX_ECHO);
        let masked = mask(&body[from..(end + MAX_ECHO).min(body.len())]);
        let shown = one_line(&String::from_utf8_lossy(&masked[start - from..end - from]), EXCERPT);
        if range_end > end && !shown.ends_with('…') { shown + "…" } else { shown }
    }
}

impl From<SyntaxError> for DecodeError {
    fn from(error: SyntaxError) -> Self {
        let start = error.index.saturating_sub(EXCERPT / 2);
        let problem = format!("not valid JSON: {}", error.problem);
        Self { broken: true, ..Self::new(problem, start..start + EXCERPT) }
    }
}

/// The first `max_chars` characters, on one line and without characters that change how the rest is displayed.
pub fn one_line(text: &str, max_chars: usize) -> String {
    let mut chars = text.chars();
    let mut line: String = chars.by_ref().map(|c| if is_unprintable(c) { ' ' } else { c }).take(max_chars).collect();
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

/// True for control characters, line separators, marks of writing direction and invisible characters, in which a name
/// can carry a text that no reader sees. The joiners of scripts and emoji are printable.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
        || matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{feff}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
