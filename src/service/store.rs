//! The database: opened or filled, read, and grown at its head. What the rows mean is the synthesis's affair.

use std::path::Path;

use bytes::Bytes;
use rusqlite::types::{Null, Value as Sql};
use rusqlite::{CachedStatement, Connection, OptionalExtension};

use super::listing::{Listings, last_row};
use super::own::Own;
use super::parameters::{Parameters, Value};
use super::schema::{self, Column, TABLES, Table, rank};
use super::settings::{ServiceError, Settings};
use super::synthesis::{self, Cell, Focus, Row, Sink, World};
use crate::cassette::Request;
use crate::columns::Columns;
use crate::interface::Endpoint;

/// Marks a file as a database of this service ("chfr").
const APPLICATION: i64 = 0x6368_6672;

#[derive(Debug)]
pub struct Store {
    connection: Connection,
    listings: Listings,
    world: World,
    own: Own,
    /// How often the chain's end was replaced.
    turn: u64,
}

impl Store {
    /// A database kept in a file is used again if it holds this very chain, and made anew if another of ours.
    pub fn open(settings: &Settings) -> Result<Self, ServiceError> {
        let world = World::new(settings.seed, settings.transactions);
        let mut connection = match &settings.db {
            Some(path) => open_file(path)?,
            None => Connection::open_in_memory()?,
        };
        connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536;")?;
        connection.set_prepared_statement_cache_capacity(256);
        if holds(&connection, &world)? {
            cut_back(&mut connection)?;
        } else {
            fill(&mut connection, &world)?;
        }
        let own = Own::of(&connection).map_err(|problem| problem.at(settings.db.as_deref()))?;
        Ok(Self { connection, listings: Listings::default(), world, own, turn: 0 })
    }

    /// Whether a table of loaded records stands in for the made-up ones.
    pub fn owns(&self, table: &Table) -> bool {
        self.own.holds(table)
    }

    /// Puts these records in the place of whatever the endpoint has had.
    pub fn load(&mut self, endpoint: &'static Endpoint, records: &Columns) -> rusqlite::Result<()> {
        self.listings = Listings::default();
        self.own.load(&mut self.connection, endpoint, records)
    }

    /// Keeps recorded answers; the latest to a request is the one that is given.
    pub fn load_answers(&mut self, answers: &[(Request, Bytes)]) -> rusqlite::Result<()> {
        self.own.load_answers(&mut self.connection, answers)
    }

    /// The recorded answer to that very request.
    pub fn recorded(&self, request: &Request) -> rusqlite::Result<Option<Vec<u8>>> {
        self.own.recorded(&self.connection, request)
    }

    pub fn reader(&mut self) -> (&Connection, &mut Listings) {
        (&self.connection, &mut self.listings)
    }

    /// Puts new records at the head of the lists; also of what the answered request was about.
    pub fn grow(&mut self, count: u32, answered: Option<&Parameters>) -> rusqlite::Result<()> {
        let (world, turn) = (&self.world, self.turn);
        let focus = answered.map(focus).unwrap_or_default();
        let transaction = self.connection.transaction()?;
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
    pub fn reorganize(&mut self, depth: u32, answered: Option<&Parameters>) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
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
        self.grow(depth, answered)
    }
}

fn focus(parameters: &Parameters) -> Focus {
    let text = |name| match parameters.get(name) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let (address, received) = (text("address"), parameters.get("direction") == Some(&Value::Word("to")));
    let (sender, receiver) = if received { (None, address) } else { (address, None) };
    Focus {
        sender,
        receiver,
        token: text("token_contract_address"),
        signer: text("from_address"),
        destination: text("to_address"),
    }
}

fn open_file(path: &Path) -> Result<Connection, ServiceError> {
    let refuse = |problem: String| ServiceError::NotOurs { path: path.to_owned(), problem };
    let foreign = |error: rusqlite::Error| refuse(format!("cannot be used as the service's database: {error}"));
    let connection = Connection::open(path).map_err(foreign)?;
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(foreign)?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).map_err(foreign)?;
    if application == APPLICATION || (application == 0 && tables == 0) {
        return Ok(connection);
    }
    Err(refuse("is the database of another program".into()))
}

fn holds(connection: &Connection, world: &World) -> rusqlite::Result<bool> {
    if !connection.table_exists(None, "chain")? {
        return Ok(false);
    }
    let made_from: Option<String> =
        connection.query_row("SELECT made_from FROM chain", [], |row| row.get(0)).optional()?;
    Ok(made_from.is_some_and(|made_from| made_from == world.fingerprint()))
}

/// Takes away what was grown last time, so that a seed makes the same chain in a file too.
fn cut_back(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for table in TABLES {
        let filled: i64 =
            transaction.query_row("SELECT last FROM filled WHERE name = ?", [table.name], |row| row.get(0))?;
        if last_row(&transaction, table)? > filled {
            transaction.execute(&format!("DELETE FROM {} WHERE seq > ?", table.name), [filled])?;
        }
    }
    transaction.commit()
}

/// All in one transaction: a file holds a whole chain or none.
fn fill(connection: &mut Connection, world: &World) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for name in ["chain", "filled", "party"].into_iter().chain(TABLES.iter().map(|table| table.name)) {
        transaction.execute(&format!("DROP TABLE IF EXISTS {name}"), [])?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.execute(schema::PARTY, [])?;
    for table in TABLES {
        transaction.execute(&table.create(), [])?;
    }
    synthesis::fill(world, &mut Loader::new(&transaction)?)?;
    transaction.execute("CREATE TABLE filled (name TEXT PRIMARY KEY, last INTEGER)", [])?;
    for table in TABLES {
        for index in table.create_indexes() {
            transaction.execute(&index, [])?;
        }
        let last = last_row(&transaction, table)?;
        transaction.execute("INSERT INTO filled VALUES (?, ?)", (table.name, last))?;
    }
    transaction.execute("CREATE TABLE chain (made_from TEXT)", [])?;
    transaction.execute("INSERT INTO chain VALUES (?)", [world.fingerprint()])?;
    transaction.commit()
}

/// Writes rows, one prepared statement a table.
struct Loader<'c> {
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
    fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
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
