//! `Verdicts`: completeness and cost of each argument of a set.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::process::ForkSafeMutex;

/// The result of one argument.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    pub argument: String,
    /// True if all records of the argument were returned.
    pub complete: bool,
    pub records: u64,
    pub requests: u64,
    /// Reasons why the argument's records are incomplete. Those of thousands of arguments are often the same.
    pub reasons: Arc<[Message]>,
    /// Error that ended the argument's list.
    pub error: Option<Message>,
}

/// The verdicts of a run, which its report and the copies of the report share.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Verdicts(Arc<ForkSafeMutex<Listed>>);

#[derive(Debug, Default)]
struct Listed {
    verdicts: Vec<Verdict>,
    /// Those that have changed, by index: their requests before.
    changed: BTreeMap<usize, u64>,
}

impl Verdicts {
    pub fn new(verdicts: Vec<Verdict>) -> Self {
        Self(Arc::new(ForkSafeMutex::new(Listed { verdicts, changed: BTreeMap::new() })))
    }

    /// Takes the place of the verdicts so far.
    pub(in crate::query) fn replace(&self, verdicts: Vec<Verdict>) {
        *self.0.lock() = Listed { verdicts, changed: BTreeMap::new() };
    }

    pub(in crate::query) fn get(&self, index: usize) -> Option<Verdict> {
        self.0.lock().verdicts.get(index).cloned()
    }

    pub(in crate::query) fn update(&self, index: usize, change: impl FnOnce(&mut Verdict)) {
        let Listed { verdicts, changed } = &mut *self.0.lock();
        changed.entry(index).or_insert(verdicts[index].requests);
        change(&mut verdicts[index]);
    }

    pub fn to_vec(&self) -> Vec<Verdict> {
        self.0.lock().verdicts.clone()
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().verdicts.is_empty()
    }

    /// The verdicts that have changed since the last `forget_changes`, with the requests since.
    pub fn changed(&self) -> Self {
        let Listed { verdicts, changed } = &*self.0.lock();
        let since = changed.iter().map(|(index, before)| {
            let verdict = verdicts[*index].clone();
            Verdict { requests: verdict.requests.saturating_sub(*before), ..verdict }
        });
        Self::new(since.collect())
    }

    pub fn forget_changes(&self) {
        self.0.lock().changed.clear();
    }
}

/// Serialized form of verdicts, by columns: thousands of arguments have few different outcomes, with long reasons.
#[derive(Serialize, Deserialize)]
struct Stored {
    argument: Vec<String>,
    records: Vec<u64>,
    requests: Vec<u64>,
    /// Index of the outcome of each argument.
    outcome: Vec<usize>,
    outcomes: Vec<Outcome>,
}

/// Outcome of one argument or of several.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Outcome {
    complete: bool,
    reasons: Vec<Message>,
    error: Option<Message>,
}

impl From<Verdicts> for Stored {
    fn from(verdicts: Verdicts) -> Self {
        let mut stored = Self {
            argument: Vec::new(),
            records: Vec::new(),
            requests: Vec::new(),
            outcome: Vec::new(),
            outcomes: Vec::new(),
        };
        let mut indices: HashMap<Outcome, usize> = HashMap::new();
        for Verdict { argument, complete, records, requests, reasons, error } in verdicts.to_vec() {
            let outcome = Outcome { complete, reasons: reasons.to_vec(), error };
            let index = *indices.entry(outcome).or_insert_with_key(|outcome| {
                stored.outcomes.push(outcome.clone());
                stored.outcomes.len() - 1
            });
            stored.argument.push(argument);
            stored.records.push(records);
            stored.requests.push(requests);
            stored.outcome.push(index);
        }
        stored
    }
}

impl TryFrom<Stored> for Verdicts {
    type Error = &'static str;

    fn try_from(stored: Stored) -> Result<Self, Self::Error> {
        let lengths = [stored.records.len(), stored.requests.len(), stored.outcome.len()];
        if lengths != [stored.argument.len(); 3] {
            return Err("columns of verdicts must have one length");
        }
        let counts = stored.records.into_iter().zip(stored.requests).zip(stored.outcome);
        let verdicts = stored.argument.into_iter().zip(counts).map(|(argument, ((records, requests), outcome))| {
            let Outcome { complete, reasons, error } = stored.outcomes.get(outcome)?.clone();
            Some(Verdict { argument, complete, records, requests, reasons: reasons.into(), error })
        });
        let verdicts: Option<Vec<Verdict>> = verdicts.collect();
        verdicts.map(Self::new).ok_or("a verdict must have an outcome")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_verdicts_have_the_requests_since() {
        let verdicts = Verdicts::new(vec![Verdict::default(), Verdict::default()]);
        verdicts.update(1, |verdict| verdict.requests = 4);
        verdicts.forget_changes();
        assert!(verdicts.changed().is_empty());
        verdicts.update(1, |verdict| verdict.requests = 5);
        verdicts.update(1, |verdict| verdict.requests = 7);
        assert_eq!(verdicts.changed().to_vec(), [Verdict { requests: 3, ..Verdict::default() }]);
    }
}
