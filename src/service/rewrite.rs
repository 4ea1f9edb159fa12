//! Changes below the head: reorganizations, records that are listed late, and pending ones that settle. A list stays in
//! the order of its heights, and its rows stay numbered without a gap.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, params};

use super::schema::{self, TABLES, Table};
use super::synthesis::{Random, World};

/// Heights below which no pending transaction is looked for.
const OLDEST_PENDING: i64 = 10_000;

/// Creates the tables of rows that are not listed yet.
pub fn create_late_tables(connection: &Connection) -> rusqlite::Result<()> {
    for table in TABLES {
        let late = table.late_name();
        connection.execute(&format!("CREATE TEMP TABLE {late} AS SELECT * FROM {} WHERE 0", table.name), [])?;
    }
    Ok(())
}

/// Height of the newest transaction, listed or not, and the time of its block; 0 of an empty chain.
pub fn main_head(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let statement = "SELECT coalesce(max(height), 0), coalesce(max(transaction_time), 0) FROM (\
                     SELECT * FROM (SELECT height, transaction_time FROM chain_transaction ORDER BY seq DESC LIMIT 1) \
                     UNION ALL SELECT height, transaction_time FROM late_chain_transaction)";
    connection.prepare_cached(statement)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Height of the newest block of the zone chain, and its time; 0 of an empty chain.
pub fn zone_head(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let statement = "SELECT coalesce(max(height), 0), \
                     coalesce((SELECT block_time FROM block ORDER BY seq DESC LIMIT 1), 0) FROM block";
    connection.prepare_cached(statement)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Settles the transactions that have been pending for that many heights.
pub fn settle(connection: &Connection, heights: u32) -> rusqlite::Result<()> {
    let last = main_head(connection)?.0 - i64::from(heights);
    let statement = "UPDATE chain_transaction SET state = 'success' WHERE state = 'pending' AND height BETWEEN ? AND ?";
    connection.prepare_cached(statement)?.execute([last - OLDEST_PENDING, last])?;
    Ok(())
}

/// Lists the rows that are late by that many heights, each among the rows of its height. True if there were any.
pub fn list_late(connection: &Connection, heights: u32) -> rusqlite::Result<bool> {
    let last = main_head(connection)?.0 - i64::from(heights);
    let transactions = late_up_to(connection, &schema::CHAIN_TRANSACTION, "height", last)?;
    for (late, height) in &transactions {
        let before = place_of(connection, *late, *height)?;
        for child in [&schema::TOKEN_TRANSFER, &schema::EVENT_LOG] {
            list_late_children(connection, child, *late, before)?;
        }
        insert(connection, &schema::CHAIN_TRANSACTION, *late, before)?;
    }
    let last = zone_head(connection)?.0 - i64::from(heights);
    let crossings = late_up_to(connection, &schema::CROSS_CHAIN_TRANSACTION, "zone_block_height", last)?;
    for (late, height) in &crossings {
        let before = last_up_to(connection, &schema::CROSS_CHAIN_TRANSACTION, "zone_block_height", *height)?;
        insert(connection, &schema::CROSS_CHAIN_TRANSACTION, *late, before)?;
    }
    Ok(!transactions.is_empty() || !crossings.is_empty())
}

/// Lists the rows of `child` that belong to the late transaction `late`, which will follow the transaction `before`.
fn list_late_children(connection: &Connection, child: &Table, late: i64, before: i64) -> rusqlite::Result<()> {
    let name = child.name;
    let late_name = child.late_name();
    let last = last_up_to(connection, child, "transaction_seq", before)?;
    let make_room = format!("UPDATE {name} SET transaction_seq = transaction_seq + 1 WHERE seq > ?");
    connection.prepare_cached(&make_room)?.execute([last])?;
    // Negative for now: another late transaction may have the number that this one is going to have.
    let mark = format!("UPDATE {late_name} SET transaction_seq = ? WHERE transaction_seq = ?");
    connection.prepare_cached(&mark)?.execute([-(before + 1), late])?;
    let select = format!("SELECT seq FROM {late_name} WHERE transaction_seq = ? ORDER BY seq");
    let rows =
        connection.prepare(&select)?.query_map([-(before + 1)], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    for (index, row) in rows.into_iter().enumerate() {
        insert(connection, child, row, last + index as i64)?;
    }
    let unmark = format!("UPDATE {name} SET transaction_seq = -transaction_seq WHERE transaction_seq < 0");
    connection.prepare_cached(&unmark)?.execute([])?;
    Ok(())
}

/// The late rows up to a height, with their heights.
fn late_up_to(connection: &Connection, table: &Table, column: &str, height: i64) -> rusqlite::Result<Vec<(i64, i64)>> {
    let statement = format!("SELECT seq, {column} FROM {} WHERE {column} <= ? ORDER BY seq", table.late_name());
    let mut statement = connection.prepare_cached(&statement)?;
    let rows = statement.query_map([height], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// The row that a late transaction follows: within its block those of a sender are in the order of their nonces.
fn place_of(connection: &Connection, late: i64, height: i64) -> rusqlite::Result<i64> {
    let statement = "SELECT min(own.seq) - 1 FROM chain_transaction AS own JOIN late_chain_transaction AS late \
                     ON own.from_address = late.from_address AND own.nonce > late.nonce \
                     WHERE late.seq = ? AND own.height = ?";
    let before: Option<i64> = connection.prepare_cached(statement)?.query_row([late, height], |row| row.get(0))?;
    match before {
        Some(before) => Ok(before),
        None => last_up_to(connection, &schema::CHAIN_TRANSACTION, "height", height),
    }
}

/// The last row whose column is at most that value; 0 if there is none. Read from the end, not by an index (`+`).
fn last_up_to(connection: &Connection, table: &Table, column: &str, value: i64) -> rusqlite::Result<i64> {
    let statement =
        format!("SELECT coalesce((SELECT seq FROM {} WHERE +{column} <= ? ORDER BY seq DESC LIMIT 1), 0)", table.name);
    connection.prepare_cached(&statement)?.query_row([value], |row| row.get(0))
}

/// Moves a late row to its table, after the row `before`.
fn insert(connection: &Connection, table: &Table, late: i64, before: i64) -> rusqlite::Result<()> {
    let name = table.name;
    let columns = table.row_columns();
    let source = table.late_name();
    // In two steps, since no two rows may have one number meanwhile.
    connection.prepare_cached(&format!("UPDATE {name} SET seq = -seq WHERE seq > ?"))?.execute([before])?;
    connection.prepare_cached(&format!("UPDATE {name} SET seq = 1 - seq WHERE seq < 0"))?.execute([])?;
    let copy = format!("INSERT INTO {name} (seq, {columns}) SELECT ?, {columns} FROM {source} WHERE seq = ?");
    connection.prepare_cached(&copy)?.execute([before + 1, late])?;
    connection.prepare_cached(&format!("DELETE FROM {source} WHERE seq = ?"))?.execute([late])?;
    Ok(())
}

/// A row of a replaced height.
struct Replaced {
    seq: i64,
    height: i64,
    time: i64,
    /// Hash of the transaction of the main chain.
    main: String,
}

/// Replaces the newest heights of both chains: their blocks get other hashes. About half of their records are included
/// again, some of them in the next block; in place of each other record there is a new one. A transaction that moved value
/// to a height of the zone chain that stays is included again where it was.
pub fn reorganize(connection: &Connection, world: &World, turn: u64, depth: u32) -> rusqlite::Result<()> {
    let mut random = Random::new(world.seed ^ (turn << 40), "reorganization");
    replace_main_chain(connection, &mut random, depth)?;
    replace_zone_chain(connection, &mut random, depth)
}

const CROSSINGS: [&str; 2] = ["late_cross_chain_transaction", "cross_chain_transaction"];

fn replace_main_chain(connection: &Connection, random: &mut Random, depth: u32) -> rusqlite::Result<()> {
    let kept = main_head(connection)?.0 - i64::from(depth);
    let arrivals = Arrivals::read(connection, kept, zone_head(connection)?.0 - i64::from(depth))?;
    let mut blocks: HashMap<i64, String> = HashMap::new();
    let mut late_heights: HashSet<i64> = HashSet::new();
    for table in ["late_chain_transaction", "chain_transaction"] {
        let is_listed = table == schema::CHAIN_TRANSACTION.name;
        let rows = rows_above(connection, table, ["height", "transaction_time", "tx_id"], kept)?;
        for (index, row) in rows.iter().enumerate() {
            let is_new = random.per_mille(500) && !arrivals.stay.contains(&row.main);
            let next = if is_new { row } else { block_of(&rows, index, random) };
            let may_move = is_listed && !late_heights.contains(&row.height) && arrivals.allow(row, next);
            let is_moved = next.height > row.height && may_move;
            let block = if is_moved { next } else { row };
            if !is_listed {
                late_heights.insert(row.height);
            }
            if is_moved {
                move_logs(connection, row.seq, block.height)?;
            }
            let hash = blocks.entry(block.height).or_insert_with(|| random.hash()).clone();
            let new = if is_new { random.hash() } else { row.main.clone() };
            let update =
                format!("UPDATE {table} SET block_hash = ?, height = ?, transaction_time = ?, tx_id = ? WHERE seq = ?");
            connection.prepare_cached(&update)?.execute(params![hash, block.height, block.time, new, row.seq])?;
            if arrivals.times.contains_key(&row.main) && (is_new || is_moved) {
                replace_departure(connection, &row.main, &new, block)?;
            }
        }
    }
    Ok(())
}

/// Gives the other side of a transaction the hash that it has now, and its block.
fn replace_departure(connection: &Connection, before: &str, now: &str, block: &Replaced) -> rusqlite::Result<()> {
    for table in CROSSINGS {
        let update = format!(
            "UPDATE {table} SET main_tx_hash = ?, main_block_height = ?, main_block_time = ? WHERE main_tx_hash = ?"
        );
        connection.prepare_cached(&update)?.execute(params![now, block.height, block.time, before])?;
    }
    Ok(())
}

/// Other sides of the transactions that moved value from the replaced heights of the main chain.
struct Arrivals {
    /// Times on the zone chain, by hashes on the main chain.
    times: HashMap<String, i64>,
    /// Hashes of transactions with an arrival at a height that is not replaced.
    stay: HashSet<String>,
}

impl Arrivals {
    /// True if a transaction may be included in another block: value does not arrive before it was sent.
    fn allow(&self, row: &Replaced, block: &Replaced) -> bool {
        !self.stay.contains(&row.main) && self.times.get(&row.main).is_none_or(|arrival| *arrival >= block.time)
    }

    fn read(connection: &Connection, main_kept: i64, zone_kept: i64) -> rusqlite::Result<Self> {
        let mut arrivals = Self { times: HashMap::new(), stay: HashSet::new() };
        for table in CROSSINGS {
            let select = format!(
                "SELECT main_tx_hash, zone_block_height, zone_block_time FROM {table} WHERE main_block_height > ?"
            );
            let mut statement = connection.prepare_cached(&select)?;
            let mut rows = statement.query([main_kept])?;
            while let Some(row) = rows.next()? {
                let hash: String = row.get(0)?;
                if row.get::<_, i64>(1)? <= zone_kept {
                    arrivals.stay.insert(hash.clone());
                }
                arrivals.times.insert(hash, row.get(2)?);
            }
        }
        Ok(arrivals)
    }
}

/// Numbers the logs of a transaction that becomes the first one of a block, and those that follow there.
fn move_logs(connection: &Connection, seq: i64, height: i64) -> rusqlite::Result<()> {
    let count = "SELECT count(*), coalesce(min(log_index), 0) FROM event_log WHERE transaction_seq = ?";
    let (count, first): (i64, i64) =
        connection.prepare_cached(count)?.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for prefix in ["late_", ""] {
        let update = format!(
            "UPDATE {prefix}event_log SET log_index = log_index + ? WHERE transaction_seq IN \
             (SELECT seq FROM {prefix}chain_transaction WHERE height = ?)"
        );
        connection.prepare_cached(&update)?.execute([count, height])?;
    }
    let update = "UPDATE event_log SET log_index = log_index - ? WHERE transaction_seq = ?";
    connection.prepare_cached(update)?.execute([first, seq])?;
    Ok(())
}

fn replace_zone_chain(connection: &Connection, random: &mut Random, depth: u32) -> rusqlite::Result<()> {
    let kept = zone_head(connection)?.0 - i64::from(depth);
    for block in rows_above(connection, "block", ["height", "block_time", "hash"], kept)? {
        connection
            .prepare_cached("UPDATE block SET hash = ? WHERE seq = ?")?
            .execute(params![random.hash(), block.seq])?;
    }
    for table in CROSSINGS {
        let rows = rows_above(connection, table, ["zone_block_height", "zone_block_time", "main_tx_hash"], kept)?;
        for (index, row) in rows.iter().enumerate() {
            if random.per_mille(500) {
                let update = format!("UPDATE {table} SET zone_tx_hash = ? WHERE seq = ?");
                connection.prepare_cached(&update)?.execute(params![random.hash(), row.seq])?;
                continue;
            }
            let block = block_of(&rows, index, random);
            // A withdrawal leaves the zone chain before it arrives on the main chain.
            let update = format!(
                "UPDATE {table} SET zone_block_height = ?1, zone_block_time = ?2 \
                 WHERE seq = ?3 AND (tx_type = 'MainToZone' OR main_block_time >= ?2)"
            );
            let moved = connection.prepare_cached(&update)?.execute([block.height, block.time, row.seq])? as i64;
            for (height, change) in [(row.height, -moved), (block.height, moved)] {
                let update = "UPDATE block SET transaction_count = transaction_count + ? WHERE height = ?";
                connection.prepare_cached(update)?.execute([change, height])?;
            }
        }
    }
    Ok(())
}

/// The block that includes a record again: its own, or sometimes the next for the last record of a block.
fn block_of<'r>(rows: &'r [Replaced], index: usize, random: &mut Random) -> &'r Replaced {
    match rows.get(index + 1) {
        Some(next) if next.height > rows[index].height && random.per_mille(500) => next,
        _ => &rows[index],
    }
}

fn rows_above(
    connection: &Connection,
    table: &str,
    [height, time, main]: [&str; 3],
    kept: i64,
) -> rusqlite::Result<Vec<Replaced>> {
    let select = format!("SELECT seq, {height}, {time}, {main} FROM {table} WHERE {height} > ? ORDER BY seq");
    let mut statement = connection.prepare_cached(&select)?;
    let rows = statement.query_map([kept], |row| {
        Ok(Replaced { seq: row.get(0)?, height: row.get(1)?, time: row.get(2)?, main: row.get(3)? })
    })?;
    rows.collect()
}
