//! Cache of the rows that filters select: a page deep in a list costs as much as the first, and totals are free.

use std::collections::HashMap;

use rusqlite::{Connection, params_from_iter, types::Value as Sql};

use super::filter::Filter;
use super::schema::Table;

/// Row numbers kept over all lists; past this all are forgotten.
const MOST_ROWS: usize = 8_000_000;
const MOST_LISTINGS: usize = 10_000;

/// Row numbers in the reverse of the order they are listed in, so that what is new goes to the end.
#[derive(Clone, Debug, Default)]
struct ListedRows {
    seqs: Vec<i64>,
    /// The table's last row when this was read.
    upto: i64,
}

/// A list of rows, first listed first.
#[derive(Debug)]
pub enum Listing<'a> {
    /// All rows of a table, numbered from 1 without gaps.
    All(i64),
    ListedRows(&'a [i64]),
}

impl Listing<'_> {
    pub fn len(&self) -> u64 {
        match self {
            Self::All(last) => u64::try_from(*last).unwrap_or(0),
            Self::ListedRows(seqs) => seqs.len() as u64,
        }
    }

    /// The row at that index of the list.
    pub fn get(&self, index: u64) -> Option<i64> {
        let behind = self.len().checked_sub(index + 1)?;
        match self {
            Self::All(_) => i64::try_from(behind).ok().map(|behind| behind + 1),
            Self::ListedRows(seqs) => usize::try_from(behind).ok().and_then(|behind| seqs.get(behind)).copied(),
        }
    }
}

#[derive(Debug, Default)]
pub struct Listings {
    known: HashMap<String, ListedRows>,
    rows: usize,
}

impl Listings {
    pub fn list(&mut self, connection: &Connection, table: &Table, filter: &Filter) -> rusqlite::Result<Listing<'_>> {
        let last = last_row(connection, table.name)?;
        if filter.is_all() {
            return Ok(Listing::All(last));
        }
        if self.rows > MOST_ROWS || self.known.len() > MOST_LISTINGS {
            self.known.clear();
            self.rows = 0;
        }
        let statement = filter.statement(table);
        let rows = self.known.entry(format!("{statement} {:?}", filter.values)).or_default();
        if rows.upto < last {
            let before = rows.seqs.len();
            // A list that is not by age cannot be continued where it ended.
            if filter.order.is_some() {
                *rows = ListedRows::default();
            }
            let values = filter.values.iter().cloned().chain([Sql::Integer(rows.upto)]);
            let mut statement = connection.prepare_cached(&statement)?;
            for seq in statement.query_map(params_from_iter(values), |row| row.get(0))? {
                rows.seqs.push(seq?);
            }
            rows.upto = last;
            self.rows = self.rows + rows.seqs.len() - before;
        }
        Ok(Listing::ListedRows(&rows.seqs))
    }
}

pub fn last_row(connection: &Connection, table: &str) -> rusqlite::Result<i64> {
    connection.prepare_cached(&format!("SELECT coalesce(max(seq), 0) FROM {table}"))?.query_row([], |row| row.get(0))
}
