//! The verdict over what a run was given, by the versions that its list had.

use std::time::Duration;

use bytes::Bytes;
use chainframe::client::{Client, Error, Phase};
use chainframe::columns::Columns;
use chainframe::decode::{Decoder, Envelope};
use chainframe::interface::{ApiErrorKind, Deployment, ENDPOINTS, endpoint};
use chainframe::message::Message;
use chainframe::query::{Arg, Checkpoint, Report, Run, record_keys};

use super::call::Call;
use super::world::World;

/// Most records that a run which streams retains.
const MAX_RETAINED: usize = 2_500;
/// Most bytes of a cursor, with the keys of 256 records of one height, and of each requested hash in it.
const MAX_CURSOR: usize = 2_000 + 256 * 20;
const CURSOR_PER_HASH: usize = 72;

/// Compares the requests that a process sent with its bound.
pub fn check_bound(world: &World, client: &Client, bound: Option<u64>, before: u64, is_reached: bool) {
    let (sent, arrived) = (client.usage().requests, world.lock().requests - before);
    if let Some(bound) = bound.filter(|bound| sent > *bound || arrived > *bound || is_reached && sent < *bound) {
        world.violation(format!("{sent} requests were sent and {arrived} arrived, where {bound} may be"));
    }
}

fn is_of_empty_responses(reason: &Message) -> bool {
    reason.to_string().starts_with("Some responses were empty")
}

/// Judges a result that ended. True if it is complete.
pub fn judge(world: &World, call: &Call, given: &[String], report: &Report) -> bool {
    world.note(&format!("end: {} records, complete={}", given.len(), report.complete));
    check_repeats(world, call, given);
    if !report.complete {
        if report.reasons.is_empty() {
            world.violation("an incomplete result gives no reason".into());
        }
        // Nothing tells an empty look-up from a throttle of this kind.
        let is_doubtful = report.reasons.to_vec().iter().all(is_of_empty_responses);
        if world.plan.is_quiet() && !is_doubtful {
            world.violation(format!("a list that is stable is incomplete: {:?}", report.reasons));
        }
        return false;
    }
    let wanted = world.plan.max_items.map_or(usize::MAX, |max_items| max_items as usize);
    let state = world.lock();
    let versions = &state.versions[&call.truth];
    let is_version = |version: &Vec<String>| keys(given).eq(keys(&version[..version.len().min(wanted)]));
    let known = versions.iter().any(is_version);
    let lengths: Vec<usize> = versions.iter().map(Vec::len).collect();
    // A reorganization includes a record in another block, or at another place of it.
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
pub fn check_memory(world: &World, call: &Call, pages: &Run, checkpoint: &Checkpoint) {
    let (retained, cursor) = (pages.partial().read().len(), checkpoint.cursor().to_json().len());
    let hashes: usize =
        call.args.iter().map(|(_, arg)| if let Arg::List(hashes) = arg { hashes.len() } else { 0 }).sum();
    if retained > MAX_RETAINED || cursor > MAX_CURSOR + hashes * CURSOR_PER_HASH {
        world.violation(format!("{retained} records are retained, and a cursor has {cursor} bytes"));
    }
}

/// No record comes more often than the list has ever had it.
pub fn check_repeats(world: &World, call: &Call, given: &[String]) {
    let state = world.lock();
    let count = |records: &[String], key: &str| keys(records).filter(|other| *other == key).count();
    let max_count = |key: &str| state.versions[&call.truth].iter().map(|version| count(version, key)).max();
    let repeated = keys(given).find(|key| Some(count(given, key)) > max_count(key)).map(str::to_owned);
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

pub fn decode(call: &str, body: &str) -> Columns {
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
