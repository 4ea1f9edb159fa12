//! `BlockList`: the list that shows the blocks of a chain, and the requests for its pages and for single blocks.

use std::collections::BTreeMap;

use super::fetch::fetch;
use super::height_search::TimedBlock;
use super::selection::is_of_other_chain;
use crate::client::{Client, Error};
use crate::columns::Columns;
use crate::decode::Page;
use crate::interface::{Chain, Endpoint, endpoint};
use crate::query::request::{Arg, Options, Query, ShownRecords};
use crate::query::results::SharedReport;
use crate::query::snapshot::{PageRequest, Rows};

/// All blocks of a chain, or all transactions of one whose blocks the API does not list.
pub(super) struct BlockList<'c> {
    client: &'c Client,
    pub chain: Chain,
    name: Option<&'c str>,
    pub report: &'c SharedReport,
}

impl<'c> BlockList<'c> {
    pub fn new(client: &'c Client, chain: Chain, name: Option<&'c str>, report: &'c SharedReport) -> Self {
        Self { client, chain, name, report }
    }

    /// The list of the chain that a query reads.
    pub fn of(query: &'c Query, report: &'c SharedReport) -> Self {
        Self::new(query.client(), query.endpoint().chain, query.options().chain.as_deref(), report)
    }

    /// Fetches the block of a height.
    pub async fn block(&self, height: i64) -> Result<Option<TimedBlock>, Error> {
        let block = self.rows_of(height).await?.and_then(|rows| blocks(&rows).into_iter().next());
        Ok(block.map(|(height, time)| TimedBlock { height, time }))
    }

    /// Fetches the block of a height, or its first transaction on a chain whose blocks the API does not list.
    pub async fn rows_of(&self, height: i64) -> Result<Option<Columns>, Error> {
        let args = vec![("height".to_owned(), Arg::Integer(height.to_string()))];
        let rows = match self.first_rows(args).await {
            Err(error) if error.is_absent_block() => return Ok(None),
            rows => rows?,
        };
        match blocks(&rows).into_iter().next() {
            Some((returned, _)) if returned == height => {
                self.report.add_shown(&rows);
                Ok(Some(rows))
            }
            None if rows.rows() == 0 => Ok(None),
            returned => {
                let problem = format!("expected height {height}, by which the block is requested, and a time");
                let excerpt = returned.map_or_else(String::new, |(returned, _)| returned.to_string());
                Err(no_block(self.chain, problem, excerpt))
            }
        }
    }

    /// Fetches the first record of the list that shows the blocks of the chain.
    async fn first_rows(&self, args: Vec<(String, Arg)>) -> Result<Columns, Error> {
        let query = self.query(args, Some(1))?;
        Ok(self.fetch(&query, PageRequest::first(1)).await?.columns)
    }

    /// The list that shows the blocks of the chain.
    pub fn query(&self, args: Vec<(String, Arg)>, max_items: Option<i64>) -> Result<Query, Error> {
        let options = Options { chain: self.name.map(str::to_owned), max_items, ..Options::default() };
        Query::new(self.client, declared(self.chain), args, options)
    }

    /// Returns a page of the list.
    pub async fn page(&self, number: u64) -> Result<Page, Error> {
        let query = self.query(Vec::new(), None)?;
        let page = self.fetch(&query, PageRequest { page: number, ..PageRequest::first(query.page_size()) }).await?;
        self.report.add_shown(&page.columns);
        Ok(page)
    }

    /// Fetches a page. Fails if it is of another chain, whose heights and times say nothing of this one.
    async fn fetch(&self, query: &Query, request: PageRequest) -> Result<Page, Error> {
        let page = fetch(query, 0, request, false, self.report).await?;
        if !is_of_other_chain(query, &page) {
            return Ok(page);
        }
        Err(Error::Format {
            endpoint: call(self.chain),
            path: "data[0].chainShortName".into(),
            problem: format!("expected records of the chain {}, whose heights are searched", query.chain()),
            excerpt: page.paging.chain_short_name.unwrap_or_default(),
            attempts: 1,
            retryable: false,
        })
    }
}

pub(super) fn call(chain: Chain) -> &'static str {
    match chain {
        Chain::Main => "transactions",
        Chain::Zone => "blocks",
    }
}

fn declared(chain: Chain) -> &'static Endpoint {
    endpoint(call(chain)).expect("a declared call")
}

/// Error of records that do not show the block that is looked for.
pub(super) fn no_block(chain: Chain, problem: String, excerpt: String) -> Error {
    Error::Format { endpoint: call(chain), path: "data[0]".into(), problem, excerpt, attempts: 1, retryable: false }
}

/// Fetches the newest block, or its last transaction on a chain whose blocks the API does not list.
pub(super) async fn fetch_newest_rows(query: &Query, report: &SharedReport) -> Result<Columns, Error> {
    let rows = BlockList::of(query, report).first_rows(Vec::new()).await?;
    report.add_shown(&rows);
    Ok(rows)
}

/// Records that responses beside those of the lists showed, if the query reads the list that they are of.
pub(super) fn shown_records(query: &Query, report: &SharedReport) -> ShownRecords {
    let is_of_list = query.endpoint().name == call(query.endpoint().chain);
    if is_of_list { report.shown() } else { ShownRecords::default() }
}

/// Times of the blocks in a page, by height.
pub(super) fn blocks(columns: &Columns) -> BTreeMap<i64, i64> {
    columns.heights().zip(columns.times()).filter_map(|(height, time)| Some((height?, time?))).collect()
}

/// Hash of the block of a row. Zeros in place of a hash are those of any block.
pub(super) fn block_hash(columns: &Columns, row: usize) -> Option<&str> {
    Rows::block(columns, row)?;
    columns.text(columns.record().block()?, row)
}
