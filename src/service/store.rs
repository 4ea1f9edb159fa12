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
use super::rewrite;
use super::schema::{Column, TABLES, Table, rank};
use super::settings::{Delay, ServiceError, Settings};
use super::synthesis::{self, Cell, Focus, Growth, Row, Sink, World};
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
    /// Records that are listed late.
    pub late: Option<Delay>,
    /// Transactions that are pending at first.
    pub pending: Option<Delay>,
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
        rewrite::create_late_tables(&connection)?;
        let (listings, late, pending) = (Listings::default(), settings.late, settings.pending);
        Ok(Self { connection, listings, world, user_data, version, turn: 0, late, pending, lock })
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
        let focus = request.map(focus).unwrap_or_default();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let ((height, time), (zone_height, zone_time)) =
            (rewrite::main_head(&transaction)?, rewrite::zone_head(&transaction)?);
        let head = synthesis::Head { height, time, zone_height, zone_time, turn: self.turn };
        let nonce = |sender: &str| {
            let statement = "SELECT coalesce(max(nonce) + 1, 0) FROM (\
                             SELECT nonce FROM chain_transaction WHERE from_address = ?1 \
                             UNION ALL SELECT nonce FROM late_chain_transaction WHERE from_address = ?1)";
            transaction.prepare_cached(statement)?.query_row([sender], |row| row.get(0))
        };
        let ppm = |delay: Option<Delay>| delay.map_or(0, |delay| (delay.share * 1e6) as u64);
        let growth = Growth { count, late_ppm: ppm(self.late), pending_ppm: ppm(self.pending) };
        synthesis::grow(&self.world, head, nonce, growth, &focus, &mut Loader::growing(&transaction)?)?;
        if let Some(pending) = self.pending {
            rewrite::settle(&transaction, pending.heights)?;
        }
        // Without a delay, what is still late is listed now.
        if rewrite::list_late(&transaction, self.late.map_or(0, |late| late.heights))? {
            self.listings = Listings::default();
        }
        transaction.commit()
    }

    /// Replaces the newest heights of both chains.
    pub fn reorganize(&mut self, depth: u32) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        rewrite::reorganize(&transaction, &self.world, self.turn, depth)?;
        // A file that is opened again holds another chain now.
        transaction.execute("UPDATE chain SET made_from = ''", [])?;
        transaction.commit()?;
        self.listings = Listings::default();
        self.turn += 1;
        Ok(())
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
    /// Tables of the rows that are not listed yet.
    late: Vec<Insert<'c>>,
    is_late: bool,
    party: CachedStatement<'c>,
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
        let insert = |table: &'static Table| Insert::new(connection, table, &table.late_name());
        Self::with_late(connection, TABLES.into_iter().map(insert).collect::<rusqlite::Result<_>>()?)
    }

    fn with_late(connection: &'c Connection, late: Vec<Insert<'c>>) -> rusqlite::Result<Self> {
        let insert = |table: &'static Table| Insert::new(connection, table, table.name);
        let tables = TABLES.into_iter().map(insert).collect::<rusqlite::Result<_>>()?;
        let party = connection.prepare_cached("INSERT OR IGNORE INTO party VALUES (?, ?, ?)")?;
        Ok(Self { tables, late, is_late: false, party })
    }
}

impl Sink for Loader<'_> {
    type Error = rusqlite::Error;

    fn put(&mut self, table: &'static Table, transaction: Option<i64>, row: &dyn Row) -> rusqlite::Result<i64> {
        let tables = if self.is_late { &mut self.late } else { &mut self.tables };
        let insert = tables.iter_mut().find(|insert| insert.table.name == table.name);
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

    fn set_late(&mut self, late: bool) {
        self.is_late = late;
    }

    fn put_party(&mut self, address: &str, side: &str, transaction: i64) -> rusqlite::Result<()> {
        self.party.execute((address, side, transaction)).map(|_| ())
    }
}
