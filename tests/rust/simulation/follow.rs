//! A follower in the simulated world: the fold of its events is the list at one instant, whatever dies.

use std::sync::Arc;

use chainframe::client::Error;
use chainframe::query::{Changes, Follow, FollowItem, FollowOptions, FollowStart, Poll, Run};
use fastrand::Rng;

use super::plan::Plan;
use super::run::{Call, Outcome, client, judge_error, query, rows, rows_of_body};
use super::world::World;

/// Processes of one run, each of which follows to the head.
const LIVES: u64 = 12;
/// More heights than reorganisations replace while one process reads.
const SETTLE: u64 = 12;

/// Runs one seed in a runtime of its own, whose clock moves only when everything waits.
pub fn simulate(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(seed))
}

async fn run(seed: u64) -> Outcome {
    let mut rng = Rng::with_seed(seed);
    let plan = Plan::of_follower(&mut rng);
    let world = World::new(seed, plan.clone(), rng.fork(), rows_of_body);
    let call = Call::of(&plan, &world);
    let mut consumer = Consumer { records: Vec::new(), start: FollowStart::Beginning, position: -1 };
    let (mut deaths, mut drift) = (0, 0);
    for life in 0..LIVES {
        world.note(&format!("process {life} starts with {} records", consumer.records.len()));
        let (died, failed) = follow(&world, &plan, &call, &mut consumer).await;
        deaths += u64::from(died);
        drift += u64::from(matches!(failed, Some(Error::Drift { .. })));
        if failed.is_some_and(|error| !error.retryable()) {
            break;
        }
    }
    let mut state = world.lock();
    Outcome {
        journal: std::mem::take(&mut state.journal),
        violations: std::mem::take(&mut state.violations),
        complete: !consumer.records.is_empty(),
        deaths,
        drift,
        reorgs: state.reorgs,
        faults: state.faults,
    }
}

/// Follows to the head in one process. True if it died, and the error that ended it.
async fn follow(world: &Arc<World>, plan: &Plan, call: &Call, consumer: &mut Consumer) -> (bool, Option<Error>) {
    let client = client(world, None);
    let start = consumer.start.clone();
    let options = FollowOptions { start, end: None, settle: SETTLE, poll: Poll::Once, changes: Changes::Undone };
    let mut follow = Follow::new(&Run::from(query(&client, call, plan)), options).expect("the list can be followed");
    loop {
        match follow.next().await {
            Ok(None) => return (false, None),
            // The consumer did not store the event: the next process gets it again.
            Ok(Some(_)) if world.chance(plan.death) => {
                world.note("the process dies with an event");
                return (true, None);
            }
            Ok(Some(event)) => {
                consumer.take(event.item, event.cursor.to_json());
                consumer.check(world, call);
            }
            Err(error) => {
                world.note(&format!("error: {error}"));
                judge_error(world, &error);
                return (false, Some(error));
            }
        }
    }
}

/// Rows that a consumer has stored, with their heights, oldest first, and the position.
struct Consumer {
    records: Vec<(i64, String)>,
    start: FollowStart,
    position: i64,
}

impl Consumer {
    fn take(&mut self, item: FollowItem, cursor: String) {
        match item {
            FollowItem::Batch(batch) => {
                let rows = batch.chunks().iter().flat_map(rows);
                self.records.extend(rows.map(|row| (height(&row), row)));
            }
            FollowItem::Undo { after_height } => self.records.retain(|(height, _)| *height <= after_height),
            FollowItem::Moved => {}
        }
        let json: serde_json::Value = serde_json::from_str(&cursor).expect("a cursor is JSON");
        self.position = json["position"]["after"]["position"].as_i64().expect("an event has a position");
        self.start = FollowStart::Cursor(cursor);
    }

    /// The records are those of some version of the list, up to the position.
    fn check(&self, world: &World, call: &Call) {
        let mut ours: Vec<&str> = self.records.iter().map(|(_, row)| row.as_str()).collect();
        ours.sort_unstable();
        let state = world.lock();
        let is_known = state.versions[&call.truth].iter().any(|version| {
            let mut theirs: Vec<&str> = version.iter().map(String::as_str).collect();
            theirs.retain(|row| height(row) <= self.position);
            theirs.sort_unstable();
            theirs == ours
        });
        drop(state);
        if !is_known {
            world.violation(format!("{} records up to {} are no version", self.records.len(), self.position));
        }
    }
}

/// The height of a row: its first integer column but those before it that are no heights.
fn height(row: &str) -> i64 {
    let number = row.split('|').find_map(|value| value.strip_prefix("Integer(")?.strip_suffix(')'));
    number.and_then(|digits| digits.parse().ok()).unwrap_or(i64::MAX)
}
