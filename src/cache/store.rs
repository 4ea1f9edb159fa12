//! The database of a cache. Each operation opens it, so that threads, forked children and other processes share no
//! connection; SQLite serializes their transactions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, TransactionBehavior, params};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

use super::{Anchor, Cache, Entry, Facts, Key, hash, hex};
use crate::columns::{Columns, from_json, to_json};
use crate::interface::RecordType;
use crate::process::{ForkSafeMutex, PerProcess};

/// Name of the database. Another version of the format has another name, and is ignored.
const FILE: &str = "chainframe-2.sqlite3";
/// Beginning and end of the names of databases of all versions.
const FILES: (&str, &str) = ("chainframe-", ".sqlite3");
/// Longest wait for the transaction of another process.
const BUSY: Duration = Duration::from_secs(5);

const TABLES: &str = "
    create table if not exists entries (
        digest text primary key, service text not null, base_url text not null, call text not null,
        arguments text not null, facts text not null, rows blob not null, checksum text not null,
        records integer not null, read_at integer not null, used_at integer not null
    );
    create table if not exists heads (
        service text not null, chain text not null, height integer not null, seen_at integer not null,
        primary key (service, chain)
    );
    create table if not exists anchors (
        service text not null, chain text not null, height integer not null, block_hash text not null,
        primary key (service, chain)
    );
    create table if not exists removals (service text primary key, number integer not null);
    create index if not exists entries_by_age on entries (read_at);";

/// Bytes of the database.
const SIZE: &str = "select page_count * page_size from pragma_page_count, pragma_page_size";

/// Times that all that was kept of the service `?1` was removed.
const REMOVALS: &str = "select coalesce((select number from removals where service = ?1), 0)";

/// Removes the entries that were used the longest time ago, except the latest of up to `?1` bytes together.
const OLDEST_BEYOND: &str = "
    delete from entries where digest in (
        select digest from (
            select digest, sum(length(rows)) over (order by used_at desc, digest) as bytes from entries
        ) where bytes > ?1
    )";

/// Time for which a database that another process has locked for longer than that is not used.
const LOCKED: Duration = Duration::from_secs(60);

/// Locks of the databases by directory, for [`Cache::turn`].
static TURNS: PerProcess<Arc<ForkSafeMutex<Turns>>> = PerProcess::new();

type Turns = HashMap<PathBuf, Arc<Mutex<Turn>>>;

/// Problem with the cache.
#[derive(Clone, Debug)]
pub struct Failure {
    /// A sentence.
    pub text: String,
    /// True if another process has locked the database.
    is_locked: bool,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { text, is_locked: false }
    }
}

/// Knowledge of a database that the tasks of this process share.
#[derive(Debug, Default)]
pub struct Turn {
    /// Failure of an operation that found it locked, and its time.
    locked: Option<(Failure, Instant)>,
}

impl Turn {
    /// Returns the outcome of an operation, without trying it for a while after one that found the database locked: each
    /// would wait as long.
    pub fn take<T>(&mut self, operation: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        if let Some((failure, at)) = &self.locked
            && at.elapsed() < LOCKED
        {
            return Err(failure.clone());
        }
        let outcome = operation();
        let locked = outcome.as_ref().err().filter(|failure| failure.is_locked);
        self.locked = locked.map(|failure| (failure.clone(), Instant::now()));
        outcome
    }
}

/// One result that is kept.
#[derive(Clone, Debug)]
pub struct Summary {
    pub base_url: String,
    pub call: String,
    /// Arguments as JSON.
    pub arguments: String,
    pub records: u64,
    pub bytes: u64,
    /// Unix milliseconds.
    pub read_at: i64,
    pub used_at: i64,
}

impl Cache {
    fn path(&self) -> PathBuf {
        self.directory().join(FILE)
    }

    /// Waits until no other task of this process uses the database: SQLite would let its thread sleep.
    pub async fn turn(&self) -> OwnedMutexGuard<Turn> {
        let turns = TURNS.get_with(Arc::default);
        let turn = turns.lock().entry(self.directory().to_owned()).or_default().clone();
        turn.lock_owned().await
    }

    /// Opens the database, which only its owner can read.
    fn open(&self) -> Result<Connection, Failure> {
        let path = self.path();
        if path.is_symlink() {
            return Err(format!("{} is a symbolic link; remove it, or name what it refers to", path.display()).into());
        }
        if !path.exists() {
            let mut options = std::fs::OpenOptions::new();
            options.create(true).append(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let opened = options.open(&path);
            opened.map_err(|error| format!("{} cannot be made: {error}", path.display()))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(&path, flags).and_then(|connection| {
            connection.busy_timeout(BUSY)?;
            // A power failure may lose or damage results, and the API has them.
            connection.pragma_update(None, "synchronous", "off")?;
            // The file shrinks when entries are removed.
            connection.pragma_update(None, "auto_vacuum", "full")?;
            connection.execute_batch(TABLES)?;
            Ok(connection)
        });
        opened.map_err(|error| self.failed(&error))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, Failure> {
        let mut connection = self.open()?;
        work(&mut connection).map_err(|error| self.failed(&error))
    }

    /// The failure of an operation. A database that is damaged is removed, and made again by the next operation.
    fn failed(&self, error: &rusqlite::Error) -> Failure {
        let path = self.path();
        let is_damaged = matches!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
        );
        let removed = if is_damaged && std::fs::remove_file(&path).is_ok() { ", and was removed" } else { "" };
        let is_locked = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
        Failure { text: format!("{} cannot be used: {error}{removed}", path.display()), is_locked }
    }

    /// Returns what is kept of a result, unless it is too old or not as it was written, and the removals before.
    pub fn get(&self, key: &Key, record: &'static RecordType, now: i64) -> Result<(i64, Option<Entry>), Failure> {
        let oldest = self.oldest(now);
        let (removals, found): (i64, Option<(String, Vec<u8>, String)>) = self.with(|connection| {
            // Before the entry: what is kept after a removal is not taken for what was kept before.
            let removals = removals_of(connection, key)?;
            let query = "select facts, rows, checksum from entries where digest = ?1 and read_at between ?2 and ?3";
            let row = connection
                .query_row(query, params![key.digest, oldest, now], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            let found = row.optional()?;
            if found.is_some() {
                connection.execute("update entries set used_at = ?2 where digest = ?1", params![key.digest, now])?;
            }
            Ok((removals, found))
        })?;
        let Some(stored) = found else { return Ok((removals, None)) };
        let entry = read_entry(key, record, &stored);
        if entry.is_none() {
            self.discard(key)?;
        }
        Ok((removals, entry))
    }

    /// Keeps a result in place of what was kept of it, and removes what exceeds the bounds. `false` if the service was removed
    /// since the result began to be read.
    pub fn put(&self, key: &Key, record: &'static RecordType, entry: &Entry, now: i64) -> Result<bool, Failure> {
        self.put_below(key, record, entry, now, None)
    }

    /// Keeps a result as `put` does, only if a chain still has the anchor that the result is below.
    pub fn put_below(
        &self,
        key: &Key,
        record: &'static RecordType,
        entry: &Entry,
        now: i64,
        below: Option<(&str, &Anchor)>,
    ) -> Result<bool, Failure> {
        let rows = to_json(record, &entry.rows).map_err(|error| error.to_string())?;
        let facts = serde_json::to_string(&entry.facts).map_err(|error| error.to_string())?;
        let records: usize = entry.rows.iter().map(Columns::rows).sum();
        let sum = checksum(key, &facts, &rows);
        let max_bytes = i64::try_from(self.max_bytes()).unwrap_or(i64::MAX);
        let oldest = self.oldest(now);
        self.with(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let is_below = match below {
                Some((chain, anchor)) => anchor_of(&transaction, key, chain)?.as_ref() == Some(anchor),
                None => true,
            };
            if !is_below || removals_of(&transaction, key)? != key.removals {
                return Ok(false);
            }
            transaction.execute(
                "insert or replace into entries values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                params![
                    key.digest,
                    key.service,
                    key.base_url,
                    key.call,
                    key.arguments,
                    facts,
                    rows,
                    sum,
                    i64::try_from(records).unwrap_or(i64::MAX),
                    entry.facts.read_at,
                    now
                ],
            )?;
            transaction.execute("delete from entries where read_at < ?1 or read_at > ?2", params![oldest, now])?;
            let size: i64 = transaction.query_row(SIZE, [], |row| row.get(0))?;
            // All entries are smaller than the database.
            if size > max_bytes {
                transaction.execute(OLDEST_BEYOND, params![max_bytes])?;
            }
            transaction.commit()?;
            Ok(true)
        })
    }

    /// Removes one result.
    pub fn discard(&self, key: &Key) -> Result<(), Failure> {
        self.with(|connection| {
            connection.execute("delete from entries where digest = ?1", params![key.digest]).map(|_| ())
        })
    }

    /// Removes all that is kept of a service, since its chain has changed where it was taken not to change.
    pub fn discard_service(&self, key: &Key) -> Result<(), Failure> {
        self.with(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for table in ["entries", "heads", "anchors"] {
                transaction.execute(&format!("delete from {table} where service = ?1"), params![key.service])?;
            }
            let count = "insert into removals values (?1, 1) on conflict do update set number = number + 1";
            transaction.execute(count, params![key.service])?;
            transaction.commit()
        })
    }

    /// Times that all that was kept of a service was removed.
    pub fn removals(&self, key: &Key) -> Result<i64, Failure> {
        self.with(|connection| removals_of(connection, key))
    }

    /// The highest height that was seen of a chain, and when.
    pub fn head(&self, key: &Key, chain: &str) -> Result<Option<(i64, i64)>, Failure> {
        self.with(|connection| {
            let query = "select height, seen_at from heads where service = ?1 and chain = ?2";
            connection.query_row(query, params![key.service, chain], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })
    }

    pub fn saw_head(&self, key: &Key, chain: &str, height: i64, now: i64) -> Result<(), Failure> {
        self.with(|connection| {
            let statement = format!(
                "insert into heads select ?1, ?3, ?4, ?5 where ({REMOVALS}) = ?2 on conflict do update \
                 set height = max(height, excluded.height), seen_at = max(seen_at, excluded.seen_at)"
            );
            connection.execute(&statement, params![key.service, key.removals, chain, height, now]).map(|_| ())
        })
    }

    /// The highest settled block of a chain whose hash is known. None if the service was removed since the key was looked up.
    pub fn anchor(&self, key: &Key, chain: &str) -> Result<Option<Anchor>, Failure> {
        self.with(|connection| anchor_of(connection, key, chain))
    }

    /// Keeps the block if it is higher than the one that is kept.
    pub fn raise_anchor(&self, key: &Key, chain: &str, anchor: &Anchor) -> Result<(), Failure> {
        self.with(|connection| {
            let statement = format!(
                "insert into anchors select ?1, ?3, ?4, ?5 where ({REMOVALS}) = ?2 on conflict do update \
                 set height = excluded.height, block_hash = excluded.block_hash where excluded.height > anchors.height"
            );
            let parameters = params![key.service, key.removals, chain, anchor.height, anchor.block_hash];
            connection.execute(&statement, parameters).map(|_| ())
        })
    }

    /// All results, the one that was used last first.
    pub fn list(&self) -> Result<Vec<Summary>, Failure> {
        if !self.path().exists() {
            return Ok(Vec::new());
        }
        self.with(|connection| {
            let query = "select base_url, call, arguments, records, length(rows), read_at, used_at from entries \
                         order by used_at desc, digest";
            let mut statement = connection.prepare(query)?;
            let rows = statement.query_map([], |row| {
                Ok(Summary {
                    base_url: row.get(0)?,
                    call: row.get(1)?,
                    arguments: row.get(2)?,
                    records: row.get::<_, i64>(3)?.unsigned_abs(),
                    bytes: row.get::<_, i64>(4)?.unsigned_abs(),
                    read_at: row.get(5)?,
                    used_at: row.get(6)?,
                })
            })?;
            rows.collect()
        })
    }

    /// Removes all results, those of other versions too, and returns how many of this version there were.
    pub fn clear(&self) -> Result<usize, Failure> {
        let count = self.list().map_or(0, |entries| entries.len());
        let failed = |error: std::io::Error| format!("{} cannot be cleared: {error}", self.directory().display());
        for file in std::fs::read_dir(self.directory()).map_err(failed)? {
            let file = file.map_err(failed)?;
            let name = file.file_name();
            let name = name.to_string_lossy();
            let name = name.strip_suffix("-journal").unwrap_or(&name);
            if name.starts_with(FILES.0) && name.ends_with(FILES.1) {
                std::fs::remove_file(file.path()).map_err(failed)?;
            }
        }
        Ok(count)
    }

    /// Time before which a result was read too long ago.
    fn oldest(&self, now: i64) -> i64 {
        now.saturating_sub(i64::try_from(self.max_age().as_millis()).unwrap_or(i64::MAX))
    }
}

fn removals_of(connection: &Connection, key: &Key) -> rusqlite::Result<i64> {
    connection.query_row(REMOVALS, params![key.service], |row| row.get(0))
}

fn anchor_of(connection: &Connection, key: &Key, chain: &str) -> rusqlite::Result<Option<Anchor>> {
    let query =
        format!("select height, block_hash from anchors where service = ?1 and ({REMOVALS}) = ?2 and chain = ?3");
    let found = connection.query_row(&query, params![key.service, key.removals, chain], |row| {
        Ok(Anchor { height: row.get(0)?, block_hash: row.get(1)? })
    });
    found.optional()
}

/// A stored result from its facts, rows and checksum; `None` if it is not as it was written.
fn read_entry(key: &Key, record: &'static RecordType, (facts, rows, sum): &(String, Vec<u8>, String)) -> Option<Entry> {
    if checksum(key, facts, rows) != *sum {
        return None;
    }
    let facts: Facts = serde_json::from_str(facts).ok()?;
    Some(Entry { facts, rows: from_json(record, rows).ok()?.into() })
}

fn checksum(key: &Key, facts: &str, rows: &[u8]) -> String {
    hash(&[&key.digest, facts, &hex(&Sha256::digest(rows))])
}

#[cfg(test)]
mod tests;
