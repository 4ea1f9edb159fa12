//! Advice as data: an action and the parameters that it concerns.

use serde::{Deserialize, Serialize};

use super::syntax::{SECRETS, Syntax, variable};

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
    /// Run the query again: its result may lack records.
    RunAgain,
    /// Deliver the records again that a follower has delivered, in place of `RunAgain`.
    FollowAgain,
    /// Check the arguments of the call.
    CheckParameters,
    /// Correct the system clock.
    SetClock,
    /// Check what the account may access.
    CheckAccount,
    /// Read the verdicts on the arguments.
    ReadVerdicts,
}

/// A change to one parameter that makes a result smaller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Narrowing {
    Pass(String),
    Higher(String),
    Lower(String),
    Later(String),
    Earlier(String),
}

impl Narrowing {
    fn render(&self, syntax: Syntax) -> String {
        match self {
            Self::Pass(name) => syntax.argument(name),
            Self::Higher(name) => format!("a higher {}", syntax.name(name)),
            Self::Lower(name) => format!("a lower {}", syntax.name(name)),
            Self::Later(name) => format!("a later {}", syntax.name(name)),
            Self::Earlier(name) => format!("an earlier {}", syntax.name(name)),
        }
    }

    fn parameter(&self) -> &str {
        match self {
            Self::Pass(name) | Self::Higher(name) | Self::Lower(name) | Self::Later(name) | Self::Earlier(name) => name,
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
            Self::RunAgain => "run_again",
            Self::FollowAgain => "follow_again",
            Self::CheckParameters => "check_parameters",
            Self::SetClock => "set_clock",
            Self::CheckAccount => "check_account",
            Self::ReadVerdicts => "read_verdicts",
        }
    }

    /// Names of the parameters that the action concerns.
    pub fn parameters(&self) -> Vec<&str> {
        match self {
            Self::NarrowQuery(ways) => ways.iter().map(Narrowing::parameter).collect(),
            Self::PassSetting(name) | Self::Omit(name) => vec![name],
            Self::Raise(names) | Self::Lower(names) | Self::Check(names) => names.iter().map(String::as_str).collect(),
            Self::UseStrings => vec!["numbers"],
            Self::StartOver | Self::ContinueExport => vec!["mode"],
            Self::PassSeveral
            | Self::Record
            | Self::UseAnotherDirectory
            | Self::UseAnotherFile
            | Self::RetryLater
            | Self::RunAgain
            | Self::FollowAgain
            | Self::CheckParameters
            | Self::SetClock
            | Self::CheckAccount
            | Self::ReadVerdicts => Vec::new(),
        }
    }

    pub fn render(&self, syntax: Syntax) -> String {
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
            Self::Raise(parameters) => format!("raise {}", list(syntax.names(parameters), "or")),
            Self::Lower(parameters) => format!("lower {}", list(syntax.names(parameters), "or")),
            Self::Check(parameters) => {
                let settings = parameters.iter().map(|name| syntax.setting(name)).collect();
                format!("check {}", list(settings, "and"))
            }
            Self::UseStrings if in_python => {
                "pass numbers=\"string\" to to_arrow() or another method that takes it, or read the exact values from the records".into()
            }
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
            Self::RunAgain => "run the query again".into(),
            Self::FollowAgain => {
                "follow from an earlier cursor or from the beginning, reset the table, or export to another directory".into()
            }
            Self::CheckParameters => "check the parameters".into(),
            Self::SetClock => "set the system clock".into(),
            Self::CheckAccount => "check the account's plan and region".into(),
            Self::ReadVerdicts if in_python => "report.by_argument has the errors".into(),
            Self::ReadVerdicts => "errors follow".into(),
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

/// Alternative hints in one phrase.
pub fn advice(hints: &[Hint], syntax: Syntax) -> String {
    let hints: Vec<String> = hints.iter().map(|hint| hint.render(syntax)).collect();
    hints.join(", or ")
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Hint::RunAgain,
            Hint::FollowAgain,
            Hint::CheckParameters,
            Hint::SetClock,
            Hint::CheckAccount,
            Hint::ReadVerdicts,
        ] {
            let value = serde_json::to_value(&hint).unwrap();
            let tag =
                value.as_str().map_or_else(|| value.as_object().unwrap().keys().next().unwrap().clone(), Into::into);
            assert_eq!(hint.action(), tag);
        }
    }
}
