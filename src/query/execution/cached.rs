//! `collect`: all records of a run, those of the client's cache among them.
//!
//! | Query | Kept | Next time |
//! |---|---|---|
//! | list, newest record first | the list, or its beginning | its first pages, down to a settled record that is kept |
//! | range of heights | its settled heights | the heights after them |
//! | lookup, list of one block | all, if it is settled | nothing |
//!
//! The first pages of a list show that the chain is still the one that is kept: a settled record has the hash of its
//! block. For the others the hash of a settled block above them is requested (`settled`). Whatever contradicts what is
//! kept removes it, and the query is read as if there were no cache. What the result lacks then without a reorganization that
//! would explain it is a reason (`lacking`).

mod lacking;
mod list;
mod list_run;
mod read;
mod settled;

use super::block_list::shown_records;
use super::kept_chain::{KeptChain, cache_of, highest_block_of};
use super::query_start::QueryStart;
use super::reasons::lacks_shown;
use super::run::Run;
use crate::cache::{Anchor, Cache};
use crate::client::Error;
use crate::columns::Columns;
use crate::query::request::{Members, Query};
use crate::query::results::{CacheUse, Partial, Records, Report};
use list_run::CachedList;
use read::{CachedRead, key_of};

/// State of a transaction that is not in a block yet, or may leave it.
const PENDING: &str = "pending";
const INCOMPLETE: &str = "An incomplete result is not kept";

/// Starts a run whose records `collect` reads into `partial`.
pub fn collecting(start: &QueryStart, partial: Partial) -> Run {
    match cache_of(start.query().client()) {
        Some(_) => Run::with_lists(start, partial, CachedList::begin),
        None => Run::collect_into(start, partial),
    }
}

/// Reads all records of a run, with its report.
pub async fn collect(start: QueryStart, mut run: Run) -> Result<(Records, Report), Error> {
    let records = match cache_of(start.query().client()) {
        Some(cache) => through(cache, &start, &mut run).await?,
        None => read(&mut run).await?,
    };
    Ok((records, run.report().read()))
}

async fn read(run: &mut Run) -> Result<Records, Error> {
    while run.next().await?.is_some() {}
    Ok(run.partial().read())
}

async fn through(cache: Cache, start: &QueryStart, run: &mut Run) -> Result<Records, Error> {
    run.report().update(|report| report.cache = Some(CacheUse::default()));
    if let Some(members) = start.query().members() {
        return read_set(&cache, members, start.query(), run).await;
    }
    let Some(mut reading) = CachedRead::new(cache, start, run)? else { return read(run).await };
    if let Some(records) = reading.known(run).await? {
        return Ok(records);
    }
    while let Some(page) = run.next().await? {
        reading.add(run, &page);
    }
    let records = run.partial().read();
    reading.finish(run, &records).await?;
    Ok(records)
}

/// Reads the lists of a set, each of which is a `CachedList`.
async fn read_set(cache: &Cache, members: &Members, query: &Query, run: &mut Run) -> Result<Records, Error> {
    run.share_shown();
    let report = run.report().clone();
    let key = key_of(&QueryStart::from(query.member(0)))?;
    let chain = KeptChain { cache, key: &key, query, report: &report };
    let records = read(run).await?;
    if lacks_shown_records(members, run, &records) {
        chain.discard().await;
        report.contradict_ended(lacks_shown(""));
    }
    Ok(records)
}

/// True if the lists of blocks lack records that responses of the cache showed, also after the list was read.
fn lacks_shown_records(members: &Members, run: &Run, records: &Records) -> bool {
    let heights = members.heights().chain(records.heights().flatten()).collect();
    let shown = shown_records(run.query(), run.report()).of(&heights);
    lacking::lacks_shown(records, &shown, i64::MIN..=i64::MAX)
}

/// True if a transaction is pending, or has not reached the other chain.
fn is_provisional(columns: &Columns, row: usize) -> bool {
    let column = |name| columns.record().position(name);
    let is_pending = column("state").is_some_and(|state| columns.text(state, row) == Some(PENDING));
    let mut sides = ["main_tx_hash", "zone_tx_hash"].into_iter().filter_map(column);
    is_pending || sides.any(|hash| columns.text(hash, row).is_none_or(str::is_empty))
}

/// The highest block up to a height, if the records have the hash of their block.
fn highest_block(records: &Records, max_height: i64) -> Option<Anchor> {
    let blocks = records.chunks().iter().filter_map(|chunk| highest_block_of(chunk, max_height));
    blocks.max_by_key(|anchor| anchor.height)
}
