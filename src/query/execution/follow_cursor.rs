//! `FollowCursor`: what a follower has delivered as a small JSON string, with which another process can continue.

use serde::{Deserialize, Serialize};

use super::cursor::{checksum, deployment};
use crate::client::Error;
use crate::message::Message;
use crate::query::follow::Memory;
use crate::query::request::Query;

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
        let cursor = Self {
            follow: VERSION,
            call: query.endpoint().name.to_owned(),
            deployment: deployment(query.client()),
            chain: query.chain().to_owned(),
            arguments: query.canonical_args()?.into(),
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

    /// The error of an end that is no position after an event.
    pub(super) fn no_end() -> Error {
        Error::parameter("end", "must be the cursor of an event")
    }

    fn sealed(mut self) -> Self {
        self.checksum.clear();
        self.checksum = checksum(&self.to_json());
        self
    }

    pub fn to_json(&self) -> String {
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
        Ok(cursor.position)
    }
}
