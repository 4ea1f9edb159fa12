//! `Finding`: what the records of a result say of one law.

use serde::{Deserialize, Serialize};

/// Outcome of one law over the records of a run, or of the lists of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub law: String,
    /// `None` if the records do not decide: the assumption may not hold of this list.
    pub held: Option<bool>,
    /// Number of records that were compared.
    pub checked: u64,
    /// Records, or at least gaps, that the law says are missing.
    pub missing: u64,
    /// The first violation, in the order of the records.
    pub violation: Option<String>,
    /// Numbers before the first of a sequence that starts at 0: records that the list does not have.
    pub earlier: Option<u64>,
    pub assumption: String,
}

impl Finding {
    /// Adds what another list of a set says of the law.
    fn add(&mut self, other: Self) {
        self.held = match (self.held, other.held) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
        self.checked += other.checked;
        self.missing += other.missing;
        self.earlier = self.earlier.zip(other.earlier).map(|(left, right)| left + right);
        if self.violation.is_none() {
            self.violation = other.violation;
        }
    }
}

/// Adds the findings of the list of another argument.
pub fn add(findings: &mut Vec<Finding>, argument: &str, others: Vec<Finding>) {
    for mut other in others {
        other.violation = other.violation.map(|violation| format!("{argument}: {violation}"));
        match findings.iter_mut().find(|finding| finding.law == other.law) {
            Some(finding) => finding.add(other),
            None => findings.push(other),
        }
    }
}
