//! `Quirk`: a declared deviation of a service from the documents.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cassette::explain;
use crate::interface::Endpoint;

/// A quirk, by its name in snake case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Quirk {
    /// Records of one height come in another order in each response.
    TiesReordered {},
    /// A parameter, by its name in Python, has no effect.
    FilterIgnored { filter: String },
    /// A throttled request gets an empty success in place of status 429.
    EmptyThrottle {},
    /// Every second request reaches a replica that lacks the two newest records of its list.
    LaggingReplica {},
    /// Every page has the records of the first.
    PageIgnored {},
    /// Pages hold at most 20 records, whatever was requested and is echoed.
    PageSizeCapped {},
    /// Responses name at most 5 pages.
    PageCountCapped {},
    /// Responses count no more records than can be paged through.
    CountCapped {},
    /// Two of three responses count one record too many or too few.
    CountOffByOne {},
    /// Ten responses in succession have the count of the first of them.
    CountCached {},
    /// Every other pair of responses has the newest block of its list, and the transactions in it, with other hashes.
    BlockReplaced {},
    /// Tokens change their ranks within 40 places from response to response.
    RanksMoved {},
}

impl Quirk {
    /// The filter that a list of this endpoint does not have, if the quirk names one.
    pub fn unknown_filter<'q>(&'q self, endpoints: &[Endpoint]) -> Option<&'q str> {
        let Self::FilterIgnored { filter } = self else { return None };
        let filters = endpoints.iter().filter(|endpoint| endpoint.page_size_max().is_some());
        let is_known = filters.flat_map(|endpoint| endpoint.params).any(|param| param.name == filter);
        (!is_known).then_some(filter)
    }
}

/// Reads a list of quirks as JSON; the error names the member.
pub fn read(json: &str) -> Result<Vec<Quirk>, String> {
    serde_json::from_str(json).map_err(|error| {
        let given: Vec<HashMap<String, Value>> = serde_json::from_str(json).unwrap_or_default();
        // Every member is a text.
        let other = given.iter().flatten().find(|(_, value)| !value.is_string());
        other.map_or_else(|| explain(&error), |(name, value)| format!("{name}: expected a string, got {value}"))
    })
}
