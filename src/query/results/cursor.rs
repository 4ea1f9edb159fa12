//! `Cursor`: a position of a run as a small JSON string, with which another process can resume. It contains no secret
//! and no address of a service, and names the call, deployment and chain that it is valid for.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::division::Division;
use super::lookups::Lookup;
use super::report::Report;
use super::sealed::Sealed;
use super::search_state::SearchState;
use super::set_cursor::SetCursor;
use crate::client::{Client, Error};
use crate::interface::{Endpoint, endpoint};
use crate::message::Message;
use crate::query::audit::AuditCheckpoint;
use crate::query::request::{Arg, Members, Options, Query, with_value};
use crate::query::snapshot::{FirstPage, ListCheckpoint};

/// Runs in a row that ended before their first record, after which the first page is returned at once. Runs that are
/// interrupted again and again would return nothing otherwise.
const MAX_EMPTY_RUNS: u32 = 3;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    // The cursor of an open list in that of its set lacks what it has in common with the set.
    #[serde(default, skip_serializing_if = "is_zero")]
    version: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    call: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    deployment: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    chain: String,
    #[serde(default, skip_serializing_if = "is_empty")]
    arguments: Arc<[(String, Arg)]>,
    #[serde(default, skip_serializing_if = "is_default")]
    options: Options,
    /// Slice that is being read.
    pub(in crate::query) slice: u64,
    /// Records of the slice that were delivered.
    pub(in crate::query) offset: u64,
    #[serde(default, skip_serializing_if = "ListCheckpoint::is_start")]
    pub(in crate::query) list: ListCheckpoint,
    /// State of the audit of the list.
    #[serde(default, skip_serializing_if = "AuditCheckpoint::is_empty")]
    pub(in crate::query) audit: AuditCheckpoint,
    /// Look-ups after the position that were received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::query) lookups: Vec<Lookup>,
    /// Latest heights and their blocks, where these are of several lists or look-ups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::query) blocks: Vec<(i64, u64)>,
    /// Reasons why the result is incomplete so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::query) reasons: Vec<Message>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::query) missing: Vec<String>,
    /// Ranges of values by which a list is read that is longer than the result window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::query) division: Option<Division>,
    /// Position in the lists of a set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::query) set: Option<Box<SetCursor<Self>>>,
    /// State of the searches for the heights of times, after runs that ended before their first records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::query) search: Option<Arc<SearchState>>,
    /// Runs from here that ended before their first record.
    #[serde(default, skip_serializing_if = "is_zero")]
    empty_runs: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl Sealed for Cursor {
    const PARAMETER: &'static str = "cursor";
    const VERSION: u32 = 13;
    const VERSION_MEMBER: &'static str = "version";
    const FORM: &'static str = "must be a string from page.cursor, query.cursor or error.cursor";
    const OTHER_MEMBER: &'static str = "follow";
    const OTHER: &'static str = "is that of a follower; pass it to query.follow(start=...)";

    fn checksum(&mut self) -> &mut Option<String> {
        &mut self.checksum
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_empty(arguments: &Arc<[(String, Arg)]>) -> bool {
    arguments.is_empty()
}

fn is_default(options: &Options) -> bool {
    *options == Options::default()
}

/// Names that identify a service of this deployment.
pub(in crate::query) fn deployment(client: &Client) -> String {
    let names = &client.settings().deployment;
    format!("{} {} {}", names.header_prefix(), names.main(), names.zone())
}

impl Cursor {
    /// Beginning of a query.
    pub(in crate::query) fn start(query: &Query) -> Self {
        // The limit of a set is that of each list.
        let remaining = if query.members().is_some() { None } else { query.max_items() };
        let set = query.members().map(|members| Box::new(SetCursor::start(members)));
        Self { set, ..Self::at(query, 0, 0, ListCheckpoint::default(), remaining) }
    }

    /// Position in a slice, from where `remaining` records are wanted, or all.
    pub(in crate::query) fn at(
        query: &Query,
        slice: u64,
        offset: u64,
        list: ListCheckpoint,
        remaining: Option<u64>,
    ) -> Self {
        let page_size = query.is_paged().then(|| query.page_size() as i64);
        let max_items = remaining.map(|remaining| remaining.try_into().unwrap_or(i64::MAX));
        Self {
            version: Self::VERSION,
            call: query.endpoint().name.to_owned(),
            deployment: deployment(query.client()),
            chain: query.chain().to_owned(),
            arguments: query.args().clone(),
            options: Options { page_size, max_items, ..query.options().clone() },
            slice,
            offset,
            list,
            ..Self::default()
        }
    }

    /// The position of one of several open lists without what the cursor of their set has as well.
    ///
    /// | Member | In the position of a list |
    /// |---|---|
    /// | version, call, deployment, chain | never: those of the set |
    /// | arguments | if times were replaced by heights |
    /// | options | if they differ from those of the set |
    /// | state of the audit | the list's share of those that a cursor has |
    pub(in crate::query) fn within(self, set: &Self, member: &Query, lists: usize) -> Self {
        // Heights in place of times are its own.
        let is_resolved = self.arguments != *member.args();
        let options = Options { max_items: None, unique: set.options.unique, ..self.options };
        Self {
            version: 0,
            call: String::new(),
            deployment: String::new(),
            chain: String::new(),
            arguments: if is_resolved { self.arguments } else { Arc::default() },
            options: if options == set.options { Options::default() } else { options },
            audit: self.audit.of_one_list(lists),
            ..self
        }
    }

    /// The cursor of an open list with what it shares with the set.
    fn restored(&self, member: &Query) -> Self {
        let options = if is_default(&self.options) { member.options() } else { &self.options };
        let arguments = if self.arguments.is_empty() { member.args() } else { &self.arguments };
        let options = Options { unique: false, ..options.clone() };
        let Self { version, call, deployment, chain, .. } = Self::start(member);
        Self { version, call, deployment, chain, arguments: arguments.clone(), options, ..self.clone() }
    }

    /// Position in a lookup: after `offset` records of the hash `index` of a slice. The cursor has only the hashes
    /// from there on.
    pub(in crate::query) fn at_hash(
        query: &Query,
        slice: u64,
        index: usize,
        offset: u64,
        remaining: Option<u64>,
    ) -> Self {
        let arguments = query.args_from_hash(slice, index).into();
        Self { arguments, ..Self::at(query, 0, offset, ListCheckpoint::default(), remaining) }
    }

    /// Position of a list of a set by the rank of its value, if it is being read.
    pub(in crate::query) fn member(&self, rank: u32, member: &Query) -> Option<Self> {
        let open = &self.set.as_ref()?.open;
        open.iter().find(|(other, _)| *other == rank).map(|(_, at)| at.restored(member))
    }

    /// Query of the cursor's remaining records.
    pub(in crate::query) fn query(&self, client: &Client, call: &'static Endpoint) -> Result<Query, Error> {
        let query = Query::new(client, call, self.arguments.clone(), self.options.clone())?;
        Ok(self.division.iter().fold(query, |query, division| query.divided(&division.ranges)))
    }

    /// Cursor of this position after a run that ended before its first record.
    pub(in crate::query) fn after_empty_run(&self, report: &Report) -> Self {
        let search = report.search.clone();
        Self { empty_runs: self.empty_runs.saturating_add(1), search, ..self.clone() }
    }

    /// Cursor of this position, from where `max_items` records are wanted.
    pub(in crate::query) fn limited_to(mut self, max_items: u64) -> Self {
        self.options.max_items = Some(i64::try_from(max_items).unwrap_or(i64::MAX));
        self
    }

    pub(in crate::query) fn first_page(&self) -> FirstPage {
        if self.empty_runs < MAX_EMPTY_RUNS { FirstPage::Located } else { FirstPage::AtOnce }
    }

    /// The cursor as a string, without the values of a large set: its query has them.
    pub fn to_json(&self) -> String {
        let is_large = self.set.as_ref().is_some_and(|set| set.is_large());
        if is_large { self.without_values().seal() } else { self.seal() }
    }

    /// The cursor as a string, with the values of a set however many they are.
    pub fn to_whole_json(&self) -> String {
        self.seal()
    }

    fn without_values(&self) -> Self {
        let mut arguments = self.arguments.to_vec();
        for (_, argument) in &mut arguments {
            if let Arg::List(values) = argument {
                values.clear();
            }
        }
        Self { arguments: arguments.into(), ..self.clone() }
    }

    /// The cursor of a set with the values of its query.
    fn with_values_of(self, query: Option<&Query>) -> Result<Self, Error> {
        let empty = self.arguments.iter().find(|(_, argument)| *argument == Arg::List(Vec::new()));
        let (Some((name, _)), Some(set)) = (empty, &self.set) else { return Ok(self) };
        let Some(query) = query else {
            let problem = format!("is of {} values of {name}, which it does not have; pass ", set.count);
            return Err(Self::reject(Message::new(problem).parameter("query").text(" too, with the same values")));
        };
        let members = self.check_values(name, query)?;
        let values = Arg::List(members.values.to_vec());
        Ok(Self { arguments: with_value(&self.arguments, name, &values).into(), ..self })
    }

    /// Returns the values of the query that was passed with the cursor of a set, if they are those of the set.
    fn check_values<'q>(&self, name: &str, query: &'q Query) -> Result<&'q Members, Error> {
        let members = query.members().filter(|members| members.name == name);
        let of_set = members.filter(|members| self.set.as_ref().is_some_and(|set| set.is_of(members)));
        of_set.ok_or_else(|| {
            let count = self.set.as_ref().map_or(1, |set| set.count);
            Self::reject(format!("is of {count} other values of {name}; pass the query that the cursor is of"))
        })
    }

    /// Fails if the query that was passed with the cursor is not the one of the cursor, `own`. A run may replace heights, times
    /// and hashes of a query of one value, so that these are not compared.
    fn check_passed(&self, own: &Query, passed: &Query) -> Result<(), Error> {
        let (call, other) = (own.endpoint().name, passed.endpoint().name);
        if call != other {
            let problem = format!("belongs to the call {call}; the query that was passed is of {other}");
            return Err(Self::reject(problem));
        }
        if let Some(members) = own.members() {
            self.check_values(members.name, passed)?;
        }
        if own.members().is_some() != passed.members().is_some() || own.fixed_args()? != passed.fixed_args()? {
            return Err(Self::reject("is of a query with other arguments; pass the query that the cursor is of"));
        }
        Ok(())
    }

    /// Parses a cursor and returns it with its query, if this client can resume it. `passed` is the query that the caller takes
    /// for that of the cursor. It has the values of a large set.
    pub(in crate::query) fn parse(client: &Client, json: &str, passed: Option<&Query>) -> Result<(Query, Self), Error> {
        let cursor = Self::open(json)?;
        let call: &'static Endpoint = endpoint(&cursor.call)
            .ok_or_else(|| Self::reject(format!("belongs to an unknown call, {:?}", cursor.call)))?;
        let ours = deployment(client);
        if cursor.deployment != ours {
            let problem = format!("belongs to the deployment {:?}; this client uses {ours:?}", cursor.deployment);
            return Err(Self::reject(problem));
        }
        let cursor = cursor.with_values_of(passed)?;
        let query = cursor.query(client, call);
        let query = query.map_err(|error| match error {
            Error::InvalidParameter { parameter, problem } => {
                Self::reject(Message::new("is invalid: ").parameter(parameter).text(" ").append(problem))
            }
            other => other,
        })?;
        if !query.chain().eq_ignore_ascii_case(&cursor.chain) {
            return Err(Self::reject(format!(
                "belongs to the chain {}; this client uses {}",
                cursor.chain,
                query.chain()
            )));
        }
        if !cursor.is_plausible(&query) {
            return Err(Self::reject(Self::FORM));
        }
        passed.map_or(Ok(()), |passed| cursor.check_passed(&query, passed))?;
        Ok((query, cursor))
    }

    /// True if it may be a position of the query.
    fn is_plausible(&self, query: &Query) -> bool {
        if !self.search.as_ref().is_none_or(|search| search.is_plausible()) {
            return false;
        }
        match (query.members(), &self.set) {
            (Some(members), Some(set)) => {
                let member = |rank: u32| query.member(members.by_rank[rank as usize] as usize);
                set.is_of(members) && set.open.iter().all(|(rank, at)| at.is_plausible_within(&member(*rank)))
            }
            (None, None) => self.is_plausible_list(query),
            _ => false,
        }
    }

    /// True if it may be a position of this list of a set.
    fn is_plausible_within(&self, member: &Query) -> bool {
        let query = self.restored(member).query(member.client(), member.endpoint());
        self.set.is_none() && query.is_ok_and(|query| self.is_plausible_list(&query))
    }

    fn is_plausible_list(&self, query: &Query) -> bool {
        self.slice <= query.slices().count()
            && i64::try_from(self.offset).is_ok()
            && self.list.is_plausible()
            && self.division.as_ref().is_none_or(Division::is_plausible)
            && self.audit.is_plausible(self.offset)
    }
}
