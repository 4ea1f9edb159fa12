//! The database file: created, checked and filled by the first service that opens it, then shared by any number of
//! services and processes. Another chain may replace the one in the file only while no other service has it open.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::listing::last_row;
use super::loader::Loader;
use super::schema::{self, TABLES};
use super::settings::ServiceError;
use super::synthesis::{self, World};

/// Marks a file as a database of this service ("chfr").
const APPLICATION: i64 = 0x6368_6672;

/// Time that a statement waits for another connection's transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// The chain in memory.
pub fn filled(world: &World) -> rusqlite::Result<Connection> {
    let mut connection = empty()?;
    fill(&mut connection, world)?;
    Ok(connection)
}

/// A database in memory.
pub fn empty() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    configure(&connection)?;
    Ok(connection)
}

/// Opens the file, and locks it for as long as the returned handle lives where the system has advisory locks.
pub fn open(path: &Path, world: &World) -> Result<(Connection, Option<File>), ServiceError> {
    let invalid = |problem: String| ServiceError::setting("db", format!("({}) {problem}", path.display()));
    let failed = |error: std::io::Error| invalid(format!("cannot be opened: {error}; name a file that can be written"));
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
    loop {
        // Elsewhere locks are mandatory, and would keep the database itself out.
        let lock = if cfg!(unix) { file.try_lock() } else { Ok(()) };
        let is_shared = match lock {
            Ok(()) => false,
            Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => false,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {
                // Waits for a service that creates or fills the database.
                file.lock_shared().map_err(failed)?;
                true
            }
        };
        let mut connection = connect(path).map_err(invalid)?;
        if is_shared {
            if holds(&connection, world)? {
                return Ok((connection, Some(file)));
            }
            return Err(invalid(
                "is in use by a service with other transactions or another seed; use another file".into(),
            ));
        }
        let check: String = connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|error| invalid(format!("is damaged: {error}; delete it")))?;
        if check != "ok" {
            return Err(invalid(format!("is damaged: {}; delete it", check.replace('\n', " "))));
        }
        if holds(&connection, world)? {
            cut_back(&mut connection)?;
        } else {
            fill(&mut connection, world)?;
        }
        if !cfg!(unix) {
            return Ok((connection, Some(file)));
        }
        // Another service may get the lock before it is shared, and replace the chain.
        match file.lock_shared() {
            Err(error) if error.kind() != std::io::ErrorKind::Unsupported => return Err(failed(error)),
            _ if holds(&connection, world)? => return Ok((connection, Some(file))),
            _ => file.unlock().map_err(failed)?,
        }
    }
}

/// A number that changes when another connection has changed the file.
pub fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536;")?;
    connection.set_prepared_statement_cache_capacity(256);
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, String> {
    match open_own(path) {
        Ok(Some(connection)) => Ok(connection),
        Ok(None) => Err("is the database of another program; use another file".into()),
        Err(error) => Err(format!("cannot be used as the service's database: {error}; use another file")),
    }
}

/// Opens the database; `None` if it is that of another program.
fn open_own(path: &Path) -> rusqlite::Result<Option<Connection>> {
    let connection = Connection::open(path)?;
    configure(&connection)?;
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    let is_own = application == APPLICATION || (application == 0 && tables == 0);
    Ok(if is_own { Some(connection) } else { None })
}

fn holds(connection: &Connection, world: &World) -> rusqlite::Result<bool> {
    if !connection.table_exists(None, "chain")? {
        return Ok(false);
    }
    let made_from: Option<String> =
        connection.query_row("SELECT made_from FROM chain", [], |row| row.get(0)).optional()?;
    Ok(made_from.is_some_and(|made_from| made_from == world.fingerprint()))
}

/// Removes what grew last time, so that a seed gives the same chain in a file too.
fn cut_back(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for table in TABLES {
        let filled: i64 =
            transaction.query_row("SELECT last FROM filled WHERE name = ?", [table.name], |row| row.get(0))?;
        if last_row(&transaction, table.name)? > filled {
            transaction.execute(&format!("DELETE FROM {} WHERE seq > ?", table.name), [filled])?;
        }
    }
    transaction.execute("DELETE FROM reserve WHERE grown", [])?;
    transaction.commit()
}

/// Fills the database in one transaction: a file holds a complete chain or none.
fn fill(connection: &mut Connection, world: &World) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for name in ["chain", "filled", "party", "reserve"].into_iter().chain(TABLES.iter().map(|table| table.name)) {
        transaction.execute(&format!("DROP TABLE IF EXISTS {name}"), [])?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.execute(schema::PARTY, [])?;
    transaction.execute(schema::RESERVE, [])?;
    for table in TABLES {
        transaction.execute(&table.create(), [])?;
    }
    synthesis::fill(world, &mut Loader::new(&transaction)?)?;
    transaction.execute("CREATE TABLE filled (name TEXT PRIMARY KEY, last INTEGER)", [])?;
    for table in TABLES {
        for index in table.create_indexes() {
            transaction.execute(&index, [])?;
        }
        let last = last_row(&transaction, table.name)?;
        transaction.execute("INSERT INTO filled VALUES (?, ?)", (table.name, last))?;
    }
    transaction.execute("CREATE TABLE chain (made_from TEXT)", [])?;
    transaction.execute("INSERT INTO chain VALUES (?)", [world.fingerprint()])?;
    transaction.commit()
}
