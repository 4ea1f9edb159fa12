//! `FollowCursor`: what a follower has delivered as a small JSON string, with which another process can continue.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::ser::Formatter;

use crate::client::Error;
use crate::interface::meaning;
use crate::query::follow::FollowState;
use crate::query::request::{Members, Query};
use crate::query::results::{Sealed, deployment};

/// Position of a follower.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Position {
    /// Before the first round of a follower that starts now.
    Now,
    /// Before the first round of one that starts at the beginning.
    Beginning,
    /// Shared: what a run reads, commits and stores are positions of the same set, most lists of which did not move.
    After(Arc<FollowState>),
    /// Positions of the lists of a set.
    Set {
        /// Position of a list that joins the set later.
        new: Box<Position>,
        /// Position of each list, by what its value means.
        lists: Vec<(Arc<str>, Position)>,
    },
}

/// Characters of the position of a list beside its fingerprints, and of one of them.
const LENGTH: usize = 280;
const FINGERPRINT_LENGTH: usize = 20;

impl Position {
    /// About the length of the position of a list as text.
    fn length(&self) -> usize {
        match self {
            Self::After(state) => LENGTH + FINGERPRINT_LENGTH * state.len(),
            _ => LENGTH,
        }
    }

    /// The position of a set whose lists are followed from the same one on.
    pub(super) fn of_set(members: &Members, each: Self) -> Self {
        let lists = members.meanings().map(|value| (value.into(), each.clone())).collect();
        Self::Set { new: Box::new(each), lists }
    }

    /// The position of a set with the lists of a query, in its order. It may have new ones, and lacks none.
    fn of_members(new: Box<Self>, lists: Vec<(Arc<str>, Self)>, members: &Members) -> Result<Self, Error> {
        let mut known: HashMap<Arc<str>, Self> = lists.into_iter().collect();
        let lists = members.meanings().map(|value| {
            let value = Arc::from(value);
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowCursor {
    /// Version of the format; ordinary cursors have a member `version` instead.
    follow: u32,
    call: String,
    deployment: String,
    chain: String,
    arguments: serde_json::Value,
    position: Position,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl Sealed for FollowCursor {
    const PARAMETER: &'static str = "start";
    const VERSION: u32 = 4;
    const VERSION_MEMBER: &'static str = "follow";
    const FORM: &'static str = "must be \"now\", \"beginning\", an Export, or the cursor of a follower";
    const OTHER_MEMBER: &'static str = "version";
    const OTHER: &'static str = "is the cursor of a query, not of a follower; pass it to client.resume";

    fn expected_length(&self) -> usize {
        match &self.position {
            Position::Set { lists, .. } => lists.iter().map(|(value, position)| value.len() + position.length()).sum(),
            _ => 0,
        }
    }

    fn checksum(&mut self) -> &mut Option<String> {
        &mut self.checksum
    }
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
            checksum: None,
        })
    }

    /// Cursor of this follower after `state`.
    #[must_use]
    pub(super) fn at(&self, state: &FollowState) -> Self {
        Self { position: Position::After(Arc::new(state.clone())), ..self.clone() }
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
    pub fn moved_to(&self, query: &Query, cursors: &[(String, String)]) -> Result<Self, Error> {
        let mut moved = Self::new(query, self.clone().resolve(query)?)?;
        let Some(members) = query.members() else { return Ok(moved) };
        let indices: HashMap<&str, usize> = members.values.iter().map(String::as_str).zip(0..).collect();
        for (value, json) in cursors {
            let Some(index) = indices.get(value.as_str()) else { continue };
            let position = Self::parse(&query.member(*index), json)?;
            if let Position::Set { lists, .. } = &mut moved.position {
                lists[*index].1 = position;
            }
        }
        Ok(moved)
    }

    /// A cursor with only those lists of a set whose positions differ from an earlier cursor.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let (Position::Set { new, lists }, Position::Set { lists: known, .. }) = (&self.position, &before.position)
        else {
            return self.clone();
        };
        let known: HashMap<&str, &Position> = known.iter().map(|(value, position)| (&**value, position)).collect();
        let moved = lists.iter().filter(|(value, position)| known.get(&**value) != Some(&position));
        let lists = moved.cloned().collect();
        Self { position: Position::Set { new: new.clone(), lists }, ..self.clone() }
    }

    /// The cursor of a set after `since` has returned `later`.
    #[must_use]
    pub fn merged(&self, later: &Self) -> Self {
        let mut merged = Self { position: self.position.clone(), ..later.clone() };
        let (Position::Set { lists, .. }, Position::Set { lists: later, .. }) = (&mut merged.position, &later.position)
        else {
            return later.clone();
        };
        let indices: HashMap<Arc<str>, usize> = lists.iter().map(|(value, _)| value.clone()).zip(0..).collect();
        for (value, position) in later {
            match indices.get(value) {
                Some(index) => lists[*index].1 = position.clone(),
                None => lists.push((value.clone(), position.clone())),
            }
        }
        merged
    }

    pub fn is_of_set(&self) -> bool {
        matches!(self.position, Position::Set { .. })
    }

    /// The error of an end that is no position after an event.
    pub(super) fn no_end() -> Error {
        Error::parameter("end", "must be the cursor of an event")
    }

    pub fn to_json(&self) -> String {
        self.seal()
    }

    /// Writes the cursor as Python's `json` does, piece by piece.
    pub fn write_spaced(&self, to: impl Write) -> io::Result<()> {
        self.seal_to(to, Spaced)
    }

    pub fn from_json(json: &str) -> Result<Self, Error> {
        Self::open(json)
    }

    /// Parses a cursor of a follower of this query.
    pub(super) fn parse(query: &Query, json: &str) -> Result<Position, Error> {
        Self::open(json)?.resolve(query)
    }

    /// The position, if it is one of a follower of this query.
    pub(super) fn resolve(self, query: &Query) -> Result<Position, Error> {
        let ours = Self::new(query, Position::Now)?;
        let is_same_query = meaning_of(&self.arguments) == meaning_of(&ours.arguments);
        for (name, theirs, ours) in [
            ("call", &self.call, &ours.call),
            ("deployment", &self.deployment, &ours.deployment),
            ("chain", &self.chain, &ours.chain),
            ("query", &self.arguments.to_string(), &ours.arguments.to_string()),
        ] {
            let is_same = if name == "query" { is_same_query } else { theirs.eq_ignore_ascii_case(ours) };
            if !is_same {
                return Err(Self::reject(format!("belongs to the {name} {theirs}; this one is {ours}")));
            }
        }
        match (self.position, query.members()) {
            (Position::Set { new, lists }, Some(members)) => Position::of_members(new, lists, members),
            (Position::Set { .. }, None) => Err(Self::reject("belongs to a query of several values")),
            (_, Some(members)) => {
                Err(Self::reject(format!("belongs to a query of one {}; this one has several", members.name)))
            }
            (position, None) => Ok(position),
        }
    }
}

/// Arguments by the meanings of their values.
fn meaning_of(arguments: &serde_json::Value) -> serde_json::Value {
    match arguments {
        serde_json::Value::String(text) => meaning(text).into(),
        serde_json::Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), meaning_of(value))).collect()
        }
        other => other.clone(),
    }
}

/// Spaces as Python's `json` writes them: a manifest has the same bytes whichever of both has written its cursor.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, is_first: bool) -> io::Result<()> {
        to.write_all(if is_first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, is_first: bool) -> io::Result<()> {
        to.write_all(if is_first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        fragment.chars().try_for_each(|char| match char {
            '\0'..='\x7f' => to.write_all(&[char as u8]),
            _ => char.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(to, "\\u{unit:04x}")),
        })
    }
}
