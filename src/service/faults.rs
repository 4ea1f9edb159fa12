//! Misbehaviour on demand: which requests a fault befalls, by count and path alone, and what it does to them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A fault and the requests it befalls. Without a selector it befalls all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Declared", into = "Declared")]
pub struct Fault {
    pub kind: FaultKind,
    /// Only every n-th of the requests that the path selects.
    pub every: Option<u64>,
    /// Only the first n of the requests that the path selects.
    pub first: Option<u64>,
    /// Only requests whose path has this part.
    pub path: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// An HTTP status, with an error body if there is a code and an empty one if not.
    Status { status: u16, code: Option<String> },
    /// HTTP 200 with an error body.
    Code { code: String, msg: String },
    /// Seconds of silence before the answer.
    Stall { seconds: f64 },
    /// The announced length with only so many bytes of it; half of them by default.
    Cut { bytes: Option<usize> },
    /// The connection is reset without an answer.
    Reset,
    /// The body piece by piece over so many seconds.
    Drip { seconds: f64 },
    /// HTTP 429 with code 50011.
    Throttle { retry_after: Option<f64> },
    /// Success with no data.
    Empty,
    /// A page for people, as proxies send.
    Html { status: u16 },
    /// A body of so many MiB.
    Huge { mib: u64 },
    /// The service's clock is so many seconds ahead.
    Clock { seconds: f64 },
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
    mib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

pub const MOST_SECONDS: f64 = 1e9;
const MOST_MIB: u64 = 1 << 20;

impl TryFrom<Declared> for Fault {
    type Error = String;

    fn try_from(mut declared: Declared) -> Result<Self, String> {
        let name = std::mem::take(&mut declared.kind);
        let kind = declared.take_kind(&name)?;
        let Declared { every, first, path, .. } = std::mem::take(&mut declared);
        for (selector, count) in [("every", every), ("first", first)] {
            if count == Some(0) {
                return Err(format!("{selector} must be at least 1"));
            }
        }
        Ok(Self { kind, every, first, path })
    }
}

impl Declared {
    fn take_kind(&mut self, name: &str) -> Result<FaultKind, String> {
        let lacks = |member: &str| format!("a fault of kind {name:?} needs {member:?}");
        let seconds = |seconds: Option<f64>, least: f64| match seconds {
            None => Err(lacks("seconds")),
            Some(seconds) if (least..=MOST_SECONDS).contains(&seconds) => Ok(seconds),
            Some(_) => Err(format!("seconds must be a number from {least} to {MOST_SECONDS}")),
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
            "stall" => FaultKind::Stall { seconds: seconds(self.seconds.take(), 0.0)? },
            "cut" => FaultKind::Cut { bytes: self.bytes.take() },
            "reset" => FaultKind::Reset,
            "drip" => FaultKind::Drip { seconds: seconds(self.seconds.take(), 0.0)? },
            "throttle" => match self.retry_after.take() {
                Some(after) if !(0.0..=MOST_SECONDS).contains(&after) => {
                    return Err(format!("retry_after must be a number from 0 to {MOST_SECONDS}"));
                }
                retry_after => FaultKind::Throttle { retry_after },
            },
            "empty" => FaultKind::Empty,
            "html" => FaultKind::Html { status: status(self.status.take().unwrap_or(502))? },
            "huge" => match self.mib.take() {
                None => return Err(lacks("mib")),
                Some(mib) if mib > MOST_MIB => return Err(format!("mib must be at most {MOST_MIB}")),
                Some(mib) => FaultKind::Huge { mib },
            },
            "clock" => FaultKind::Clock { seconds: seconds(self.seconds.take(), -MOST_SECONDS)? },
            "" => return Err("a fault needs its \"kind\"".into()),
            other => return Err(format!("{other:?} is no kind of fault")),
        };
        let left = [
            ("status", self.status.is_some()),
            ("code", self.code.is_some()),
            ("msg", self.msg.is_some()),
            ("seconds", self.seconds.is_some()),
            ("bytes", self.bytes.is_some()),
            ("retry_after", self.retry_after.is_some()),
            ("mib", self.mib.is_some()),
        ];
        match left.iter().find(|(_, given)| *given) {
            Some((member, _)) => Err(format!("a fault of kind {name:?} has no {member:?}")),
            None => Ok(kind),
        }
    }
}

fn status(status: u16) -> Result<u16, String> {
    // Below 200 an answer is not final, and 204 and 304 have no body to speak of.
    if (200..=599).contains(&status) && ![204, 304].contains(&status) {
        return Ok(status);
    }
    Err(format!("{status} is not the status of an answer with a body"))
}

impl From<Fault> for Declared {
    fn from(fault: Fault) -> Self {
        let base = Self { every: fault.every, first: fault.first, path: fault.path, ..Self::default() };
        let kind = |kind: &str| kind.to_owned();
        match fault.kind {
            FaultKind::Status { status, code } => Self { kind: kind("status"), status: Some(status), code, ..base },
            FaultKind::Code { code, msg } => Self { kind: kind("code"), code: Some(code), msg: Some(msg), ..base },
            FaultKind::Stall { seconds } => Self { kind: kind("stall"), seconds: Some(seconds), ..base },
            FaultKind::Cut { bytes } => Self { kind: kind("cut"), bytes, ..base },
            FaultKind::Reset => Self { kind: kind("reset"), ..base },
            FaultKind::Drip { seconds } => Self { kind: kind("drip"), seconds: Some(seconds), ..base },
            FaultKind::Throttle { retry_after } => Self { kind: kind("throttle"), retry_after, ..base },
            FaultKind::Empty => Self { kind: kind("empty"), ..base },
            FaultKind::Html { status } => Self { kind: kind("html"), status: Some(status), ..base },
            FaultKind::Huge { mib } => Self { kind: kind("huge"), mib: Some(mib), ..base },
            FaultKind::Clock { seconds } => Self { kind: kind("clock"), seconds: Some(seconds), ..base },
        }
    }
}

/// The faults with their counts.
#[derive(Debug, Default)]
pub struct Faults {
    faults: Vec<(Fault, u64)>,
}

/// What befalls one request.
#[derive(Debug, Default, PartialEq)]
pub struct Due {
    pub stall: Duration,
    pub clock_ms: i64,
    /// Of the faults that answer in the service's stead, the first.
    pub answer: Option<FaultKind>,
    /// Of the faults that spoil the way of an answer, the first.
    pub delivery: Option<FaultKind>,
}

impl Faults {
    pub fn new(faults: Vec<Fault>) -> Self {
        Self { faults: faults.into_iter().map(|fault| (fault, 0)).collect() }
    }

    /// As they were given.
    pub fn declared(&self) -> Vec<Fault> {
        self.faults.iter().map(|(fault, _)| fault.clone()).collect()
    }

    /// Counts the request for every fault whose path it has, whatever else befalls it.
    pub fn befall(&mut self, path: &str) -> Due {
        let mut due = Due::default();
        for (fault, count) in &mut self.faults {
            if fault.path.as_deref().is_some_and(|part| !path.contains(part)) {
                continue;
            }
            *count += 1;
            let counted = *count;
            if fault.every.is_some_and(|every| !counted.is_multiple_of(every))
                || fault.first.is_some_and(|first| counted > first)
            {
                continue;
            }
            match &fault.kind {
                FaultKind::Stall { seconds } => due.stall += Duration::from_secs_f64(*seconds),
                FaultKind::Clock { seconds } => due.clock_ms += (seconds * 1_000.0) as i64,
                kind @ (FaultKind::Cut { .. } | FaultKind::Reset | FaultKind::Drip { .. }) => {
                    due.delivery.get_or_insert_with(|| kind.clone());
                }
                kind => {
                    due.answer.get_or_insert_with(|| kind.clone());
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
    fn faults_read_and_write_the_same() {
        for text in [
            r#"{"kind":"status","status":503,"code":"50001","every":3}"#,
            r#"{"kind":"code","code":"50013","msg":"busy","first":2,"path":"block-list"}"#,
            r#"{"kind":"stall","seconds":0.5}"#,
            r#"{"kind":"cut","bytes":10}"#,
            r#"{"kind":"reset"}"#,
            r#"{"kind":"drip","seconds":1.5}"#,
            r#"{"kind":"throttle","retry_after":0.25}"#,
            r#"{"kind":"empty"}"#,
            r#"{"kind":"html","status":502}"#,
            r#"{"kind":"huge","mib":3}"#,
            r#"{"kind":"clock","seconds":-45.0}"#,
        ] {
            let written = serde_json::to_string(&fault(text)).unwrap();
            let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(value(&written), value(text));
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        for (text, reason) in [
            (r#"{"status":503}"#, "kind"),
            (r#"{"kind":"flood"}"#, "flood"),
            (r#"{"kind":"status"}"#, "status"),
            (r#"{"kind":"status","status":99}"#, "99"),
            (r#"{"kind":"html","status":204}"#, "204"),
            (r#"{"kind":"stall"}"#, "seconds"),
            (r#"{"kind":"stall","seconds":-1}"#, "seconds"),
            (r#"{"kind":"throttle","retry_after":-1}"#, "retry_after"),
            (r#"{"kind":"huge"}"#, "mib"),
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
            fault(r#"{"kind":"reset","first":1}"#),
            fault(r#"{"kind":"stall","seconds":2,"every":3,"first":4}"#),
        ]);
        let due: Vec<_> = ["/block", "/token", "/block", "/block", "/block", "/block"]
            .iter()
            .map(|path| faults.befall(path))
            .map(|due| (due.answer.is_some(), due.delivery.is_some(), due.stall.as_secs()))
            .collect();
        let nothing = (false, false, 0);
        assert_eq!(due, [(false, true, 0), nothing, (true, false, 2), nothing, (true, false, 0), nothing]);
    }

    #[test]
    fn several_faults_befall_one_request() {
        let kinds = [r#"{"kind":"clock","seconds":5}"#, r#"{"kind":"clock","seconds":7}"#, r#"{"kind":"empty"}"#];
        let more = [r#"{"kind":"html"}"#, r#"{"kind":"drip","seconds":1}"#, r#"{"kind":"reset"}"#];
        let due = Faults::new(kinds.iter().chain(&more).map(|text| fault(text)).collect()).befall("/");
        assert_eq!(due.clock_ms, 12_000);
        assert_eq!(due.answer, Some(FaultKind::Empty));
        assert_eq!(due.delivery, Some(FaultKind::Drip { seconds: 1.0 }));
    }
}
