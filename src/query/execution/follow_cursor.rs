//! `FollowCursor`: what a follower has delivered as a small JSON string, with which another process can continue.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::cursor::{checksum, deployment};
use crate::client::Error;
use crate::message::Message;
use crate::query::follow::Memory;
use crate::query::request::{Members, Query};

/// Version of the format. Other versions are rejected.
const VERSION: u32 = 1;

/// Position of a follower.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Position {
    /// Before the first round of a follower that starts now.
    Now,
    /// Before the first round of one that starts at the beginning.
    Beginning,
    After(Memory),
    /// That of each list of a set.
    Set(SetPosition),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetPosition {
    /// Position of a list that joins the set later.
    new: Box<Position>,
    /// Position of each list, by what its value means.
    lists: Vec<(String, Position)>,
}

impl Position {
    /// The position of a set whose lists are followed from the same one on.
    pub(super) fn of_set(members: &Members<Query>, each: Self) -> Self {
        let lists = members.meanings.iter().map(|value| (value.clone(), each.clone())).collect();
        Self::Set(SetPosition { new: Box::new(each), lists })
    }
}

impl SetPosition {
    /// The position with the lists of a query, in its order. It may have new ones, and lacks none.
    fn of_members(self, members: &Members<Query>) -> Result<Self, Error> {
        let mut known: HashMap<String, Position> = self.lists.into_iter().collect();
        let lists = members.meanings.iter().map(|value| {
            let position = known.remove(value).unwrap_or_else(|| (*self.new).clone());
            (value.clone(), position)
        });
        let lists = lists.collect();
        match known.into_keys().min() {
            None => Ok(Self { new: self.new, lists }),
            Some(value) => {
                let problem =
                    format!("has the position of a list that the query lacks: {} {value}; pass it too", members.name);
                Err(reject(problem))
            }
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowCursor {
    /// Version of the format; ordinary cursors have a member `version` instead.
    follow: u32,
    call: String,
    deployment: String,
    chain: String,
    arguments: serde_json::Value,
    position: Position,
    /// Detects strings that were cut or edited.
    checksum: String,
}

fn reject(problem: impl Into<Message>) -> Error {
    Error::parameter("start", problem)
}

impl FollowCursor {
    pub(super) fn new(query: &Query, position: Position) -> Result<Self, Error> {
        let mut arguments = query.canonical_args()?;
        if let Some(members) = query.members() {
            // The position has the values.
            arguments.insert(members.name.to_owned(), "several values".into());
        }
        let cursor = Self {
            follow: VERSION,
            call: query.endpoint().name.to_owned(),
            deployment: deployment(query.client()),
            chain: query.chain().to_owned(),
            arguments: arguments.into(),
            position,
            checksum: String::new(),
        };
        Ok(cursor.sealed())
    }

    /// The same cursor at another position.
    #[must_use]
    pub(super) fn at(&self, memory: &Memory) -> Self {
        Self { position: Position::After(memory.clone()), ..self.clone() }.sealed()
    }

    /// Moves to the position after an event of a list, or of the list `list` of a set. Returns what moves back.
    pub fn advance(&mut self, after: Self, list: Option<usize>) -> Self {
        match (&mut self.position, list) {
            (Position::Set(set), Some(list)) => {
                let position = std::mem::replace(&mut set.lists[list].1, after.position.clone());
                Self { position, ..after }.sealed()
            }
            _ => std::mem::replace(self, after),
        }
    }

    /// Position of one list of a set.
    pub(super) fn list_position(&self, list: usize) -> Position {
        match &self.position {
            Position::Set(set) => set.lists[list].1.clone(),
            position => position.clone(),
        }
    }

    /// The cursor of a set that is at the cursors of some of its lists, by their values.
    pub fn merged(query: &Query, set: &str, lists: &[(String, String)]) -> Result<Self, Error> {
        let mut cursor = Self::new(query, Self::parse(query, set)?)?;
        let Some(members) = query.members() else { return Ok(cursor) };
        let indices: HashMap<&str, usize> = members.values.iter().map(String::as_str).zip(0..).collect();
        for (value, json) in lists {
            let Some(index) = indices.get(value.as_str()) else { continue };
            let position = Self::parse(&members.queries[*index], json)?;
            if let Position::Set(set) = &mut cursor.position {
                set.lists[*index].1 = position;
            }
        }
        Ok(cursor)
    }

    /// The error of an end that is no position after an event.
    pub(super) fn no_end() -> Error {
        Error::parameter("end", "must be the cursor of an event")
    }

    fn sealed(mut self) -> Self {
        self.checksum.clear();
        self.checksum = checksum(&self.text());
        self
    }

    /// The cursor as a string. That of a set is sealed here, and not at each event.
    pub fn to_json(&self) -> String {
        match &self.position {
            Position::Set(_) => self.clone().sealed().text(),
            _ => self.text(),
        }
    }

    fn text(&self) -> String {
        serde_json::to_string(self).expect("plain values")
    }

    /// Parses a cursor of a follower of this query.
    pub(super) fn parse(query: &Query, json: &str) -> Result<Position, Error> {
        const FORM: &str = "must be \"now\", \"beginning\", an Export, or the cursor of a follower";
        let value: serde_json::Value = serde_json::from_str(json).map_err(|_| reject(FORM))?;
        match value.get("follow").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => return Err(reject(format!("has unsupported version {version} (expected {VERSION})"))),
            None if value.get("version").is_some() => {
                return Err(reject("is the cursor of a query, not of a follower; pass it to client.resume"));
            }
            None => return Err(reject(FORM)),
        }
        let cursor: Self = serde_json::from_value(value).map_err(|_| reject(FORM))?;
        if cursor.clone().sealed().checksum != cursor.checksum {
            return Err(reject("is corrupted (checksum mismatch); pass it unchanged"));
        }
        let ours = Self::new(query, Position::Now)?;
        for (name, theirs, ours) in [
            ("call", &cursor.call, &ours.call),
            ("deployment", &cursor.deployment, &ours.deployment),
            ("chain", &cursor.chain, &ours.chain),
            ("query", &cursor.arguments.to_string(), &ours.arguments.to_string()),
        ] {
            if !theirs.eq_ignore_ascii_case(ours) {
                return Err(reject(format!("belongs to the {name} {theirs}; this one is {ours}")));
            }
        }
        match (cursor.position, query.members()) {
            (Position::Set(set), Some(members)) => set.of_members(members).map(Position::Set),
            (Position::Set(_), None) => Err(reject("belongs to a query of several values")),
            (_, Some(members)) => {
                Err(reject(format!("belongs to a query of one {}; this one has several", members.name)))
            }
            (position, None) => Ok(position),
        }
    }
}
