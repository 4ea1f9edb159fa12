//! A user's own data in the database: records, which stand in for the made-up ones of their endpoint, and recorded
//! answers, which are given as they were to the very requests they were given to.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use rusqlite::types::{Null, Value as Sql};
use rusqlite::{Connection, OptionalExtension as _};

use super::schema::{Table, rank};
use super::settings::ServiceError;
use crate::cassette::Request;
use crate::columns::{Columns, Value};
use crate::interface::{ENDPOINTS, Endpoint, Shape};

const ANSWERS: &str = "CREATE TABLE IF NOT EXISTS own_answer (request TEXT PRIMARY KEY, body BLOB)";

/// What of it there is.
#[derive(Debug, Default)]
pub struct Own {
    tables: Vec<&'static str>,
    answers: bool,
}

/// Why what a file holds cannot be served.
pub struct Problem(rusqlite::Result<&'static str>);

impl Problem {
    pub fn at(self, path: Option<&Path>) -> ServiceError {
        match self.0 {
            Err(error) => error.into(),
            Ok(endpoint) => ServiceError::NotOurs {
                path: path.map(PathBuf::from).unwrap_or_default(),
                problem: format!("holds {endpoint} of another version; load them again into a new file"),
            },
        }
    }
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        Self(Err(error))
    }
}

impl Own {
    /// What was loaded into this database before.
    pub fn of(connection: &Connection) -> Result<Self, Problem> {
        let mut own = Self { answers: connection.table_exists(None, "own_answer")?, ..Self::default() };
        for endpoint in &ENDPOINTS {
            let Some(table) = Table::of_own(endpoint) else { continue };
            let made_by = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?";
            let made_by: Option<String> = connection.query_row(made_by, [table.name], |row| row.get(0)).optional()?;
            match made_by {
                Some(made_by) if made_by == table.create() => own.tables.push(table.name),
                Some(_) => return Err(Problem(Ok(endpoint.name))),
                None => {}
            }
        }
        Ok(own)
    }

    pub fn holds(&self, table: &Table) -> bool {
        self.tables.contains(&table.name)
    }

    pub fn load(
        &mut self,
        connection: &mut Connection,
        endpoint: &'static Endpoint,
        records: &Columns,
    ) -> rusqlite::Result<()> {
        let Some(table) = Table::of_own(endpoint) else { return Ok(()) };
        let transaction = connection.transaction()?;
        transaction.execute(&format!("DROP TABLE IF EXISTS {}", table.name), [])?;
        transaction.execute(&table.create(), [])?;
        {
            let mut insert = transaction.prepare(&table.insert())?;
            let ranked: Vec<usize> = table.ranked().iter().filter_map(|name| records.record().position(name)).collect();
            let fields = records.record().fields.len();
            // A list shows its last row first, but for tokens: they are put in order, and those that are alike in it
            // come as they are numbered. Look-ups show rows as they are numbered.
            let forward = matches!(endpoint.shape, Shape::Direct) || endpoint.name == "tokens";
            for place in 0..records.rows() {
                let row = if forward { place } else { records.rows() - 1 - place };
                insert.raw_bind_parameter(1, place as i64 + 1)?;
                for field in 0..fields {
                    insert.raw_bind_parameter(2 + field, sql(&records.value(field, row)))?;
                }
                for (nth, field) in ranked.iter().enumerate() {
                    let rank = records.text(*field, row).and_then(rank);
                    insert.raw_bind_parameter(2 + fields + nth, rank.map_or(Sql::Null, Sql::Blob))?;
                }
                insert.raw_execute()?;
            }
        }
        for index in table.create_indexes() {
            transaction.execute(&index, [])?;
        }
        transaction.commit()?;
        if !self.holds(table) {
            self.tables.push(table.name);
        }
        Ok(())
    }

    pub fn load_answers(&mut self, connection: &mut Connection, answers: &[(Request, Bytes)]) -> rusqlite::Result<()> {
        let transaction = connection.transaction()?;
        transaction.execute(ANSWERS, [])?;
        for (request, body) in answers {
            let statement = "INSERT OR REPLACE INTO own_answer VALUES (?, ?)";
            transaction.prepare_cached(statement)?.execute((key(request), body.as_ref()))?;
        }
        transaction.commit()?;
        self.answers = true;
        Ok(())
    }

    pub fn recorded(&self, connection: &Connection, request: &Request) -> rusqlite::Result<Option<Vec<u8>>> {
        if !self.answers {
            return Ok(None);
        }
        let mut statement = connection.prepare_cached("SELECT body FROM own_answer WHERE request = ?")?;
        statement.query_row([key(request)], |row| row.get(0)).optional()
    }
}

fn key(request: &Request) -> String {
    serde_json::to_string(request).expect("texts are JSON")
}

fn sql(value: &Value<'_>) -> Sql {
    match value {
        Value::Null => Null.into(),
        Value::Integer(number) | Value::Time(number) => Sql::Integer(*number),
        Value::Flag(flag) => Sql::Integer(i64::from(*flag)),
        Value::Number(digits) => Sql::Text((*digits).into()),
        Value::RawInteger(text) | Value::Text(text) => Sql::Text((*text).into()),
        Value::Texts(texts) => Sql::Text(serde_json::Value::from(texts.as_slice()).to_string()),
    }
}
