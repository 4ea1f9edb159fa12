//! Evidence of the records of a result: the laws that `interface` declares, checked as the pages are returned.
//! It knows no requests and no pages, and its memory is bounded. A law that is broken is evidence, and no more: chains and
//! tokens exist that do not obey it.

mod balances;
mod custody;
mod finding;
mod moves;
mod sequence;
mod spans;
#[cfg(test)]
mod tests;
mod trail;

use crate::columns::Columns;
use crate::interface::{self, LAWS, Law, Rule};
use balances::Balances;
use custody::Custody;
pub use finding::{Finding, add};
use moves::{Move, Positions};
use sequence::Numbers;

/// The laws of the list of one run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    checks: Vec<(&'static Law, Check)>,
    /// Columns of the moves that laws are about.
    moves: Option<Positions>,
    part: Part,
    /// Height of the first move.
    first_height: Option<i64>,
    has_begun: bool,
    /// True if the list has all that there ever was of a sequence, unless the API keeps less.
    is_whole_list: bool,
}

/// Part of a list that is read. At a cut, records may be missing that were listed on its other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    #[default]
    FromFirst,
    /// From some record on.
    FromOther,
}

#[derive(Clone, Debug)]
enum Check {
    Numbers(Numbers),
    Custody(Custody),
    Balances(Balances),
}

impl Evidence {
    /// Evidence on a list of an endpoint with these arguments.
    pub fn of(endpoint: &str, part: Part, argument: impl Fn(&str) -> Option<String>) -> Self {
        let mut evidence = Self { part, ..Self::default() };
        for law in LAWS.iter().filter(|law| law.endpoint == endpoint) {
            let is_excluded = law.without.iter().any(|exclusion| {
                let given = argument(exclusion.argument);
                given.is_some() && exclusion.value.is_none_or(|value| given.as_deref() == Some(value))
            });
            if is_excluded {
                continue;
            }
            let check = match &law.rule {
                Rule::Sequence(rule) => {
                    let whole = rule.whole.as_ref();
                    evidence.is_whole_list =
                        whole.is_some_and(|whole| argument(whole.argument).as_deref() == Some(whole.value));
                    let owner = rule.owner.as_ref().and_then(|owner| argument(owner.argument));
                    Check::Numbers(Numbers::new(rule, part, owner))
                }
                Rule::Custody(_) => Check::Custody(Custody::new()),
                Rule::Balances(_) => Check::Balances(Balances::new()),
            };
            if let Rule::Custody(moves) | Rule::Balances(moves) = &law.rule {
                evidence.moves =
                    interface::endpoint(endpoint).and_then(|endpoint| Positions::of(moves, endpoint.record()));
            }
            evidence.checks.push((law, check));
        }
        evidence
    }

    pub fn add(&mut self, rows: &Columns) {
        if rows.rows() == 0 {
            return;
        }
        if !self.has_begun {
            // Columns that were not asked for have no values.
            self.checks.retain(|(law, _)| law.columns().all(|name| is_read(rows, name)));
            self.has_begun = true;
        }
        for (_, check) in &mut self.checks {
            if let Check::Numbers(numbers) = check {
                numbers.add(rows);
            }
        }
        if let Some(columns) = self.moves
            && !self.checks.is_empty()
        {
            let moves: Vec<Move<'_>> = columns.moves(rows).filter(|moved| !self.is_at_cut(moved)).collect();
            for (_, check) in &mut self.checks {
                match check {
                    Check::Numbers(_) => {}
                    Check::Custody(custody) => moves.iter().for_each(|moved| custody.add(moved)),
                    Check::Balances(balances) => balances.add(&moves),
                }
            }
        }
    }

    /// True if others of the height of a move may be on the other side of a cut: it has that of the first one.
    fn is_at_cut(&mut self, moved: &Move<'_>) -> bool {
        if self.part == Part::FromFirst || moved.height.is_none() {
            return false;
        }
        self.first_height = self.first_height.or(moved.height);
        moved.height == self.first_height
    }

    /// True if the records are all that there ever were, whatever the API keeps.
    pub fn proves_beginning(&self) -> bool {
        self.is_whole_list
            && self.checks.iter().any(|(_, check)| matches!(check, Check::Numbers(numbers) if numbers.is_whole()))
    }

    /// Number of records that the list had before the first one, where it has all of a kind.
    pub fn earlier(&self) -> Option<u64> {
        self.checks.iter().find_map(|(_, check)| match check {
            Check::Numbers(numbers) if self.is_whole_list => numbers.earlier(),
            _ => None,
        })
    }

    /// Findings on the records so far. `is_to_end` is true if the list was read to its end.
    pub fn findings(&self, is_to_end: bool) -> Vec<Finding> {
        let findings = self.checks.iter().filter_map(|(law, check)| match check {
            Check::Numbers(numbers) => Some(numbers.finding(law, is_to_end)),
            Check::Custody(custody) => Some(custody.finding(law, is_to_end)),
            // Before the end no balance is known.
            Check::Balances(balances) if is_to_end => Some(balances.finding(law)),
            Check::Balances(_) => None,
        });
        findings.filter(|finding| finding.checked > 0).collect()
    }
}

fn is_read(rows: &Columns, name: &str) -> bool {
    rows.record().position(name).is_some_and(|column| !rows.is_skipped(column))
}
