//! `FollowRun`: a list or a set that is followed.

use super::follow_cursor::FollowCursor;
use super::follow_plan::FollowOptions;
use super::follow_set::FollowSet;
use super::lag::Lag;
use super::list_follow::{FollowEvent, ListFollow};
use super::query_start::QueryStart;
use crate::client::Error;
use crate::query::request::Query;
use crate::query::results::SharedReport;

pub enum FollowRun {
    List(Box<ListFollow>),
    Set(Box<FollowSet>),
}

impl FollowRun {
    pub fn new(start: &QueryStart, options: FollowOptions) -> Result<Self, Error> {
        let _time = start.query().client().enter_time();
        match start.query().members() {
            None => ListFollow::new(start, options).map(|list| Self::List(Box::new(list))),
            Some(members) => FollowSet::new(start, members, options).map(|set| Self::Set(Box::new(set))),
        }
    }

    pub fn query(&self) -> &Query {
        match self {
            Self::List(list) => &list.plan.query,
            Self::Set(set) => &set.query,
        }
    }

    pub fn report(&self) -> &SharedReport {
        match self {
            Self::List(list) => &list.report,
            Self::Set(set) => &set.report,
        }
    }

    pub fn lag(&self) -> &Lag {
        match self {
            Self::List(list) => &list.lag,
            Self::Set(set) => &set.lag,
        }
    }

    /// Position before the first event.
    pub fn cursor(&self) -> &FollowCursor {
        match self {
            Self::List(list) => &list.cursor,
            Self::Set(set) => &set.cursor,
        }
    }

    /// Returns the next event, or `None` at the end of a follower that ends. After an error or a cancelled call, the next
    /// call continues from the same position.
    pub async fn next(&mut self) -> Result<Option<FollowEvent>, Error> {
        match self {
            Self::List(list) => list.next().await,
            Self::Set(set) => set.next().await,
        }
    }
}
