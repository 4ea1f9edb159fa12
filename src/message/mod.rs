//! Messages that keep parameter names and advice as values. Each renders for Python callers (`start_height=`) and for the
//! command line (`--start-height`).

mod hint;
mod syntax;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use hint::{Hint, Narrowing, advice};
use syntax::{FROM_ENVIRONMENT, SECRETS};
pub use syntax::{Syntax, variable};

/// A number of things: 1 record, 2 records.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Characters of a value in a message.
const SHOWN_CHARS: usize = 80;

/// The first 80 characters of a text, and a sign if others follow.
fn beginning(text: &str) -> (&str, &'static str) {
    text.char_indices().nth(SHOWN_CHARS).map_or((text, ""), |(end, _)| (&text[..end], "…"))
}

/// A text in quotes, or its first 80 characters.
pub fn quoted(text: &str) -> String {
    let (shown, sign) = beginning(text);
    format!("{shown:?}{sign}")
}

/// A text of one line without quotes, or its first 80 characters.
pub fn shortened(text: &str) -> String {
    let (shown, sign) = beginning(text);
    format!("{shown}{sign}")
}

/// The subject of a sentence with its verb: 1 record is, 2 records are.
pub fn counted_are(count: u64, noun: &str) -> String {
    format!("{} {}", counted(count, noun), if count == 1 { "is" } else { "are" })
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
enum Part {
    Text(String),
    Parameter { parameter: String },
    Setting { setting: String },
}

/// A problem, and alternative ways to solve it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Message {
    parts: Vec<Part>,
    hints: Vec<Hint>,
}

/// Serialized form of a message: a string if it names no parameter and has no hint.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Full {
        parts: Vec<Part>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hints: Vec<Hint>,
    },
}

impl From<Stored> for Message {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Text(text) => Self::new(text),
            Stored::Full { parts, hints } => Self { parts, hints },
        }
    }
}

impl From<Message> for Stored {
    fn from(Message { mut parts, hints }: Message) -> Self {
        match parts.as_mut_slice() {
            [Part::Text(text)] if hints.is_empty() => Self::Text(std::mem::take(text)),
            _ => Self::Full { parts, hints },
        }
    }
}

impl Message {
    pub fn new(text: impl Into<String>) -> Self {
        Self::default().text(text)
    }

    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// Appends the name of a parameter.
    #[must_use]
    pub fn parameter(mut self, parameter: impl Into<String>) -> Self {
        self.parts.push(Part::Parameter { parameter: parameter.into() });
        self
    }

    /// Appends the name of a setting, with its environment variable if it has one.
    #[must_use]
    pub fn setting(mut self, setting: impl Into<String>) -> Self {
        self.parts.push(Part::Setting { setting: setting.into() });
        self
    }

    /// Appends another message and its hints.
    #[must_use]
    pub fn append(mut self, other: Self) -> Self {
        self.parts.extend(other.parts);
        self.hints(other.hints)
    }

    /// Adds advice, as an alternative to that which is there.
    #[must_use]
    pub fn hint(self, hint: Hint) -> Self {
        self.hints([hint])
    }

    #[must_use]
    pub fn hints(mut self, hints: impl IntoIterator<Item = Hint>) -> Self {
        self.hints.extend(hints);
        self
    }

    /// Leaves out the advice to narrow a query.
    #[must_use]
    pub fn without_narrowing(mut self) -> Self {
        self.hints.retain(|hint| !matches!(hint, Hint::NarrowQuery(_)));
        self
    }

    /// Replaces the advice to run the query again: a follower that runs again does not read what it has delivered.
    #[must_use]
    pub fn of_follower(mut self) -> Self {
        for hint in self.hints.iter_mut().filter(|hint| **hint == Hint::RunAgain) {
            *hint = Hint::FollowAgain;
        }
        self
    }

    /// The message as a sentence.
    pub fn sentence(&self, syntax: Syntax) -> String {
        let text = self.render(syntax);
        if text.ends_with('.') { text } else { text + "." }
    }

    pub fn advice(&self) -> &[Hint] {
        &self.hints
    }

    pub fn render(&self, syntax: Syntax) -> String {
        let problem: String = self.parts.iter().map(|part| part.render(syntax)).collect();
        match advice(&self.hints, syntax) {
            advice if advice.is_empty() => problem,
            advice => format!("{problem}; {advice}"),
        }
    }
}

impl Part {
    fn render(&self, syntax: Syntax) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parameter { parameter } => syntax.name(parameter),
            Self::Setting { setting } if syntax == Syntax::Shell && SECRETS.contains(&setting.as_str()) => {
                variable(setting)
            }
            Self::Setting { setting } if FROM_ENVIRONMENT.contains(&setting.as_str()) => {
                format!("{} ({})", syntax.name(setting), variable(setting))
            }
            Self::Setting { setting } => syntax.name(setting),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Syntax::Python))
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_hints_are_rendered_for_each_front_end() {
        let message = Message::new("must be <= ").parameter("end_height").text(" (1)");
        assert_eq!(message.render(Syntax::Python), "must be <= end_height (1)");
        assert_eq!(message.render(Syntax::Shell), "must be <= --end-height (1)");

        let narrowed =
            Hint::NarrowQuery(vec![Narrowing::Pass("height".into()), Narrowing::Higher("start_height".into())]);
        let message = Message::new("too many records").hint(narrowed.clone()).hint(Hint::RetryLater);
        assert_eq!(
            message.to_string(),
            "too many records; narrow the query with height= or a higher start_height, or try again later"
        );
        assert_eq!(
            message.render(Syntax::Shell),
            "too many records; narrow the query with --height or a higher --start-height, or try again later"
        );
        assert_eq!(narrowed.parameters(), ["height", "start_height"]);
    }

    #[test]
    fn advice_to_run_a_query_again_is_replaced_for_a_follower() {
        let message = Message::new("records may be missing").hint(Hint::RunAgain).hint(Hint::RetryLater);
        assert_eq!(message.to_string(), "records may be missing; run the query again, or try again later");
        assert_eq!(message.of_follower().advice(), [Hint::FollowAgain, Hint::RetryLater]);
    }

    #[test]
    fn a_message_survives_serialization_with_its_hints() {
        let message =
            Message::new("use ").parameter("height").hint(Hint::Raise(vec!["page_size".into()])).hint(Hint::SetClock);
        let json = serde_json::to_string(&message).unwrap();
        assert_eq!(json, r#"{"parts":["use ",{"parameter":"height"}],"hints":[{"raise":["page_size"]},"set_clock"]}"#);
        assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
        let json = serde_json::to_string(&Message::new("gone")).unwrap();
        assert_eq!(json, r#""gone""#);
        assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), Message::new("gone"));
    }
}
