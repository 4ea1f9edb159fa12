//! The database: opened or filled, read, and grown at its head. What the rows mean is the synthesis's affair.

use std::fs::File;

use bytes::Bytes;
use rusqlite::types::{Null, Value as Sql};
use rusqlite::{CachedStatement, Connection, TransactionBehavior};

use super::database;
use super::listing::{Listings, last_row};
use super::mirror::Coverage;
use super::parameters::{ParamValue, Parameters};
use super::render::LookUpError;
use super::schema::{self, Column, TABLES, Table, rank};
use super::settings::{ServiceError, Settings};
use super::synthesis::{self, Cell, Focus, Row, Sink, World};
use super::user_data::UserData;
use crate::cassette::{Interaction, Request};
use crate::columns::Columns;
use crate::interface::Endpoint;

#[derive(Debug)]
pub struct Store {
    connection: Connection,
    listings: Listings,
    world: World,
    user_data: UserData,
    /// Changes when another connection commits.
    version: i64,
    /// Number of reorganizations so far.
    turn: u64,
    /// Lock of the database file, held while the service runs.
    lock: Option<File>,
}

impl Store {
    /// Opens the database: a file that holds this chain is used again, and one that holds another chain is filled again.
    pub fn open(settings: &Settings) -> Result<Self, ServiceError> {
        let world = World::new(settings.seed, settings.transactions);
        let (connection, lock) = match &settings.db {
            Some(path) => database::open(path, &world)?,
            None => (database::in_memory(&world)?, None),
        };
        let user_data = UserData::read(&connection, settings)?;
        let version = database::version(&connection)?;
        Ok(Self { connection, listings: Listings::default(), world, user_data, version, turn: 0, lock })
    }

    /// Lets another service replace the chain in the file.
    pub fn unlock(&mut self) {
        self.lock = None;
    }

    /// Reads the index again if another service has changed the file.
    pub fn refresh(&mut self, settings: &Settings) -> rusqlite::Result<()> {
        let version = database::version(&self.connection)?;
        if self.lock.is_some() && version != self.version {
            self.version = version;
            self.listings = Listings::default();
            self.user_data = UserData::read(&self.connection, settings).map_err(|_| rusqlite::Error::InvalidQuery)?;
        }
        Ok(())
    }

    /// Runs several reads on one state of a file that other services may change.
    pub fn read<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, LookUpError>) -> Result<T, LookUpError> {
        if self.lock.is_none() {
            return read(self);
        }
        self.connection.execute_batch("BEGIN")?;
        let result = read(self);
        self.connection.execute_batch("COMMIT")?;
        result
    }

    pub fn user_data(&self) -> &UserData {
        &self.user_data
    }

    /// Replaces the records of an endpoint.
    pub fn load(&mut self, endpoint: &'static Endpoint, path: &str, records: &Columns) -> rusqlite::Result<()> {
        self.listings = Listings::default();
        self.user_data.load(&mut self.connection, endpoint, path, records)
    }

    /// Adds the records of a query that was run elsewhere.
    pub fn mirror(
        &mut self,
        endpoint: &'static Endpoint,
        records: &Columns,
        run: (&[Interaction], Option<usize>),
        settings: &Settings,
    ) -> Result<(), ServiceError> {
        self.listings = Listings::default();
        self.user_data.mirror(&mut self.connection, endpoint, records, run, settings)
    }

    /// Adds recorded responses; the last one to a request counts.
    pub fn load_cassette(&mut self, responses: &[(Request, Bytes)]) -> rusqlite::Result<()> {
        self.user_data.load_cassette(&mut self.connection, responses)
    }

    /// The body that was recorded of this exact request.
    pub fn recorded(&self, request: &Request) -> rusqlite::Result<Option<Vec<u8>>> {
        self.user_data.recorded(&self.connection, request)
    }

    /// Coverage of a request by a mirrored list.
    pub fn coverage(&self, endpoint: &'static Endpoint, table: &Table, parameters: &Parameters) -> Option<Coverage> {
        self.user_data.mirrored(endpoint).find_map(|query| query.coverage(table, parameters))
    }

    pub fn reader(&mut self) -> (&Connection, &mut Listings) {
        (&self.connection, &mut self.listings)
    }

    /// Adds new records at the head of the lists, among them records that the request selects.
    pub fn grow(&mut self, count: u32, request: Option<&Parameters>) -> rusqlite::Result<()> {
        let (world, turn) = (&self.world, self.turn);
        let focus = request.map(focus).unwrap_or_default();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let head = transaction.query_row(
            "SELECT coalesce((SELECT max(height) FROM chain_transaction), 0), \
             coalesce((SELECT transaction_time FROM chain_transaction ORDER BY seq DESC LIMIT 1), 0), \
             coalesce((SELECT max(height) FROM block), 0), \
             coalesce((SELECT block_time FROM block ORDER BY seq DESC LIMIT 1), 0)",
            [],
            |row| {
                let (height, time) = (row.get(0)?, row.get(1)?);
                Ok(synthesis::Head { height, time, zone_height: row.get(2)?, zone_time: row.get(3)?, turn })
            },
        )?;
        let nonce = |sender: &str| {
            let statement = "SELECT coalesce(max(nonce) + 1, 0) FROM chain_transaction WHERE from_address = ?";
            transaction.prepare_cached(statement)?.query_row([sender], |row| row.get(0))
        };
        synthesis::grow(world, head, nonce, count, &focus, &mut Loader::new(&transaction)?)?;
        transaction.commit()
    }

    /// The newest records turn out to be others, on both chains: what was there is gone.
    pub fn reorganize(&mut self, depth: u32, request: Option<&Parameters>) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let kept = |table: &Table| Ok::<_, rusqlite::Error>((last_row(&transaction, table)? - i64::from(depth)).max(0));
        let transactions = kept(&schema::CHAIN_TRANSACTION)?;
        for table in TABLES.into_iter().filter(|table| table.name != schema::TOKEN.name) {
            let (column, last) =
                if table.belongs() { ("transaction_seq", transactions) } else { ("seq", kept(table)?) };
            transaction.execute(&format!("DELETE FROM {} WHERE {column} > ?", table.name), [last])?;
        }
        transaction.execute("DELETE FROM party WHERE seq > ?", [transactions])?;
        // A file that is opened again holds another chain now.
        transaction.execute("UPDATE chain SET made_from = ''", [])?;
        transaction.commit()?;
        self.listings = Listings::default();
        self.turn += 1;
        self.grow(depth, request)
    }
}

fn focus(parameters: &Parameters) -> Focus {
    let text = |name| match parameters.get(name) {
        Some(ParamValue::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let (address, received) = (text("address"), parameters.get("direction") == Some(&ParamValue::Choice("to")));
    let (sender, receiver) = if received { (None, address) } else { (address, None) };
    Focus {
        sender,
        receiver,
        token: text("token_contract_address"),
        signer: text("from_address"),
        destination: text("to_address"),
    }
}

/// Writes rows, one prepared statement a table.
pub struct Loader<'c> {
    tables: Vec<Insert<'c>>,
    party: CachedStatement<'c>,
}

struct Insert<'c> {
    table: &'static Table,
    columns: Vec<Column>,
    statement: CachedStatement<'c>,
    last: i64,
}

impl<'c> Loader<'c> {
    pub fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        let insert = |table: &'static Table| {
            let statement = connection.prepare_cached(&table.insert())?;
            Ok(Insert { table, columns: table.columns(), statement, last: last_row(connection, table)? })
        };
        let tables = TABLES.into_iter().map(insert).collect::<rusqlite::Result<_>>()?;
        let party = connection.prepare_cached("INSERT OR IGNORE INTO party VALUES (?, ?, ?)")?;
        Ok(Self { tables, party })
    }
}

impl Sink for Loader<'_> {
    type Error = rusqlite::Error;

    fn put(&mut self, table: &'static Table, transaction: Option<i64>, row: &dyn Row) -> rusqlite::Result<i64> {
        let insert = self.tables.iter_mut().find(|insert| insert.table.name == table.name);
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
        for name in table.ranked() {
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

    fn put_party(&mut self, address: &str, side: &str, transaction: i64) -> rusqlite::Result<()> {
        self.party.execute((address, side, transaction)).map(|_| ())
    }
}
