//! Messages that keep parameter names and advice as values. Each renders for Python callers (`start_height=`) and for the
//! command line (`--start-height`).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Front end that a message is rendered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    Python,
    Shell,
}

/// Settings that the command line reads from the environment only.
const SECRETS: [&str; 3] = ["api_key", "secret_key", "passphrase"];

/// Settings that have an environment variable.
const FROM_ENVIRONMENT: [&str; 6] = ["base_url", "api_key", "secret_key", "passphrase", "main_chain", "zone_chain"];

/// True for the name of an environment variable, which a setting may come from.
fn is_variable(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase()) || name.ends_with("_proxy")
}

/// Environment variable of a setting.
pub fn variable(setting: &str) -> String {
    format!("CHAINFRAME_{}", setting.to_uppercase())
}

impl Syntax {
    /// Name of a parameter or setting.
    pub fn name(self, parameter: &str) -> String {
        match self {
            Self::Python => parameter.to_owned(),
            Self::Shell if is_variable(parameter) => parameter.to_owned(),
            Self::Shell if SECRETS.contains(&parameter) => variable(parameter),
            Self::Shell => format!("--{}", parameter.replace('_', "-")),
        }
    }

    /// Name of a parameter that is to be passed.
    fn argument(self, parameter: &str) -> String {
        match self {
            Self::Python => format!("{parameter}="),
            Self::Shell => self.name(parameter),
        }
    }
}

/// Advice: an action, and the parameters that it concerns.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// Narrow the query in one of these ways.
    NarrowQuery(Vec<Narrowing>),
    /// Pass a setting, or set its environment variable.
    PassSetting(String),
    /// Pass several values separately.
    PassSeveral,
    /// Leave a parameter out.
    Omit(String),
    /// Raise one of these parameters.
    Raise(Vec<String>),
    /// Lower one of these parameters.
    Lower(Vec<String>),
    /// Check the values of these parameters.
    Check(Vec<String>),
    /// Convert numbers to strings.
    UseStrings,
    /// Record a missing interaction into the cassette.
    Record,
    /// Start an export over.
    StartOver,
    /// Continue an existing export.
    ContinueExport,
    /// Name another output directory.
    UseAnotherDirectory,
    /// Name another output file.
    UseAnotherFile,
    /// Repeat the call later.
    RetryLater,
    /// Check the arguments of the call.
    CheckParameters,
    /// Correct the system clock.
    SetClock,
    /// Check what the account may access.
    CheckAccount,
}

/// A change to one parameter that makes a result smaller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Narrowing {
    Pass(String),
    /// Pass both ends of a range.
    PassBoth(String, String),
    Higher(String),
    Lower(String),
    Later(String),
    Earlier(String),
}

impl Narrowing {
    fn render(&self, syntax: Syntax) -> String {
        match self {
            Self::Pass(name) => syntax.argument(name),
            Self::PassBoth(low, high) => format!("{} with {}", syntax.argument(low), syntax.argument(high)),
            Self::Higher(name) => format!("a higher {}", syntax.name(name)),
            Self::Lower(name) => format!("a lower {}", syntax.name(name)),
            Self::Later(name) => format!("a later {}", syntax.name(name)),
            Self::Earlier(name) => format!("an earlier {}", syntax.name(name)),
        }
    }

    fn parameters(&self) -> Vec<&str> {
        match self {
            Self::PassBoth(low, high) => vec![low, high],
            Self::Pass(name) | Self::Higher(name) | Self::Lower(name) | Self::Later(name) | Self::Earlier(name) => {
                vec![name]
            }
        }
    }
}

impl Hint {
    pub fn raise(parameters: &[&str]) -> Self {
        Self::Raise(owned(parameters))
    }

    pub fn lower(parameters: &[&str]) -> Self {
        Self::Lower(owned(parameters))
    }

    pub fn check(parameters: &[&str]) -> Self {
        Self::Check(owned(parameters))
    }

    /// Name of the action, as in the serialized form.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::NarrowQuery(_) => "narrow_query",
            Self::PassSetting(_) => "pass_setting",
            Self::PassSeveral => "pass_several",
            Self::Omit(_) => "omit",
            Self::Raise(_) => "raise",
            Self::Lower(_) => "lower",
            Self::Check(_) => "check",
            Self::UseStrings => "use_strings",
            Self::Record => "record",
            Self::StartOver => "start_over",
            Self::ContinueExport => "continue_export",
            Self::UseAnotherDirectory => "use_another_directory",
            Self::UseAnotherFile => "use_another_file",
            Self::RetryLater => "retry_later",
            Self::CheckParameters => "check_parameters",
            Self::SetClock => "set_clock",
            Self::CheckAccount => "check_account",
        }
    }

    /// Names of the parameters that the action concerns.
    pub fn parameters(&self) -> Vec<&str> {
        match self {
            Self::NarrowQuery(ways) => ways.iter().flat_map(Narrowing::parameters).collect(),
            Self::PassSetting(name) | Self::Omit(name) => vec![name],
            Self::Raise(names) | Self::Lower(names) | Self::Check(names) => names.iter().map(String::as_str).collect(),
            Self::UseStrings => vec!["numbers"],
            Self::StartOver | Self::ContinueExport => vec!["mode"],
            Self::PassSeveral
            | Self::Record
            | Self::UseAnotherDirectory
            | Self::UseAnotherFile
            | Self::RetryLater
            | Self::CheckParameters
            | Self::SetClock
            | Self::CheckAccount => Vec::new(),
        }
    }

    pub fn render(&self, syntax: Syntax) -> String {
        let names = |names: &[String]| names.iter().map(|name| syntax.name(name)).collect();
        let in_python = syntax == Syntax::Python;
        match self {
            Self::NarrowQuery(ways) => {
                let ways = ways.iter().map(|way| way.render(syntax)).collect();
                format!("narrow the query with {}", list(ways, "or"))
            }
            Self::PassSetting(name) if !in_python && SECRETS.contains(&name.as_str()) => {
                format!("set {}", variable(name))
            }
            Self::PassSetting(name) => format!("pass {} or set {}", syntax.argument(name), variable(name)),
            Self::PassSeveral if in_python => "pass several as a list".into(),
            Self::PassSeveral => "separate several with commas".into(),
            Self::Omit(name) => format!("omit {}", syntax.name(name)),
            Self::Raise(parameters) => format!("raise {}", list(names(parameters), "or")),
            Self::Lower(parameters) => format!("lower {}", list(names(parameters), "or")),
            Self::Check(parameters) => format!("check {}", list(names(parameters), "and")),
            Self::UseStrings if in_python => "pass numbers=\"string\" or read the exact values from the records".into(),
            Self::UseStrings => "pass --numbers string".into(),
            Self::Record if in_python => "record it with mode=\"new_episodes\"".into(),
            Self::Record => "record it with --record".into(),
            Self::StartOver if in_python => "pass mode=\"overwrite\" to start over".into(),
            Self::StartOver => "pass --overwrite to start over".into(),
            Self::ContinueExport if in_python => "pass mode=\"resume\" to continue it".into(),
            Self::ContinueExport => "pass --resume to continue it".into(),
            Self::UseAnotherDirectory => "use another directory".into(),
            Self::UseAnotherFile => "name another file".into(),
            Self::RetryLater => "try again later".into(),
            Self::CheckParameters => "check the parameters".into(),
            Self::SetClock => "set the system clock".into(),
            Self::CheckAccount => "check the account's plan and region".into(),
        }
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// An enumeration in English: "a, b or c".
fn list(mut items: Vec<String>, conjunction: &str) -> String {
    match items.pop() {
        None => String::new(),
        Some(last) if items.is_empty() => last,
        Some(last) => format!("{} {conjunction} {last}", items.join(", ")),
    }
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

/// Alternative hints in one phrase.
pub fn advice(hints: &[Hint], syntax: Syntax) -> String {
    let hints: Vec<String> = hints.iter().map(|hint| hint.render(syntax)).collect();
    hints.join(", or ")
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

        let narrowed = Hint::NarrowQuery(vec![
            Narrowing::Pass("height".into()),
            Narrowing::PassBoth("start_height".into(), "end_height".into()),
            Narrowing::Higher("start_height".into()),
        ]);
        let message = Message::new("too many records").hint(narrowed.clone()).hint(Hint::RetryLater);
        assert_eq!(
            message.to_string(),
            "too many records; narrow the query with height=, start_height= with end_height= or a higher \
             start_height, or try again later"
        );
        assert_eq!(
            message.render(Syntax::Shell),
            "too many records; narrow the query with --height, --start-height with --end-height or a higher \
             --start-height, or try again later"
        );
        assert_eq!(narrowed.parameters(), ["height", "start_height", "end_height", "start_height"]);
    }

    #[test]
    fn secrets_have_no_option() {
        let hint = Hint::PassSetting("api_key".into());
        assert_eq!(hint.render(Syntax::Python), "pass api_key= or set CHAINFRAME_API_KEY");
        assert_eq!(hint.render(Syntax::Shell), "set CHAINFRAME_API_KEY");
        assert_eq!(
            Hint::PassSetting("base_url".into()).render(Syntax::Shell),
            "pass --base-url or set CHAINFRAME_BASE_URL"
        );
        assert_eq!(Syntax::Shell.name("secret_key"), "CHAINFRAME_SECRET_KEY");
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

    #[test]
    fn the_action_is_the_serialized_tag() {
        let names = || vec![String::from("x")];
        for hint in [
            Hint::NarrowQuery(vec![Narrowing::Pass("x".into())]),
            Hint::PassSetting("x".into()),
            Hint::PassSeveral,
            Hint::Omit("x".into()),
            Hint::Raise(names()),
            Hint::Lower(names()),
            Hint::Check(names()),
            Hint::UseStrings,
            Hint::Record,
            Hint::StartOver,
            Hint::ContinueExport,
            Hint::UseAnotherDirectory,
            Hint::UseAnotherFile,
            Hint::RetryLater,
            Hint::CheckParameters,
            Hint::SetClock,
            Hint::CheckAccount,
        ] {
            let value = serde_json::to_value(&hint).unwrap();
            let tag =
                value.as_str().map_or_else(|| value.as_object().unwrap().keys().next().unwrap().clone(), Into::into);
            assert_eq!(hint.action(), tag);
        }
    }
}
