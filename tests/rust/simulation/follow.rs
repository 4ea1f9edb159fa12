//! A follower in the simulated world: the fold of its events is the list at one instant, whatever dies, and in the end it
//! has all of the list that is due.

use std::sync::Arc;
use std::time::Duration;

use chainframe::client::Error;
use chainframe::query::{Changes, FollowCursor, FollowItem, FollowOptions, FollowRun, FollowStart, Poll, QueryStart};
use fastrand::Rng;
use tokio::time::timeout;

use super::call::{Call, client, query};
use super::plan::{Kind, MIN_PAGE_SIZE, Plan};
use super::run::Outcome;
use super::verdict::{judge_error, rows, rows_of_body};
use super::world::{World, height};

/// Processes of one run, each of which follows to the head.
const LIVES: u64 = 12;
/// More heights than change while one process reads.
const SETTLE: u64 = 12;
/// Growths after which a list counts as one that grows no more, such as that of an address without new transactions.
const MAX_GROWTHS: usize = 60;

/// Runs one seed in a runtime of its own, whose clock moves only when everything waits.
pub fn simulate(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(seed))
}

/// The end of one process.
enum End {
    CaughtUp,
    Died,
    Failed(Error),
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
        match follow(&world, &plan, &call, &mut consumer).await {
            End::CaughtUp => {}
            End::Died => deaths += 1,
            End::Failed(error) => drift += u64::from(matches!(error, Error::Drift { .. })),
        }
    }
    // Delivered heights are read again, and late records noticed, only once the newest page has changed.
    let newest =
        || world.lock().versions[&call.truth].last().map(|rows| rows[..rows.len().min(MIN_PAGE_SIZE)].to_vec());
    let before = newest();
    (0..MAX_GROWTHS).take_while(|_| newest() == before).for_each(|_| world.grow(1));
    world.lock().is_calm = true;
    world.note("the world is calm");
    match follow(&world, &plan, &call, &mut consumer).await {
        End::CaughtUp => consumer.check_end(&world, &plan, &call),
        End::Failed(_) if has_full_height(&world, &plan, &call) => {}
        End::Died | End::Failed(_) => world.violation("a follower of a calm list does not catch up".into()),
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

/// Follows to the head in one process.
async fn follow(world: &Arc<World>, plan: &Plan, call: &Call, consumer: &mut Consumer) -> End {
    let client = client(world, None);
    let options = FollowOptions {
        start: consumer.start.clone(),
        end: None,
        settle: SETTLE,
        poll: Poll::Once,
        changes: if plan.follow.undo { Changes::Undone } else { Changes::Held },
        max_rows: plan.follow.max_rows,
    };
    let mut follow =
        FollowRun::new(&QueryStart::from(query(&client, call, plan)), options).expect("the list can be followed");
    loop {
        let next = if world.chance(plan.cancel) {
            match timeout(Duration::from_millis(1 + world.draw(800)), follow.next()).await {
                Ok(next) => next,
                Err(_) if world.draw(2) == 0 => {
                    world.note("the wait is cancelled");
                    continue;
                }
                Err(_) => {
                    world.note("the process dies while it waits");
                    return End::Died;
                }
            }
        } else {
            follow.next().await
        };
        match next {
            Ok(None) => return End::CaughtUp,
            // The consumer did not store the event: the next process gets it again.
            Ok(Some(_)) if world.chance(plan.death) => {
                world.note("the process dies with an event");
                return End::Died;
            }
            Ok(Some(event)) => {
                consumer.take(event.item, event.cursor.to_json());
                consumer.check(world, plan, call);
            }
            Err(error) => {
                world.note(&format!("error: {error}"));
                if has_full_height(world, plan, call) && matches!(error, Error::Gap { .. } | Error::Window { .. }) {
                    return End::Failed(error);
                }
                judge_error(world, &error);
                if matches!(error, Error::Reorganization { .. } | Error::Gap { .. }) {
                    world.violation(format!("nothing changes below the settle distance: {error}"));
                }
                return End::Failed(error);
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
                self.records.extend(rows.map(|row| (height(&row).expect("a delivered record has a height"), row)));
            }
            FollowItem::Undo { after_height } => self.records.retain(|(height, _)| *height <= after_height),
            FollowItem::Moved => {}
        }
        let json: serde_json::Value = serde_json::from_str(&cursor).expect("a cursor is JSON");
        self.position = json["position"]["after"]["position"].as_i64().expect("an event has a position");
        self.start = FollowStart::Cursor(FollowCursor::from_json(&cursor).expect("a cursor is of a follower"));
    }

    /// True if the records are those of one of these versions of the list, up to a height.
    fn is_any(&self, versions: &[Vec<String>], up_to: i64) -> bool {
        let mut ours: Vec<&str> = self.records.iter().map(|(_, row)| row.as_str()).collect();
        ours.sort_unstable();
        versions.iter().rev().any(|version| {
            let is_due = |row: &&str| height(row).is_some_and(|height| height <= up_to);
            let mut theirs: Vec<&str> = version.iter().map(String::as_str).filter(is_due).collect();
            theirs.sort_unstable();
            ours == theirs
        })
    }

    /// True if the records are of several versions, each of them once: pages of a list without a count, between which a
    /// record was listed late or has settled. A later round corrects that.
    fn is_mixed(&self, versions: &[Vec<String>], plan: &Plan) -> bool {
        let is_counted = matches!(plan.kind, Kind::Follow("blocks" | "cross_chain_transactions"));
        let may_mix = !is_counted && plan.follow.undo && (plan.follow.late.is_some() || plan.follow.pending.is_some());
        let mut keys: Vec<_> = self.records.iter().map(|(_, row)| row.split('|').next()).collect();
        keys.sort_unstable();
        let is_known = |row: &String| versions.iter().rev().any(|version| version.contains(row));
        may_mix && keys.is_sorted_by(|one, next| one < next) && self.records.iter().all(|(_, row)| is_known(row))
    }

    /// The records are those of some version of the list, oldest first.
    fn check(&self, world: &World, plan: &Plan, call: &Call) {
        let state = world.lock();
        let versions = &state.versions[&call.truth];
        let is_known = self.is_any(versions, self.position) || self.is_mixed(versions, plan);
        drop(state);
        if !is_known {
            world.violation(format!("{} records up to {} are no version", self.records.len(), self.position));
        }
        if !self.records.is_sorted_by_key(|(height, _)| *height) {
            world.violation("the records are not in order".into());
        }
    }

    /// The records are all that is due of the list as it is now.
    fn check_end(&self, world: &World, plan: &Plan, call: &Call) {
        let due = head(world, plan) - if plan.follow.undo { 1 } else { SETTLE as i64 };
        let versions = world.lock().versions[&call.truth].clone();
        if !self.is_any(&versions[versions.len() - 1..], due) {
            world.violation(format!(
                "{} records up to {} are not those up to {due}",
                self.records.len(),
                self.position
            ));
        }
    }
}

/// True if a height has as many records as can be paged through, or more.
fn has_full_height(world: &World, plan: &Plan, call: &Call) -> bool {
    let Some(window) = plan.follow.window else { return false };
    world.lock().versions[&call.truth].iter().any(|version| {
        let heights: Vec<_> = version.iter().map(|row| height(row)).collect();
        heights.chunk_by(|one, other| one == other).any(|of_one| of_one.len() as u64 >= window)
    })
}

/// Height of the newest block that a list shows.
fn head(world: &World, plan: &Plan) -> i64 {
    let is_zone = matches!(plan.kind, Kind::Follow("blocks" | "cross_chain_transactions"));
    let list = if is_zone {
        "/api/v5/main/zone/block/block-list?chainShortName=ZONE_CHAIN"
    } else {
        "/api/v5/main/transaction/transaction-list?chainShortName=MAIN"
    };
    let body = world.service.whole_list(list).expect("the list exists");
    rows_of_body(list, &body).iter().filter_map(|row| height(row)).max().unwrap_or(0)
}
