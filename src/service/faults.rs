//! Fault injection: selection of requests by count and path, and what a fault changes in them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

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
    every: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

const KINDS: [&str; 11] = [
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
];

pub const MOST_SECONDS: f64 = 1e9;
const MOST_MIB: u64 = 1 << 20;

impl TryFrom<Declared> for Fault {
    type Error = String;

    fn try_from(mut declared: Declared) -> Result<Self, String> {
        let name = std::mem::take(&mut declared.kind);
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
        let lacks = |member: &str| format!("a fault of kind {name:?} needs {member:?}");
        let seconds = |seconds: Option<f64>, least: f64| match seconds {
            None => Err(lacks("seconds")),
            Some(seconds) if (least..=MOST_SECONDS).contains(&seconds) => Ok(seconds),
            Some(seconds) => Err(format!("seconds must be from {least} to {MOST_SECONDS}; got {seconds}")),
        };
        let kind = match name {
            "status" => {
                let status = status(self.status.take().ok_or_else(|| lacks("status"))?)?;
                FaultKind::Status { status, code: self.code.take() }
            }
            "code" => FaultKind::Code {
                code: self.code.take().ok_or_else(|| lacks("code"))?,
                msg: self.msg.take().unwrap_or_else(|| "fault".into()),
            },
            "delay" => FaultKind::Delay { seconds: seconds(self.seconds.take(), 0.0)? },
            "truncate" => FaultKind::Truncate { bytes: self.bytes.take() },
            "reset" => FaultKind::Reset,
            "slow_body" => FaultKind::SlowBody { seconds: seconds(self.seconds.take(), 0.0)? },
            "throttle" => match self.retry_after.take() {
                Some(after) if !(0.0..=MOST_SECONDS).contains(&after) => {
                    return Err(format!("retry_after must be from 0 to {MOST_SECONDS}; got {after}"));
                }
                retry_after => FaultKind::Throttle { retry_after },
            },
            "empty" => FaultKind::Empty,
            "html" => FaultKind::Html { status: status(self.status.take().unwrap_or(502))? },
            "oversized" => match self.size_mib.take() {
                None => return Err(lacks("size_mib")),
                Some(size_mib) if size_mib > MOST_MIB => {
                    return Err(format!("size_mib must be <= {MOST_MIB}; got {size_mib}"));
                }
                Some(size_mib) => FaultKind::Oversized { size_mib },
            },
            "clock_skew" => FaultKind::ClockSkew { seconds: seconds(self.seconds.take(), -MOST_SECONDS)? },
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
        ];
        match left.iter().find(|(_, given)| *given) {
            Some((member, _)) => Err(format!("a fault of kind {name:?} has no {member:?}")),
            None => Ok(kind),
        }
    }
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
            FaultKind::Empty | FaultKind::Reset => base,
        }
    }
}

/// The faults with their counts.
#[derive(Debug, Default)]
pub struct Faults {
    faults: Vec<(Fault, u64)>,
}

/// The faults that apply to one request.
#[derive(Debug, Default, PartialEq)]
pub struct ActiveFaults {
    pub delay: Duration,
    pub clock_ms: i64,
    /// The first fault that replaces the response.
    pub response: Option<FaultKind>,
    /// The first fault that disturbs the delivery of the response.
    pub delivery: Option<FaultKind>,
    /// Kinds of all faults that apply, in the order they were given.
    pub kinds: Vec<&'static str>,
}

impl Faults {
    pub fn new(faults: Vec<Fault>) -> Self {
        Self { faults: faults.into_iter().map(|fault| (fault, 0)).collect() }
    }

    /// As they were given.
    pub fn declared(&self) -> Vec<Fault> {
        self.faults.iter().map(|(fault, _)| fault.clone()).collect()
    }

    /// Counts the request for every fault that selects its path, and returns those that apply.
    pub fn match_request(&mut self, path: &str) -> ActiveFaults {
        let mut due = ActiveFaults::default();
        for (fault, count) in &mut self.faults {
            if fault.path.as_deref().is_some_and(|part| !path.contains(part)) {
                continue;
            }
            *count += 1;
            let counted = *count;
            if fault.every.is_some_and(|every| !counted.is_multiple_of(every))
                || fault.times.is_some_and(|times| counted > times)
            {
                continue;
            }
            due.kinds.push(fault.kind.name());
            match &fault.kind {
                FaultKind::Delay { seconds } => due.delay += Duration::from_secs_f64(*seconds),
                FaultKind::ClockSkew { seconds } => due.clock_ms += (seconds * 1_000.0) as i64,
                kind @ (FaultKind::Truncate { .. } | FaultKind::Reset | FaultKind::SlowBody { .. }) => {
                    due.delivery.get_or_insert_with(|| kind.clone());
                }
                kind => {
                    due.response.get_or_insert_with(|| kind.clone());
                }
            }
        }
        due
    }
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
            (r#"{"kind":"reset","seconds":1}"#, "seconds"),
            (r#"{"kind":"reset","every":0}"#, "every"),
            (r#"{"kind":"reset","evry":2}"#, "evry"),
        ] {
            let error = serde_json::from_str::<Fault>(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn selectors_count_the_requests_of_their_path() {
        let mut faults = Faults::new(vec![
            fault(r#"{"kind":"empty","every":2,"path":"block"}"#),
            fault(r#"{"kind":"reset","times":1}"#),
            fault(r#"{"kind":"delay","seconds":2,"every":3,"times":4}"#),
        ]);
        let due: Vec<_> = ["/block", "/token", "/block", "/block", "/block", "/block"]
            .iter()
            .map(|path| faults.match_request(path))
            .map(|due| (due.response.is_some(), due.delivery.is_some(), due.delay.as_secs()))
            .collect();
        let nothing = (false, false, 0);
        assert_eq!(due, [(false, true, 0), nothing, (true, false, 2), nothing, (true, false, 0), nothing]);
    }

    #[test]
    fn several_faults_apply_to_one_request() {
        let kinds =
            [r#"{"kind":"clock_skew","seconds":5}"#, r#"{"kind":"clock_skew","seconds":7}"#, r#"{"kind":"empty"}"#];
        let more = [r#"{"kind":"html"}"#, r#"{"kind":"slow_body","seconds":1}"#, r#"{"kind":"reset"}"#];
        let due = Faults::new(kinds.iter().chain(&more).map(|text| fault(text)).collect()).match_request("/");
        assert_eq!(due.clock_ms, 12_000);
        assert_eq!(due.response, Some(FaultKind::Empty));
        assert_eq!(due.delivery, Some(FaultKind::SlowBody { seconds: 1.0 }));
    }
}
