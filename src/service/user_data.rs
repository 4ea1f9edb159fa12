//! Data of the user in the database: loaded records, which replace the synthetic ones of their endpoint, and recorded
//! responses, which are served to the exact requests they were recorded for.

use bytes::Bytes;
use rusqlite::types::{Null, Value as Sql};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::schema::{Table, rank};
use super::settings::ServiceError;
use crate::cassette::{self, MatchOn, Request};
use crate::columns::{Columns, Value};
use crate::interface::{ENDPOINTS, Endpoint, Order, Shape};

const RESPONSES: &str = "CREATE TABLE IF NOT EXISTS recorded_response (request TEXT PRIMARY KEY, body BLOB)";

/// Index of the user's data in a database.
#[derive(Debug, Default)]
pub struct UserData {
    loaded: Vec<&'static str>,
    recorded: Vec<Request>,
}

impl UserData {
    /// Reads what was loaded into this database before.
    pub fn read(connection: &Connection) -> Result<Self, ServiceError> {
        let mut data = Self::default();
        for endpoint in &ENDPOINTS {
            let table = Table::loaded(endpoint);
            let created_by = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?";
            let created_by: Option<String> =
                connection.query_row(created_by, [table.name], |row| row.get(0)).optional()?;
            let Some(created_by) = created_by else { continue };
            if created_by != table.create() {
                let problem = format!("holds {} of another version; load it again into a new file", endpoint.name);
                return Err(ServiceError::setting("db", problem));
            }
            data.loaded.push(table.name);
        }
        if connection.table_exists(None, "recorded_response")? {
            data.recorded = recorded_requests(connection)?;
        }
        Ok(data)
    }

    pub fn has_loaded(&self, table: &Table) -> bool {
        self.loaded.contains(&table.name)
    }

    /// True if anything was recorded: then no synthetic data is served beside it.
    pub fn is_offline(&self) -> bool {
        !self.recorded.is_empty()
    }

    /// Replaces the records of an endpoint, loaded or recorded before.
    pub fn load(
        &mut self,
        connection: &mut Connection,
        endpoint: &'static Endpoint,
        path: &str,
        records: &Columns,
    ) -> rusqlite::Result<()> {
        let table = Table::loaded(endpoint);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(RESPONSES)?;
        for request in recorded_requests(&transaction)?.iter().filter(|request| request.path == path) {
            transaction.execute("DELETE FROM recorded_response WHERE request = ?", [key(request)])?;
        }
        transaction.execute(&format!("DROP TABLE IF EXISTS {}", table.name), [])?;
        transaction.execute(&table.create(), [])?;
        // A list returns its last row first, except ranked ones: they are sorted, and equal ones keep the order of their rows.
        // Lookups return rows in order.
        let in_order = endpoint.order == Order::Ranked || matches!(endpoint.shape, Shape::Direct);
        insert(&transaction, table, in_order, records)?;
        for index in table.create_indexes() {
            transaction.execute(&index, [])?;
        }
        transaction.commit()?;
        self.recorded.retain(|request| request.path != path);
        if !self.has_loaded(table) {
            self.loaded.push(table.name);
        }
        Ok(())
    }

    /// Adds recorded responses; the last one to a request counts.
    pub fn load_cassette(
        &mut self,
        connection: &mut Connection,
        responses: &[(Request, Bytes)],
    ) -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute(RESPONSES, [])?;
        for (request, body) in responses {
            let statement = "INSERT OR REPLACE INTO recorded_response VALUES (?, ?)";
            transaction.prepare_cached(statement)?.execute((key(request), body.as_ref()))?;
        }
        transaction.commit()?;
        for (request, _) in responses {
            let request = normalized(request);
            if !self.recorded.contains(&request) {
                self.recorded.push(request);
            }
        }
        Ok(())
    }

    /// The body that was recorded of this exact request.
    pub fn recorded(&self, connection: &Connection, request: &Request) -> rusqlite::Result<Option<Vec<u8>>> {
        if self.recorded.is_empty() {
            return Ok(None);
        }
        let mut statement = connection.prepare_cached("SELECT body FROM recorded_response WHERE request = ?")?;
        statement.query_row([key(request)], |row| row.get(0)).optional()
    }

    /// Message about a request without a response, with the closest one that has.
    pub fn explain_miss(&self, request: &Request) -> String {
        let closest = cassette::explain_miss(&normalized(request), 0, self.recorded.iter());
        format!("not recorded: the cassette {closest}")
    }
}

fn recorded_requests(connection: &Connection) -> rusqlite::Result<Vec<Request>> {
    let mut statement = connection.prepare("SELECT request FROM recorded_response")?;
    let texts = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<String>, _>>()?;
    Ok(texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect())
}

/// Inserts records, in order or in reverse.
fn insert(connection: &Connection, table: &Table, in_order: bool, records: &Columns) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(&table.insert())?;
    let ranked: Vec<usize> = table.by_value().iter().filter_map(|name| records.record().position(name)).collect();
    let fields = records.record().fields.len();
    for place in 0..records.rows() {
        let row = if in_order { place } else { records.rows() - 1 - place };
        insert.raw_bind_parameter(1, 1 + place as i64)?;
        for (nth, (field, _)) in records.record().sent().enumerate() {
            insert.raw_bind_parameter(2 + nth, sql(&records.value(field, row)))?;
        }
        for (nth, field) in ranked.iter().enumerate() {
            let rank = records.text(*field, row).and_then(rank);
            insert.raw_bind_parameter(2 + fields + nth, rank.map_or(Sql::Null, Sql::Blob))?;
        }
        insert.raw_execute()?;
    }
    Ok(())
}

/// A request as it is compared.
fn normalized(request: &Request) -> Request {
    MatchOn::default().key(request)
}

fn key(request: &Request) -> String {
    serde_json::to_string(&normalized(request)).expect("strings are JSON")
}

fn sql(value: &Value<'_>) -> Sql {
    match value {
        Value::Null => Null.into(),
        Value::Integer(number) | Value::Time(number) => Sql::Integer(*number),
        Value::Boolean(flag) => Sql::Integer(i64::from(*flag)),
        Value::Number(digits) => Sql::Text((*digits).into()),
        Value::Uint256(text) | Value::Utf8(text) => Sql::Text((*text).into()),
        Value::Utf8List(texts) => Sql::Text(serde_json::Value::from(texts.as_slice()).to_string()),
    }
}
