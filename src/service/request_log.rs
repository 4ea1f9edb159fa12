//! Log of the requests received, for tests to inspect. Headers, and with them credentials, are not logged.

use std::collections::VecDeque;

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
    /// 0 where the connection was closed without a response.
    pub status: u16,
    /// Empty where the body has none.
    pub code: String,
    /// Kinds of the faults that applied.
    pub faults: Vec<&'static str>,
}

impl RequestEntry {
    fn size(&self) -> usize {
        size_of::<Self>() + self.method.len() + self.path.len() + self.query.len() + self.code.len()
    }
}

#[derive(Debug, Default)]
pub struct RequestLog {
    entries: VecDeque<RequestEntry>,
    bytes: usize,
}

impl RequestLog {
    pub fn add(&mut self, entry: RequestEntry) {
        self.bytes += entry.size();
        self.entries.push_back(entry);
        while self.entries.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.size();
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn entries(&self) -> Vec<RequestEntry> {
        self.entries.iter().cloned().collect()
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
        let mut log = RequestLog::default();
        for number in 0..MAX_ENTRIES + 2 {
            log.add(entry(number.to_string()));
        }
        assert_eq!(log.entries().len(), MAX_ENTRIES);
        assert_eq!(log.entries()[0].query, "2");
    }

    #[test]
    fn long_queries_do_not_exceed_the_memory_limit() {
        let mut log = RequestLog::default();
        for _ in 0..1_000 {
            log.add(entry("x".repeat(60_000)));
        }
        let held: usize = log.entries().iter().map(|entry| entry.query.len()).sum();
        assert!((60_000..=MAX_BYTES).contains(&held), "{held}");
        log.clear();
        log.add(entry("last".into()));
        assert_eq!(log.entries().len(), 1);
    }
}
