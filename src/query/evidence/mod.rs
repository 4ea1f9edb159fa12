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

use crate::columns::Columns;
use crate::interface::{LAWS, Law, Rule};
use balances::Balances;
use custody::Custody;
pub use finding::{Finding, add};
use sequence::Numbers;

/// The laws of the list of one run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    checks: Vec<(&'static Law, Check)>,
    /// True if the list has all that there ever was of a sequence, unless the API keeps less.
    is_whole_list: bool,
}

#[derive(Clone, Debug)]
enum Check {
    Numbers(Numbers),
    Custody(Custody),
    Balances(Balances),
}

impl Evidence {
    /// Evidence on the list of an endpoint with these arguments.
    pub fn of(endpoint: &str, argument: impl Fn(&str) -> Option<String>) -> Self {
        let mut evidence = Self::default();
        for law in LAWS.iter().filter(|law| law.endpoint == endpoint) {
            let is_excluded = law.without.iter().any(|(name, value)| {
                let given = argument(name);
                given.is_some() && value.is_none_or(|value| given.as_deref() == Some(value))
            });
            if is_excluded {
                continue;
            }
            let check = match &law.rule {
                Rule::Sequence(rule) => {
                    evidence.is_whole_list =
                        rule.whole.is_some_and(|(name, value)| argument(name).as_deref() == Some(value));
                    Check::Numbers(Numbers::new(rule, rule.owner.and_then(|(_, name)| argument(name))))
                }
                Rule::Custody(moves) => Check::Custody(Custody::new(moves)),
                Rule::Balances(moves) => Check::Balances(Balances::new(moves)),
            };
            evidence.checks.push((law, check));
        }
        evidence
    }

    pub fn add(&mut self, rows: &Columns) {
        // Columns that were not asked for have no values.
        self.checks.retain(|(law, _)| law.columns().all(|name| is_read(rows, name)));
        for (_, check) in &mut self.checks {
            match check {
                Check::Numbers(numbers) => numbers.add(rows),
                Check::Custody(custody) => custody.add(rows),
                Check::Balances(balances) => balances.add(rows),
            }
        }
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

    /// Findings on the records so far. `is_whole` is true if the list was read from its beginning to its end.
    pub fn findings(&self, is_whole: bool) -> Vec<Finding> {
        let findings = self.checks.iter().filter_map(|(law, check)| match check {
            Check::Numbers(numbers) => Some(numbers.finding(law)),
            Check::Custody(custody) => Some(custody.clone().finding(law)),
            Check::Balances(balances) if is_whole => balances.clone().finding(law),
            Check::Balances(_) => None,
        });
        findings.filter(|finding| finding.checked > 0).collect()
    }
}

fn is_read(rows: &Columns, name: &str) -> bool {
    rows.record().position(name).is_some_and(|column| !rows.is_skipped(column))
}
