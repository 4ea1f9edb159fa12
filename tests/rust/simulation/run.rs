//! One run: processes that read a result, die and resume, and the verdict over what they were given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chainframe::cassette::{self, Cassette, Mode};
use chainframe::client::{Error, RequestOptions};
use chainframe::query::{QueryStart, Run};
use fastrand::Rng;

use super::call::{Call, client, query};
use super::plan::{Kind, Plan};
use super::verdict::{check_bound, check_memory, check_repeats, judge, judge_error, rows, rows_of_body};
use super::world::World;

/// Most processes of one run.
const MAX_LIVES: u64 = 12;
/// Number of cassettes of this process.
static CASSETTES: AtomicU64 = AtomicU64::new(0);

pub struct Outcome {
    pub journal: String,
    pub violations: Vec<String>,
    pub complete: bool,
    pub deaths: u64,
    /// Number of drift errors.
    pub drift: u64,
    /// Number of reorganizations.
    pub reorgs: u64,
    pub faults: u64,
}

/// Runs one seed in a runtime of its own, whose clock moves only when everything waits.
pub fn simulate(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(seed, None))
}

/// The run of a seed, of whose results each process may send a few requests.
pub fn simulate_bounded(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(seed, Some(Rng::with_seed(!seed))))
}

async fn run(seed: u64, bounds: Option<Rng>) -> Outcome {
    let mut rng = Rng::with_seed(seed);
    let plan = Plan::of(&mut rng);
    let world = World::new(seed, plan.clone(), rng.fork(), rows_of_body);
    let mut counts = Counts::default();
    match plan.kind {
        Kind::Gather => gather(&world, &mut counts).await,
        Kind::Cassette => record_and_replay(&world, &mut counts).await,
        _ => {
            let call = Call::of(&plan, &world);
            read(&world, &call, &mut counts, bounds).await;
        }
    }
    let mut state = world.lock();
    Outcome {
        journal: std::mem::take(&mut state.journal),
        violations: std::mem::take(&mut state.violations),
        complete: counts.complete,
        deaths: counts.deaths,
        drift: counts.drift,
        reorgs: state.reorgs,
        faults: state.faults,
    }
}

#[derive(Default)]
struct Counts {
    complete: bool,
    deaths: u64,
    drift: u64,
}

/// Reads one result, through deaths and errors, and judges it.
async fn read(world: &Arc<World>, call: &Call, counts: &mut Counts, mut bounds: Option<Rng>) {
    let plan = world.plan.clone();
    let mut given: Vec<String> = Vec::new();
    let mut cursor: Option<String> = None;
    for life in 0..MAX_LIVES {
        let mut client = client(world, None);
        // The bound grows, so that a list whose beginning takes some requests is read in the end.
        let bound = bounds.as_mut().map(|rng| rng.u64(1..=4) << life);
        if let Some(bound) = bound {
            let options = RequestOptions { max_requests: Some(Some(bound as i64)), ..RequestOptions::default() };
            client = client.with_options(options).unwrap();
        }
        let before = world.lock().requests;
        let start = match &cursor {
            None => QueryStart::from(query(&client, call, &plan)),
            Some(cursor) => QueryStart::resume(&client, cursor, None).expect("a cursor of this version can be resumed"),
        };
        world.note(&format!("process {life} starts with {} records", given.len()));
        let mut pages = Run::new(&start);
        let error = loop {
            let page = if world.chance(plan.cancel) {
                let patience = Duration::from_millis(1 + world.draw(800));
                match tokio::time::timeout(patience, pages.next()).await {
                    Ok(page) => page,
                    Err(_) => {
                        world.note("the wait is cancelled");
                        continue;
                    }
                }
            } else {
                pages.next().await
            };
            let page = match page {
                Ok(Some(page)) => page,
                Ok(None) => {
                    check_bound(world, &client, bound, before, false);
                    counts.complete = judge(world, call, &given, &pages.report().read());
                    return;
                }
                Err(error) => break error,
            };
            let rows = rows(&page.columns);
            world.note(&format!("page {} has {} records", page.number, rows.len()));
            check_memory(world, call, &pages, &page.checkpoint);
            if world.chance(plan.death) {
                let kept = world.draw(rows.len() as u64 + 1) as usize;
                given.extend_from_slice(&rows[..kept]);
                world.lock().last_given = given.last().cloned();
                cursor = Some(page.checkpoint.at_row(kept).cursor().to_json());
                world.note(&format!("the process dies after {kept} of them"));
                counts.deaths += 1;
                break Error::Internal(String::new());
            }
            cursor = Some(page.checkpoint.cursor().to_json());
            given.extend(rows);
            world.lock().last_given = given.last().cloned();
        };
        check_bound(world, &client, bound, before, matches!(error, Error::Budget { left: 0, .. }));
        if matches!(&error, Error::Internal(text) if text.is_empty()) {
            continue;
        }
        world.note(&format!("error: {error}"));
        judge_error(world, &error);
        counts.drift += u64::from(matches!(error, Error::Drift { .. }));
        check_repeats(world, call, &given);
        if !error.retryable() && !matches!(error, Error::Budget { .. }) {
            return;
        }
    }
}

/// A client sends no more requests than its bound, and as many before it says so.
/// Several queries of one client at once.
async fn gather(world: &Arc<World>, counts: &mut Counts) {
    let plan = world.plan.clone();
    let client = client(world, None);
    let call = Arc::new(Call::of(&plan, world));
    let tasks: Vec<_> = (0..2 + world.draw(10))
        .map(|_| {
            let (world, call, query) = (world.clone(), call.clone(), query(&client, &call, &plan));
            tokio::spawn(async move {
                let (mut pages, mut given) = (Run::new(&QueryStart::from(query)), Vec::new());
                loop {
                    match pages.next().await {
                        Ok(Some(page)) => given.extend(rows(&page.columns)),
                        Ok(None) => return judge(&world, &call, &given, &pages.report().read()),
                        Err(error) => {
                            world.note(&format!("error: {error}"));
                            judge_error(&world, &error);
                            return false;
                        }
                    }
                }
            })
        })
        .collect();
    counts.complete = true;
    for task in tasks {
        counts.complete &= task.await.unwrap();
    }
}

/// Records a run, and replays it without a request.
async fn record_and_replay(world: &Arc<World>, counts: &mut Counts) {
    let plan = world.plan.clone();
    // Tests that run at once read the same seeds.
    let run = CASSETTES.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("chainframe-simulation-{}-{run}.jsonl", std::process::id()));
    let call = Call::of(&plan, world);
    let mut results = Vec::new();
    for mode in [Mode::All, Mode::None] {
        let cassette = Cassette::open(cassette::Options::new(&path, mode)).unwrap();
        let client = client(world, Some(cassette));
        let before = world.lock().requests;
        let (mut pages, mut given) = (Run::new(&QueryStart::from(query(&client, &call, &plan))), Vec::new());
        let end = loop {
            match pages.next().await {
                Ok(Some(page)) => given.extend(rows(&page.columns)),
                Ok(None) => {
                    counts.complete = judge(world, &call, &given, &pages.report().read());
                    break "end".to_owned();
                }
                Err(error) => {
                    if mode == Mode::All {
                        judge_error(world, &error);
                    }
                    // The words of a recorded failure are the cassette's own.
                    break format!("{:?}", std::mem::discriminant(&error));
                }
            }
        };
        if mode == Mode::None && world.lock().requests != before {
            world.violation("a replay sends requests".into());
        }
        world.note(&format!("{mode:?}: {} records, {end}", given.len()));
        results.push((given, end));
    }
    let _ = std::fs::remove_file(&path);
    if results[0] != results[1] {
        world.violation("a replay differs from its recording".into());
    }
}
