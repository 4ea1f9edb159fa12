//! `Verdicts`: completeness and cost of each argument of a set.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::process::{ForkSafeGuard, ForkSafeMutex};

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
pub struct Verdicts(Arc<ForkSafeMutex<Vec<Verdict>>>);

impl Verdicts {
    pub fn new(verdicts: Vec<Verdict>) -> Self {
        Self(Arc::new(ForkSafeMutex::new(verdicts)))
    }

    pub(in crate::query) fn lock(&self) -> ForkSafeGuard<'_, Vec<Verdict>> {
        self.0.lock()
    }

    pub fn to_vec(&self) -> Vec<Verdict> {
        self.lock().clone()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
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
        for Verdict { argument, complete, records, requests, reasons, error } in verdicts.lock().iter().cloned() {
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
