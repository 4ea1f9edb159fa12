//! `Verdicts`: completeness and cost of each argument of a set.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::process::{ForkSafeGuard, ForkSafeMutex};

/// The result of one argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub argument: String,
    /// True if all records of the argument were returned.
    pub complete: bool,
    pub records: u64,
    pub requests: u64,
    /// Reasons why the argument's records are incomplete.
    pub reasons: Vec<Message>,
    /// Error that ended the argument's list.
    pub error: Option<Message>,
}

/// The verdicts of a run, which its report and the copies of the report share.
#[derive(Clone, Debug, Default)]
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
}
