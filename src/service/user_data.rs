//! Data of the user in the database: loaded records, which replace the synthetic ones of their endpoint; mirrored
//! queries; and recorded responses, which are served to the exact requests they were recorded for.

use bytes::Bytes;
use rusqlite::types::{Null, Value as Sql};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::mirror::{self, MirroredQuery};
use super::parameters::Parameters;
use super::schema::{Table, rank};
use super::settings::{ServiceError, Settings};
use crate::cassette::{self, Interaction, MatchOn, Request};
use crate::columns::{Columns, Value};
use crate::interface::{ENDPOINTS, Endpoint, Shape};

const RESPONSES: &str = "CREATE TABLE IF NOT EXISTS recorded_response (request TEXT PRIMARY KEY, body BLOB)";

/// Index of the user's data in a database.
#[derive(Debug, Default)]
pub struct UserData {
    loaded: Vec<&'static str>,
    mirrored: Vec<MirroredQuery>,
    recorded: Vec<Request>,
}

impl UserData {
    /// Reads what was loaded into this database before.
    pub fn read(connection: &Connection, settings: &Settings) -> Result<Self, ServiceError> {
        let mut data = Self::default();
        for endpoint in &ENDPOINTS {
            for table in [Table::loaded(endpoint), Table::mirrored(endpoint)].into_iter().flatten() {
                let created_by = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?";
                let created_by: Option<String> =
                    connection.query_row(created_by, [table.name], |row| row.get(0)).optional()?;
                if created_by.as_ref().is_some_and(|created_by| *created_by != table.create()) {
                    let problem = format!("holds {} of another version; load it again into a new file", endpoint.name);
                    return Err(ServiceError::setting("db", problem));
                }
                if created_by.is_some() && table.name.starts_with("own_") {
                    data.loaded.push(table.name);
                }
            }
        }
        if connection.table_exists(None, "mirrored_query")? {
            let select = "SELECT endpoint, query, hashes, first, last, sliced, ended, total, lowest_height \
                          FROM mirrored_query ORDER BY id";
            let mut statement = connection.prepare(select)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let Some(query) = MirroredQuery::read(row, settings)? else {
                    let problem =
                        "holds queries mirrored with another main_chain or zone_chain; pass those, or use a new file";
                    return Err(ServiceError::setting("db", problem));
                };
                data.mirrored.push(query);
            }
        }
        if connection.table_exists(None, "recorded_response")? {
            let mut statement = connection.prepare("SELECT request FROM recorded_response")?;
            for request in statement.query_map([], |row| row.get::<_, String>(0))? {
                data.recorded.extend(serde_json::from_str::<Request>(&request?));
            }
        }
        Ok(data)
    }

    pub fn has_loaded(&self, table: &Table) -> bool {
        self.loaded.contains(&table.name)
    }

    /// True if anything was mirrored or recorded: then no synthetic data is served beside it.
    pub fn is_offline(&self) -> bool {
        !self.mirrored.is_empty() || !self.recorded.is_empty()
    }

    /// Mirrored queries of an endpoint, the most recent first.
    pub fn mirrored(&self, endpoint: &'static Endpoint) -> impl Iterator<Item = &MirroredQuery> {
        self.mirrored.iter().rev().filter(move |query| std::ptr::eq(query.endpoint, endpoint))
    }

    /// Replaces the records of an endpoint, loaded, mirrored or recorded before.
    pub fn load(
        &mut self,
        connection: &mut Connection,
        endpoint: &'static Endpoint,
        path: &str,
        records: &Columns,
    ) -> rusqlite::Result<()> {
        let Some(table) = Table::loaded(endpoint) else { return Ok(()) };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(mirror::TABLE)?;
        transaction.execute_batch(RESPONSES)?;
        transaction.execute("DELETE FROM mirrored_query WHERE endpoint = ?", [endpoint.name])?;
        transaction.execute("DELETE FROM recorded_response WHERE json_extract(request, '$.path') = ?", [path])?;
        transaction.execute(&format!("DROP TABLE IF EXISTS {}", table.name), [])?;
        transaction.execute(&table.create(), [])?;
        // A list returns its last row first, except tokens: they are sorted, and equal ones keep the order of their rows.
        // Lookups return rows in order.
        insert(&transaction, table, endpoint.name == "tokens" || is_look_up(endpoint), 1, records)?;
        for index in table.create_indexes() {
            transaction.execute(&index, [])?;
        }
        transaction.commit()?;
        self.mirrored.retain(|query| !std::ptr::eq(query.endpoint, endpoint));
        self.recorded.retain(|request| request.path != path);
        if !self.has_loaded(table) {
            self.loaded.push(table.name);
        }
        Ok(())
    }

    /// Adds the records of a query, and the requests that they cover.
    pub fn mirror(
        &mut self,
        connection: &mut Connection,
        endpoint: &'static Endpoint,
        records: &Columns,
        (interactions, limit): (&[Interaction], Option<usize>),
        settings: &Settings,
    ) -> Result<(), ServiceError> {
        let Some(table) = Table::mirrored(endpoint) else { return Ok(()) };
        let Some(loaded) = Table::loaded(endpoint) else { return Ok(()) };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(mirror::TABLE)?;
        if !transaction.table_exists(None, table.name)? {
            transaction.execute(&table.create(), [])?;
            for index in table.create_indexes() {
                transaction.execute(&index, [])?;
            }
        }
        transaction.execute(&format!("DROP TABLE IF EXISTS {}", loaded.name), [])?;
        let first = super::listing::last_row(&transaction, table.name)? + 1;
        let queries = MirroredQuery::of(endpoint, records, first, interactions, limit, settings)?;
        insert(&transaction, table, is_look_up(endpoint), first, records)?;
        for query in &queries {
            query.insert(&transaction)?;
        }
        transaction.commit()?;
        self.mirrored.extend(queries);
        self.loaded.retain(|name| *name != loaded.name);
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
    pub fn explain_miss(&self, endpoint: &'static Endpoint, request: &Request, parameters: &Parameters) -> String {
        let closest = self.mirrored(endpoint).min_by_key(|query| query.distance(parameters));
        match closest {
            Some(closest) => {
                let query = mirror::query_of(request);
                let page = parameters.page;
                format!("not mirrored: page {page} of {}?{query}; closest: {}", endpoint.name, closest.describe())
            }
            None if self.recorded.is_empty() => format!("not mirrored: no query of {}", endpoint.name),
            None => {
                let closest = cassette::explain_miss(&normalized(request), 0, self.recorded.iter());
                format!("not recorded: the cassette {closest}")
            }
        }
    }
}

fn is_look_up(endpoint: &Endpoint) -> bool {
    matches!(endpoint.shape, Shape::Direct)
}

/// Inserts records from a sequence number on, in order or in reverse.
fn insert(
    connection: &Connection,
    table: &Table,
    in_order: bool,
    first: i64,
    records: &Columns,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(&table.insert())?;
    let ranked: Vec<usize> = table.ranked().iter().filter_map(|name| records.record().position(name)).collect();
    let fields = records.record().fields.len();
    for place in 0..records.rows() {
        let row = if in_order { place } else { records.rows() - 1 - place };
        insert.raw_bind_parameter(1, first + place as i64)?;
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
