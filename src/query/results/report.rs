//! `Report`: completeness and cost of a run.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::entries::Entries;
use super::members::MembersReport;
use super::search_state::SearchState;
use super::verdicts::Verdicts;
use crate::message::Message;
use crate::query::evidence::Finding;

/// Reason of a run with missing hashes.
pub(super) const NOT_RETURNED: &str = "Some of the requested transactions were not returned";

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// True if the result is known to hold every record.
    pub complete: bool,
    /// Reasons why the result is incomplete, one sentence each.
    pub reasons: Entries<Message>,
    /// Remarks on a complete result that may not be what was meant, one sentence each.
    #[serde(default, skip_serializing_if = "Entries::is_empty")]
    pub remarks: Entries<Message>,
    pub requests: u64,
    pub retries: u64,
    pub pages: u64,
    pub records: u64,
    pub duplicates_dropped: u64,
    /// Records that contradicted the request.
    pub dropped: u64,
    /// Records of a ranked list that were received again, since they had changed their rank.
    pub moved: u64,
    /// Times that a list was read again because it had changed too much.
    pub rereads: u64,
    /// Requested hashes that were not returned.
    pub missing: Entries<String>,
    /// Members of the records.
    #[serde(flatten)]
    pub members: MembersReport,
    /// Bytes of the response bodies, uncompressed.
    pub bytes: u64,
    #[serde(with = "seconds")]
    pub elapsed: Duration,
    #[serde(skip)]
    pub progress: Progress,
    /// Verdicts on the arguments of a set.
    #[serde(default, skip_serializing_if = "Verdicts::is_empty")]
    pub verdicts: Verdicts,
    /// Findings on the laws that the records obey, once they were all returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Finding>,
    /// State of the searches for the heights of times, for a run that continues this one.
    #[serde(skip)]
    pub search: Option<Arc<SearchState>>,
    /// Contribution of the cache, if the client has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheUse>,
}

/// Contribution of a cache to a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheUse {
    /// Records that were not requested.
    pub records: u64,
    /// Time as of which these records are those of the service, in Unix milliseconds.
    pub as_of: Option<i64>,
    /// Reason why the result is not kept, or was not taken from the cache.
    pub reason: Option<Message>,
}

impl CacheUse {
    /// Adds the contribution to another list.
    pub(in crate::query) fn add(&mut self, list: &Self) {
        self.records += list.records;
        self.as_of = self.as_of.into_iter().chain(list.as_of).min();
        self.reason = self.reason.take().or_else(|| list.reason.clone());
    }
}

/// A duration as a number of seconds.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Ok(Duration::try_from_secs_f64(f64::deserialize(deserializer)?).unwrap_or_default())
    }
}

/// Completeness of the result as far as a report shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    Complete,
    Incomplete,
    /// The run had not ended, and nothing has made its result incomplete so far.
    Unfinished,
}

/// Progress of a run: in records where the API counts them, else in pages, and in slices where there are several.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub unit: &'static str,
    /// Value of `done` when the run began: above 0 if it continues an earlier one.
    pub start: u64,
    pub done: u64,
    /// Final value of `done`, if known.
    pub total: Option<u64>,
}

impl Default for Progress {
    fn default() -> Self {
        Self { unit: "records", start: 0, done: 0, total: None }
    }
}

impl Report {
    pub fn state(&self) -> Completeness {
        if self.complete {
            Completeness::Complete
        } else if self.reasons.is_empty() {
            // A run that ends without a reason is complete.
            Completeness::Unfinished
        } else {
            Completeness::Incomplete
        }
    }

    /// The cost since an earlier report of the same run.
    pub(in crate::query) fn since(&self, earlier: &Self) -> Self {
        Self {
            requests: self.requests - earlier.requests,
            retries: self.retries - earlier.retries,
            pages: self.pages - earlier.pages,
            bytes: self.bytes - earlier.bytes,
            members: self.members.clone(),
            ..Self::default()
        }
    }

    /// Reasons that do not follow from `missing`.
    pub(in crate::query) fn own_reasons(&self) -> Vec<Message> {
        let not_returned = Message::from(NOT_RETURNED);
        self.reasons.to_vec().into_iter().filter(|reason| *reason != not_returned).collect()
    }
}
