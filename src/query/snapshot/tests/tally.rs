//! Reads every schedule of a case, and counts what came of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::bounds::Bounds;
use super::choices::Exhaustive;
use super::read::{Read, Verdict};

/// Every drift error is one of these, which docs/completeness.md explains.
pub const ERRORS: [&str; 17] = [
    "gave up after too many responses without new records",
    "of which",
    "records that were being read were deleted or replaced",
    "the first page changed before the length of the list was known",
    "the list became empty while it was read",
    "a page ends below the last record of the list by its count",
    "records follow the last one that the reported number of records leaves room for",
    "records do not follow each other by the number of records that the API reports",
    "a record was received",
    "no response confirms the first page",
    "below records of height",
    "has records, but the API reports",
    "a record that responses showed between returned ones was not returned",
    "a record was not returned with the others of its block",
    "the first records are not in the list any more",
    "the numbers of pages that the API reports contradict each other",
    "a response has another record in the place of a returned one",
];

#[derive(Debug, Default)]
pub struct Tally {
    schedules: u64,
    right: u64,
    drift: u64,
    incomplete: u64,
    pub wrong: u64,
    requests: u64,
}

/// Walks the schedules of a case. What comes before a decision is read once, and copied for each alternative.
struct Walk {
    bounds: Bounds,
    size: Size,
    /// Decisions up to the current step.
    decisions: Vec<usize>,
    tally: Tally,
}

pub fn enumerate(bounds: Bounds) -> Tally {
    let mut walk = Walk { bounds, size: Size::of_environment(), decisions: Vec::new(), tally: Tally::default() };
    walk.each(|walk, choices| {
        let read = walk.guard(|| Read::new(bounds, choices));
        walk.after(choices, |walk| match read {
            Ok(read) => walk.explore(&read),
            Err(panic) => walk.count(panic, 0),
        });
    });
    walk.tally
}

impl Walk {
    /// Takes a step with each sequence of its decisions.
    fn each(&mut self, mut step: impl FnMut(&mut Self, &mut Exhaustive)) {
        let mut choices = Exhaustive::default();
        loop {
            step(self, &mut choices);
            if !choices.advance() {
                return;
            }
        }
    }

    /// Continues after a step with these decisions.
    fn after(&mut self, choices: &Exhaustive, continues: impl FnOnce(&mut Self)) {
        let before = self.decisions.len();
        self.decisions.extend(choices.decisions());
        continues(self);
        self.decisions.truncate(before);
    }

    fn explore(&mut self, read: &Read) {
        self.each(|walk, choices| {
            let mut read = read.clone();
            let mut verdict = walk.step(&mut read, choices);
            // Nothing is left to be copied for.
            while verdict.is_none() && !read.may_choose() {
                verdict = walk.step(&mut read, choices);
            }
            walk.after(choices, |walk| match verdict {
                Some(verdict) => walk.count(verdict, read.world.requests),
                None => walk.explore(&read),
            });
        });
    }

    fn step(&self, read: &mut Read, choices: &mut Exhaustive) -> Option<Verdict> {
        self.guard(|| read.step(choices)).unwrap_or_else(Some)
    }

    /// The outcome of a step. A panic of mutated code, as that of a counter below zero, is an error to the caller of the package.
    fn guard<T>(&self, step: impl FnOnce() -> T) -> Result<T, Verdict> {
        if self.size != Size::Audit {
            return Ok(step());
        }
        catch_unwind(AssertUnwindSafe(step)).map_err(|_| Verdict::Drift("a panic".into()))
    }

    fn count(&mut self, verdict: Verdict, requests: usize) {
        let tally = &mut self.tally;
        tally.schedules += 1;
        tally.requests += requests as u64;
        match verdict {
            Verdict::Right => tally.right += 1,
            Verdict::Drift(error) => {
                let is_documented = ERRORS.iter().any(|known| error.contains(known));
                assert!(is_documented || self.size == Size::Audit, "an error that is not documented: {error}");
                tally.drift += 1;
            }
            Verdict::Incomplete => tally.incomplete += 1,
            // The audit of changed readers counts only the wrong results that are called complete.
            Verdict::Doubted(_) if self.size == Size::Audit => tally.incomplete += 1,
            Verdict::Wrong(_) | Verdict::Doubted(_) => {
                tally.wrong += 1;
                if tally.wrong == 1 {
                    self.show();
                }
            }
        }
    }

    /// Prints the current schedule.
    fn show(&self) {
        let mut choices = Exhaustive::repeating(&self.decisions);
        let mut read = Read::new(self.bounds, &mut choices);
        read.world.log = Some(Vec::new());
        let verdict = read.finish(&mut choices);
        println!("{verdict:?} {:?} {:#?} states {:?}", self.bounds, read.world.log, read.world.states());
    }
}

/// Bounds of an enumeration, by the environment variable `ENUMERATE`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// For mutated code: fewer than `Small`, and the first that is wrong ends the process.
    Tiny,
    /// As `Tiny`, where only a wrong result that is called complete is a failure: the audit is to notice it.
    Audit,
    Small,
    Large,
}

impl Size {
    pub fn of_environment() -> Self {
        match std::env::var("ENUMERATE").as_deref() {
            Ok("tiny") => Self::Tiny,
            Ok("audit") => Self::Audit,
            Ok("large") => Self::Large,
            _ => Self::Small,
        }
    }
}

/// Enumerates the schedules of each case, and checks their number and that none is wrong.
pub fn check(cases: &[(&str, Bounds, Bounds, u64)]) {
    let (size, mut unexpected) = (Size::of_environment(), Vec::new());
    // The audit is to notice one fault: that of the code, in lists whose records have keys.
    let is_checked = |bounds: &Bounds| size != Size::Audit || bounds.symbols == 0 && bounds.defect.is_none();
    for (name, small, large, expected) in cases.iter().filter(|(_, small, ..)| is_checked(small)) {
        let tally = enumerate(match size {
            Size::Tiny | Size::Audit => Bounds { max_length: small.max_length - 1, ..*small },
            Size::Small => *small,
            Size::Large => *large,
        });
        let mean = tally.requests as f64 / tally.schedules as f64;
        println!(
            "{name:44} {:8} schedules {:8} right {:8} drift {:8} incomplete {:3} wrong {mean:6.2} requests",
            tally.schedules, tally.right, tally.drift, tally.incomplete, tally.wrong
        );
        let is_stable = small.growth.1 + small.losses + small.reorganizations == 0;
        let is_harmless = small.window.is_none()
            && small.defect.is_none()
            && (is_stable || small.losses + small.reorganizations + small.symbols == 0);
        let is_expected = size != Size::Small || tally.schedules == *expected;
        let is_needless = size != Size::Audit && is_harmless && tally.drift > 0;
        if tally.wrong > 0 || is_needless || !is_expected {
            if matches!(size, Size::Tiny | Size::Audit) {
                // The other tests need not end.
                std::process::exit(1);
            }
            unexpected.push((name, tally));
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}
