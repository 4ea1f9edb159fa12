//! `QueryStart`: a query and where its next run starts.

use std::sync::Arc;

use super::fetch::fetch;
use super::resolve::resolve;
use super::shared_heights::SharedHeights;
use crate::client::{Client, Error};
use crate::decode::Page;
use crate::message::Message;
use crate::query::request::Query;
use crate::query::results::{Cursor, Report, SharedReport};
use crate::query::snapshot::{Cut, ListCheckpoint, PageRequest};

#[derive(Clone)]
pub struct QueryStart {
    query: Query,
    /// Position after the records that an earlier run returned.
    cursor: Option<Arc<Cursor>>,
    /// Positions and blocks that the lists of a set have found, if this is one of them.
    shared: Option<Arc<SharedHeights>>,
}

impl From<Query> for QueryStart {
    /// The beginning of a query.
    fn from(query: Query) -> Self {
        Self { query, cursor: None, shared: None }
    }
}

impl QueryStart {
    /// The position of a cursor, that of a large set with its query.
    pub fn resume(client: &Client, cursor: &str, query: Option<&Query>) -> Result<Self, Error> {
        let (query, cursor) = Cursor::parse(client, cursor, query)?;
        Ok(Self { cursor: Some(Arc::new(cursor)), ..Self::from(query) })
    }

    /// The beginning of one list of a set, or its position.
    pub(super) fn of_member(query: Query, cursor: Option<Arc<Cursor>>, shared: &Arc<SharedHeights>) -> Self {
        // The position of a list is that of its resolved range.
        let resumed = cursor.as_ref().and_then(|cursor| cursor.query(query.client(), query.endpoint()).ok());
        let query = match resumed {
            Some(resumed) => resumed.with_projection_of(&query),
            None => query,
        };
        Self { query, cursor, shared: Some(shared.clone()) }
    }

    /// The position of a cursor in this query's only slice, from where at most `max_items` records are wanted. The cursor may be
    /// that of a run that was limited so.
    pub fn rest(&self, cursor: &str, max_items: u64) -> Result<Self, Error> {
        self.query.reject_set("an export")?;
        let cursor = Cursor::parse(self.query.client(), cursor, None)?.1;
        let returned = cursor.offset.saturating_sub(self.first().offset);
        let left = self.query.max_items().map_or(u64::MAX, |wanted| wanted.saturating_sub(returned));
        let cursor = cursor.limited_to(max_items.min(left));
        let query = cursor.query(self.query.client(), self.query.endpoint())?;
        Ok(Self { cursor: Some(Arc::new(cursor)), ..Self::from(query) })
    }

    /// The position after `offset` records of a query's only slice, from where `remaining` records are wanted, or all.
    pub(super) fn from_position(
        query: &Query,
        offset: u64,
        list: ListCheckpoint,
        remaining: Option<u64>,
    ) -> Result<Self, Error> {
        let cursor = Cursor::at(query, 0, offset, list, remaining);
        let query = cursor.query(query.client(), query.endpoint())?;
        Ok(Self { cursor: Some(Arc::new(cursor)), ..Self::from(query) })
    }

    /// Returns this position as that after the record above a cut, which another run returns.
    pub(super) fn below(self, cut: &Cut) -> Self {
        let mut cursor = self.first();
        cursor.audit.latest = vec![cut.above];
        cursor.audit.height = cut.height;
        Self { cursor: Some(Arc::new(cursor)), ..self }
    }

    /// Returns this position in a query whose heights are known.
    pub(super) fn with_query(self, query: Query) -> Self {
        Self { query, ..self }
    }

    /// Returns this position with reasons why the result is incomplete that were known before.
    pub(super) fn with_reasons(self, reasons: &[Message]) -> Self {
        if reasons.is_empty() {
            return self;
        }
        let mut cursor = self.first();
        cursor.reasons.extend_from_slice(reasons);
        Self { cursor: Some(Arc::new(cursor)), ..self }
    }

    /// Returns this position, from where only these columns are decoded.
    #[must_use]
    pub fn with_columns(&self, names: &[String]) -> Self {
        Self { query: self.query.with_columns(names), ..self.clone() }
    }

    /// Returns this position with heights in place of times. The requests for them are added to the report.
    pub async fn resolved(self, report: SharedReport) -> Result<Self, Error> {
        self.query.reject_set("a range of times")?;
        let query = self.resolve(&report).await?;
        Ok(self.with_query(query))
    }

    /// Returns the query with its range of heights. The requests for it are added to the report.
    pub(super) async fn resolve(&self, report: &SharedReport) -> Result<Query, Error> {
        Ok(resolve(&self.query, self.shared.as_deref(), report).await?.query)
    }

    /// Requests one page of the query's only list as it is now, and adds the request to the report.
    pub async fn page(self, number: u64, report: SharedReport) -> Result<Page, Error> {
        self.query.reject_set("single pages")?;
        let request = PageRequest { page: number, ..PageRequest::first(self.query.page_size()) };
        fetch(&self.query, 0, request, false, &report).await
    }

    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Cursor that a run from here resumes from, or `None` at the beginning.
    pub fn resumed_from(&self) -> Option<&Cursor> {
        self.cursor.as_deref()
    }

    /// Positions and blocks that the lists of a set have found, if this is one of them.
    pub(super) fn shared_heights(&self) -> Option<Arc<SharedHeights>> {
        self.shared.clone()
    }

    /// Cursor of the first record.
    pub fn cursor(&self) -> String {
        self.first().to_json()
    }

    /// Cursor of the first record, with the values of a set however many they are.
    pub fn whole_cursor(&self) -> String {
        self.first().to_whole_json()
    }

    /// Cursor for another run, if one from here ended before its first record.
    pub fn retry_cursor(&self, report: &Report) -> String {
        if report.bytes > 0 { self.first().after_empty_run(report).to_json() } else { self.cursor() }
    }

    fn first(&self) -> Cursor {
        self.resumed_from().cloned().unwrap_or_else(|| Cursor::start(&self.query))
    }

    /// Returns this position, from where at most `limit` records are wanted.
    #[must_use]
    pub fn limited_to(&self, limit: u64) -> Self {
        let query = match &self.cursor {
            None => self.query.limited_to(limit),
            // The cursor knows the list by its pages, which have to be of the same size.
            Some(_) => self.query.with_max_items(limit),
        };
        Self { query, ..self.clone() }
    }

    /// Position and query as JSON: equal where runs request the same.
    pub fn canonical_json(&self) -> Result<serde_json::Value, Error> {
        let query = &self.query;
        Ok(serde_json::json!({
            "call": query.endpoint().name,
            "chain": query.chain(),
            "arguments": query.canonical_args()?,
            "max_items": query.max_items(),
            "cursor": self.resumed_from().map(Cursor::to_json),
        }))
    }
}
