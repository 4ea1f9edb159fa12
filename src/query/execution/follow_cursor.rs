//! `FollowCursor`: what a follower has delivered as a small JSON string, with which another process can continue.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::client::Error;
use crate::query::follow::FollowState;
use crate::query::request::{Members, Query};
use crate::query::results::{Sealed, deployment};

/// Position of a follower.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Position {
    /// Before the first round of a follower that starts now.
    Now,
    /// Before the first round of one that starts at the beginning.
    Beginning,
    After(FollowState),
    /// Positions of the lists of a set.
    Set {
        /// Position of a list that joins the set later.
        new: Box<Position>,
        /// Position of each list, by what its value means.
        lists: Vec<(String, Position)>,
    },
}

impl Position {
    /// The position of a set whose lists are followed from the same one on.
    pub(super) fn of_set(members: &Members, each: Self) -> Self {
        let lists = members.meanings().map(|value| (value, each.clone())).collect();
        Self::Set { new: Box::new(each), lists }
    }

    /// The position of a set with the lists of a query, in its order. It may have new ones, and lacks none.
    fn of_members(new: Box<Self>, lists: Vec<(String, Self)>, members: &Members) -> Result<Self, Error> {
        let mut known: HashMap<String, Self> = lists.into_iter().collect();
        let lists = members.meanings().map(|value| {
            let position = known.remove(&value).unwrap_or_else(|| (*new).clone());
            (value, position)
        });
        let lists = lists.collect();
        let name = members.name;
        let num_lacking = known.len();
        let problem = match known.into_keys().min() {
            None => return Ok(Self::Set { new, lists }),
            Some(value) if num_lacking == 1 => {
                format!("has the position of a list that the query lacks: {name} {value}; pass it too")
            }
            Some(value) => format!(
                "has the positions of {num_lacking} lists that the query lacks, one of {name} {value}; pass them too"
            ),
        };
        Err(FollowCursor::reject(problem))
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
}

impl Sealed for FollowCursor {
    const PARAMETER: &'static str = "start";
    const VERSION: u32 = 3;
    const VERSION_MEMBER: &'static str = "follow";
    const FORM: &'static str = "must be \"now\", \"beginning\", an Export, or the cursor of a follower";
    const OTHER_MEMBER: &'static str = "version";
    const OTHER: &'static str = "is the cursor of a query, not of a follower; pass it to client.resume";
}

impl FollowCursor {
    pub(super) fn new(query: &Query, position: Position) -> Result<Self, Error> {
        let mut arguments = query.canonical_args()?;
        if let Some(members) = query.members() {
            // The position has the values.
            arguments.insert(members.name.to_owned(), "several values".into());
        }
        Ok(Self {
            follow: Self::VERSION,
            call: query.endpoint().name.to_owned(),
            deployment: deployment(query.client()),
            chain: query.chain().to_owned(),
            arguments: arguments.into(),
            position,
        })
    }

    /// Cursor of this follower after `state`.
    #[must_use]
    pub(super) fn at(&self, state: &FollowState) -> Self {
        Self { position: Position::After(state.clone()), ..self.clone() }
    }

    /// Moves to the position after an event of a list, or of the list `list` of a set. Returns what moves back.
    pub fn advance(&mut self, after: Self, list: Option<usize>) -> Self {
        match (&mut self.position, list) {
            (Position::Set { lists, .. }, Some(list)) => {
                let position = std::mem::replace(&mut lists[list].1, after.position.clone());
                Self { position, ..after }
            }
            _ => std::mem::replace(self, after),
        }
    }

    /// Position of one list of a set.
    pub(super) fn list_position(&self, list: usize) -> Position {
        match &self.position {
            Position::Set { lists, .. } => lists[list].1.clone(),
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
            let position = Self::parse(&query.member(*index), json)?;
            if let Position::Set { lists, .. } = &mut cursor.position {
                lists[*index].1 = position;
            }
        }
        Ok(cursor)
    }

    /// The error of an end that is no position after an event.
    pub(super) fn no_end() -> Error {
        Error::parameter("end", "must be the cursor of an event")
    }

    pub fn to_json(&self) -> String {
        self.seal()
    }

    /// Parses a cursor of a follower of this query.
    pub(super) fn parse(query: &Query, json: &str) -> Result<Position, Error> {
        let cursor = Self::open(json)?;
        let ours = Self::new(query, Position::Now)?;
        for (name, theirs, ours) in [
            ("call", &cursor.call, &ours.call),
            ("deployment", &cursor.deployment, &ours.deployment),
            ("chain", &cursor.chain, &ours.chain),
            ("query", &cursor.arguments.to_string(), &ours.arguments.to_string()),
        ] {
            if !theirs.eq_ignore_ascii_case(ours) {
                return Err(Self::reject(format!("belongs to the {name} {theirs}; this one is {ours}")));
            }
        }
        match (cursor.position, query.members()) {
            (Position::Set { new, lists }, Some(members)) => Position::of_members(new, lists, members),
            (Position::Set { .. }, None) => Err(Self::reject("belongs to a query of several values")),
            (_, Some(members)) => {
                Err(Self::reject(format!("belongs to a query of one {}; this one has several", members.name)))
            }
            (position, None) => Ok(position),
        }
    }
}
