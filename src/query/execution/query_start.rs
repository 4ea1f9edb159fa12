//! `QueryStart`: a query and where its next run starts.

use std::sync::Arc;

use super::fetch::fetch;
use super::resolve::resolve;
use crate::client::{Client, Error};
use crate::decode::Page;
use crate::query::request::Query;
use crate::query::results::{Cursor, Report, SharedReport};
use crate::query::snapshot::{ListCheckpoint, PageRequest};

#[derive(Clone)]
pub struct QueryStart {
    query: Query,
    /// Position after the records that an earlier run returned.
    cursor: Option<Arc<Cursor>>,
}

impl From<Query> for QueryStart {
    /// The beginning of a query.
    fn from(query: Query) -> Self {
        Self { query, cursor: None }
    }
}

impl QueryStart {
    /// The position of a cursor, that of a large set with its query.
    pub fn resume(client: &Client, cursor: &str, query: Option<&Query>) -> Result<Self, Error> {
        let (query, cursor) = Cursor::parse(client, cursor, query)?;
        Ok(Self { query, cursor: Some(Arc::new(cursor)) })
    }

    /// The beginning of one list of a set, or its position.
    pub(super) fn of_member(query: Query, cursor: Option<Arc<Cursor>>) -> Self {
        // The position of a list is that of its resolved range.
        let resumed = cursor.as_ref().and_then(|cursor| cursor.query(query.client(), query.endpoint()).ok());
        let query = match resumed {
            Some(resumed) => resumed.with_projection_of(&query),
            None => query,
        };
        Self { query, cursor }
    }

    /// The position of a cursor of this query, from where at most `max_items` records are wanted.
    pub fn rest(&self, cursor: &str, max_items: u64) -> Result<Self, Error> {
        self.query.reject_set("an export")?;
        let cursor = Cursor::parse(self.query.client(), cursor, None)?.1.limited(max_items);
        Ok(Self { query: cursor.query(self.query.client(), self.query.endpoint())?, cursor: Some(Arc::new(cursor)) })
    }

    /// The position after `offset` records of a query's only slice, from where `remaining` records are wanted, or all.
    pub(super) fn from_position(
        query: &Query,
        offset: u64,
        list: ListCheckpoint,
        remaining: Option<u64>,
    ) -> Result<Self, Error> {
        let cursor = Cursor::at(query, 0, offset, list, remaining);
        Ok(Self { query: cursor.query(query.client(), query.endpoint())?, cursor: Some(Arc::new(cursor)) })
    }

    /// Returns this position in a query whose heights are known.
    pub(super) fn with_query(self, query: Query) -> Self {
        Self { query, ..self }
    }

    /// Returns this position, from where only these columns are decoded.
    #[must_use]
    pub fn with_columns(&self, names: &[String]) -> Self {
        Self { query: self.query.with_columns(names), cursor: self.cursor.clone() }
    }

    /// Returns this position with heights in place of times. The requests for them are added to the report.
    pub async fn resolved(self, report: SharedReport) -> Result<Self, Error> {
        self.query.reject_set("a range of times")?;
        let query = resolve(&self.query, &report).await?;
        Ok(self.with_query(query))
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
        if report.bytes > 0 { self.first().after_empty_run().to_json() } else { self.cursor() }
    }

    fn first(&self) -> Cursor {
        self.resumed_from().cloned().unwrap_or_else(|| Cursor::start(&self.query))
    }

    /// Returns this position, from where at most `limit` records are wanted.
    #[must_use]
    pub fn limited_to(&self, limit: u64) -> Self {
        Self { query: self.query.limited_to(limit), cursor: self.cursor.clone() }
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
