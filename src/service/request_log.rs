//! Log of the requests received, for tests to inspect. Credentials in headers are not logged.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::HeaderMap;
use chrono::{DateTime, Utc};

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
        let (method, path, query) = (method.into(), path.into(), query.into());
        Self { time, method, path, query, status, ..Self::default() }
    }

    fn size(&self) -> usize {
        let headers: usize =
            self.headers.iter().map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len()).sum();
        size_of::<Self>() + self.method.len() + self.path.len() + self.query.len() + self.code.len() + headers
    }
}

/// Headers whose values are secrets, or show one.
const SECRET_HEADERS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// Names and values of headers. Those of credentials are replaced by `*`; `own` are the deployment's.
pub fn without_secrets(headers: &HeaderMap, own: &[String]) -> Vec<(String, String)> {
    let is_secret = |name: &str| SECRET_HEADERS.contains(&name) || own.iter().any(|own| own.eq_ignore_ascii_case(name));
    let logged = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        let value = if is_secret(name.as_str()) { "*".into() } else { String::from_utf8_lossy(value.as_bytes()) };
        (name.as_str().to_owned(), value.into_owned())
    };
    headers.iter().map(logged).collect()
}

#[derive(Debug, Default)]
pub struct RequestLog {
    received: AtomicU64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    entries: VecDeque<RequestEntry>,
    bytes: usize,
}

impl RequestLog {
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
            held.bytes -= oldest.size();
        }
    }

    pub fn clear(&self) {
        *self.held() = Held::default();
        self.received.store(0, Ordering::Relaxed);
    }

    pub fn entries(&self) -> Vec<RequestEntry> {
        self.held().entries.iter().cloned().collect()
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
    fn credentials_in_headers_are_not_logged() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("xy-access-key", "K3Y"), ("authorization", "Basic x"), ("user-agent", "a/1")] {
            headers.insert(name, value.parse().unwrap());
        }
        let logged = without_secrets(&headers, &["XY-ACCESS-KEY".into()]);
        let expected = [("xy-access-key", "*"), ("authorization", "*"), ("user-agent", "a/1")];
        assert_eq!(logged, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
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
