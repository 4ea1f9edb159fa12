//! Arguments and options of a call.

use serde::{Deserialize, Serialize};

use super::slices::TimeRange;

/// An argument as the caller passed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arg {
    String(String),
    /// Digits of an integer, which may exceed 64 bits.
    Integer(String),
    Decimal(String),
    /// Unix microseconds.
    Time(i64),
    List(Vec<String>),
}

/// Options that every call takes besides its own parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Options {
    pub chain: Option<String>,
    pub page_size: Option<i64>,
    pub max_items: Option<i64>,
    /// Unix milliseconds between which a range of heights was found, both ends included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<TimeRange>,
    /// Height of the newest block that was known then, -1 without one, if an end of the range was looked for above it. The
    /// list may have later blocks, whose records are selected by their times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_newest: Option<i64>,
    /// True for all but the first partition of a time range: records without a time belong to the first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclude_undated: bool,
    /// True for a set that returns a record once, though several of its lists have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unique: bool,
}
