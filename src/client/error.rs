//! Everything that can go wrong, as one enum. Messages are one line, say what to do, and never hold a secret.

use std::time::Duration;

use crate::cassette;
use crate::columns::Overflow;
use crate::interface::DeploymentError;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A setting is missing or malformed.
    #[error("{setting}: {problem}")]
    Config { setting: &'static str, problem: String },
    /// A value was refused before anything was sent.
    #[error("{parameter}: {problem}")]
    InvalidParameter { parameter: String, problem: String },
    /// The service answered, and refused.
    #[error("{}", .0.message())]
    Service(Box<Refusal>),
    /// No answer came.
    #[error("{endpoint}: {problem} ({phase}, {})", attempts_text(*.attempts))]
    Transport { endpoint: &'static str, phase: Phase, problem: String, attempts: u32, retryable: bool },
    /// No answer came in time.
    #[error("{endpoint}: {problem} ({phase}, {})", attempts_text(*.attempts))]
    Timeout { endpoint: &'static str, phase: Phase, problem: String, attempts: u32 },
    /// An answer came that is not what the interface says.
    #[error("{endpoint}: {path}: {problem}; the answer has {excerpt:?}")]
    Format { endpoint: &'static str, path: String, problem: String, excerpt: String, retryable: bool },
    /// An answer without records where the service had promised some: some services throttle that way.
    #[error("{endpoint}: {problem} ({})", attempts_text(*.attempts))]
    Empty { endpoint: &'static str, problem: String, attempts: u32 },
    /// The list did not hold still, or does not hold what it promises.
    #[error("{endpoint}: {problem}")]
    Drift { endpoint: &'static str, problem: String },
    /// The result lies beyond what the service lets anyone reach.
    #[error("{endpoint}: {problem}")]
    Window { endpoint: &'static str, problem: String },
    /// A cassette cannot be read or written, or lacks an answer.
    #[error("{0}")]
    Cassette(#[from] cassette::Error),
    /// A defect of ours.
    #[error("internal error: {0}; please report it")]
    Internal(String),
    #[error(
        "{column}: row {row} has {text}, which does not fit exactly; use numbers=\"string\", or the records themselves",
        column = .0.column, row = .0.row, text = .0.text
    )]
    Overflow(Box<Overflow>),
}

/// An answer with a code or a status that is not success.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub class: Class,
    pub endpoint: &'static str,
    pub status: u16,
    pub code: Option<String>,
    pub msg: String,
    pub attempts: u32,
    pub retry_after: Option<Duration>,
    /// How far the local clock is ahead of the service's, where the answer told.
    pub clock_ahead: Option<i64>,
}

/// What a refusal means, and so which class of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    BadRequest,
    NotFound,
    PermissionDenied,
    Authentication,
    ClockSkew,
    RateLimit,
    Unavailable,
    /// None of these.
    Other,
}

/// Where an exchange was when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Connect,
    Tls,
    Read,
    Body,
    /// All attempts together took too long.
    Deadline,
}

impl Phase {
    /// The phase of that name; of a name that is none, the one in which an answer is waited for.
    pub fn of(name: &str) -> Self {
        let all = [Self::Connect, Self::Tls, Self::Read, Self::Body, Self::Deadline];
        all.into_iter().find(|phase| phase.as_str() == name).unwrap_or(Self::Read)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Read => "read",
            Self::Body => "body",
            Self::Deadline => "deadline",
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The classes and whether asking again can help, by code. Codes decide before statuses, and words never do: the same
/// code comes with different messages.
const CODES: &[(&[&str], Class, bool)] = &[
    (&["50001", "50004", "50013", "50026"], Class::Unavailable, true),
    (&["50005"], Class::Other, false),
    (&["50011"], Class::RateLimit, true),
    (&["50012", "50030", "50043", "50047", "50100"], Class::PermissionDenied, false),
    (&["50014", "50015", "50016", "50024", "50025", "50036", "50038"], Class::BadRequest, false),
    (&["50037", "50040", "50044", "50404"], Class::NotFound, false),
    (&["50102", "50112"], Class::ClockSkew, false),
    (&["50103", "50104", "50105", "50106", "50107", "50111", "50113", "50114", "50125"], Class::Authentication, false),
];

impl Class {
    /// The class of an answer, and whether asking again can help.
    pub fn of(status: u16, code: Option<&str>) -> (Self, bool) {
        // A paywall stays one, whatever code comes with it.
        if status == 402 {
            return (Self::PermissionDenied, false);
        }
        let known = code.and_then(|code| CODES.iter().find(|(codes, ..)| codes.contains(&code)));
        if let Some((_, class, retryable)) = known {
            return (*class, *retryable);
        }
        match status {
            400 => (Self::BadRequest, false),
            401 => (Self::Authentication, false),
            403 => (Self::PermissionDenied, false),
            404 => (Self::NotFound, false),
            408 => (Self::Unavailable, true),
            429 => (Self::RateLimit, true),
            500..=599 => (Self::Unavailable, true),
            _ => (Self::Other, false),
        }
    }

    const fn advice(self) -> &'static str {
        match self {
            Self::BadRequest => "check the parameters",
            Self::NotFound => "nothing is there under that name; check it, the chain and base_url",
            Self::PermissionDenied => "the account may not do this; check its plan and region",
            Self::Authentication => "check api_key, secret_key, passphrase and the deployment's signature settings",
            Self::ClockSkew => "set the system clock",
            Self::RateLimit => "lower rate_limit or concurrency",
            Self::Unavailable => "try again later",
            Self::Other => "see the code and the status",
        }
    }
}

impl Refusal {
    fn message(&self) -> String {
        let mut text = format!("{}: the service answered with status {}", self.endpoint, self.status);
        if let Some(code) = &self.code {
            text += &format!(", code {code}");
        }
        if !self.msg.is_empty() {
            text += &format!(", {:?}", self.msg);
        }
        if (300..400).contains(&self.status) {
            text += "; redirects are not followed, so set base_url to where the service is";
        } else {
            text += &format!("; {}", self.class.advice());
        }
        if let Some(ahead) = self.clock_ahead {
            let (seconds, side) = (ahead.abs() as f64 / 1e3, if ahead < 0 { "behind" } else { "ahead of" });
            text += &format!(" (it is {seconds:.1} s {side} the service's)");
        }
        text + &format!(" ({})", attempts_text(self.attempts))
    }
}

fn attempts_text(attempts: u32) -> String {
    if attempts == 1 { "1 attempt".into() } else { format!("{attempts} attempts") }
}

impl From<DeploymentError> for Error {
    fn from(error: DeploymentError) -> Self {
        Self::Config { setting: error.setting, problem: error.problem }
    }
}

impl Error {
    pub fn config(setting: &'static str, problem: impl Into<String>) -> Self {
        Self::Config { setting, problem: problem.into() }
    }

    pub fn parameter(parameter: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter: parameter.into(), problem: problem.into() }
    }

    /// How often the request was made that ended in this.
    pub fn attempts(&self) -> u32 {
        match self {
            Self::Service(refusal) => refusal.attempts,
            Self::Transport { attempts, .. } | Self::Timeout { attempts, .. } | Self::Empty { attempts, .. } => {
                *attempts
            }
            Self::Format { .. } => 1,
            _ => 0,
        }
    }

    /// Whether the service asks to be asked less often.
    pub fn is_throttle(&self) -> bool {
        match self {
            Self::Service(refusal) => refusal.class == Class::RateLimit,
            error => matches!(error, Self::Empty { .. }),
        }
    }

    /// The wait that the service asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::Service(refusal) = self { refusal.retry_after } else { None }
    }

    /// Whether the same request may succeed later.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Service(refusal) => Class::of(refusal.status, refusal.code.as_deref()).1,
            Self::Transport { retryable, .. } | Self::Format { retryable, .. } => *retryable,
            Self::Timeout { .. } | Self::Empty { .. } | Self::Drift { .. } => true,
            Self::Config { .. }
            | Self::InvalidParameter { .. }
            | Self::Window { .. }
            | Self::Cassette(_)
            | Self::Internal(_)
            | Self::Overflow(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_decide_before_statuses() {
        for (status, code, class, retryable) in [
            (503, Some("50001"), Class::Unavailable, true),
            (400, Some("50004"), Class::Unavailable, true),
            (410, Some("50005"), Class::Other, false),
            (200, Some("50011"), Class::RateLimit, true),
            (429, Some("50012"), Class::PermissionDenied, false),
            (200, Some("50013"), Class::Unavailable, true),
            (200, Some("50038"), Class::BadRequest, false),
            (200, Some("50040"), Class::NotFound, false),
            (401, Some("50102"), Class::ClockSkew, false),
            (401, Some("50113"), Class::Authentication, false),
            (402, None, Class::PermissionDenied, false),
            (402, Some("50011"), Class::PermissionDenied, false),
            (429, None, Class::RateLimit, true),
            (502, Some("77777"), Class::Unavailable, true),
            (200, Some("77777"), Class::Other, false),
            (302, None, Class::Other, false),
        ] {
            assert_eq!(Class::of(status, code), (class, retryable), "{status} {code:?}");
        }
    }
}
