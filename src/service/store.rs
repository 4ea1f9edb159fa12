//! The database: opened or filled, read, and grown at its head. What the rows mean is the synthesis's affair.

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::database;
use super::kept_chains;
use super::listing::Listings;
use super::loader::Loader;
use super::parameters::{ParamValue, Parameters};
use super::rewrite;
use super::settings::{Delay, ServiceError, Settings};
use super::synthesis::{self, Focus, Growth, Past, Reserve, Token, World};
use super::user_data::UserData;
use crate::cassette::Request;
use crate::columns::Columns;
use crate::interface::Endpoint;

/// A request without a regular response.
pub enum LookUpError {
    Database(rusqlite::Error),
    /// The database has user data, but none for this request.
    NotHeld,
}

impl From<rusqlite::Error> for LookUpError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

#[derive(Debug)]
pub struct Store {
    connection: Connection,
    listings: Listings,
    world: Arc<World>,
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
        let Settings { seed, transactions, .. } = *settings;
        let (world, connection, lock) = match &settings.db {
            Some(path) => {
                let world = Arc::new(World::new(seed, transactions));
                let (connection, lock) = database::open(path, &world)?;
                (world, connection, lock)
            }
            None => {
                let (world, connection) = kept_chains::open(seed, transactions)?;
                (world, connection, None)
            }
        };
        let user_data = UserData::read(&connection)?;
        let version = database::version(&connection)?;
        rewrite::create_late_tables(&connection)?;
        let listings = Listings::default();
        let late = settings.late;
        let pending = settings.pending;
        Ok(Self { connection, listings, world, user_data, version, turn: 0, late, pending, lock })
    }

    /// Lets another service replace the chain in the file.
    pub fn unlock(&mut self) {
        self.lock = None;
    }

    /// Reads the index again if another service has changed the file.
    pub fn refresh(&mut self) -> rusqlite::Result<()> {
        let version = database::version(&self.connection)?;
        if self.lock.is_some() && version != self.version {
            self.version = version;
            self.listings = Listings::default();
            self.user_data = UserData::read(&self.connection).map_err(|_| rusqlite::Error::InvalidQuery)?;
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

    /// Adds recorded responses; the last one to a request counts.
    pub fn load_cassette(&mut self, responses: &[(Request, Bytes)]) -> rusqlite::Result<()> {
        self.user_data.load_cassette(&mut self.connection, responses)
    }

    /// The body that was recorded of this exact request.
    pub fn recorded(&self, request: &Request) -> rusqlite::Result<Option<Vec<u8>>> {
        self.user_data.recorded(&self.connection, request)
    }

    pub fn reader(&mut self) -> (&Connection, &mut Listings) {
        (&self.connection, &mut self.listings)
    }

    /// Adds new records at the head of the lists, among them records that the request selects.
    pub fn grow(&mut self, count: u32, request: Option<&Parameters>) -> rusqlite::Result<()> {
        let focus = request.map(focus).unwrap_or_default();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (height, time) = rewrite::main_head(&transaction)?;
        let (zone_height, zone_time) = rewrite::zone_head(&transaction)?;
        let head = synthesis::Heads { height, time, zone_height, zone_time, turn: self.turn };
        let [late_ppm, pending_ppm] =
            [self.late, self.pending].map(|delay| delay.map_or(0, |delay| (delay.share * 1e6) as u64));
        let growth = Growth { count, late_ppm, pending_ppm };
        synthesis::grow(
            &self.world,
            head,
            &PastRows(&transaction),
            growth,
            &focus,
            &mut Loader::growing(&transaction)?,
        )?;
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

/// The past of a growing chain, read from the database.
struct PastRows<'c>(&'c Connection);

impl Past for PastRows<'_> {
    type Error = rusqlite::Error;

    fn nonce(&self, sender: &str) -> rusqlite::Result<i64> {
        let statement = "SELECT coalesce(max(nonce) + 1, 0) FROM (\
                         SELECT nonce FROM chain_transaction WHERE from_address = ?1 \
                         UNION ALL SELECT nonce FROM late_chain_transaction WHERE from_address = ?1)";
        self.0.prepare_cached(statement)?.query_row([sender], |row| row.get(0))
    }

    fn reserve(&self, token: &Token) -> rusqlite::Result<Option<Reserve>> {
        let statement = "SELECT holder, other, units, id FROM reserve WHERE token = ?";
        let mut statement = self.0.prepare_cached(statement)?;
        let reserve = statement.query_row([&token.contract], |row| {
            let units: String = row.get(2)?;
            Ok(Reserve {
                holder: row.get(0)?,
                other: row.get(1)?,
                units: units.parse().unwrap_or_default(),
                id: row.get(3)?,
            })
        });
        reserve.optional()
    }
}

fn focus(parameters: &Parameters) -> Focus {
    let text = |name| match parameters.get(name) {
        Some(ParamValue::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let address = text("address");
    let received = parameters.get("direction") == Some(&ParamValue::Choice("to"));
    let (sender, receiver) = if received { (None, address) } else { (address, None) };
    Focus {
        sender,
        receiver,
        token: text("token_contract_address"),
        signer: text("from_address"),
        destination: text("to_address"),
    }
}
