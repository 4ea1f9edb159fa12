//! Facts of a range that a cassette keeps beside the requests: the times that heights were searched for, and whether its
//! blocks were younger than a year. A replay has another clock, and maybe other times: by its own it would search other
//! heights, or find another age of the list.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cassette::{self, Request};
use crate::client::Error;
use crate::interface::{Param, ParamRole};
use crate::query::request::{Arg, Query, Unresolved};

/// Unix milliseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecordedRange {
    start_time: Option<i64>,
    end_time: Option<i64>,
    pub is_recent: bool,
}

impl RecordedRange {
    /// The facts that a cassette has for this query.
    pub fn replay(query: &Query) -> Result<Option<Self>, Error> {
        let body = query.client().replay_facts(&request_of_facts(query)?)?;
        Ok(body.and_then(|body| serde_json::from_slice(&body).ok()))
    }

    /// Records the facts of a query, if it has a cassette that records.
    pub fn record(query: &Query, is_recent: bool) -> Result<(), Error> {
        let Unresolved { start_time, end_time, .. } = query.unresolved().unwrap_or_default();
        let facts = serde_json::to_vec(&Self { start_time, end_time, is_recent }).unwrap_or_default();
        query.client().record_facts(&request_of_facts(query)?, facts.into())
    }

    /// Advice if a cassette that records nothing has the query for other times only.
    pub fn advice(query: &Query) -> Option<String> {
        let cassette = query.client().settings().cassette.as_ref().filter(|cassette| !cassette.can_record())?;
        cassette.explain_times(&request_of_facts(query).ok()?)
    }

    /// Adds such advice to the error of a search of heights.
    pub fn with_advice(error: Error, advice: Option<&str>) -> Error {
        match (error, advice) {
            (Error::Cassette(cassette::Error::Miss { path, problem, hint, missed }), Some(advice))
                if !problem.contains(advice) =>
            {
                let problem = format!("{problem}; {advice}");
                cassette::Error::Miss { path, problem, hint, missed }.into()
            }
            (error, _) => error,
        }
    }

    /// The query for the recorded times.
    pub fn apply(&self, query: &Query) -> Result<Query, Error> {
        let Some(requested) = query.unresolved() else { return Ok(query.clone()) };
        if (requested.start_time, requested.end_time) == (self.start_time, self.end_time) {
            return Ok(query.clone());
        }
        let times = [("start_time", self.start_time), ("end_time", self.end_time)];
        let times = times.into_iter().filter_map(|(name, time)| Some((name.to_owned(), Arg::Time(time? * 1_000))));
        Ok(query.with_args(times.collect(), false)?.with_projection_of(query))
    }
}

/// The arguments, as a request that is never sent.
pub(super) fn request_of_facts(query: &Query) -> Result<Request, Error> {
    let mut params = BTreeMap::from([("chainShortName".to_owned(), query.chain().to_owned())]);
    for (name, value) in query.canonical_args()? {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let sent_name = query.endpoint().param(&name).map(sent_name);
        params.insert(sent_name.map_or(name, str::to_owned), text);
    }
    let path = query.client().settings().deployment.expand(query.endpoint().path);
    Ok(Request::facts(path, params))
}

/// The name by which `match_on` selects a parameter.
fn sent_name(param: &'static Param) -> &'static str {
    match (param.wire(), param.role) {
        (Some(wire), _) => wire,
        (None, ParamRole::TimeOfHeight(..)) if param.name == "start_time" => "startTime",
        (None, ParamRole::TimeOfHeight(..)) => "endTime",
        (None, _) => param.name,
    }
}
