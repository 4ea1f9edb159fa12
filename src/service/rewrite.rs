//! Changes below the head: reorganizations, records that are listed late, and pending ones that settle. A list stays in
//! the order of its heights, and its rows stay numbered without a gap.

use std::collections::HashMap;

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
        let before = last_up_to(connection, &schema::CHAIN_TRANSACTION, "height", *height)?;
        for child in [&schema::TOKEN_TRANSFER, &schema::EVENT_LOG] {
            let last = last_up_to(connection, child, "transaction_seq", before)?;
            let statement = format!("UPDATE {} SET transaction_seq = transaction_seq + 1 WHERE seq > ?", child.name);
            connection.prepare_cached(&statement)?.execute([last])?;
            let belonging = format!("UPDATE {} SET transaction_seq = ? WHERE transaction_seq = ?", child.late_name());
            connection.prepare_cached(&belonging)?.execute([-(before + 1), *late])?;
            let select = format!("SELECT seq FROM {} WHERE transaction_seq = ? ORDER BY seq", child.late_name());
            let rows = connection
                .prepare(&select)?
                .query_map([-(before + 1)], |row| row.get(0))?
                .collect::<Result<Vec<i64>, _>>()?;
            for (index, row) in rows.into_iter().enumerate() {
                insert(connection, child, row, last + index as i64)?;
            }
            let statement =
                format!("UPDATE {} SET transaction_seq = -transaction_seq WHERE transaction_seq < 0", child.name);
            connection.prepare_cached(&statement)?.execute([])?;
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

/// The late rows up to a height, with their heights.
fn late_up_to(connection: &Connection, table: &Table, column: &str, height: i64) -> rusqlite::Result<Vec<(i64, i64)>> {
    let statement = format!("SELECT seq, {column} FROM {} WHERE {column} <= ? ORDER BY seq", table.late_name());
    let mut statement = connection.prepare_cached(&statement)?;
    let rows = statement.query_map([height], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
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
}

/// Replaces the newest heights of both chains: their blocks get other hashes. About half of their records are included
/// again, some of them in the next block; in place of each other record there is a new one.
pub fn reorganize(connection: &Connection, world: &World, turn: u64, depth: u32) -> rusqlite::Result<()> {
    let mut random = Random::new(world.seed ^ (turn << 40), "reorganization");
    let replaced = replace_main_chain(connection, &mut random, depth)?;
    replace_zone_chain(connection, &mut random, depth, &replaced)
}

/// Returns the new hashes of the replaced transactions.
fn replace_main_chain(
    connection: &Connection,
    random: &mut Random,
    depth: u32,
) -> rusqlite::Result<HashMap<String, String>> {
    let kept = main_head(connection)?.0 - i64::from(depth);
    let mut replaced = HashMap::new();
    for table in ["late_chain_transaction", "chain_transaction"] {
        let rows = rows_above(connection, table, "height", "transaction_time", kept)?;
        let mut blocks: HashMap<i64, String> = HashMap::new();
        for (index, row) in rows.iter().enumerate() {
            let is_new = random.per_mille(500);
            let block = if is_new { row } else { block_of(&rows, index, random) };
            let hash = blocks.entry(block.height).or_insert_with(|| random.hash()).clone();
            let update = format!("UPDATE {table} SET block_hash = ?, height = ?, transaction_time = ? WHERE seq = ?");
            connection.prepare_cached(&update)?.execute(params![hash, block.height, block.time, row.seq])?;
            if is_new {
                let select = format!("SELECT tx_id FROM {table} WHERE seq = ?");
                let old: String = connection.prepare_cached(&select)?.query_row([row.seq], |row| row.get(0))?;
                let new = random.hash();
                let update = format!("UPDATE {table} SET tx_id = ? WHERE seq = ?");
                connection.prepare_cached(&update)?.execute(params![new, row.seq])?;
                replaced.insert(old, new);
            }
        }
    }
    Ok(replaced)
}

fn replace_zone_chain(
    connection: &Connection,
    random: &mut Random,
    depth: u32,
    replaced: &HashMap<String, String>,
) -> rusqlite::Result<()> {
    let kept = zone_head(connection)?.0 - i64::from(depth);
    for block in rows_above(connection, "block", "height", "block_time", kept)? {
        connection
            .prepare_cached("UPDATE block SET hash = ? WHERE seq = ?")?
            .execute(params![random.hash(), block.seq])?;
    }
    for table in ["late_cross_chain_transaction", "cross_chain_transaction"] {
        let rows = rows_above(connection, table, "zone_block_height", "zone_block_time", kept)?;
        for (index, row) in rows.iter().enumerate() {
            if random.per_mille(500) {
                let update = format!("UPDATE {table} SET zone_tx_hash = ? WHERE seq = ?");
                connection.prepare_cached(&update)?.execute(params![random.hash(), row.seq])?;
            } else {
                let block = block_of(&rows, index, random);
                let update = format!("UPDATE {table} SET zone_block_height = ?, zone_block_time = ? WHERE seq = ?");
                connection.prepare_cached(&update)?.execute([block.height, block.time, row.seq])?;
            }
            let select = format!("SELECT main_tx_hash FROM {table} WHERE seq = ?");
            let main: String = connection.prepare_cached(&select)?.query_row([row.seq], |row| row.get(0))?;
            if let Some(new) = replaced.get(&main) {
                let update = format!("UPDATE {table} SET main_tx_hash = ? WHERE seq = ?");
                connection.prepare_cached(&update)?.execute(params![new, row.seq])?;
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
    height: &str,
    time: &str,
    kept: i64,
) -> rusqlite::Result<Vec<Replaced>> {
    let select = format!("SELECT seq, {height}, {time} FROM {table} WHERE {height} > ? ORDER BY seq");
    let mut statement = connection.prepare_cached(&select)?;
    let rows =
        statement.query_map([kept], |row| Ok(Replaced { seq: row.get(0)?, height: row.get(1)?, time: row.get(2)? }))?;
    rows.collect()
}
