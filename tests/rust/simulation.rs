//! The whole client in a simulated world: one seed is one run. Responses come from the local service's store, in virtual
//! time, with latency, loss, truncated bodies, error responses, throttles, clock skew, growth, reorganizations, cancelled
//! waits and processes that die and resume from a cursor. Invariants are checked at every step.
//!
//! A failing seed is the bug report: `make simulate START=<seed> SEEDS=1` replays it.

#[path = "simulation/call.rs"]
mod call;
#[path = "simulation/follow.rs"]
mod follow;
#[path = "simulation/network.rs"]
mod network;
#[path = "simulation/plan.rs"]
mod plan;
#[path = "simulation/run.rs"]
mod run;
#[path = "simulation/verdict.rs"]
mod verdict;
#[path = "simulation/world.rs"]
mod world;

use std::ops::Range;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chainframe::planted::{Bug, plant};
use run::{Outcome, simulate, simulate_bounded};

/// Runs of an ordinary test.
const SEEDS: u64 = 10_000;

/// Most runs in which a planted bug must show.
const SEEDS_FOR_A_BUG: u64 = 2_000;

/// The seeds in which a planted bug must show. Those of a bug that needs hundreds of them begin shortly before the first
/// one that found it.
fn seeds_for(bug: Bug) -> Range<u64> {
    let start = match bug {
        Bug::RetriesUnbounded => 1_600,
        Bug::HopelessRetried => 330,
        Bug::DeadlineIncludesQueue => 240,
        Bug::UnsettledForgotten => 200,
        _ => 0,
    };
    start..start + SEEDS_FOR_A_BUG
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// Runs seeds from `start` on, without end if `seeds` is 0, and panics with the first one that violates an invariant.
fn search(start: u64, seeds: u64, simulate: fn(u64) -> Outcome, each: &(dyn Fn(&Outcome) + Sync)) {
    let (next, stop, found) = (AtomicU64::new(start), AtomicBool::new(false), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seeds > 0 && seed >= start + seeds {
                        return;
                    }
                    let outcome = simulate(seed);
                    each(&outcome);
                    if !outcome.violations.is_empty() {
                        stop.store(true, Ordering::Relaxed);
                        found.lock().unwrap().get_or_insert((seed, outcome));
                    }
                }
            });
        }
    });
    if let Some((seed, outcome)) = found.into_inner().unwrap() {
        let Outcome { violations, journal, .. } = outcome;
        panic!("seed {seed} violates: {violations:#?}\n{journal}\nreplay it: make simulate START={seed} SEEDS=1");
    }
}

#[test]
fn no_seed_violates_an_invariant() {
    let (start, seeds) = (variable("SIMULATION_START").unwrap_or(0), variable("SIMULATION_SEEDS").unwrap_or(SEEDS));
    let counts: [AtomicU64; 6] = Default::default();
    let each = |outcome: &Outcome| {
        let Outcome { complete, deaths, drift, reorgs, faults, .. } = *outcome;
        let counted = [1, complete.into(), deaths, drift, reorgs, faults];
        counts.iter().zip(counted).for_each(|(count, more)| _ = count.fetch_add(more, Ordering::Relaxed));
    };
    search(start, seeds, simulate, &each);
    let [runs, complete, deaths, drift, reorgs, faults] = counts.map(AtomicU64::into_inner);
    println!(
        "{runs} seeds: {complete} complete results, {drift} drift errors, {deaths} resumed processes, {reorgs} \
         reorganizations, {faults} faults"
    );
    // The world must not be too kind, nor too harsh to find anything.
    assert!(seeds < 1_000 || complete * 2 > runs, "{complete} of {runs} complete");
    assert!(seeds < 1_000 || deaths * 5 > runs && faults > runs, "{deaths} deaths, {faults} faults in {runs} runs");
    assert!(seeds < 1_000 || reorgs > 0 && drift > 0, "{reorgs} reorganizations, {drift} drift errors in {runs} runs");
}

/// Runs with bounds of requests in an ordinary test.
const BOUNDED_SEEDS: u64 = 2_000;

#[test]
fn no_seed_exceeds_its_bound_of_requests() {
    let seeds = variable("SIMULATION_SEEDS").unwrap_or(BOUNDED_SEEDS);
    let complete = AtomicU64::new(0);
    let each = |outcome: &Outcome| _ = complete.fetch_add(outcome.complete.into(), Ordering::Relaxed);
    search(variable("SIMULATION_START").unwrap_or(0), seeds, simulate_bounded, &each);
    let complete = complete.into_inner();
    println!("{seeds} seeds with bounds: {complete} complete results");
    assert!(seeds < 1_000 || complete * 2 > seeds, "{complete} of {seeds} complete");
}

/// Runs of followers in an ordinary test.
const FOLLOWED_SEEDS: u64 = 300;

#[test]
fn no_seed_of_a_follower_violates_an_invariant() {
    let seeds = variable("SIMULATION_SEEDS").unwrap_or(FOLLOWED_SEEDS);
    let start = variable("SIMULATION_START").unwrap_or(0);
    let counts: [AtomicU64; 5] = Default::default();
    let each = |outcome: &Outcome| {
        let Outcome { complete, deaths, drift, reorgs, faults, .. } = *outcome;
        let counted = [complete.into(), deaths, drift, reorgs, faults];
        counts.iter().zip(counted).for_each(|(count, more)| _ = count.fetch_add(more, Ordering::Relaxed));
    };
    search(start, seeds, follow::simulate, &each);
    let [complete, deaths, drift, reorgs, faults] = counts.map(AtomicU64::into_inner);
    println!(
        "{seeds} followers, {complete} of which delivered: {deaths} dead processes, {reorgs} reorganizations, {faults} \
         faults, {drift} drift errors"
    );
    assert!(seeds < 100 || complete * 4 > seeds * 3, "{complete} of {seeds} delivered");
    assert!(seeds < 100 || deaths * 2 > seeds && reorgs > seeds && faults > seeds);
}

#[test]
fn known_bugs_of_followers_are_found() {
    for bug in [Bug::UndoDropped, Bug::UnsettledForgotten] {
        plant(Some(bug));
        let found = seeds_for(bug).find(|seed| !follow::simulate(*seed).violations.is_empty());
        plant(None);
        println!("{bug:?}: seed {found:?}");
        assert!(found.is_some(), "{bug:?}");
    }
}

/// Bugs that runs of queries show.
const BUGS: [Bug; 10] = [
    Bug::PermitPerQuery,
    Bug::DeadlineIncludesQueue,
    Bug::RetriesBypassRateLimit,
    Bug::RetriesUnbounded,
    Bug::HopelessRetried,
    Bug::RetryAfterIgnored,
    Bug::DoubledListAccepted,
    Bug::SkewIgnored,
    Bug::ResponseLostOnCancel,
    Bug::CursorOffByOne,
];

#[test]
fn known_bugs_are_found() {
    let mut found = Vec::new();
    for bug in BUGS {
        plant(Some(bug));
        let seed = seeds_for(bug).find_map(|seed| {
            let violations = simulate(seed).violations;
            (!violations.is_empty()).then(|| (seed, violations[0].clone()))
        });
        plant(None);
        println!("{bug:?}: {seed:?}");
        if seed.is_some() {
            found.push(bug);
        }
    }
    assert_eq!(found, BUGS);
}

/// Prints the journal of one seed, for the process that compares it.
#[test]
fn journal_of_a_seed() {
    if let Some(seed) = variable("SIMULATION_JOURNAL") {
        println!("<journal>{}</journal>", simulate(seed).journal);
    }
}

#[test]
fn one_seed_is_one_journal_in_any_process() {
    for seed in [1, 7, 42, 1_234] {
        let here = simulate(seed).journal;
        assert_eq!(here, simulate(seed).journal, "seed {seed} in one process");
        let program = std::env::current_exe().unwrap();
        let there = Command::new(program)
            .args(["simulation::journal_of_a_seed", "--exact", "--nocapture"])
            .env("SIMULATION_JOURNAL", seed.to_string())
            .output()
            .unwrap();
        let there = String::from_utf8(there.stdout).unwrap();
        let there = there.split_once("<journal>").and_then(|(_, rest)| rest.split_once("</journal>"));
        assert!(here.lines().count() > 3);
        assert_eq!(there.map(|(journal, _)| journal), Some(here.as_str()), "seed {seed} in two processes");
    }
}
