//! `Cursor`: a position of a run as a small JSON string, with which another process can resume. It contains no secret
//! and no address of a service, and names the call, deployment and chain that it is valid for.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::set_cursor::SetCursor;
use crate::client::{Client, Error};
use crate::interface::{Endpoint, endpoint};
use crate::message::Message;
use crate::query::audit::Repeat;
use crate::query::request::{Arg, Members, Options, Query, with_value};
use crate::query::results::{Checkpoint, SetPosition, Source};
use crate::query::snapshot::{FirstPage, ListCheckpoint, Rows};

/// Version of the format. Other versions are rejected.
const VERSION: u32 = 10;
/// Latest keys of a list that a cursor has.
const LATEST_KEYS: usize = 8;
/// Runs in a row that ended before their first record, after which the first page is returned at once. Runs that are
/// interrupted again and again would return nothing otherwise.
const MAX_EMPTY_RUNS: u32 = 3;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    // The cursor of an open list in that of its set lacks what it has in common with the set.
    #[serde(default, skip_serializing_if = "is_none")]
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
    pub(super) slice: u64,
    /// Records of the slice that were delivered.
    pub(super) offset: u64,
    #[serde(default, skip_serializing_if = "ListCheckpoint::is_start")]
    pub(super) list: ListCheckpoint,
    /// Keys of the latest records of the list that were returned, for its audit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) latest: Vec<u64>,
    /// Records that were returned twice and are still to be proven to be two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) repeats: Vec<Repeat>,
    /// Reasons why the result is incomplete so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) reasons: Vec<Message>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) missing: Vec<String>,
    /// Position in the lists of a set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) set: Option<Box<SetCursor<Self>>>,
    /// Runs from here that ended before their first record.
    #[serde(default, skip_serializing_if = "is_none")]
    empty_runs: u32,
    /// Detects strings that were cut or edited.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    checksum: String,
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

fn is_empty(arguments: &Arc<[(String, Arg)]>) -> bool {
    arguments.is_empty()
}

fn is_default(options: &Options) -> bool {
    *options == Options::default()
}

fn reject(problem: impl Into<Message>) -> Error {
    Error::parameter("cursor", problem)
}

/// Checksum that detects a cursor which was cut or edited.
pub(super) fn checksum(json: &str) -> String {
    Sha256::digest(json)[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names that identify a service of this deployment.
pub(super) fn deployment(client: &Client) -> String {
    let names = &client.settings().deployment;
    format!("{} {} {}", names.header_prefix(), names.main(), names.zone())
}

impl Cursor {
    /// Beginning of a query.
    pub(super) fn start(query: &Query) -> Self {
        // The limit of a set is that of each list.
        let remaining = if query.members().is_some() { None } else { query.max_items() };
        let set = query.members().map(|members| Box::new(SetCursor::start(members)));
        Self { set, ..Self::at(query, 0, 0, ListCheckpoint::default(), remaining) }.sealed()
    }

    /// Position in a slice, from where `remaining` records are wanted, or all; not sealed.
    fn at(query: &Query, slice: u64, offset: u64, list: ListCheckpoint, remaining: Option<u64>) -> Self {
        let page_size = query.is_paged().then(|| query.page_size() as i64);
        let max_items = remaining.map(|remaining| remaining.try_into().unwrap_or(i64::MAX));
        Self {
            version: VERSION,
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

    pub fn of(checkpoint: &Checkpoint) -> Self {
        match checkpoint.set() {
            Some(set) => Self::of_set(set, checkpoint),
            None => Self::of_list(checkpoint),
        }
    }

    /// Position in a set: the lists that have ended, and the positions of those that are being read.
    fn of_set(set: &SetPosition, checkpoint: &Checkpoint) -> Self {
        let Some(members) = set.query.members() else { return Self::of_list(checkpoint) };
        let at = Self::at(&set.query, 0, 0, ListCheckpoint::default(), None);
        let this = [(set.member, checkpoint.of_list())];
        let open = this.iter().chain(&set.open);
        let open = open.map(|(index, list)| (*index, Self::of_list(list).within(&at, members, *index)));
        let begun = set.begun.iter().filter_map(|(index, cursor)| Some((*index, serde_json::from_str(cursor).ok()?)));
        let set_cursor = SetCursor::of(set, members, open.chain(begun).collect());
        Self { set: Some(Box::new(set_cursor)), reasons: set.reasons.clone(), ..at }.sealed()
    }

    /// The position of an open list without what the cursor of its set has as well.
    fn within(self, set: &Self, members: &Members<Query>, index: usize) -> Self {
        // Heights in place of times are its own.
        let is_resolved = self.arguments != *members.queries[index].args();
        let options = Options { max_items: None, unique: set.options.unique, ..self.options };
        Self {
            version: 0,
            call: String::new(),
            deployment: String::new(),
            chain: String::new(),
            checksum: String::new(),
            arguments: if is_resolved { self.arguments } else { Arc::default() },
            options: if options == set.options { Options::default() } else { options },
            ..self
        }
    }

    /// The cursor of an open list with what it shares with the set.
    fn restored(&self, member: &Query) -> Self {
        let options = if is_default(&self.options) { member.options() } else { &self.options };
        let arguments = if self.arguments.is_empty() { member.args() } else { &self.arguments };
        let at = Self::at(member, self.slice, self.offset, self.list.clone(), None);
        Self {
            arguments: arguments.clone(),
            options: Options { unique: false, ..options.clone() },
            latest: self.latest.clone(),
            repeats: self.repeats.clone(),
            reasons: self.reasons.clone(),
            missing: self.missing.clone(),
            empty_runs: self.empty_runs,
            ..at
        }
        .sealed()
    }

    fn of_list(checkpoint: &Checkpoint) -> Self {
        let page = checkpoint.page();
        let row = checkpoint.row();
        let query = &page.query;
        let is_whole = row >= page.rows;
        let end = if is_whole { page.end.as_ref() } else { None };
        let remaining = page.remaining.map(|remaining| remaining - row as u64);
        let mut missing = page.report.missing.clone();
        let at = match &page.source {
            Source::List { .. } if end.is_some() => {
                Self::at(query, page.slice + 1, 0, ListCheckpoint::default(), remaining)
            }
            Source::List { offset, received, received_rows, before, after, repeats, doubts } => {
                let rows = match received_rows {
                    Some(rows) if !is_whole => rows[row] as usize,
                    None if !is_whole => row,
                    Some(_) | None => received.rows(),
                };
                let list = match after {
                    Some(after) if is_whole => after.get(),
                    _ => ListCheckpoint::clone(before).advanced(received, rows.min(received.rows())),
                };
                let at = Self::at(query, page.slice, offset + rows as u64, list, remaining);
                let latest = rows.saturating_sub(LATEST_KEYS)..rows.min(received.rows());
                let latest = latest.map(|row| Rows::key(received, row)).collect();
                let repeats = repeats.iter().filter(|repeat| repeat.is_before(at.offset)).copied().collect();
                Self { latest, repeats, reasons: doubts.clone(), ..at }
            }
            Source::Hashes { .. } | Source::Hash { .. } if end.is_some() => {
                Self::at_hash(query, page.slice + 1, 0, 0, remaining)
            }
            Source::Hashes { found, missing: absent, missing_before } => {
                let next = row.checked_sub(1).map_or(0, |last| found[last] + 1);
                missing = missing.first(missing_before + absent.partition_point(|index| *index < next));
                Self::at_hash(query, page.slice, next as usize, 0, remaining)
            }
            Source::Hash { offset } => Self::at_hash(query, page.slice, 0, offset + row as u64, remaining),
        };
        let mut reasons = page.report.own_reasons();
        for reason in end.into_iter().flatten().chain(&at.reasons) {
            if !reasons.contains(reason) {
                reasons.push(reason.clone());
            }
        }
        Self { reasons, missing: missing.to_vec(), ..at }.sealed()
    }

    /// Position in a lookup: after `offset` records of the hash `index` of a slice. The cursor has only the hashes
    /// from there on.
    fn at_hash(query: &Query, slice: u64, index: usize, offset: u64, remaining: Option<u64>) -> Self {
        let arguments = query.args_from_hash(slice, index).into();
        Self { arguments, ..Self::at(query, 0, offset, ListCheckpoint::default(), remaining) }
    }

    /// Position in the only list of a query.
    pub(super) fn in_list(query: &Query, offset: u64, list: ListCheckpoint, remaining: Option<u64>) -> Self {
        Self::at(query, 0, offset, list, remaining).sealed()
    }

    /// Position of a list of a set by the rank of its value, if it is being read.
    pub(super) fn member(&self, rank: u32, member: &Query) -> Option<Self> {
        let open = &self.set.as_ref()?.open;
        open.iter().find(|(other, _)| *other == rank).map(|(_, at)| at.restored(member))
    }

    /// Query of the cursor's remaining records.
    pub(super) fn query(&self, client: &Client, call: &'static Endpoint) -> Result<Query, Error> {
        Query::new(client, call, self.arguments.clone(), self.options.clone())
    }

    /// The same position after a run that ended before its first record.
    pub(super) fn after_empty_run(&self) -> Self {
        Self { empty_runs: self.empty_runs.saturating_add(1), ..self.clone() }.sealed()
    }

    /// The same position, from where at most `most` records are wanted.
    pub(super) fn limited(mut self, most: u64) -> Self {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.options.max_items = Some(self.options.max_items.map_or(most, |remaining| remaining.min(most)));
        self.sealed()
    }

    pub(super) fn first_page(&self) -> FirstPage {
        if self.empty_runs < MAX_EMPTY_RUNS { FirstPage::Located } else { FirstPage::AtOnce }
    }

    fn sealed(mut self) -> Self {
        self.checksum.clear();
        self.checksum = checksum(&self.to_whole_json());
        self
    }

    /// The cursor as a string, without the values of a large set: its query has them.
    pub fn to_json(&self) -> String {
        let is_large = self.set.as_ref().is_some_and(|set| set.is_large());
        if is_large { self.without_values().to_whole_json() } else { self.to_whole_json() }
    }

    /// The cursor as a string, with the values of a set however many they are.
    pub fn to_whole_json(&self) -> String {
        serde_json::to_string(self).expect("plain values")
    }

    fn without_values(&self) -> Self {
        let mut arguments = self.arguments.to_vec();
        for (_, argument) in &mut arguments {
            if let Arg::List(values) = argument {
                values.clear();
            }
        }
        Self { arguments: arguments.into(), ..self.clone() }.sealed()
    }

    /// The cursor of a set with the values of its query.
    fn with_values_of(self, query: Option<&Query>) -> Result<Self, Error> {
        let empty = self.arguments.iter().find(|(_, argument)| *argument == Arg::List(Vec::new()));
        let (Some((name, _)), Some(set)) = (empty, &self.set) else { return Ok(self) };
        let count = set.count;
        let problem = format!("is of {count} values of {name}, which it does not have; pass ");
        let Some(query) = query else {
            return Err(reject(Message::new(problem).parameter("query").text(" too, with the same values")));
        };
        let members = query.members().filter(|members| members.name == name.as_str() && set.is_of(members));
        let Some(members) = members else {
            let problem = format!("is of {count} other values of {name}; pass the query that the cursor is of");
            return Err(reject(problem));
        };
        let values = Arg::List(members.values.to_vec());
        Ok(Self { arguments: with_value(&self.arguments, name, &values).into(), ..self }.sealed())
    }

    /// Parses a cursor and returns it with its query, if this client can resume it. `query` has the values of a large set.
    pub(super) fn parse(client: &Client, json: &str, query: Option<&Query>) -> Result<(Query, Self), Error> {
        const FORM: &str = "must be a string from page.cursor, query.cursor or error.cursor";
        let value: serde_json::Value = serde_json::from_str(json).map_err(|_| reject(FORM))?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => return Err(reject(format!("has unsupported version {version} (expected {VERSION})"))),
            None if value.get("follow").is_some() => {
                return Err(reject("is that of a follower; pass it to query.follow(start=...)"));
            }
            None => return Err(reject(FORM)),
        }
        let cursor: Self = serde_json::from_value(value).map_err(|_| reject(FORM))?;
        if cursor.clone().sealed().checksum != cursor.checksum {
            return Err(reject("is corrupted (checksum mismatch); pass it unchanged"));
        }
        let call: &'static Endpoint =
            endpoint(&cursor.call).ok_or_else(|| reject(format!("belongs to an unknown call, {:?}", cursor.call)))?;
        let ours = deployment(client);
        if cursor.deployment != ours {
            let problem = format!("belongs to the deployment {:?}; this client uses {ours:?}", cursor.deployment);
            return Err(reject(problem));
        }
        let cursor = cursor.with_values_of(query)?;
        let query = cursor.query(client, call);
        let query = query.map_err(|error| match error {
            Error::InvalidParameter { parameter, problem } => {
                reject(Message::new("is invalid: ").parameter(parameter).text(" ").append(problem))
            }
            other => other,
        })?;
        if !query.chain().eq_ignore_ascii_case(&cursor.chain) {
            return Err(reject(format!("belongs to the chain {}; this client uses {}", cursor.chain, query.chain())));
        }
        let is_plausible = cursor.list.is_plausible()
            && i64::try_from(cursor.offset).is_ok()
            && cursor.repeats.iter().all(|repeat| repeat.is_before(cursor.offset));
        if let Some(members) = query.members() {
            let is_of_set = cursor
                .set
                .as_ref()
                .is_some_and(|set| set.is_of(members) && set.open.iter().all(|(_, at)| at.set.is_none()));
            return if is_of_set { Ok((query, cursor)) } else { Err(reject(FORM)) };
        }
        if cursor.set.is_some() || cursor.slice > query.slices().count() || !is_plausible {
            return Err(reject(FORM));
        }
        Ok((query, cursor))
    }
}
