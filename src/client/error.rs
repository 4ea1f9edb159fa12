//! The errors of the core, as one enum. A message is one line, says what to do, and never holds a secret.

use std::time::Duration;

use crate::cache::CacheError;
use crate::cassette;
use crate::columns::NumericOverflow;
use crate::interface::{ApiErrorKind, Chain, DeploymentError, endpoint};
use crate::message::{Hint, Message, counted};

/// Smallest correction in milliseconds that is worth another request: the `Date` header has whole seconds.
pub const MIN_CORRECTION_MS: i64 = 5_000;

#[derive(Clone, Debug)]
pub enum Error {
    /// A setting is missing or malformed.
    Config { setting: &'static str, problem: Message },
    /// Rows of the caller that are no records of a call.
    Rows { endpoint: &'static str, problem: String },
    /// An argument that the API would reject; nothing was sent.
    InvalidParameter { parameter: String, problem: Message },
    /// An error response.
    Service(Box<ApiError>),
    /// No response: the connection failed.
    Transport { endpoint: &'static str, phase: Phase, problem: Message, attempts: u32, retryable: bool },
    /// No response within the timeout or the deadline.
    Timeout { endpoint: &'static str, phase: Phase, problem: Message, attempts: u32 },
    /// A response that does not conform to the API.
    Format { endpoint: &'static str, path: String, problem: String, excerpt: String, attempts: u32, retryable: bool },
    /// A page without records although the API reports more: some deployments throttle that way.
    Empty {
        endpoint: &'static str,
        problem: String,
        /// True if the page says that the list has no records at all.
        denies_list: bool,
        attempts: u32,
    },
    /// The list changed while it was read, and its snapshot cannot be reconstructed.
    Drift { endpoint: &'static str, problem: Message },
    /// Records lie beyond the result window of the API.
    Window { endpoint: &'static str, problem: Message },
    /// No more requests may be sent: `needed` would be, and `left` are.
    Budget { max_requests: u64, left: u64, needed: u64 },
    /// A height that was delivered to a follower changed.
    Reorganization { endpoint: &'static str, height: i64, problem: Message },
    /// Heights that follow those of a follower are no longer returned.
    Gap { endpoint: &'static str, first: i64, last: i64, problem: Message },
    /// A cassette cannot be read or written, or lacks an interaction.
    Cassette(cassette::Error),
    /// A defect of chainframe.
    Internal(String),
    /// A number that does not fit its column exactly.
    Overflow(Box<NumericOverflow>),
}

impl std::error::Error for Error {}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.message().fmt(f)
    }
}

impl From<cassette::Error> for Error {
    fn from(error: cassette::Error) -> Self {
        Self::Cassette(error)
    }
}

/// An error response: a code or a status that is not success.
#[derive(Clone, Debug)]
pub struct ApiError {
    pub kind: ApiErrorKind,
    pub endpoint: &'static str,
    pub status: u16,
    pub code: Option<String>,
    pub msg: String,
    pub attempts: u32,
    pub retry_after: Option<Duration>,
    /// The local clock minus the service's in milliseconds, where the response shows it.
    pub clock_ahead: Option<i64>,
    pub suspicion: Option<Suspicion>,
}

/// A probable cause of an error response, beyond what the API says.
#[derive(Clone, Debug)]
pub enum Suspicion {
    /// The body is a page of HTML.
    Html,
    /// A redirect to this location, if it has one.
    Redirect(Option<String>),
    /// A secret with quotes or white space around it.
    Secret(&'static str, &'static str),
}

/// The part of an attempt that failed.
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
    /// The phase of that name, or `Read` for an unknown name.
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

/// Problem of a response from something other than the API.
const HTML: &str = "the body is HTML, which the API does not send";

/// Advice on an error of that kind and code.
fn hint(error: &ApiError) -> Option<Hint> {
    match error.code.as_deref() {
        Some("50103" | "50111") => return Some(Hint::check(&["api_key"])),
        Some("50104" | "50105") => return Some(Hint::check(&["passphrase"])),
        Some("50106" | "50113") => return Some(Hint::check(&["secret_key", "prehash", "signature_encoding"])),
        Some("50107") => return Some(Hint::check(&["header_prefix"])),
        Some("50114" | "50125") => return Some(Hint::CheckAccount),
        Some("50038") => {
            let setting = match endpoint(error.endpoint).map(|endpoint| endpoint.chain) {
                Some(Chain::Zone) => "zone_chain",
                _ => "main_chain",
            };
            return Some(Hint::check(&[setting, "chain"]));
        }
        _ => {}
    }
    match error.kind {
        ApiErrorKind::BadRequest => Some(Hint::CheckParameters),
        ApiErrorKind::NotFound => Some(Hint::check(&["chain", "base_url"])),
        ApiErrorKind::PermissionDenied => Some(Hint::CheckAccount),
        ApiErrorKind::Authentication => Some(Hint::check(&SIGNING)),
        ApiErrorKind::ClockSkew => Some(Hint::SetClock),
        ApiErrorKind::RateLimit => Some(Hint::lower(&["rate_limit", "concurrency"])),
        ApiErrorKind::Unavailable => Some(Hint::RetryLater),
        ApiErrorKind::Other => None,
    }
}

/// Settings that a signature depends on.
const SIGNING: [&str; 6] = ["api_key", "secret_key", "passphrase", "header_prefix", "prehash", "signature_encoding"];

impl ApiError {
    fn message(&self) -> Message {
        let mut text = format!("{}: the API responded with status {}", self.endpoint, self.status);
        if let Some(code) = &self.code {
            text += &format!(", code {code}");
        }
        if !self.msg.is_empty() {
            text += &format!(", {:?}", self.msg);
        }
        text += &format!(" ({})", attempts_text(self.attempts));
        let unexpected = match &self.suspicion {
            Some(Suspicion::Redirect(Some(target))) => Some(format!("a redirect to {target}, which is not followed")),
            Some(Suspicion::Redirect(None)) => Some("redirects are not followed".into()),
            Some(Suspicion::Html) => Some(HTML.into()),
            _ if (201..400).contains(&self.status) => Some("the API does not use this status".into()),
            _ => None,
        };
        if let Some(problem) = unexpected {
            return Message::new(format!("{text}; {problem}")).hint(Hint::check(&["base_url", "proxy"]));
        }
        if let Some(Suspicion::Secret(setting, problem)) = self.suspicion {
            return Message::new(format!("{text}; ")).setting(setting).text(format!(" {problem}"));
        }
        if let Some(ahead) = self.clock_ahead {
            if ahead.abs() < MIN_CORRECTION_MS {
                let problem =
                    "the system clock agrees with this server's; another server of the API may have another time";
                return Message::new(format!("{text}; {problem}")).hint(Hint::RetryLater);
            }
            let seconds = ahead.abs() as f64 / 1e3;
            let side = if ahead < 0 { "behind" } else { "ahead of" };
            text += &format!("; the system clock is {seconds:.1} s {side} the server's");
        }
        Message::new(text).hints(hint(self))
    }
}

fn attempts_text(attempts: u32) -> String {
    counted(attempts.into(), "attempt")
}

impl From<CacheError> for Error {
    fn from(error: CacheError) -> Self {
        Self::config(error.setting, error.problem)
    }
}

impl From<DeploymentError> for Error {
    fn from(error: DeploymentError) -> Self {
        Self::config(error.setting, error.problem)
    }
}

impl Error {
    pub fn config(setting: &'static str, problem: impl Into<Message>) -> Self {
        Self::Config { setting, problem: problem.into() }
    }

    pub fn parameter(parameter: impl Into<String>, problem: impl Into<Message>) -> Self {
        Self::InvalidParameter { parameter: parameter.into(), problem: problem.into() }
    }

    /// The message with its hints, for every front end.
    pub fn message(&self) -> Message {
        match self {
            Self::Config { setting, problem } => Message::default().setting(*setting).text(" ").append(problem.clone()),
            Self::Rows { endpoint, problem } => Message::new(format!("{endpoint}: {problem}")),
            Self::InvalidParameter { parameter, problem } => {
                Message::default().parameter(parameter.clone()).text(" ").append(problem.clone())
            }
            Self::Service(response) => response.message(),
            Self::Transport { endpoint, phase, problem, attempts, .. }
            | Self::Timeout { endpoint, phase, problem, attempts } => Message::new(format!("{endpoint}: "))
                .append(problem.clone())
                .text(format!(" ({phase}, {})", attempts_text(*attempts))),
            Self::Format { endpoint, excerpt, .. } if excerpt.trim_start().starts_with('<') => {
                Message::new(format!("{endpoint}: {HTML}; the response has {excerpt:?}"))
                    .hint(Hint::check(&["base_url", "proxy"]))
            }
            Self::Format { endpoint, path, problem, excerpt, .. } => {
                Message::new(format!("{endpoint}: {path}: {problem}; the response has {excerpt:?}"))
            }
            Self::Empty { endpoint, problem, attempts, .. } => {
                Message::new(format!("{endpoint}: {problem} ({})", attempts_text(*attempts))).hint(Hint::RetryLater)
            }
            Self::Drift { endpoint, problem }
            | Self::Window { endpoint, problem }
            | Self::Reorganization { endpoint, problem, .. }
            | Self::Gap { endpoint, problem, .. } => Message::new(format!("{endpoint}: ")).append(problem.clone()),
            Self::Budget { max_requests, left, needed } => {
                let problem = match left {
                    0 => format!(" ({max_requests}) is reached: no further request was sent"),
                    _ => format!(
                        " ({max_requests}) leaves {}, and the query needs at least {needed}: none of them was sent",
                        counted(*left, "request")
                    ),
                };
                Message::default().setting("max_requests").text(problem).hint(Hint::raise(&["max_requests"]))
            }
            Self::Cassette(error @ cassette::Error::Miss { hint, .. }) => match hint {
                Some(hint) => Message::new(format!("{error}; {hint}")),
                None => Message::new(error.to_string()).hint(Hint::Record),
            },
            Self::Cassette(error) => Message::new(error.to_string()),
            Self::Internal(problem) => Message::new(format!("internal error: {problem}; please report it")),
            Self::Overflow(overflow) => {
                let NumericOverflow { column, row, text, .. } = &**overflow;
                Message::new(format!("{column}: {text} in row {row} does not fit exactly")).hint(Hint::UseStrings)
            }
        }
    }

    /// Number of attempts of the request that failed.
    pub fn attempts(&self) -> u32 {
        match self {
            Self::Service(error) => error.attempts,
            Self::Transport { attempts, .. }
            | Self::Timeout { attempts, .. }
            | Self::Format { attempts, .. }
            | Self::Empty { attempts, .. } => *attempts,
            _ => 0,
        }
    }

    /// True if the API says that it has no such block.
    pub fn is_absent_block(&self) -> bool {
        matches!(self, Self::Service(error) if matches!(error.code.as_deref(), Some("50040" | "50044")))
    }

    /// True if the API throttles.
    pub fn is_throttle(&self) -> bool {
        match self {
            Self::Service(error) => error.kind == ApiErrorKind::RateLimit,
            error => matches!(error, Self::Empty { .. }),
        }
    }

    /// Pause that the API asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::Service(error) = self { error.retry_after } else { None }
    }

    /// True if the same request may succeed later.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Service(error) => error.kind.is_retryable(),
            Self::Transport { retryable, .. } | Self::Format { retryable, .. } => *retryable,
            Self::Timeout { .. } | Self::Empty { .. } | Self::Drift { .. } => true,
            Self::Config { .. }
            | Self::Rows { .. }
            | Self::InvalidParameter { .. }
            | Self::Window { .. }
            | Self::Budget { .. }
            | Self::Reorganization { .. }
            | Self::Gap { .. }
            | Self::Cassette(_)
            | Self::Internal(_)
            | Self::Overflow(_) => false,
        }
    }
}
