//! One run: processes that read a result, die and resume, and the verdict over what they were given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use chainframe::cassette::{self, Cassette, Mode};
use chainframe::client::{
    Client, Concurrency, Credentials, Error, Phase, RequestOptions, Secret, Settings, SettingsInput,
};
use chainframe::columns::Columns;
use chainframe::decode::{Decoder, Envelope};
use chainframe::interface::{ApiErrorKind, Deployment, ENDPOINTS, endpoint};
use chainframe::message::Message;
use chainframe::query::{Arg, Checkpoint, Options, Query, QueryStart, Report, Run, record_keys};
use fastrand::Rng;

use super::plan::{Kind, Plan};
use super::world::World;

/// Most processes of one run.
const MAX_LIVES: u64 = 12;
/// Most records that a run which streams retains.
const MAX_RETAINED: usize = 2_500;
/// Most bytes of a cursor, and of each requested hash in it.
const MAX_CURSOR: usize = 2_000;
const CURSOR_PER_HASH: usize = 72;
/// Number of cassettes of this process.
static CASSETTES: AtomicU64 = AtomicU64::new(0);

pub struct Outcome {
    pub journal: String,
    pub violations: Vec<String>,
    pub complete: bool,
    pub deaths: u64,
    /// Number of drift errors.
    pub drift: u64,
    /// Number of reorganisations.
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

/// A call with its arguments, and the lists whose records it has to give.
pub struct Call {
    name: &'static str,
    args: Vec<(String, Arg)>,
    /// Key of the list in `State::versions`.
    pub truth: String,
}

impl Call {
    pub fn of(plan: &Plan, world: &World) -> Self {
        let base = |name: &str| {
            let endpoint = endpoint(name).unwrap();
            let chain = if endpoint.path.contains("{zone}") { "ZONE_CHAIN" } else { "MAIN" };
            format!("{}?chainShortName={chain}", Deployment::default().expand(endpoint.path))
        };
        let heights = |name: &str, column: &str| -> Vec<i64> {
            let body = world.service.whole_list(&base(name)).unwrap();
            let columns = decode(name, &body);
            let column = columns.record().position(column).unwrap();
            (0..columns.rows()).filter_map(|row| format!("{:?}", columns.value(column, row)).between()).collect()
        };
        let integer = |value: i64| Arg::Integer(value.to_string());
        let call = match plan.kind {
            Kind::Follow(name @ "address_transactions") => {
                // The sender of the transactions by which the lists grow.
                world.service.grow(1).unwrap();
                let columns = decode("transactions", &world.service.whole_list(&base("transactions")).unwrap());
                let sender = columns.text(columns.record().position("input").unwrap(), 0).unwrap().to_owned();
                let truth = format!("{}&address={sender}", base(name));
                Self { name, args: vec![("address".into(), Arg::String(sender))], truth }
            }
            Kind::Follow(name) if plan.follow.window.is_some() => {
                let lowest = heights(name, "height").into_iter().min().unwrap_or(0);
                Self { name, args: vec![("start_height".into(), integer(lowest))], truth: base(name) }
            }
            Kind::List(name) | Kind::Follow(name) => Self { name, args: Vec::new(), truth: base(name) },
            Kind::Gather | Kind::Cassette => Self { name: "blocks", args: Vec::new(), truth: base("blocks") },
            Kind::Range => {
                let name = "cross_chain_transactions";
                let known = heights(name, "main_block_height");
                let (low, high) = (known.iter().min().copied().unwrap_or(1), known.iter().max().copied().unwrap_or(1));
                let start = low + world.draw((high - low + 1) as u64) as i64;
                let truth = format!("{}&startBlockHeight={start}&endBlockHeight={high}", base(name));
                Self {
                    name,
                    args: vec![("start_height".into(), integer(start)), ("end_height".into(), integer(high))],
                    truth,
                }
            }
            Kind::Heights => {
                let name = "transactions";
                let newest = heights(name, "height").into_iter().max().unwrap_or(1);
                let start = newest - world.draw(8) as i64;
                let each = (start..=newest).map(|height| format!("{}&height={height}", base(name)));
                let truth = each.collect::<Vec<_>>().join(" ");
                let args = vec![("start_height".into(), integer(start)), ("end_height".into(), integer(newest))];
                Self { name, args, truth }
            }
            Kind::TransactionsByHash | Kind::Logs => {
                let body = world.service.whole_list(&base("transactions")).unwrap();
                let columns = decode("transactions", &body);
                let column = columns.record().position("tx_id").unwrap();
                let some = 1 + world.draw(columns.rows().min(45) as u64) as usize;
                let hashes: Vec<String> =
                    (0..some).filter_map(|row| columns.text(column, row).map(str::to_owned)).collect();
                let name = if plan.kind == Kind::Logs { "logs" } else { "transactions_by_hash" };
                let each = hashes.iter().map(|hash| format!("{}&txId={hash}", base(name)));
                let truth = each.collect::<Vec<_>>().join(" ");
                Self { name, args: vec![("tx_ids".into(), Arg::List(hashes))], truth }
            }
        };
        world.watch(&call.truth);
        call
    }
}

trait Between {
    /// The number within `Integer(…)`.
    fn between(&self) -> Option<i64>;
}

impl Between for String {
    fn between(&self) -> Option<i64> {
        self.trim_start_matches("Integer(").trim_end_matches(')').parse().ok()
    }
}

pub fn client(world: &Arc<World>, cassette: Option<Cassette>) -> Client {
    let plan = &world.plan;
    let secret = |text: &str| Secret::new(text.into());
    let settings = Settings::new(SettingsInput {
        base_url: "https://simulated.invalid".into(),
        credentials: Credentials {
            api_key: secret("local-key"),
            secret_key: secret("local-secret"),
            passphrase: secret("local-passphrase"),
        },
        main_chain: "MAIN".into(),
        zone_chain: "ZONE_CHAIN".into(),
        deployment: plan.deployment(),
        timeout: plan.timeout,
        deadline: plan.deadline,
        max_retries: plan.max_retries,
        rate_limit: plan.rate_limit,
        concurrency: Concurrency::Fixed(plan.concurrency),
        max_requests: None,
        strict: false,
        numbers: None,
        max_response_bytes: 1 << 20,
        proxy: None,
        ca_bundle: None,
        cassette,
        cache: None,
        missing: None,
    });
    Client::with_environment(settings.unwrap(), world.environment()).unwrap()
}

pub fn query(client: &Client, call: &Call, plan: &Plan) -> Query {
    let endpoint = endpoint(call.name).unwrap();
    let page_size = plan.page_size.filter(|_| endpoint.page_size_max().is_some());
    let options = Options { page_size, max_items: plan.max_items, ..Options::default() };
    Query::new(client, endpoint, call.args.clone(), options).unwrap()
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
fn check_bound(world: &World, client: &Client, bound: Option<u64>, before: u64, is_reached: bool) {
    let (sent, arrived) = (client.usage().requests, world.lock().requests - before);
    if let Some(bound) = bound.filter(|bound| sent > *bound || arrived > *bound || is_reached && sent < *bound) {
        world.violation(format!("{sent} requests were sent and {arrived} arrived, where {bound} may be"));
    }
}

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

fn is_of_empty_responses(reason: &Message) -> bool {
    reason.to_string().starts_with("Some responses were empty")
}

/// Judges a result that ended. True if it is complete.
fn judge(world: &World, call: &Call, given: &[String], report: &Report) -> bool {
    world.note(&format!("end: {} records, complete={}", given.len(), report.complete));
    check_repeats(world, call, given);
    if !report.complete {
        if report.reasons.is_empty() {
            world.violation("an incomplete result gives no reason".into());
        }
        // Nothing tells an empty look-up from a throttle of this kind.
        let is_doubtful = report.reasons.to_vec().iter().all(is_of_empty_responses);
        if world.plan.is_quiet() && !is_doubtful {
            world.violation(format!("a list at rest is incomplete: {:?}", report.reasons));
        }
        return false;
    }
    let wanted = world.plan.max_items.map_or(usize::MAX, |most| most as usize);
    let state = world.lock();
    let versions = &state.versions[&call.truth];
    let is_version = |version: &Vec<String>| keys(given).eq(keys(&version[..version.len().min(wanted)]));
    let known = versions.iter().any(is_version);
    let lengths: Vec<usize> = versions.iter().map(Vec::len).collect();
    // A reorganisation includes a record in another block, or at another place of it.
    let unseen = given.iter().find(|row| !versions.iter().any(|version| version.contains(row))).cloned();
    drop(state);
    if let Some(row) = unseen {
        world.violation(format!("a record is as the list never had it: {row}"));
    }
    if !known {
        world.violation(format!("a complete result of {} records is no version of the list: {lengths:?}", given.len()));
    }
    true
}

/// The records and the cursor that are kept between two pages do not grow with the result.
fn check_memory(world: &World, call: &Call, pages: &Run, checkpoint: &Checkpoint) {
    let (retained, cursor) = (pages.partial().read().len(), checkpoint.cursor().to_json().len());
    let hashes: usize =
        call.args.iter().map(|(_, arg)| if let Arg::List(hashes) = arg { hashes.len() } else { 0 }).sum();
    if retained > MAX_RETAINED || cursor > MAX_CURSOR + hashes * CURSOR_PER_HASH {
        world.violation(format!("{retained} records are retained, and a cursor has {cursor} bytes"));
    }
}

/// No record comes more often than the list has ever had it.
fn check_repeats(world: &World, call: &Call, given: &[String]) {
    let state = world.lock();
    let count = |records: &[String], key: &str| keys(records).filter(|other| *other == key).count();
    let most = |key: &str| state.versions[&call.truth].iter().map(|version| count(version, key)).max();
    let repeated = keys(given).find(|key| Some(count(given, key)) > most(key)).map(str::to_owned);
    drop(state);
    if let Some(record) = repeated {
        world.violation(format!("a record comes more often than it is there: {record}"));
    }
}

/// No error without a cause in this world.
pub fn judge_error(world: &World, error: &Error) {
    let plan = &world.plan;
    let had_faults = world.lock().faults > 0;
    let slow = plan.latency.as_secs_f64() * 4.0 > plan.timeout;
    let unfounded = match error {
        Error::Service(error) if error.kind == ApiErrorKind::ClockSkew => true,
        Error::Timeout { phase: Phase::Deadline, .. } => {
            let deadline = Duration::from_secs_f64(plan.deadline.unwrap_or_default());
            // Attempts and the pauses between them count, the queue for the rate limit does not.
            world.lock().longest + Duration::from_millis(2) < deadline
        }
        Error::Budget { .. } => false,
        Error::Drift { .. } => plan.is_quiet(),
        Error::Internal(_) | Error::Config { .. } | Error::InvalidParameter { .. } | Error::Cassette(_) => true,
        _ => !(had_faults || slow),
    };
    if unfounded {
        world.violation(format!("an error without a cause: {error}"));
    }
}

fn decode(call: &str, body: &str) -> Columns {
    let decoder = Decoder::new(endpoint(call).unwrap(), &Deployment::default());
    match decoder.decode(&Bytes::copy_from_slice(body.as_bytes()), 1_000) {
        Ok(Envelope::Page(page)) => page.columns,
        other => panic!("{body} gave {other:?}"),
    }
}

/// Each record as its key, its block and its values.
pub fn rows(columns: &Columns) -> Vec<String> {
    let record = columns.record();
    let value = |column, row| format!("{:?}", columns.value(column, row));
    let values = |row| (0..record.fields.len()).map(|column| format!("|{}", value(column, row))).collect::<String>();
    let block: Vec<usize> =
        ["block_hash", "height", "zone_block_height"].iter().filter_map(|name| record.position(name)).collect();
    let block = |row| block.iter().map(|column| format!(" {}", value(*column, row))).collect::<String>();
    record_keys(columns)
        .iter()
        .enumerate()
        .map(|(row, key)| format!("{key:016x}{}{}", block(row), values(row)))
        .collect()
}

/// Identity of each record: the same record in another block is another one.
fn keys(rows: &[String]) -> impl Iterator<Item = &str> {
    rows.iter().filter_map(|row| row.split('|').next())
}

/// The records of a body that the service sends for a target.
pub fn rows_of_body(target: &str, body: &str) -> Vec<String> {
    let path = target.split('?').next().unwrap_or_default();
    let deployment = Deployment::default();
    let endpoint = ENDPOINTS.iter().find(|endpoint| deployment.expand(endpoint.path) == path).expect("a declared path");
    rows(&decode(endpoint.name, body))
}
