//! Quirks of deployed services: responses that contradict each other or the documents, without an error. A list is
//! served by [`Turn`], which says what one request sees of it.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use super::parameters::Parameters;
use super::quirk::Quirk;
use crate::interface::{Endpoint, Order};

const REPLICA_LAG: u64 = 2;
const PAGE_SIZE: u64 = 20;
const PAGE_COUNT: u64 = 5;
const CACHED_RESPONSES: u64 = 10;
const RANKS: u64 = 40;

/// A quirk of a running service.
#[derive(Debug)]
struct Running {
    quirk: Quirk,
    /// True once it has changed a response.
    is_used: Cell<bool>,
}

/// The quirks of a running service.
#[derive(Debug, Default)]
pub struct Quirks {
    quirks: Vec<Running>,
    requests: u64,
    /// Counts that are served again, by request without its page.
    counts: HashMap<String, (u64, u64)>,
}

/// The view that one request has of a list.
#[derive(Debug)]
pub struct Turn<'q> {
    quirks: &'q [Running],
    number: u64,
    counts: &'q mut HashMap<String, (u64, u64)>,
}

impl Quirks {
    pub fn new(quirks: Vec<Quirk>) -> Self {
        let quirks = quirks.into_iter().map(|quirk| Running { quirk, is_used: Cell::new(false) }).collect();
        Self { quirks, ..Self::default() }
    }

    pub fn declared(&self) -> Vec<Quirk> {
        self.quirks.iter().map(|running| running.quirk.clone()).collect()
    }

    /// Those that have changed no response.
    pub fn unused(&self) -> Vec<Quirk> {
        let unused = self.quirks.iter().filter(|running| !running.is_used.get());
        unused.map(|running| running.quirk.clone()).collect()
    }

    /// True if the throttled request gets an empty success.
    pub fn throttles_by_empty_data(&self) -> bool {
        named(&self.quirks, &Quirk::EmptyThrottle {}).is_some_and(Running::note)
    }

    /// Counts a request for a list.
    pub fn next(&mut self) -> Turn<'_> {
        let number = self.requests;
        self.requests += 1;
        Turn { quirks: &self.quirks, number, counts: &mut self.counts }
    }
}

impl Running {
    /// Notes that the quirk changes a response; returns true.
    fn note(&self) -> bool {
        self.is_used.set(true);
        true
    }
}

fn named<'q>(quirks: &'q [Running], quirk: &Quirk) -> Option<&'q Running> {
    quirks.iter().find(|running| running.quirk == *quirk)
}

impl Turn<'_> {
    fn has(&self, quirk: &Quirk) -> bool {
        named(self.quirks, quirk).is_some()
    }

    /// The value under a quirk, if the service has it; notes that the quirk is used if the value differs.
    fn under<T: PartialEq>(&self, quirk: &Quirk, regular: T, changed: impl FnOnce(&T) -> T) -> T {
        let Some(running) = named(self.quirks, quirk) else { return regular };
        let value = changed(&regular);
        if value != regular {
            running.note();
        }
        value
    }

    /// The parameters that take effect.
    pub fn effective(&self, parameters: Parameters) -> Parameters {
        let values = parameters.values.into_iter().filter(|(name, _)| !self.ignores(name)).collect();
        Parameters { values, ..parameters }
    }

    /// True if a quirk makes the service ignore a filter; it is then noted as used.
    fn ignores(&self, name: &str) -> bool {
        let mut quirks = self.quirks.iter();
        let ignoring =
            quirks.find(|running| matches!(&running.quirk, Quirk::FilterIgnored { filter } if filter == name));
        ignoring.is_some_and(Running::note)
    }

    /// Number of the newest records that the replica lacks.
    pub fn lag(&self, endpoint: &Endpoint, length: u64) -> u64 {
        let lags = self.number % 2 == 1 && endpoint.order != Order::Ranked;
        let lag = if lags { REPLICA_LAG.min(length) } else { 0 };
        self.under(&Quirk::LaggingReplica {}, 0, |_| lag)
    }

    /// Most records of a page of a list of that length.
    pub fn page_size(&self, limit: u64, length: u64) -> u64 {
        // A shorter list fits the page either way.
        if length <= PAGE_SIZE {
            limit
        } else {
            self.under(&Quirk::PageSizeCapped {}, limit, |limit| PAGE_SIZE.min(*limit))
        }
    }

    /// Number of the page whose records are served.
    pub fn page(&self, page: u64) -> u64 {
        self.under(&Quirk::PageIgnored {}, page, |_| 1)
    }

    /// The count that the response has of a list; `window` is the number of records that can be paged through.
    pub fn count(&mut self, list: impl FnOnce() -> String, length: u64, window: u64) -> u64 {
        let count = self.under(&Quirk::CountCapped {}, length, |count| window.min(*count));
        let count = self.under(&Quirk::CountOffByOne {}, count, |count| match self.number % 3 {
            0 => *count,
            1 => count + 1,
            _ => count.saturating_sub(1),
        });
        if !self.has(&Quirk::CountCached {}) {
            return count;
        }
        let number = self.number;
        let (since, cached) = self.counts.entry(list()).or_insert((number, count));
        if number - *since >= CACHED_RESPONSES {
            (*since, *cached) = (number, count);
        }
        let cached = *cached;
        self.under(&Quirk::CountCached {}, count, |_| cached)
    }

    pub fn pages(&self, pages: u64) -> u64 {
        self.under(&Quirk::PageCountCapped {}, pages, |pages| PAGE_COUNT.min(*pages))
    }

    /// Places that change among each other around one of a ranked list.
    pub fn moved_ranks(&self, endpoint: &Endpoint, place: u64, length: u64) -> Option<Range<u64>> {
        let moves = self.has(&Quirk::RanksMoved {}) && endpoint.order == Order::Ranked;
        let start = place - place % RANKS;
        moves.then(|| start..(start + RANKS).min(length))
    }

    pub fn reorders_ties(&self) -> bool {
        self.has(&Quirk::TiesReordered {})
    }

    /// True if the newest block of the list has another hash.
    pub fn replaces_block(&self) -> bool {
        self.number % 4 >= 2 && self.has(&Quirk::BlockReplaced {})
    }

    /// Notes that a record with another hash is served.
    pub fn note_replaced(&self) {
        if let Some(running) = named(self.quirks, &Quirk::BlockReplaced {}) {
            running.note();
        }
    }

    /// The record that is served in a place of a group whose order changes.
    pub fn reordered(&self, endpoint: &Endpoint, place: u64, group: &Range<u64>) -> u64 {
        let quirk = if endpoint.order == Order::Ranked { Quirk::RanksMoved {} } else { Quirk::TiesReordered {} };
        let length = (group.end - group.start).max(1);
        self.under(&quirk, place, |place| group.start + (place - group.start + self.number) % length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::{ENDPOINTS, endpoint};

    fn quirks(text: &str) -> Quirks {
        Quirks::new(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn quirks_round_trip_through_json() {
        for text in [r#"{"kind":"ties_reordered"}"#, r#"{"kind":"filter_ignored","filter":"height"}"#] {
            let quirk: Quirk = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&quirk).unwrap(), text);
        }
        assert!(serde_json::from_str::<Quirk>(r#"{"kind":"filter_ignored"}"#).is_err());
    }

    #[test]
    fn filter_of_no_list_is_unknown() {
        let filter = |name: &str| Quirk::FilterIgnored { filter: name.into() };
        assert_eq!(filter("height").unknown_filter(&ENDPOINTS), None);
        assert_eq!(filter("tx_ids").unknown_filter(&ENDPOINTS), Some("tx_ids"));
    }

    #[test]
    fn reordered_group_keeps_its_records() {
        let (mut quirks, blocks) = (quirks(r#"[{"kind":"ties_reordered"}]"#), endpoint("blocks").unwrap());
        let orders: Vec<Vec<u64>> = (0..3)
            .map(|_| {
                let turn = quirks.next();
                (4..7).map(|place| turn.reordered(blocks, place, &(4..7))).collect()
            })
            .collect();
        assert_eq!(orders, [[4, 5, 6], [5, 6, 4], [6, 4, 5]]);
    }

    #[test]
    fn quirk_is_unused_until_it_changes_a_response() {
        let mut quirks = quirks(
            r#"[{"kind":"lagging_replica"},{"kind":"page_size_capped"},{"kind":"page_ignored"},{"kind":"count_cached"}]"#,
        );
        let unused = |quirks: &Quirks| quirks.unused().len();
        let blocks = endpoint("blocks").unwrap();
        let mut turn = quirks.next();
        assert_eq!((turn.lag(blocks, 9), turn.page_size(20, 99), turn.page(1)), (0, 20, 1));
        assert_eq!(turn.count(|| "a".into(), 9, 10_000), 9);
        assert_eq!(unused(&quirks), 4);
        let mut turn = quirks.next();
        assert_eq!((turn.lag(blocks, 9), turn.page_size(21, 99), turn.page(2)), (2, 20, 1));
        assert_eq!((turn.count(|| "a".into(), 10, 10_000), unused(&quirks)), (9, 0));
    }

    #[test]
    fn cached_count_is_served_ten_times() {
        let mut quirks = quirks(r#"[{"kind":"count_cached"}]"#);
        let counts: Vec<u64> = (100..112).map(|length| quirks.next().count(|| "a".into(), length, 10_000)).collect();
        assert_eq!(counts, [&[100; 10][..], &[110; 2]].concat());
    }

    #[test]
    fn every_second_request_reaches_the_replica() {
        let mut quirks = quirks(r#"[{"kind":"lagging_replica"}]"#);
        let blocks = endpoint("blocks").unwrap();
        assert_eq!(
            [quirks.next().lag(blocks, 9), quirks.next().lag(blocks, 9), quirks.next().lag(blocks, 9)],
            [0, 2, 0]
        );
        assert_eq!([quirks.next().lag(blocks, 1), quirks.next().lag(endpoint("tokens").unwrap(), 9)], [1, 0]);
    }
}
