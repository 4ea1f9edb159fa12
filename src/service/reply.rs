//! `Reply`: a response before it is sent, what a fault makes of it, and its body on the way.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write as _;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE, RETRY_AFTER, VARY};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use chrono::{DateTime, Utc};
use flate2::write::GzEncoder;
use futures_util::{StreamExt, stream};

use super::error_response::ErrorResponse;
use super::fault::FaultKind;
use super::faults::ActiveFaults;
use super::render::envelope;

/// Number of chunks of a slow body.
const SLOW_BODY_CHUNKS: u32 = 20;

/// Time for a part of a body to be sent before its connection is closed.
const FLUSH: Duration = Duration::from_millis(20);

/// A response before it is sent.
pub struct Reply {
    pub status: u16,
    pub code: String,
    pub body: Bytes,
    content_type: &'static str,
    /// Headers of the user, in place of those of the same name.
    headers: BTreeMap<String, String>,
    pub retry_after: Option<f64>,
    /// Size of the filler that is sent before the body's end, in MiB.
    filler: u64,
    /// True if the body is compressed with gzip.
    gzip: bool,
}

impl Reply {
    pub fn json(status: u16, code: &str, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            code: code.into(),
            body: body.into(),
            content_type: "application/json",
            headers: BTreeMap::new(),
            retry_after: None,
            filler: 0,
            gzip: false,
        }
    }

    /// Compresses the body, unless it is generated while it is sent.
    pub fn compressed(self) -> Self {
        let mut encoder = GzEncoder::new(Vec::with_capacity(self.body.len() / 4), flate2::Compression::fast());
        match encoder.write_all(&self.body).and_then(|()| encoder.finish()) {
            Ok(body) if self.filler == 0 => Self { body: body.into(), gzip: true, ..self },
            _ => self,
        }
    }

    pub fn error_response(error_response: &ErrorResponse) -> Self {
        Self::json(error_response.status, error_response.code, envelope(error_response.code, &error_response.msg))
    }

    /// The response of a fault that replaces it.
    pub fn of_fault(kind: &FaultKind) -> Self {
        match kind {
            FaultKind::Status { status, code: None } => Self::json(*status, "", ""),
            FaultKind::Status { status, code: Some(code) } => Self::json(*status, code, envelope(code, "fault")),
            FaultKind::Code { code, msg } => Self::json(200, code, envelope(code, msg)),
            FaultKind::Throttle { retry_after } => {
                let reply = Self::error_response(&ErrorResponse::new("50011", "Too many requests"));
                Self { retry_after: *retry_after, ..reply }
            }
            FaultKind::Html { status } => {
                let page =
                    "<!DOCTYPE html>\n<html><head><title>Error</title></head><body><h1>Error</h1></body></html>\n";
                Self { content_type: "text/html; charset=utf-8", ..Self::json(*status, "", page) }
            }
            FaultKind::Body { status, body, is_json, headers } => {
                let content_type = if *is_json { "application/json" } else { "text/plain; charset=utf-8" };
                Self { content_type, headers: headers.clone(), ..Self::json(*status, "", body.clone()) }
            }
            FaultKind::Oversized { size_mib } => Self { filler: *size_mib, ..Self::json(200, "0", "\",\"data\":[]}") },
            _ => Self::json(200, "0", envelope("0", "")),
        }
    }

    /// Sends the response, disturbed by the faults of delivery.
    pub fn deliver(self, due: &ActiveFaults, now: DateTime<Utc>) -> Response<Body> {
        let length = self.body.len();
        let (announced, body) = if self.filler > 0 {
            oversized(self.filler, self.body)
        } else {
            match &due.delivery {
                // The full length is announced, and less is sent.
                Some(FaultKind::Truncate { bytes }) => {
                    let kept = bytes.unwrap_or(length / 2).min(length.saturating_sub(1));
                    (length as u64, truncated(self.body.slice(..kept)))
                }
                Some(FaultKind::SlowBody { seconds }) => (length as u64, slow_body(self.body, *seconds)),
                _ => (length as u64, Body::from(self.body)),
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CONTENT_LENGTH, announced.into());
        if self.gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED.as_u16() {
            headers.insert(ALLOW, HeaderValue::from_static("GET"));
        }
        if let Ok(date) = HeaderValue::from_str(&now.format("%a, %d %b %Y %H:%M:%S GMT").to_string()) {
            headers.insert(DATE, date);
        }
        if let Some(Ok(after)) = self.retry_after.map(|after| HeaderValue::from_str(&after.to_string())) {
            headers.insert(RETRY_AFTER, after);
        }
        for (name, value) in &self.headers {
            // Checked where they were given.
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
                headers.insert(name, value);
            }
        }
        response
    }
}

fn truncated(kept: Bytes) -> Body {
    let broken = stream::once(async {
        // Given the error at once, the server would drop the data that it has not sent yet.
        tokio::time::sleep(FLUSH).await;
        Err(std::io::Error::from(std::io::ErrorKind::ConnectionAborted))
    });
    Body::from_stream(stream::iter([Ok(kept)]).chain(broken))
}

fn slow_body(body: Bytes, seconds: f64) -> Body {
    let chunk_size = body.len().div_ceil(SLOW_BODY_CHUNKS as usize).max(1);
    let pause = Duration::from_secs_f64(seconds) / SLOW_BODY_CHUNKS;
    let chunks = stream::unfold(body, move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        tokio::time::sleep(pause).await;
        let next = rest.split_to(chunk_size.min(rest.len()));
        Some((Ok::<_, Infallible>(next), rest))
    });
    Body::from_stream(chunks)
}

/// A response with a message of that size, generated while it is sent, so that it takes no memory.
fn oversized(mib: u64, end: Bytes) -> (u64, Body) {
    let start = Bytes::from_static(b"{\"code\":\"0\",\"msg\":\"");
    let block = Bytes::from(vec![b' '; 1 << 20]);
    let length = (start.len() + end.len()) as u64 + mib * block.len() as u64;
    let blocks = stream::iter(0..mib).map(move |_| block.clone());
    let parts = stream::iter([start]).chain(blocks).chain(stream::iter([end]));
    (length, Body::from_stream(parts.map(Ok::<_, Infallible>)))
}
