//! What was asked and how it was answered, for tests to look at. Headers, and so credentials, never get here.

use std::collections::VecDeque;

/// Older entries are dropped.
const MOST_ENTRIES: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestEntry {
    pub method: String,
    pub path: String,
    /// As sent, without the "?".
    pub query: String,
    /// 0 where the connection was closed without an answer.
    pub status: u16,
    /// Empty where the body carries none.
    pub code: String,
}

#[derive(Debug, Default)]
pub struct Journal {
    entries: VecDeque<RequestEntry>,
}

impl Journal {
    pub fn add(&mut self, entry: RequestEntry) {
        if self.entries.len() == MOST_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    pub fn entries(&self) -> Vec<RequestEntry> {
        self.entries.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_go_first() {
        let mut journal = Journal::default();
        for number in 0..MOST_ENTRIES + 2 {
            journal.add(RequestEntry {
                method: "GET".into(),
                path: "/".into(),
                query: number.to_string(),
                status: 200,
                code: "0".into(),
            });
        }
        assert_eq!(journal.entries().len(), MOST_ENTRIES);
        assert_eq!(journal.entries()[0].query, "2");
    }
}
