//! The plan of a run: everything that a seed decides before it starts.

use std::time::Duration;

use chainframe::client::RateLimit;
use chainframe::interface::Deployment;
use chainframe::query::FollowOptions;
use chainframe::service::Delay;
use fastrand::Rng;

/// Most heights after which a record is listed, or a transaction settles. With those of a reorganization, and of one step
/// of growth, they are fewer than the settle distance of followers.
const MAX_DELAY: u32 = 6;
pub const MIN_PAGE_SIZE: usize = 3;

#[derive(Clone, Debug)]
pub struct Plan {
    pub transactions: u64,
    pub kind: Kind,
    pub page_size: Option<i64>,
    pub max_items: Option<i64>,
    pub concurrency: i64,
    pub rate_limit: RateLimit,
    pub max_retries: i64,
    pub deadline: Option<f64>,
    pub timeout: f64,
    /// Mean latency of one direction.
    pub latency: Duration,
    pub faults: Faults,
    /// Milliseconds that the service's clock is ahead.
    pub skew: i64,
    /// Probability that the lists grow before a response, and by how many records at most.
    pub growth: (f64, u32),
    /// Probability that the newest records are replaced before a response.
    pub reorg: f64,
    /// Probability that the process dies after a page.
    pub death: f64,
    /// Probability that a wait for a page is cancelled.
    pub cancel: f64,
    pub follow: FollowerPlan,
}

/// The part of a plan that only a follower has.
#[derive(Clone, Debug, Default)]
pub struct FollowerPlan {
    /// True if changes come as events; else heights are held back until they are settled.
    pub undo: bool,
    /// Records that are listed late, and transactions that are pending for a while.
    pub late: Option<Delay>,
    pub pending: Option<Delay>,
    /// Result window of main-chain lists, where it is smaller than the default.
    pub window: Option<u64>,
    /// Most records that a round holds.
    pub max_rows: u64,
}

impl FollowerPlan {
    fn of(rng: &mut Rng, call: &str) -> Self {
        let delay = |rng: &mut Rng| {
            rng.bool().then(|| Delay { share: rng.f64() * 0.5 + 0.01, heights: rng.u32(1..=MAX_DELAY) })
        };
        let undo = rng.bool();
        // A list that begins below its window has to be told where; one without such a parameter cannot. With undo, the
        // window has to hold the heights that may change.
        let has_window = !undo && matches!(call, "transactions" | "address_transactions") && rng.bool();
        Self {
            undo,
            late: delay(rng),
            pending: delay(rng),
            window: has_window.then(|| rng.u64(30..60)),
            max_rows: if rng.bool() { rng.u64(3..60) } else { FollowOptions::MAX_ROWS },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One list, by name of the call.
    List(&'static str),
    /// Cross-chain transactions of a range of heights.
    Range,
    /// Transactions, height by height.
    Heights,
    /// Several queries of one client at once.
    Gather,
    TransactionsByHash,
    Logs,
    /// Recorded into a cassette, then replayed.
    Cassette,
    /// A follower of one list, by name of the call.
    Follow(&'static str),
}

/// Probabilities of the faults of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The request or its response is lost, and the attempt times out.
    pub loss: f64,
    pub reset: f64,
    pub truncated: f64,
    /// Status 503.
    pub unavailable: f64,
    /// Status 200 with an error code.
    pub error_code: f64,
    /// Status 429 with or without `Retry-After`.
    pub throttle: f64,
    /// Success without data, where there are records.
    pub empty: f64,
    pub html: f64,
    /// A page whose list comes twice.
    pub doubled: f64,
    /// A parameter error, which no retry can fix.
    pub hopeless: f64,
}

impl Plan {
    pub fn of(rng: &mut Rng) -> Self {
        let kind = *rng
            .choice(&[
                Kind::List("blocks"),
                Kind::List("blocks"),
                Kind::List("transactions"),
                Kind::List("large_transactions"),
                Kind::List("cross_chain_transactions"),
                Kind::Range,
                Kind::Heights,
                Kind::Gather,
                Kind::TransactionsByHash,
                Kind::Logs,
                Kind::Cassette,
            ])
            .unwrap_or(&Kind::Range);
        // Growth and reorganizations are for single lists: slices are of several instants.
        let moves = matches!(kind, Kind::List(_)) && rng.u8(..10) < 4;
        let healthy = rng.u8(..10) < 3;
        Self {
            transactions: rng.u64(20..90),
            kind,
            page_size: rng.bool().then(|| rng.i64(MIN_PAGE_SIZE as i64..40)),
            max_items: (rng.u8(..10) == 0 && kind != Kind::Gather).then(|| rng.i64(1..40)),
            concurrency: rng.i64(1..6),
            rate_limit: match rng.u8(..4) {
                0 => RateLimit::Unlimited,
                1 => RateLimit::PerSecond(rng.f64() * 9.0 + 1.0),
                _ => RateLimit::Auto,
            },
            max_retries: rng.i64(2..8),
            deadline: rng.bool().then(|| rng.f64() * 30.0 + 3.0),
            timeout: rng.f64() * 4.0 + 1.0,
            latency: Duration::from_millis(rng.u64(1..250)),
            faults: if healthy { Faults::default() } else { Faults::of(rng) },
            skew: if rng.u8(..4) == 0 { rng.i64(-4_000..4_000) * 1_000 } else { 0 },
            growth: if moves { (rng.f64() * 0.5, rng.u32(1..4)) } else { (0.0, 0) },
            reorg: if moves { rng.f64() * 0.2 } else { 0.0 },
            death: if matches!(kind, Kind::Gather | Kind::Cassette) { 0.0 } else { rng.f64() * 0.5 },
            cancel: if rng.bool() { rng.f64() * 0.5 } else { 0.0 },
            follow: FollowerPlan::default(),
        }
    }

    /// The plan of a follower: the list changes between its processes as well as while they read.
    pub fn of_follower(rng: &mut Rng) -> Self {
        let call = *rng
            .choice(&[
                "blocks",
                "transactions",
                "large_transactions",
                "cross_chain_transactions",
                "address_transactions",
            ])
            .unwrap_or(&"blocks");
        Self {
            kind: Kind::Follow(call),
            max_items: None,
            growth: (rng.f64() * 0.4, rng.u32(1..4)),
            reorg: rng.f64() * 0.1,
            death: rng.f64() * 0.4,
            cancel: if rng.bool() { rng.f64() * 0.2 } else { 0.0 },
            follow: FollowerPlan::of(rng, call),
            ..Self::of(rng)
        }
    }

    /// True if a request has no other cause than the one before it: several queries at once may make the same one, and so
    /// may the next round of a follower, which repeats a round that it gave up.
    pub fn is_alone(&self) -> bool {
        !matches!(self.kind, Kind::Gather | Kind::Follow(_))
    }

    pub fn deployment(&self) -> Deployment {
        let window = self.follow.window.unwrap_or(Deployment::default().result_window());
        Deployment::default().with_windows(window, 1_000).expect("a positive window")
    }

    /// True if the lists stay as they are.
    pub fn is_quiet(&self) -> bool {
        self.growth.0 == 0.0 && self.reorg == 0.0
    }
}

impl Faults {
    /// Some kinds of faults, together at about a third of the requests at most.
    fn of(rng: &mut Rng) -> Self {
        let mut some = || if rng.bool() { rng.f64() * 0.12 } else { 0.0 };
        Self {
            loss: some(),
            reset: some(),
            truncated: some(),
            unavailable: some(),
            error_code: some(),
            throttle: some(),
            empty: some(),
            html: some(),
            doubled: some() * 0.2,
            hopeless: some() * 0.2,
        }
    }
}
