//! An answer that is not what the interface says: which member, and what stands there.

use std::fmt::Write as _;
use std::ops::Range;

use super::json::Broken;

/// Enough to recognise a value, too little to fill a log.
const EXCERPT: usize = 80;
/// What is looked at on either side of an excerpt for secrets: longer than any, however escaped.
const LONGEST_ECHO: usize = 32 << 10;

/// Where an answer stopped making sense. The path is gathered from the inside out, so that decoding pays nothing for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable {
    inside_out: Vec<Step>,
    pub problem: String,
    /// Where the offending value stands in the answer.
    place: Range<usize>,
    /// The answer is not JSON, or broke off: asking again may help.
    pub broken: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Index(usize),
}

impl Undecodable {
    pub(super) fn new(problem: impl Into<String>, place: Range<usize>) -> Self {
        Self { inside_out: Vec::new(), problem: problem.into(), place, broken: false }
    }

    pub(super) fn syntax(error: Broken) -> Self {
        let start = error.index.saturating_sub(EXCERPT / 2);
        let problem = format!("not valid JSON: {}", error.problem);
        Self { broken: true, ..Self::new(problem, start..start + EXCERPT) }
    }

    pub(super) fn member(mut self, name: &str) -> Self {
        self.inside_out.push(Step::Member(name.into()));
        self
    }

    pub(super) fn index(mut self, index: usize) -> Self {
        self.inside_out.push(Step::Index(index));
        self
    }

    /// For people and programs: `data[0].transactionList[3].height`; `$` is the whole answer.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.inside_out.iter().rev() {
            match step {
                Step::Member(name) if path.is_empty() => path.push_str(name),
                Step::Member(name) => _ = write!(path, ".{name}"),
                Step::Index(index) => _ = write!(path, "[{index}]"),
            }
        }
        if path.is_empty() { "$".into() } else { path }
    }

    /// The value as it stands in `body`, shortened to one line. Secrets are hidden by `mask` first, which keeps lengths:
    /// cutting first could leave half a secret, which is then not recognised.
    pub fn excerpt(&self, body: &[u8], mask: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
        let body = super::strip_mark(body);
        let within = |at: usize| at.min(body.len());
        let (start, end) = (within(self.place.start), within(self.place.end.min(self.place.start + 4 * EXCERPT)));
        let from = start.saturating_sub(LONGEST_ECHO);
        let masked = mask(&body[from..within(end + LONGEST_ECHO)]);
        shorten(&masked[start - from..end - from], within(self.place.end) > end)
    }
}

/// At most `EXCERPT` characters on one line.
fn shorten(bytes: &[u8], goes_on: bool) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut short: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(EXCERPT).collect();
    if goes_on || short.len() < bytes.len() {
        short.push('…');
    }
    short
}
