//! Log of the requests received, for tests to inspect. It shows no credentials.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, mem};

use axum::http::HeaderMap;
use chrono::{DateTime, Utc};

use crate::interface::ENDPOINTS;
use crate::redaction::Encodings;

/// The oldest entries are dropped beyond either limit.
const MAX_ENTRIES: usize = 10_000;
const MAX_BYTES: usize = 16 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestEntry {
    pub time: DateTime<Utc>,
    pub method: String,
    pub path: String,
    /// As sent, without the "?".
    pub query: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// 0 where the connection was closed without a response.
    pub status: u16,
    /// Empty where the body has none.
    pub code: String,
    /// Kinds of the faults that applied.
    pub faults: Vec<&'static str>,
}

impl RequestEntry {
    /// A request that the HTTP server could not read: the parts of its first line, as far as there are any.
    pub fn unreadable(head: &[u8], status: u16, time: DateTime<Utc>) -> Self {
        let line = head.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let (method, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let target = rest.rsplit_once(" HTTP/").map_or(rest, |(target, _)| target);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self { time, method: method.into(), path: path.into(), query: query.into(), status, ..Self::default() }
    }

    /// Names and values of headers as they came.
    pub fn headers_of(headers: &HeaderMap) -> Vec<(String, String)> {
        let headers = headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), value.into_owned())
        });
        headers.collect()
    }

    fn size(&self) -> usize {
        let headers: usize =
            self.headers.iter().map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len()).sum();
        size_of::<Self>() + self.method.len() + self.path.len() + self.query.len() + self.code.len() + headers
    }
}

/// Parts of the names of headers and parameters whose values are credentials.
const SECRET_NAMES: [&str; 8] = ["auth", "cookie", "credential", "key", "pass", "secret", "session", "sign"];

/// Shortest credential that is looked for in other values: shorter texts occur there by chance.
const MIN_SECRET_LEN: usize = 4;

const MASK: &str = "*";

/// Credentials, which are not logged: by the names under which they are sent, and by their values under any other name,
/// however encoded.
#[derive(Debug, Default)]
pub struct Redaction {
    /// Headers of the deployment.
    headers: Vec<String>,
    /// Credentials of the service.
    values: Vec<String>,
}

impl Redaction {
    pub fn new(headers: Vec<String>, values: Vec<String>) -> Self {
        Self { headers, values }
    }

    /// The entry with `*` in place of each value that shows a credential of the service or of the request.
    fn apply(&self, mut entry: RequestEntry) -> RequestEntry {
        let sent =
            entry.headers.iter().filter(|(name, _)| self.is_of_credential(name)).map(|(_, value)| value.as_str());
        // A scheme may come before a credential.
        let sent = sent.flat_map(|value| value.rsplit_once(' ').map(|(_, last)| last).into_iter().chain([value]));
        let values = self.values.iter().map(String::as_str).chain(sent);
        let secrets: Vec<String> = values.filter(|value| value.len() >= MIN_SECRET_LEN).map(str::to_owned).collect();
        let encodings = Encodings::of(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
        let others =
            entry.headers.iter().filter(|(name, _)| !self.is_of_credential(name)).map(|(_, value)| value.as_str());
        let shown: Vec<&str> = others.chain([entry.path.as_str(), entry.query.as_str()]).collect();
        // Hardly any request shows one, and one search of all values is faster than a search of each.
        let shows_any = encodings.are_in(&shown.join("\n"));
        let shows = |text: &str| shows_any && encodings.are_in(text);
        for (name, value) in &mut entry.headers {
            if self.is_of_credential(name) || shows(value) {
                *value = MASK.into();
            }
        }
        let segments = entry.path.split('/').map(|segment| if shows(segment) { MASK } else { segment });
        entry.path = segments.collect::<Vec<_>>().join("/");
        let pairs = entry.query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if shows(value) || (!is_declared(name) && is_secret_name(name)) => {
                format!("{}={MASK}", if shows(name) { MASK } else { name })
            }
            _ if shows(pair) => MASK.into(),
            _ => pair.to_owned(),
        });
        entry.query = pairs.collect::<Vec<_>>().join("&");
        entry
    }

    /// True if a header of this name has a credential.
    fn is_of_credential(&self, header: &str) -> bool {
        self.headers.iter().any(|own| own.eq_ignore_ascii_case(header)) || is_secret_name(header)
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("token") || SECRET_NAMES.iter().any(|part| name.contains(part))
}

fn is_declared(name: &str) -> bool {
    ENDPOINTS.iter().flat_map(|endpoint| endpoint.params).any(|param| param.wire() == Some(name))
}

#[derive(Default)]
pub struct RequestLog {
    redaction: Redaction,
    received: AtomicU64,
    held: Mutex<Held>,
}

impl fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestLog").field("received", &self.received).finish_non_exhaustive()
    }
}

/// Entries lose their credentials when they are first shown: to look for them takes longer than most responses, and of
/// most requests the entry is not read.
#[derive(Default)]
struct Held {
    entries: VecDeque<RequestEntry>,
    /// Number of the oldest entries that are without credentials.
    redacted: usize,
    bytes: usize,
}

impl RequestLog {
    pub fn new(redaction: Redaction) -> Self {
        Self { redaction, ..Self::default() }
    }

    /// The entry without credentials, as it is shown.
    pub fn redacted(&self, entry: RequestEntry) -> RequestEntry {
        self.redaction.apply(entry)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request; its entry is added with its response.
    pub fn count(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of requests received.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub fn add(&self, entry: RequestEntry) {
        let held = &mut *self.held();
        held.bytes += entry.size();
        held.entries.push_back(entry);
        while held.entries.len() > MAX_ENTRIES || held.bytes > MAX_BYTES {
            let Some(oldest) = held.entries.pop_front() else { break };
            held.redacted = held.redacted.saturating_sub(1);
            held.bytes -= oldest.size();
        }
    }

    pub fn clear(&self) {
        *self.held() = Held::default();
        self.received.store(0, Ordering::Relaxed);
    }

    pub fn entries(&self) -> Vec<RequestEntry> {
        let Held { entries, redacted, bytes } = &mut *self.held();
        for entry in entries.range_mut(*redacted..) {
            *bytes -= entry.size();
            *entry = self.redacted(mem::take(entry));
            *bytes += entry.size();
        }
        *redacted = entries.len();
        entries.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(query: String) -> RequestEntry {
        RequestEntry { method: "GET".into(), path: "/".into(), query, status: 200, ..RequestEntry::default() }
    }

    #[test]
    fn oldest_entries_are_dropped_beyond_the_maximum() {
        let log = RequestLog::default();
        for number in 0..MAX_ENTRIES + 2 {
            log.add(entry(number.to_string()));
        }
        assert_eq!(log.entries().len(), MAX_ENTRIES);
        assert_eq!(log.entries()[0].query, "2");
    }

    #[test]
    fn long_queries_do_not_exceed_the_memory_limit() {
        let log = RequestLog::default();
        for _ in 0..1_000 {
            log.add(entry("x".repeat(60_000)));
        }
        let held: usize = log.entries().iter().map(|entry| entry.query.len()).sum();
        assert!((60_000..=MAX_BYTES).contains(&held), "{held}");
        log.clear();
        log.add(entry("last".into()));
        assert_eq!(log.entries().len(), 1);
    }

    #[test]
    fn credentials_are_not_logged_under_any_name() {
        let log = RequestLog::new(Redaction::new(
            vec!["SVC-ACCESS-KEY".into()],
            vec!["local-key".into(), "local-secret".into()],
        ));
        let logged = |name: &str, value: &str, target: &str| {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let headers = vec![("svc-access-key".into(), "K3Y-OF-MINE".into()), (name.into(), value.into())];
            log.add(RequestEntry { path: path.into(), headers, ..entry(query.into()) });
            let entry = log.entries().pop().unwrap();
            assert_eq!(entry.headers[0].1, MASK);
            (entry.headers[1].1.clone(), format!("{}?{}", entry.path, entry.query))
        };
        for (name, value) in [
            ("authorization", "Basic x"),
            ("x-api-key", "other"),
            ("x-csrf-token", "other"),
            ("x-trace", "a local-secret b"),
            ("referer", "https://h/?k=K3Y-OF-MINE"),
            // In base64, after another text as well, and in hex.
            ("x-trace", "bG9jYWwtc2VjcmV0"),
            ("x-trace", "dXNlcjpsb2NhbC1zZWNyZXQ="),
            ("x-trace", "6c6f63616c2d736563726574"),
        ] {
            assert_eq!(logged(name, value, "/a?b=c").0, MASK, "{name}");
        }
        for (target, expected) in [
            ("/a/K3Y-OF-MINE?apiKey=x&page=1", "/a/*?apiKey=*&page=1"),
            ("/a?q=K3Y%2dOF-MINE&local-key=1&local-secret", "/a?q=*&*=*&*"),
            ("/a?tokenContractAddress=0xa&limit=5", "/a?tokenContractAddress=0xa&limit=5"),
        ] {
            assert_eq!(logged("user-agent", "a/1", target), ("a/1".into(), expected.into()));
        }
    }

    #[test]
    fn unreadable_request_is_logged_as_far_as_it_can_be_read() {
        let read = |head: &[u8]| {
            let entry = RequestEntry::unreadable(head, 400, DateTime::UNIX_EPOCH);
            (entry.method, entry.path, entry.query)
        };
        let parts = |method: &str, path: &str, query: &str| (method.into(), path.into(), query.into());
        assert_eq!(read(b"GET /a?b=c|d e HTTP/1.1\r\nHost: x\r\n"), parts("GET", "/a", "b=c|d e"));
        assert_eq!(read(b"GET /\xff HTTP/1.1\r\n"), parts("GET", "/\u{fffd}", ""));
        assert_eq!(read(b"\x16\x03\x01"), parts("\u{16}\u{3}\u{1}", "", ""));
        assert_eq!(read(b""), parts("", "", ""));
    }
}
