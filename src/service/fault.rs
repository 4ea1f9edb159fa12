//! `Fault`: a fault of the local server, as it is declared in JSON.

use std::collections::BTreeMap;

use axum::http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cassette::explain;

/// A fault and the requests that it applies to: all without a selector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Declared", into = "Declared")]
pub struct Fault {
    pub kind: FaultKind,
    /// Only every n-th of the requests that the path selects.
    pub every: Option<u64>,
    /// Only the first n of the requests that the path selects.
    pub times: Option<u64>,
    /// Only requests whose path has this part.
    pub path: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// An HTTP status, with an error body if there is a code and an empty one if not.
    Status { status: u16, code: Option<String> },
    /// HTTP 200 with an error body.
    Code { code: String, msg: String },
    /// Seconds of delay before the response.
    Delay { seconds: f64 },
    /// A body of fewer bytes than its Content-Length announces; half of them by default.
    Truncate { bytes: Option<usize> },
    /// The connection is reset without a response.
    Reset,
    /// A body sent in chunks over this duration.
    SlowBody { seconds: f64 },
    /// HTTP 429 with code 50011.
    Throttle { retry_after: Option<f64> },
    /// Success with no data.
    Empty,
    /// An HTML page, as proxies send.
    Html { status: u16 },
    /// A body of this size.
    Oversized { size_mib: u64 },
    /// A server clock that is ahead by this duration.
    ClockSkew { seconds: f64 },
    /// Any response.
    Body { status: u16, body: String, is_json: bool, headers: BTreeMap<String, String> },
    /// No connection; of a simulated service only.
    Unreachable(Unreachable),
}

/// A reason why there is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    Refused,
    UnknownHost,
    Tls,
}

/// A fault as it is written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Declared {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_mib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

const KINDS: [&str; 15] = [
    "status",
    "code",
    "throttle",
    "empty",
    "html",
    "oversized",
    "delay",
    "slow_body",
    "truncate",
    "reset",
    "clock_skew",
    "body",
    "refused",
    "unknown_host",
    "tls",
];

pub const MOST_SECONDS: f64 = 1e9;
const MOST_MIB: u64 = 1 << 20;

impl TryFrom<Declared> for Fault {
    type Error = String;

    fn try_from(mut declared: Declared) -> Result<Self, String> {
        let name = std::mem::take(&mut declared.kind);
        if declared.code.as_ref().is_some_and(|code| code.trim().is_empty()) {
            return Err("code must not be empty".into());
        }
        let kind = declared.take_kind(&name)?;
        let Declared { every, times, path, .. } = std::mem::take(&mut declared);
        for (selector, count) in [("every", every), ("times", times)] {
            if count == Some(0) {
                return Err(format!("{selector} must be at least 1; got 0"));
            }
        }
        Ok(Self { kind, every, times, path })
    }
}

impl Declared {
    fn take_kind(&mut self, name: &str) -> Result<FaultKind, String> {
        let kind = match name {
            "status" => {
                let status = status(self.status.take().ok_or_else(|| lacks(name, "status"))?)?;
                FaultKind::Status { status, code: self.code.take() }
            }
            "code" => FaultKind::Code {
                code: self.code.take().ok_or_else(|| lacks(name, "code"))?,
                msg: self.msg.take().unwrap_or_else(|| "fault".into()),
            },
            "delay" => FaultKind::Delay { seconds: self.take_seconds(name, 0.0)? },
            "truncate" => FaultKind::Truncate { bytes: self.bytes.take() },
            "reset" => FaultKind::Reset,
            "slow_body" => FaultKind::SlowBody { seconds: self.take_seconds(name, 0.0)? },
            "throttle" => match self.retry_after.take() {
                Some(after) if !(0.0..=MOST_SECONDS).contains(&after) => {
                    return Err(format!("retry_after must be from 0 to {MOST_SECONDS}; got {after}"));
                }
                retry_after => FaultKind::Throttle { retry_after },
            },
            "empty" => FaultKind::Empty,
            "html" => FaultKind::Html { status: status(self.status.take().unwrap_or(502))? },
            "oversized" => match self.size_mib.take() {
                None => return Err(lacks(name, "size_mib")),
                Some(size_mib) if !(1..=MOST_MIB).contains(&size_mib) => {
                    return Err(format!("size_mib must be from 1 to {MOST_MIB}; got {size_mib}"));
                }
                Some(size_mib) => FaultKind::Oversized { size_mib },
            },
            "clock_skew" => FaultKind::ClockSkew { seconds: self.take_seconds(name, -MOST_SECONDS)? },
            "body" => self.take_body()?,
            "refused" => FaultKind::Unreachable(Unreachable::Refused),
            "unknown_host" => FaultKind::Unreachable(Unreachable::UnknownHost),
            "tls" => FaultKind::Unreachable(Unreachable::Tls),
            "" => return Err("a fault needs a \"kind\"".into()),
            other => return Err(format!("kind must be one of {}; got {other:?}", KINDS.join(", "))),
        };
        let left = [
            ("status", self.status.is_some()),
            ("code", self.code.is_some()),
            ("msg", self.msg.is_some()),
            ("seconds", self.seconds.is_some()),
            ("bytes", self.bytes.is_some()),
            ("retry_after", self.retry_after.is_some()),
            ("size_mib", self.size_mib.is_some()),
            ("text", self.text.is_some()),
            ("json", self.json.is_some()),
            ("headers", self.headers.is_some()),
        ];
        match left.iter().find(|(_, given)| *given) {
            Some((member, _)) => Err(format!("a fault of kind {name:?} has no {member:?}")),
            None => Ok(kind),
        }
    }

    fn take_seconds(&mut self, kind: &str, min: f64) -> Result<f64, String> {
        match self.seconds.take() {
            None => Err(lacks(kind, "seconds")),
            Some(seconds) if (min..=MOST_SECONDS).contains(&seconds) => Ok(seconds),
            Some(seconds) => Err(format!("seconds must be from {min} to {MOST_SECONDS}; got {seconds}")),
        }
    }

    fn take_body(&mut self) -> Result<FaultKind, String> {
        let (body, is_json) = match (self.text.take(), self.json.take()) {
            (Some(text), None) => (text, false),
            (None, Some(json)) => (json.get().to_owned(), true),
            _ => return Err("a fault of kind \"body\" needs either \"text\" or \"json\"".into()),
        };
        let headers = self.headers.take().unwrap_or_default();
        if let Some((name, value)) = headers.iter().find(|(name, value)| !is_header(name, value)) {
            return Err(format!(
                "headers must be names and values of HTTP without content-length; got {name:?}: {value:?}"
            ));
        }
        Ok(FaultKind::Body { status: status(self.status.take().unwrap_or(200))?, body, is_json, headers })
    }
}

fn is_header(name: &str, value: &str) -> bool {
    // The length is that of the body.
    let is_own = ["content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own));
    !is_own && HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(value).is_ok()
}

fn lacks(kind: &str, member: &str) -> String {
    format!("a fault of kind {kind:?} needs {member:?}")
}

fn status(status: u16) -> Result<u16, String> {
    // Below 200 a response is not final, and 204 and 304 have no body.
    if (200..=599).contains(&status) && ![204, 304].contains(&status) {
        return Ok(status);
    }
    Err(format!("status must be that of a response with a body, from 200 to 599; got {status}"))
}

impl FaultKind {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::Code { .. } => "code",
            Self::Throttle { .. } => "throttle",
            Self::Empty => "empty",
            Self::Html { .. } => "html",
            Self::Oversized { .. } => "oversized",
            Self::Delay { .. } => "delay",
            Self::SlowBody { .. } => "slow_body",
            Self::Truncate { .. } => "truncate",
            Self::Reset => "reset",
            Self::ClockSkew { .. } => "clock_skew",
            Self::Body { .. } => "body",
            Self::Unreachable(Unreachable::Refused) => "refused",
            Self::Unreachable(Unreachable::UnknownHost) => "unknown_host",
            Self::Unreachable(Unreachable::Tls) => "tls",
        }
    }
}

impl From<Fault> for Declared {
    fn from(fault: Fault) -> Self {
        let kind = fault.kind.name().to_owned();
        let base = Self { kind, every: fault.every, times: fault.times, path: fault.path, ..Self::default() };
        match fault.kind {
            FaultKind::Status { status, code } => Self { status: Some(status), code, ..base },
            FaultKind::Code { code, msg } => Self { code: Some(code), msg: Some(msg), ..base },
            FaultKind::Delay { seconds } | FaultKind::SlowBody { seconds } | FaultKind::ClockSkew { seconds } => {
                Self { seconds: Some(seconds), ..base }
            }
            FaultKind::Truncate { bytes } => Self { bytes, ..base },
            FaultKind::Throttle { retry_after } => Self { retry_after, ..base },
            FaultKind::Html { status } => Self { status: Some(status), ..base },
            FaultKind::Oversized { size_mib } => Self { size_mib: Some(size_mib), ..base },
            FaultKind::Body { status, body, is_json, headers } => {
                let (json, text) = if is_json { (RawValue::from_string(body).ok(), None) } else { (None, Some(body)) };
                Self { status: Some(status), json, text, headers: Some(headers), ..base }
            }
            FaultKind::Empty | FaultKind::Reset | FaultKind::Unreachable(_) => base,
        }
    }
}

/// Reads a list of faults as JSON; the error names the fault and the member.
pub fn read(json: &str) -> Result<Vec<Fault>, String> {
    let given: Vec<&RawValue> = serde_json::from_str(json).map_err(|error| explain(&error))?;
    let is_one = given.len() == 1;
    let faults = (1..).zip(given).map(|(number, fault)| {
        read_one(fault.get()).map_err(|problem| if is_one { problem } else { format!("fault {number}: {problem}") })
    });
    faults.collect()
}

/// Reads a fault as JSON; the error names the member.
pub fn read_one(json: &str) -> Result<Fault, String> {
    serde_json::from_str(json).map_err(|error| {
        let members = serde_json::from_str::<BTreeMap<String, Value>>(json).unwrap_or_default();
        let problem = members.into_iter().find_map(|(name, value)| {
            // Alone, a member has a value of its kind, or an invalid one.
            let alone = Value::Object([(name.clone(), value)].into_iter().collect());
            let problem = explain(&serde_json::from_value::<Declared>(alone).err()?);
            (!problem.starts_with("unknown member")).then(|| format!("{name}: {problem}"))
        });
        problem.unwrap_or_else(|| explain(&error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Fault {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn faults_round_trip_through_json() {
        for text in [
            r#"{"kind":"status","status":503,"code":"50001","every":3}"#,
            r#"{"kind":"code","code":"50013","msg":"busy","times":2,"path":"block-list"}"#,
            r#"{"kind":"delay","seconds":0.5}"#,
            r#"{"kind":"truncate","bytes":10}"#,
            r#"{"kind":"reset"}"#,
            r#"{"kind":"slow_body","seconds":1.5}"#,
            r#"{"kind":"throttle","retry_after":0.25}"#,
            r#"{"kind":"empty"}"#,
            r#"{"kind":"html","status":502}"#,
            r#"{"kind":"oversized","size_mib":3}"#,
            r#"{"kind":"clock_skew","seconds":-45.0}"#,
            r#"{"kind":"body","status":418,"json":{"code":0.10},"headers":{"x-a":"b"}}"#,
            r#"{"kind":"unknown_host","times":1}"#,
        ] {
            let written = serde_json::to_string(&fault(text)).unwrap();
            let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(value(&written), value(text));
        }
    }

    #[test]
    fn invalid_faults_are_rejected_with_a_reason() {
        for (text, reason) in [
            (r#"{"status":503}"#, "kind"),
            (r#"{"kind":"flood"}"#, "status, code, throttle"),
            (r#"{"kind":"status"}"#, "status"),
            (r#"{"kind":"status","status":99}"#, "99"),
            (r#"{"kind":"html","status":204}"#, "204"),
            (r#"{"kind":"delay"}"#, "seconds"),
            (r#"{"kind":"delay","seconds":-1}"#, "seconds"),
            (r#"{"kind":"throttle","retry_after":-1}"#, "retry_after"),
            (r#"{"kind":"oversized"}"#, "size_mib"),
            (r#"{"kind":"oversized","size_mib":0}"#, "size_mib"),
            (r#"{"kind":"code","code":" "}"#, "code"),
            (r#"{"kind":"status","status":503,"code":""}"#, "code"),
            (r#"{"kind":"reset","seconds":1}"#, "seconds"),
            (r#"{"kind":"body"}"#, "text"),
            (r#"{"kind":"body","text":"","json":1}"#, "either"),
            (r#"{"kind":"body","text":"","headers":{"content-length":"3"}}"#, "content-length"),
            (r#"{"kind":"html","text":""}"#, "text"),
            (r#"{"kind":"reset","every":0}"#, "every"),
            (r#"{"kind":"reset","evry":2}"#, "evry"),
        ] {
            let error = serde_json::from_str::<Fault>(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
