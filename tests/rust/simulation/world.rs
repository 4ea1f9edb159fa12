//! The simulated world: the local service behind a network, in virtual time. It keeps the journal of a run, and every version
//! of the lists that are read.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use chainframe::client::{Environment, SharedLimiters};
use chainframe::service::{InProcess, Settings};
use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use tokio::time::Instant;

use super::network::Network;
use super::plan::{Kind, Plan};

/// The instant at which a run starts, in milliseconds since 1970.
const START_MS: u64 = 1_769_850_537_123;
/// Chains of each length: to fill one takes longer than to read its lists.
const CHAINS: u64 = 4;
/// Versions of a list after which it changes no more: all of them are kept.
pub const MAX_VERSIONS: usize = 400;

pub struct World {
    pub plan: Plan,
    pub service: InProcess,
    start: Instant,
    state: Mutex<State>,
}

pub struct State {
    rng: Rng,
    pub journal: String,
    pub violations: Vec<String>,
    /// Number of faults so far.
    pub faults: u64,
    /// Number of reorganizations so far.
    pub reorgs: u64,
    /// The longest time that one request took with its retries.
    pub longest: Duration,
    /// Number of requests so far.
    pub requests: u64,
    /// The last record that was given to the caller.
    pub last_given: Option<String>,
    /// The lists that are read, and every version of each.
    pub versions: HashMap<String, Vec<Vec<String>>>,
    /// True once nothing changes any more, and nothing fails.
    pub is_calm: bool,
    /// Reads the records of a body.
    decode: fn(&str, &str) -> Vec<String>,
}

impl World {
    pub fn new(seed: u64, plan: Plan, mut rng: Rng, decode: fn(&str, &str) -> Vec<String>) -> Arc<Self> {
        let settings = Settings {
            transactions: plan.transactions,
            seed: seed % CHAINS,
            late: plan.follow.late,
            pending: plan.follow.pending,
            deployment: plan.deployment(),
            ..Settings::default()
        };
        let service = InProcess::new(settings).expect("the settings are valid");
        let state = State {
            rng: rng.fork(),
            journal: format!("{plan:?}\n"),
            violations: Vec::new(),
            faults: 0,
            reorgs: 0,
            longest: Duration::ZERO,
            requests: 0,
            last_given: None,
            versions: HashMap::new(),
            is_calm: false,
            decode,
        };
        Arc::new(Self { plan, service, start: Instant::now(), state: Mutex::new(state) })
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn note(&self, event: &str) {
        let at = self.start.elapsed().as_millis();
        _ = writeln!(self.lock().journal, "{at:>8} ms  {event}");
    }

    pub fn violation(&self, text: String) {
        self.note(&format!("VIOLATION {text}"));
        self.lock().violations.push(text);
    }

    pub fn chance(&self, probability: f64) -> bool {
        let mut state = self.lock();
        state.rng.f64() < probability && !state.is_calm
    }

    pub fn draw(&self, below: u64) -> u64 {
        self.lock().rng.u64(..below.max(1))
    }

    pub fn grow(&self, records: u32) {
        self.note(&format!("the lists grow by {records}"));
        self.service.grow(records).expect("the database grows");
        self.keep_versions();
    }

    /// Keeps every version of a list from now on.
    pub fn watch(&self, list: &str) {
        self.lock().versions.insert(list.to_owned(), Vec::new());
        self.keep_versions();
    }

    pub fn keep_versions(&self) {
        let mut state = self.lock();
        let decode = state.decode;
        for (list, versions) in &mut state.versions {
            // A list may be made of several, one after the other.
            let version: Vec<String> = list
                .split(' ')
                .flat_map(|part| decode(part, &self.service.whole_list(part).expect("the list exists")))
                .collect();
            if versions.last() != Some(&version) {
                versions.push(version);
            }
        }
    }

    /// True if the lists keep a record that was given to the caller when that many heights are replaced. Without a count,
    /// it cannot be seen that all of them are replaced.
    pub fn keeps_given(&self, depth: u32) -> bool {
        let state = self.lock();
        if !matches!(self.plan.kind, Kind::List("transactions" | "large_transactions")) {
            return true;
        }
        let Some(versions) = state.versions.values().next() else { return true };
        let heights = |rows: &[String]| rows.iter().filter_map(|row| height(row)).max();
        let kept = versions.last().and_then(|rows| heights(rows)).unwrap_or(0) - i64::from(depth);
        state.last_given.as_deref().and_then(height).is_some_and(|last| last <= kept)
    }

    pub fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(START_MS) + self.start.elapsed()
    }

    /// The service's clock.
    pub fn service_now(&self) -> DateTime<Utc> {
        DateTime::<Utc>::from(self.now()) + TimeDelta::milliseconds(self.plan.skew)
    }

    /// The surroundings of a client of this world, and of one process.
    pub fn environment(self: &Arc<Self>) -> Environment {
        let (clock, jitter) = (self.clone(), Mutex::new(self.lock().rng.fork()));
        let network = Network::new(self);
        Environment {
            origin: None,
            transport: Some(Arc::new(network)),
            wall_clock: Arc::new(move || clock.now()),
            jitter: Arc::new(move || jitter.lock().unwrap().f64()),
            limiters: SharedLimiters::Own(Arc::default()),
            credentials: None,
            observer: None,
            virtual_time: None,
        }
    }
}

/// Height of a record, which its identity ends with.
pub fn height(row: &str) -> Option<i64> {
    let identity = row.split('|').next()?;
    identity.rsplit("Integer(").next()?.trim_end_matches(')').parse().ok()
}
