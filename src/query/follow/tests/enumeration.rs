//! Every schedule within small bounds: changes of the chain and restarts after any request, followed to the end.

use super::world::{Chain, Change, Run, Stepped, spec};
use crate::client::Error;
use crate::query::follow::{Changes, FollowSpec, Forgets, HeadSource, Ranges, RoundProof, Start};

/// Changes of the chain, and a restart. A late record is the last one: it is noticed where heights are read again.
const CHANGES: [Option<Change>; 7] = [
    None,
    Some(Change::Grow),
    Some(Change::GrowEmpty),
    Some(Change::Reorganize(1)),
    Some(Change::Reorganize(2)),
    Some(Change::Shrink(2)),
    Some(Change::Late(1)),
];
/// Requests and waits from one change to the next.
const APART: usize = 8;
/// Requests in which a follower has to end a round.
const QUIET: usize = 40;
/// Blocks that come in the end, and so rounds: more than were ever replaced.
const ROUNDS: usize = 8;

/// Changes and restarts of a schedule. `FOLLOW_CHANGES=3` is the long form of the tests.
fn budget() -> usize {
    std::env::var("FOLLOW_CHANGES").ok().map_or(2, |text| text.parse().expect("a number of changes"))
}

/// The smallest settle distance that no schedule exceeds: each change may shorten the chain by one height, and the last
/// one replaces two.
fn settle() -> i64 {
    budget() as i64 + 1
}

#[derive(Default, Debug)]
struct Counts {
    schedules: u64,
    errors: u64,
    undos: u64,
    longest: usize,
}

struct Case<'c> {
    alphabet: &'c [Option<Change>],
    start: i64,
    changes: usize,
    /// The deepest change, in heights.
    depth: i64,
    counts: Counts,
}

impl Case<'_> {
    /// Follows a schedule of up to `left` more changes, one after any of the next requests. Returns the first violation.
    fn explore(&mut self, run: &Run, chain: &Chain, left: usize, quiet: usize, steps: usize) -> Result<(), String> {
        self.check(run)?;
        if left > 0 {
            for change in self.alphabet.iter().copied() {
                let (mut run, mut chain) = (run.clone(), chain.clone());
                match change {
                    Some(change) => chain.apply(change),
                    None => run.restart(),
                }
                self.advance(&run, &chain, left - 1, APART, steps).map_err(|error| format!("{change:?}, {error}"))?;
            }
        }
        if left > 0 && quiet > 0 {
            return self.advance(run, chain, left, quiet, steps).map_err(|error| format!("-, {error}"));
        }
        self.end(run.clone(), chain.clone(), steps)
    }

    fn advance(&mut self, run: &Run, chain: &Chain, left: usize, quiet: usize, steps: usize) -> Result<(), String> {
        let mut run = run.clone();
        match self.step(&mut run, chain) {
            Ok(_) => self.explore(&run, chain, left, quiet.saturating_sub(1), steps + 1),
            Err(error) => self.fail(&run, chain, &error),
        }
    }

    /// Takes a step. A round may lack records of its own responses if a change is deeper than the settle distance.
    fn step(&self, run: &mut Run, chain: &Chain) -> Result<Stepped, Error> {
        match run.step(chain) {
            Err(Error::Drift { .. }) if run.follower.spec().settle <= self.depth => {
                run.follower.repeat();
                Ok(Stepped::Request)
            }
            stepped => stepped,
        }
    }

    /// An error needs a cause: records that the consumer has and the list has not.
    fn fail(&mut self, run: &Run, chain: &Chain, error: &Error) -> Result<(), String> {
        self.counts.schedules += 1;
        self.counts.errors += 1;
        let Error::Reorganization { height, .. } = error else { return Err(format!("failed: {error}")) };
        let list: Vec<_> = chain.list().iter().rev().filter_map(|row| Some((row.height?, row.key))).collect();
        let at = |records: &[(i64, u64)]| records.iter().filter(|(of, _)| of == height).copied().collect::<Vec<_>>();
        let settle = run.follower.spec().settle;
        if run.follower.spec().changes == Changes::Undone || settle > self.depth {
            return Err(format!("failed within the settle distance: {error}"));
        }
        // The chain may have changed once more since the request.
        if at(&list) == at(&run.consumer) && self.changes == 1 {
            return Err(format!("failed without a change: {error}"));
        }
        Ok(())
    }

    /// The consumer has the list of the last round that delivered.
    fn check(&self, run: &Run) -> Result<(), String> {
        if run.is_exact(self.start) {
            return Ok(());
        }
        Err(format!("has {:?}, not {:?}", run.consumer, run.expected(self.start)))
    }

    /// The chain grows by single blocks and then stays as it is: the follower catches up with it.
    fn end(&mut self, mut run: Run, mut chain: Chain, steps: usize) -> Result<(), String> {
        for _ in 0..ROUNDS {
            chain.apply(Change::Grow);
            for _ in 0..QUIET {
                match self.step(&mut run, &chain) {
                    Ok(Stepped::Waited) => break,
                    Ok(_) => self.check(&run)?,
                    Err(error) => return self.fail(&run, &chain, &error),
                }
            }
        }
        self.counts.schedules += 1;
        self.counts.undos += run.undos;
        self.counts.longest = self.counts.longest.max(steps);
        let spec = run.follower.spec();
        let target = chain.head() - if spec.changes == Changes::Held { spec.settle.max(1) } else { 1 };
        let position = run.follower.state().map(|state| state.delivered_to());
        let list = chain.list().into_iter().rev().filter_map(|row| Some((row.height?, row.key)));
        let wanted: Vec<_> = list.filter(|(height, _)| *height > self.start && *height <= target).collect();
        // A round that requests only the head of the chain keeps its position.
        let is_behind = spec.head == HeadSource::List && position != Some(target);
        match is_behind || position > Some(target) || run.consumer != wanted {
            true => Err(format!("ends at {position:?} of {target} with {:?}, not {wanted:?}", run.consumer)),
            false => Ok(()),
        }
    }
}

/// Enumerates the schedules of one list; panics with the first one that goes wrong.
fn enumerate(spec: FollowSpec, chain: &Chain, changes: usize, alphabet: &[Option<Change>]) -> Counts {
    let mut case = Case { alphabet, start: -1, changes, depth: settle() - 1, counts: Counts::default() };
    let run = Run::new(spec.clone(), Start::Height(0));
    if let Err(schedule) = case.explore(&run, chain, changes, APART, 0) {
        panic!("{spec:?}: {schedule}");
    }
    case.counts
}

/// All cases, by kind of list.
fn all(changes: Changes, settle: i64, alphabet: &[Option<Change>]) -> Counts {
    let mut sum = Counts::default();
    let ways = [
        (HeadSource::List, Ranges::None),
        (HeadSource::Chain, Ranges::None),
        (HeadSource::List, Ranges::List),
        (HeadSource::List, Ranges::ByCount),
        (HeadSource::Chain, Ranges::ByHeight),
    ];
    for (head, ranges) in ways {
        for page_size in 1..=3 {
            // Ranges are read where a reading down would hold more than these.
            let max_rows = if ranges == Ranges::None { 10_000 } else { 3 };
            let spec = FollowSpec { head, ranges, max_rows, ..spec(changes, settle, page_size) };
            for blocks in [0, 4] {
                let counts = enumerate(spec.clone(), &Chain::new(blocks, 1), budget(), alphabet);
                sum.schedules += counts.schedules;
                sum.errors += counts.errors;
                sum.undos += counts.undos;
                sum.longest = sum.longest.max(counts.longest);
            }
        }
    }
    println!("{changes:?}, settle {settle}: {sum:?}");
    sum
}

/// All cases of lists without a count, whose pages are of several instants.
fn uncounted(changes: Changes, settle: i64) -> Counts {
    let mut sum = Counts::default();
    for head in [HeadSource::List, HeadSource::Chain] {
        for page_size in 1..=3 {
            let spec = FollowSpec { proof: RoundProof::Recheck, head, ..spec(changes, settle, page_size) };
            for blocks in [2, 5] {
                let counts = enumerate(spec.clone(), &Chain::new(blocks, 1), budget(), &CHANGES[..6]);
                sum.schedules += counts.schedules;
                sum.undos += counts.undos;
                sum.errors += counts.errors;
            }
        }
    }
    println!("{changes:?}, settle {settle}, without a count: {sum:?}");
    sum
}

/// All cases of short lists that forget their oldest records, all of which a reorganization may remove.
fn forgetful(changes: Changes, settle: i64) -> Counts {
    let removals =
        [None, Some(Change::Grow), Some(Change::GrowEmpty), Some(Change::Remove(1)), Some(Change::Remove(2))];
    let mut sum = Counts::default();
    for page_size in 1..=3 {
        let spec =
            FollowSpec { head: HeadSource::Chain, proof: RoundProof::Recheck, ..spec(changes, settle, page_size) };
        let spec = FollowSpec { forgets: Forgets::LastYear { heights: 0 }, ..spec };
        for records in 0..=3 {
            let mut chain = Chain::new(8, 1);
            chain.forget(8 - records);
            let counts = enumerate(spec.clone(), &chain, budget(), &removals);
            sum.schedules += counts.schedules;
            sum.undos += counts.undos;
            sum.errors += counts.errors;
        }
    }
    println!("{changes:?}, settle {settle}, forgetful: {sum:?}");
    sum
}

#[test]
fn every_schedule_of_a_list_that_loses_all_records_is_exact() {
    let held = forgetful(Changes::Held, settle());
    let undone = forgetful(Changes::Undone, settle() + 1);
    assert_eq!((held.errors, held.undos, undone.errors), (0, 0, 0));
    assert!(undone.undos > 100, "{undone:?}");
}

#[test]
fn every_schedule_of_a_list_without_a_count_is_exact() {
    let (held, undone) = (uncounted(Changes::Held, settle()), uncounted(Changes::Undone, settle()));
    assert_eq!((held.errors, held.undos, undone.errors), (0, 0, 0));
    assert!(undone.undos > 100, "{undone:?}");
}

#[test]
#[cfg(feature = "planted-bugs")]
fn skipped_recheck_is_found() {
    use crate::planted::{Bug, plant};
    plant(Some(Bug::FinalLookSkipped));
    let found = std::panic::catch_unwind(|| uncounted(Changes::Undone, 3));
    plant(None);
    assert!(found.is_err());
}

#[test]
fn every_schedule_within_the_settle_distance_is_exact() {
    let held = all(Changes::Held, settle(), &CHANGES);
    assert_eq!((held.errors, held.undos), (0, 0));
}

#[test]
fn every_schedule_with_undo_is_exact() {
    for settle in [settle(), settle() + 1] {
        let undone = all(Changes::Undone, settle, &CHANGES);
        assert_eq!(undone.errors, 0);
        assert!(undone.undos > 100, "{undone:?}");
    }
}

#[test]
fn changes_below_the_settle_distance_are_errors() {
    let held = all(Changes::Held, 1, &CHANGES[..6]);
    assert!(held.errors > 100 && held.undos == 0, "{held:?}");
}

#[test]
#[cfg(feature = "planted-bugs")]
fn known_bugs_are_found() {
    use crate::planted::{Bug, plant};
    for bug in [Bug::UndoDropped, Bug::UnsettledForgotten] {
        plant(Some(bug));
        let found = std::panic::catch_unwind(|| all(Changes::Undone, 3, &CHANGES));
        plant(None);
        assert!(found.is_err(), "{bug:?}");
    }
}
