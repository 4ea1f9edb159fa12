//! `OldestRecords`: whether a list that is followed from its beginning lacks records that are too old for the API. Records
//! are delivered oldest first, so that the first ones show it.

use crate::client::Error;
use crate::interface::ResultLimit;
use crate::message::Message;
use crate::query::evidence::{Evidence, Part};
use crate::query::execution::follow_cursor::Position;
use crate::query::execution::reasons::{earlier_records, lacks_oldest, may_lack_oldest};
use crate::query::execution::run::evidence_of;
use crate::query::follow::{Beginning, FollowState};
use crate::query::request::Query;
use crate::query::results::Records;

pub(super) enum OldestRecords {
    /// The age of the lowest height is unknown: the API may drop records from there on.
    Unresolved,
    /// The list may lack its oldest records, and none was delivered.
    Unseen(Box<Evidence>),
    /// Oldest records may be missing, that many where their number is known. The records after them are being delivered.
    Cut(Option<u64>),
    /// Nothing is missing, or following began elsewhere, or an earlier run reported what is missing.
    Whole,
}

impl OldestRecords {
    pub fn after(position: &Position, query: &Query) -> Result<Self, Error> {
        let beginning = match position {
            Position::Beginning if query.endpoint().limit == ResultLimit::LastYear => return Ok(Self::Unresolved),
            Position::After(state) => state.beginning,
            Position::Beginning | Position::Now | Position::Set { .. } => None,
        };
        match beginning {
            Some(Beginning::Unseen) => Self::unseen(query),
            Some(Beginning::Cut(earlier)) => Ok(Self::Cut(earlier)),
            None => Ok(Self::Whole),
        }
    }

    fn unseen(query: &Query) -> Result<Self, Error> {
        Ok(Self::Unseen(Box::new(evidence_of(query, Part::FromFirst)?)))
    }

    pub fn is_unresolved(&self) -> bool {
        matches!(self, Self::Unresolved)
    }

    /// Takes the query with its lowest height.
    pub fn resolve(&mut self, query: &Query) -> Result<(), Error> {
        if self.is_unresolved() {
            *self = if may_lack_oldest(query) { Self::unseen(query)? } else { Self::Whole };
        }
        Ok(())
    }

    /// Takes records that are delivered. Returns the reason that the first ones show.
    pub fn add(&mut self, query: &Query, records: &Records) -> Option<Message> {
        let Self::Unseen(evidence) = self else { return None };
        if records.is_empty() {
            return None;
        }
        records.chunks().iter().for_each(|rows| evidence.add(rows));
        *self = if evidence.proves_beginning() { Self::Whole } else { Self::Cut(earlier_records(query, evidence)) };
        self.reason(query)
    }

    pub fn reason(&self, query: &Query) -> Option<Message> {
        match self {
            Self::Cut(earlier) => Some(lacks_oldest(query, *earlier)),
            Self::Unresolved | Self::Unseen(_) | Self::Whole => None,
        }
    }

    /// Takes the state after which nothing is due. True if cursors need the beginning no more: what is listed from now on is
    /// delivered before it is too old.
    pub fn catch_up(&mut self, state: &FollowState) -> bool {
        let is_done = match self {
            Self::Cut(_) => true,
            // An empty list is believed. Records that are held back have shown nothing yet.
            Self::Unseen(_) => state.last_round().is_none(),
            Self::Unresolved | Self::Whole => false,
        };
        if is_done {
            *self = Self::Whole;
        }
        is_done
    }

    /// Returns the state that a cursor keeps.
    pub fn beginning(&self) -> Option<Beginning> {
        match self {
            Self::Unresolved | Self::Unseen(_) => Some(Beginning::Unseen),
            Self::Cut(earlier) => Some(Beginning::Cut(*earlier)),
            Self::Whole => None,
        }
    }
}
