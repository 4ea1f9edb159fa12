//! One interaction, and the JSON it is written as. A body of JSON is part of the line as it was sent, readable and
//! comparable; its numbers keep their digits and its members their order.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{json_error, layout};

/// Method of a request that is never sent.
const FACTS: &str = "FACTS";

/// The parts of a request that are compared: neither the host nor a prefix of the declared paths.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub params: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Response(RecordedResponse),
    Failure(RecordedFailure),
}

#[derive(Clone, Debug, PartialEq)]
pub struct RecordedResponse {
    pub status: u16,
    /// Seconds.
    pub retry_after: Option<f64>,
    /// Seconds that the service's clock was ahead; only where the response may be due to that.
    pub clock_skew: Option<i64>,
    pub body: Bytes,
}

impl Outcome {
    pub fn of_facts(body: Bytes) -> Self {
        Self::Response(RecordedResponse { status: 200, retry_after: None, clock_skew: None, body })
    }
}

/// A request without a response, and the phase in which it failed. Messages of the system may name hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFailure {
    pub phase: String,
    pub timed_out: bool,
    pub retryable: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// Remark of the file's author; it is kept when the request is recorded again.
    pub note: Option<String>,
    pub request: Request,
    pub outcome: Outcome,
    /// True if the user's function has replaced what must not be stored.
    pub is_scrubbed: bool,
}

/// An interaction as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    path: Cow<'a, str>,
    params: Cow<'a, BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    scrubbed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clock_skew: Option<i64>,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    json: Option<&'a RawValue>,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    base64: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RecordedFailure>,
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

impl Request {
    /// The GET of a target, its path below the base URL's.
    pub fn get(target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let params = pairs.map(|(name, value)| (decoded(name), decoded(value))).collect();
        Self { method: "GET".into(), path: path.into(), params }
    }

    /// A request that is never sent, under which a client keeps what it found for a call.
    pub fn facts(path: String, params: BTreeMap<String, String>) -> Self {
        Self { method: FACTS.into(), path, params }
    }

    pub fn is_sent(&self) -> bool {
        self.method != FACTS
    }
}

impl Interaction {
    pub fn to_line(&self) -> String {
        let Request { method, path, params } = &self.request;
        let mut line = Line {
            note: self.note.clone(),
            method: method.into(),
            path: path.into(),
            params: Cow::Borrowed(params),
            scrubbed: self.is_scrubbed,
            status: None,
            retry_after: None,
            clock_skew: None,
            json: None,
            text: None,
            base64: None,
            error: None,
        };
        let on_one_line;
        match &self.outcome {
            Outcome::Failure(failure) => line.error = Some(failure.clone()),
            Outcome::Response(response) => {
                line.status = Some(response.status);
                line.retry_after = response.retry_after;
                line.clock_skew = response.clock_skew;
                match std::str::from_utf8(&response.body) {
                    Err(_) => line.base64 = Some(STANDARD.encode(&response.body).into()),
                    Ok(text) => {
                        if structure(text).is_some() {
                            // Within JSON strings a line break is escaped, so any other is whitespace between tokens.
                            on_one_line = text.replace(['\n', '\r'], " ");
                            line.json = structure(&on_one_line);
                        } else {
                            line.text = Some(text.into());
                        }
                    }
                }
            }
        }
        layout::fold(&serde_json::to_string(&line).expect("strings and numbers are JSON"))
    }

    /// Reads a line; the error says what is wrong with it.
    pub fn from_line(line: &str) -> Result<Self, String> {
        if !line.trim_start().starts_with('{') {
            return Err("not a JSON object".into());
        }
        let line: Line<'_> = serde_json::from_str(line).map_err(|error| explain(&error))?;
        let outcome = match (line.status, line.error) {
            (Some(status), None) if !(100..600).contains(&status) => {
                return Err(format!("status must be within 100 to 599; got {status}"));
            }
            (Some(status), None) => {
                let body = match (line.json, line.text, line.base64) {
                    (Some(json), None, None) => Bytes::from(layout::unfold(json.get())),
                    (None, Some(text), None) => Bytes::from(text.into_owned().into_bytes()),
                    (None, None, Some(text)) => STANDARD.decode(&*text).map_err(|_| "invalid base64")?.into(),
                    _ => return Err("exactly one of json, text, base64 is required".into()),
                };
                let retry_after = line.retry_after;
                Outcome::Response(RecordedResponse { status, retry_after, clock_skew: line.clock_skew, body })
            }
            (None, Some(failure)) => Outcome::Failure(failure),
            _ => return Err("exactly one of status, error is required".into()),
        };
        let request = Request {
            method: line.method.into_owned(),
            path: line.path.into_owned(),
            params: line.params.into_owned(),
        };
        Ok(Self { note: line.note, request, outcome, is_scrubbed: line.scrubbed })
    }
}

/// The reason why a text is not JSON.
pub fn json_problem(text: &str) -> Option<String> {
    serde_json::from_str::<&RawValue>(text).err().map(|error| explain(&error))
}

/// The text itself, if it is a JSON object or array. A bare `null` would be read as no body at all.
fn structure(text: &str) -> Option<&RawValue> {
    let json: &RawValue = serde_json::from_str(text).ok()?;
    json.get().starts_with(['{', '[']).then_some(json)
}

fn explain(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of line".into();
    }
    let place = match error.line() {
        1 => format!("column {}", error.column()),
        line => format!("column {} of its line {line}", error.column()),
    };
    format!("{}, at {place}", json_error::explain(error))
}
