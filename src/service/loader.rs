//! `Loader`: writes rows of the synthesis into the database.

use rusqlite::types::{Null, Value as Sql};
use rusqlite::{CachedStatement, Connection};

use super::listing::last_row;
use super::schema::{Column, TABLES, Table, rank};
use super::synthesis::{Cell, Reserve, Row, Sink, Token};

/// Writes rows, one prepared statement a table.
pub struct Loader<'c> {
    tables: Vec<Insert<'c>>,
    /// Tables of the rows that are not listed yet.
    late: Vec<Insert<'c>>,
    is_late: bool,
    party: CachedStatement<'c>,
    reserve: CachedStatement<'c>,
}

struct Insert<'c> {
    table: &'static Table,
    columns: Vec<Column>,
    statement: CachedStatement<'c>,
    last: i64,
}

impl<'c> Insert<'c> {
    fn new(connection: &'c Connection, table: &'static Table, name: &str) -> rusqlite::Result<Self> {
        let statement = connection.prepare_cached(&table.insert_into(name))?;
        Ok(Self { table, columns: table.columns(), statement, last: last_row(connection, name)? })
    }
}

impl<'c> Loader<'c> {
    pub fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Self::with_late(connection, Vec::new())
    }

    /// A loader of rows of which some are not listed yet.
    pub fn growing(connection: &'c Connection) -> rusqlite::Result<Self> {
        let late = TABLES.into_iter().map(|table| Insert::new(connection, table, &table.late_name()));
        Self::with_late(connection, late.collect::<rusqlite::Result<_>>()?)
    }

    fn with_late(connection: &'c Connection, late: Vec<Insert<'c>>) -> rusqlite::Result<Self> {
        let tables = TABLES.into_iter().map(|table| Insert::new(connection, table, table.name));
        let tables = tables.collect::<rusqlite::Result<_>>()?;
        let party = connection.prepare_cached("INSERT OR IGNORE INTO party VALUES (?, ?, ?)")?;
        let reserve = connection.prepare_cached("INSERT OR REPLACE INTO reserve VALUES (?, ?, ?, ?, ?, ?)")?;
        Ok(Self { tables, late, is_late: false, party, reserve })
    }
}

impl Sink for Loader<'_> {
    type Error = rusqlite::Error;

    fn put(&mut self, table: &'static Table, transaction: Option<i64>, row: &dyn Row) -> rusqlite::Result<i64> {
        let tables = if self.is_late { &mut self.late } else { &mut self.tables };
        let insert = tables.iter_mut().find(|insert| std::ptr::eq(insert.table, table));
        let Insert { columns, statement, last, .. } = insert.ok_or(rusqlite::Error::InvalidQuery)?;
        *last += 1;
        statement.raw_bind_parameter(1, *last)?;
        let mut place = 2;
        if table.belongs() {
            statement.raw_bind_parameter(place, transaction)?;
            place += 1;
        }
        for column in columns.iter() {
            match row.cell(column.name) {
                Cell::Nothing => statement.raw_bind_parameter(place, Null)?,
                Cell::Text(text) => statement.raw_bind_parameter(place, text)?,
                Cell::Integer(number) => statement.raw_bind_parameter(place, number)?,
                Cell::Flag(flag) => statement.raw_bind_parameter(place, flag)?,
                Cell::Texts(texts) => {
                    statement.raw_bind_parameter(place, serde_json::Value::from(texts).to_string())?
                }
            }
            place += 1;
        }
        for name in table.by_value() {
            let rank = match row.cell(name) {
                Cell::Text(text) => rank(text),
                _ => None,
            };
            statement.raw_bind_parameter(place, rank.map_or(Sql::Null, Sql::Blob))?;
            place += 1;
        }
        statement.raw_execute()?;
        Ok(*last)
    }

    fn set_late(&mut self, late: bool) {
        self.is_late = late;
    }

    fn put_party(&mut self, address: &str, side: &str, transaction: i64) -> rusqlite::Result<()> {
        self.party.execute((address, side, transaction)).map(|_| ())
    }

    fn put_reserve(&mut self, token: &Token, reserve: &Reserve) -> rusqlite::Result<()> {
        let Reserve { holder, other, units, id } = reserve;
        let is_grown = !self.late.is_empty();
        self.reserve.execute((&token.contract, holder, other, units.to_string(), id, is_grown)).map(|_| ())
    }
}
