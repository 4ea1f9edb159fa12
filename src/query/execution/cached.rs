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
//! kept removes it, and the query is read as if there were no cache.

mod list;
mod settled;

use std::time::SystemTime;

use super::query_start::QueryStart;
use super::run::{Run, evidence_of};
use crate::cache::{Anchor, Cache, Entry, Extent, Facts, Key, Shape};
use crate::client::{Client, Error};
use crate::columns::{Column, Columns, Projection};
use crate::interface::RecordType;
use crate::message::{Hint, Message};
use crate::process;
use crate::query::evidence::Part;
use crate::query::request::{GrowthOrder, Query};
use crate::query::results::{CacheUse, Entries, Page, Records, Report};
use list::{HeldList, Joint, Settled};

const DIVIDED: &str = "A list that is longer than the result window is not kept";
const INCOMPLETE: &str = "An incomplete result is not kept";

/// Reads all records of a run, with its report.
pub async fn collect(start: QueryStart, mut run: Run) -> Result<(Records, Report), Error> {
    let records = match cache_of(start.query().client()) {
        Some(cache) => through(&cache, &start, &mut run).await?,
        None => read(&mut run).await?,
    };
    Ok((records, run.report().read()))
}

/// The cache of a client. One that plays a cassette has none: its requests are those that were recorded.
fn cache_of(client: &Client) -> Option<Cache> {
    let settings = client.settings();
    settings.cache.clone().filter(|_| settings.cassette.is_none())
}

async fn read(run: &mut Run) -> Result<Records, Error> {
    while run.next().await?.is_some() {}
    Ok(run.partial().read())
}

async fn through(cache: &Cache, start: &QueryStart, run: &mut Run) -> Result<Records, Error> {
    run.report().update(|report| report.cache = Some(CacheUse::default()));
    let kind = match Kind::of(start) {
        Ok(kind) => kind,
        Err(reason) => {
            note(run, reason);
            return read(run).await;
        }
    };
    let query = start.query();
    let reading = CachedRead { cache, query, key: key(start)?, record: query.record(), started: now(query.client()) };
    match kind {
        Kind::List => reading.list(run).await,
        Kind::Heights => reading.heights(run).await,
        Kind::Fixed => reading.fixed(run).await,
    }
}

/// Notes why a result is not kept, or was not taken from the cache.
fn note(run: &Run, reason: impl Into<Message>) {
    let reason = reason.into();
    run.report().update(|report| report.cache.get_or_insert_default().reason = Some(reason));
}

/// Unix milliseconds.
fn now(client: &Client) -> i64 {
    let since = client.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Kinds of queries by what is kept of them.
enum Kind {
    List,
    Heights,
    /// A lookup, or a list of one block: it does not change once it is settled.
    Fixed,
}

impl Kind {
    /// The kind of a query, or the reason why its result is not kept.
    fn of(start: &QueryStart) -> Result<Self, &'static str> {
        let query = start.query();
        if query.members().is_some() {
            return Err("Lists of several values are not kept");
        }
        if start.resumed_from().is_some() {
            return Err("The rest of a result is not kept");
        }
        if query.projection() != Projection::ALL {
            return Err("Results of some columns are not kept");
        }
        match query.growth_order() {
            Some(GrowthOrder::NewestFirst) if query.record().block().is_none() && has_small_pages(query) => {
                Err("Records without the hash of their block are kept in pages of the maximum size only")
            }
            Some(GrowthOrder::NewestFirst) => Ok(Self::List),
            Some(GrowthOrder::ByHeight) => Ok(Self::Heights),
            None if query.is_paged() && query.may_grow() => Err("A list that is not ordered by height is not kept"),
            None if query.record().block().is_none() => Err("Records without the hash of their block are not kept"),
            None => Ok(Self::Fixed),
        }
    }
}

/// True if a page shows less of a list than it could. Many equal records show that a list is the same, a few do not.
fn has_small_pages(query: &Query) -> bool {
    let wanted = query.max_items().unwrap_or(u64::MAX);
    query.max_page_size().is_some_and(|max| query.page_size() < max.min(wanted))
}

/// Key of the result of a query: the service with its names, the call with its arguments, and the form in which
/// this version keeps records. Accounts share it, since the chain is the same for all.
fn key(start: &QueryStart) -> Result<Key, Error> {
    let query = start.query();
    let settings = query.client().settings();
    let options = query.options();
    let mut asked = start.canonical_json()?;
    asked["exclude_undated"] = options.exclude_undated.into();
    asked["times"] = serde_json::to_value(options.times).unwrap_or_default();
    let declaration = format!("{:?} {:?}", query.endpoint(), query.record());
    let service = format!("{:?}", settings.deployment);
    Ok(Key::new(settings.base_url(), &service, query.endpoint().name, &asked, &declaration))
}

/// One read of a query with what the cache has of it.
struct CachedRead<'a> {
    cache: &'a Cache,
    query: &'a Query,
    key: Key,
    record: &'static RecordType,
    /// When it began, in Unix milliseconds.
    started: i64,
}

impl CachedRead<'_> {
    /// Returns the entry of the result.
    fn held(&self, run: &Run) -> Option<Entry> {
        self.noted(run, || self.cache.get(&self.key, self.record, self.started)).flatten()
    }

    /// The outcome of an operation on the cache, which may wait for another process. The query does not fail with the cache.
    fn noted<T>(&self, run: &Run, operation: impl FnOnce() -> Result<T, String>) -> Option<T> {
        process::long(operation).map_err(|failure| note(run, format!("The cache {failure}"))).ok()
    }

    /// Removes all that is kept of the service: its chain has changed below the settled heights.
    fn discard(&self, run: &Run) {
        note(run, "What was kept contradicted the service, and was removed");
        self.noted(run, || self.cache.discard_service(&self.key));
    }

    /// Reports the records that were not requested, and the evidence of all.
    fn served(&self, run: &Run, held: usize, records: &Records, as_of: i64) -> Result<(), Error> {
        let mut evidence = evidence_of(self.query, Part::FromFirst)?;
        records.chunks().iter().for_each(|rows| evidence.add(rows));
        let findings = evidence.findings(self.query.max_items().is_none());
        self.query.client().add_cached(held as u64);
        run.report().update(|report| {
            report.evidence = findings;
            report.records = records.len() as u64;
            if !records.is_empty() {
                // They are about a run without records.
                report.remarks = Entries::default();
            }
            let cache = report.cache.get_or_insert_default();
            cache.records = held as u64;
            cache.as_of = Some(as_of);
        });
        Ok(())
    }

    /// Keeps a result.
    fn keep(&self, run: &Run, records: &Records, extent: Extent, read_at: i64) {
        let entry = Entry { facts: Facts { extent, read_at }, rows: records.chunks().into() };
        self.noted(run, || self.cache.put(&self.key, self.record, &entry, now(self.query.client())));
    }

    /// Reads a list with its newest record first.
    async fn list(&self, run: &mut Run) -> Result<Records, Error> {
        let held = self.held(run);
        let read_at = held.as_ref().map_or(self.started, |entry| entry.facts.read_at);
        let held = held.and_then(|entry| HeldList::new(entry, self.query, self.cache.settle()));
        let joined = match held {
            Some(held) => self.joined(run, held).await?,
            None => Joined { shape: self.first_shape(run).await?, kept: None },
        };
        let Joined { shape, kept } = joined;
        let fresh = run.partial().read();
        let Some((held, joint)) = kept else {
            // All of it was requested.
            match shape {
                _ if run.is_divided() => note(run, DIVIDED),
                Some(shape) if run.report().read().complete => self.keep_list(run, &fresh, shape, self.started),
                _ => note(run, INCOMPLETE),
            }
            return Ok(fresh);
        };
        let records = held.join(&fresh, &joint);
        self.served(run, records.len() - joint.fresh, &records, self.started)?;
        if let (Some(shape), true, true) = (shape, joint.has_news, run.report().read().complete) {
            self.keep_list(run, &records, shape, read_at);
        }
        Ok(records)
    }

    /// Reads the whole list, and returns its size on its first page.
    async fn first_shape(&self, run: &mut Run) -> Result<Option<Shape>, Error> {
        let mut shape = None;
        while let Some(page) = run.next().await? {
            if page.number == 1 {
                shape = Some(self.shape(&page));
            }
        }
        Ok(shape)
    }

    fn shape(&self, page: &Page) -> Shape {
        Shape { total: page.total, total_pages: page.total_pages, page_size: self.query.page_size() }
    }

    /// Reads the first pages of a list, until they meet what is kept of it; all of it if they do not.
    async fn joined(&self, run: &mut Run, held: HeldList) -> Result<Joined, Error> {
        run.compare_pages();
        let mut shape = None;
        let mut joint = None;
        let mut is_compared = true;
        while let Some(page) = run.next().await? {
            let is_first = page.number == 1;
            if is_first {
                shape = Some(self.shape(&page));
            }
            let (Some(shape), true) = (shape, is_compared && joint.is_none()) else { continue };
            if !is_first && !held.may_meet(&page.columns) {
                continue;
            }
            match held.meet(&run.partial().read(), shape, is_first) {
                Ok(None) => {}
                Ok(Some(found)) => {
                    joint = Some(found);
                    run.end_here();
                }
                Err(list::Contradiction) => {
                    is_compared = false;
                    self.discard(run);
                    run.read_ahead();
                }
            }
        }
        let Some(found) = joint else { return Ok(Joined { shape, kept: None }) };
        // The first pages may have been read again meanwhile.
        let fresh = run.partial().read();
        let is_only_page = fresh.len() as u64 <= self.query.page_size();
        match shape.map(|shape| held.meet(&fresh, shape, is_only_page)) {
            Some(Ok(Some(joint))) if joint == found => Ok(Joined { shape, kept: Some((held, joint)) }),
            _ => {
                let problem = Message::new("the list changed while it was compared with the cache");
                Err(Error::Drift { endpoint: self.query.endpoint().name, problem: problem.hint(Hint::RetryLater) })
            }
        }
    }

    /// Keeps a list, and the highest settled block that it shows.
    fn keep_list(&self, run: &Run, records: &Records, shape: Shape, read_at: i64) {
        if let Some(settled) = Settled::of(records, self.cache.settle()) {
            self.saw_head(run, settled.top);
            self.anchor_by_list(run, records, settled.height);
        }
        self.keep(run, records, Extent::List { shape }, read_at);
    }

    /// Makes the highest settled block of a list the anchor, if the list shows that it is of the same chain as the anchor
    /// that is kept.
    fn anchor_by_list(&self, run: &Run, records: &Records, settled: i64) {
        let Some(found) = highest_block(records, settled) else { return };
        if let Some(kept) = self.anchor(run) {
            match highest_block(records, kept.height) {
                Some(shown) if shown == kept => {}
                Some(shown) if shown.height == kept.height => self.discard(run),
                _ => return,
            }
        }
        self.raise_anchor(run, &found);
    }

    /// The highest settled block of the chain whose hash is known. All that is kept below it is of the same chain.
    fn anchor(&self, run: &Run) -> Option<Anchor> {
        self.noted(run, || self.cache.anchor(&self.key, self.query.chain())).flatten()
    }

    fn raise_anchor(&self, run: &Run, anchor: &Anchor) {
        self.noted(run, || self.cache.raise_anchor(&self.key, self.query.chain(), anchor));
    }

    fn saw_head(&self, run: &Run, height: i64) {
        self.noted(run, || self.cache.saw_head(&self.key, self.query.chain(), height, now(self.query.client())));
    }
}

/// A list whose first pages were read.
struct Joined {
    shape: Option<Shape>,
    /// The list that is kept and the point where the pages meet it, unless all was read.
    kept: Option<(HeldList, Joint)>,
}

/// Heights of the rows.
fn heights(columns: &Columns) -> impl DoubleEndedIterator<Item = Option<i64>> + '_ {
    let heights = columns.record().height().and_then(|column| match columns.column(column) {
        Column::Integer(heights) => Some(heights),
        _ => None,
    });
    heights.into_iter().flatten()
}

/// The highest block up to a height, if the records have the hash of their block.
fn highest_block(records: &Records, most: i64) -> Option<Anchor> {
    let blocks = records.chunks().iter().filter_map(|chunk| highest_block_of(chunk, most));
    blocks.max_by_key(|anchor| anchor.height)
}

fn highest_block_of(columns: &Columns, most: i64) -> Option<Anchor> {
    let hash = columns.record().block()?;
    let rows = heights(columns).enumerate().filter_map(|(row, height)| Some((height?, row)));
    let (height, row) = rows.filter(|(height, _)| *height <= most).max_by_key(|(height, _)| *height)?;
    let block_hash = columns.text(hash, row)?.to_owned();
    Some(Anchor { height, block_hash })
}
