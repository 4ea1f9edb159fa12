//! `Run`: a query and where its next run starts.

use std::sync::Arc;

use super::cursor::Cursor;
use super::resolve::resolve;
use super::slice_fetcher::fetch;
use crate::client::{Client, Error};
use crate::decode::Page;
use crate::query::request::Query;
use crate::query::results::{Report, SharedReport};
use crate::query::snapshot::{ListCheckpoint, PageRequest};

#[derive(Clone)]
pub struct Run {
    query: Query,
    start: Option<Arc<Cursor>>,
}

impl From<Query> for Run {
    /// A run from the beginning.
    fn from(query: Query) -> Self {
        Self { query, start: None }
    }
}

impl Run {
    /// Returns the run that continues from a cursor, that of a large set with its query.
    pub fn resume(client: &Client, cursor: &str, query: Option<&Query>) -> Result<Self, Error> {
        let (query, start) = Cursor::parse(client, cursor, query)?;
        Ok(Self { query, start: Some(Arc::new(start)) })
    }

    /// A run of one list of a set, from its position.
    pub(super) fn of_member(query: &Query, start: Option<&Cursor>) -> Self {
        // The position of a list is that of its resolved range.
        let resumed = start.and_then(|start| start.query(query.client(), query.endpoint()).ok());
        let query = resumed.map_or_else(|| query.clone(), |resumed| resumed.with_projection_of(query));
        Self { query, start: start.cloned().map(Arc::new) }
    }

    /// A run of the next `most` records from a cursor of this query on.
    pub fn rest(&self, cursor: &str, most: u64) -> Result<Self, Error> {
        self.query.reject_set("an export")?;
        let start = Cursor::parse(self.query.client(), cursor, None)?.1.limited(most);
        Ok(Self { query: start.query(self.query.client(), self.query.endpoint())?, start: Some(Arc::new(start)) })
    }

    /// A run of the records of a query's only slice from `offset` on, of `remaining` of them or all.
    pub(super) fn from_position(
        query: &Query,
        offset: u64,
        list: ListCheckpoint,
        remaining: Option<u64>,
    ) -> Result<Self, Error> {
        let start = Cursor::in_list(query, offset, list, remaining);
        Ok(Self { query: start.query(query.client(), query.endpoint())?, start: Some(Arc::new(start)) })
    }

    /// The same run of a query whose heights are known.
    pub(super) fn with_query(self, query: Query) -> Self {
        Self { query, ..self }
    }

    /// The same run, of which only these columns are decoded.
    #[must_use]
    pub fn with_columns(&self, names: &[String]) -> Self {
        Self { query: self.query.with_columns(names), start: self.start.clone() }
    }

    /// The run with heights in place of times, whose requests are added to the report.
    pub async fn resolved(self, report: SharedReport) -> Result<Self, Error> {
        self.query.reject_set("a range of times")?;
        let query = resolve(&self.query, &report).await?;
        Ok(self.with_query(query))
    }

    /// One page of the query's only list as it is now, whose request is added to the report.
    pub async fn page(self, number: u64, report: SharedReport) -> Result<Page, Error> {
        self.query.reject_set("single pages")?;
        let request = PageRequest { page: number, ..PageRequest::first(self.query.page_size()) };
        fetch(&self.query, 0, request, false, &report).await
    }

    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Cursor that the run resumes from, or `None` if it starts at the beginning.
    pub fn start(&self) -> Option<&Cursor> {
        self.start.as_deref()
    }

    /// Cursor of the run's first record.
    pub fn cursor(&self) -> String {
        self.first().to_json()
    }

    /// Cursor of the run's first record, with the values of a set however many they are.
    pub fn whole_cursor(&self) -> String {
        self.first().to_whole_json()
    }

    /// The same for another run, if this one ended before its first record.
    pub fn retry_cursor(&self, report: &Report) -> String {
        if report.bytes > 0 { self.first().after_empty_run().to_json() } else { self.cursor() }
    }

    fn first(&self) -> Cursor {
        self.start().cloned().unwrap_or_else(|| Cursor::start(&self.query))
    }

    /// The same run limited to its first `limit` records.
    #[must_use]
    pub fn limited_to(&self, limit: u64) -> Self {
        Self { query: self.query.limited_to(limit), start: self.start.clone() }
    }

    /// The request as JSON: equal for runs that request the same.
    pub fn canonical_json(&self) -> Result<serde_json::Value, Error> {
        let query = &self.query;
        Ok(serde_json::json!({
            "call": query.endpoint().name,
            "chain": query.chain(),
            "arguments": query.canonical_args()?,
            "max_items": query.max_items(),
            "cursor": self.start().map(Cursor::to_json),
        }))
    }
}
