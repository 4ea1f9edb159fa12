//! `CachedRead`: the read of one list, or of slices, with what the cache has of it.

use super::lacking::{self, Contradicted};
use super::list::{Difference, HeldList, Joint, Settled, ends_recently};
use super::{INCOMPLETE, highest_block};
use crate::cache::{Anchor, Cache, Entry, Extent, Facts, Key, Shape};
use crate::client::Error;
use crate::columns::Projection;
use crate::interface::{RecordType, ResultLimit};
use crate::message::Message;
use crate::query::evidence::{Evidence, Part};
use crate::query::execution::kept_chain::{Compared, KeptChain, READ_DURING_REMOVAL, key, note, now};
use crate::query::execution::query_start::QueryStart;
use crate::query::execution::reasons::age_limit;
use crate::query::execution::run::{Run, evidence_of};
use crate::query::request::{GrowthOrder, Query};
use crate::query::results::{CacheUse, Entries, Page, Records, Report};

const AGED: &str = "The list may have lost its oldest records since it was kept, and was read again as a whole";
const NOT_MET: &str = "The pages of the list show no settled record that was kept, so that it was read as a whole";
/// Number of removals if the cache cannot be used: nothing is kept then.
const NEVER: i64 = -1;
const DIVIDED: &str = "A list that is longer than the result window is not kept";

/// Kinds of queries by what is kept of them, with what has been seen of the result.
pub(super) enum CachedKind {
    /// A list, by its size on its first page.
    List(Option<Shape>),
    Heights(HeightsRead),
    /// A lookup, or a list of one block: it does not change once it is settled.
    Fixed,
}

/// A range of heights that is read.
#[derive(Default)]
pub(super) struct HeightsRead {
    /// The newest block before it was read.
    pub newest: Option<Anchor>,
    /// The heights below, which are not requested.
    pub kept: Option<KeptHeights>,
}

/// Heights that are returned as they were kept.
pub(super) struct KeptHeights {
    pub low: i64,
    /// First height above them.
    pub next: i64,
    /// Height of the block that shows that they are of the chain.
    pub anchor: i64,
    /// When they were read, in Unix milliseconds.
    pub read_at: i64,
}

impl CachedKind {
    /// The kind of a query, or the reason why its result is not kept.
    fn of(start: &QueryStart) -> Result<Self, &'static str> {
        let query = start.query();
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
            Some(GrowthOrder::NewestFirst) => Ok(Self::List(None)),
            Some(GrowthOrder::ByHeight) => Ok(Self::Heights(HeightsRead::default())),
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

/// Key of the result of a query.
pub(super) fn key_of(start: &QueryStart) -> Result<Key, Error> {
    let options = start.query().options();
    let mut asked = start.canonical_json()?;
    asked["exclude_undated"] = options.exclude_undated.into();
    asked["times"] = serde_json::to_value((options.times, options.known_newest)).unwrap_or_default();
    Ok(key(start.query(), start.query().endpoint().name, &asked))
}

pub(super) struct CachedRead {
    pub cache: Cache,
    pub query: Query,
    is_of_set: bool,
    pub key: Key,
    pub record: &'static RecordType,
    /// When it began, in Unix milliseconds.
    pub started: i64,
    pub kind: CachedKind,
    /// Number of removals from the cache when the result was looked up.
    removals_before: i64,
    /// The anchor when the result was looked up.
    pub anchor_before: Option<Anchor>,
    /// Records that were kept of the result, if they were not served: the service may contradict them.
    pub contradicted: Option<Contradicted>,
}

impl CachedRead {
    /// `None` if the result is not kept: the report of the run has the reason.
    pub fn new(cache: Cache, start: &QueryStart, run: &Run) -> Result<Option<Self>, Error> {
        run.report().update(|report| report.cache = Some(CacheUse::default()));
        let kind = match CachedKind::of(start) {
            Ok(kind) => kind,
            Err(reason) => {
                note(run.report(), reason);
                return Ok(None);
            }
        };
        let shared = start.shared_heights();
        if let Some(shared) = &shared {
            run.report().share_shown(&shared.shown);
        }
        let query = start.query().clone();
        let (record, started) = (query.record(), now(query.client()));
        let key = key_of(start)?;
        Ok(Some(Self {
            cache,
            query,
            is_of_set: shared.is_some(),
            key,
            record,
            started,
            kind,
            removals_before: 0,
            anchor_before: None,
            contradicted: None,
        }))
    }

    /// Returns all records, if what is kept and few requests show them. Otherwise the caller reads on to the end of the
    /// run, which may have collected its first records already.
    pub async fn known(&mut self, run: &mut Run) -> Result<Option<Records>, Error> {
        let known = match self.kind {
            CachedKind::List(_) => self.known_list(run).await?,
            CachedKind::Heights(_) => {
                let (known, range) = self.known_heights(run).await?;
                self.kind = CachedKind::Heights(range);
                known
            }
            CachedKind::Fixed => self.known_fixed(run).await?,
        };
        if known.is_none() {
            self.key.removals = self.removals(run).await;
        }
        Ok(known)
    }

    /// Takes notice of a page of the run.
    pub fn add(&mut self, run: &Run, page: &Page) {
        if let CachedKind::List(shape) = &mut self.kind
            && is_first(run, page)
        {
            let page_size = self.query.page_size();
            *shape = Some(Shape { total: page.paging.total, total_pages: page.paging.total_pages, page_size });
        }
    }

    /// Keeps the records of a run that was read to its end.
    pub async fn finish(mut self, run: &Run, records: &Records) -> Result<(), Error> {
        self.compare_contradicted(run, records).await;
        match &self.kind {
            CachedKind::List(_) if run.is_divided() => note(run.report(), DIVIDED),
            CachedKind::List(Some(shape)) if self.has_all(run, records)? => {
                let shape = *shape;
                self.keep_list(run, records, shape, self.started).await;
            }
            CachedKind::List(_) => note(run.report(), INCOMPLETE),
            CachedKind::Heights(range) => {
                self.finish_heights(run, records, range).await?;
            }
            CachedKind::Fixed => {
                self.keep_fixed(run, records).await;
                self.compare_shown(run, records, None).await;
            }
        }
        Ok(())
    }

    /// Gives a reason if a result lacks records that were kept, although the chain was not reorganized. The beginning of a list
    /// may end above them.
    async fn compare_contradicted(&self, run: &Run, records: &Records) {
        let Some(kept) = self.contradicted.as_ref().filter(|_| self.query.max_items().is_none()) else { return };
        let drops_old =
            self.query.endpoint().limit == ResultLimit::LastYear && !ends_recently(&kept.records, &self.query);
        let missing = if !records.is_empty() {
            kept.num_missing(records, drops_old)
        } else if drops_old {
            0
        } else {
            self.num_missing_of_empty(run, kept).await
        };
        if missing > 0 {
            run.report().contradict_ended(lacking::reason(missing));
            // The next read believes the API.
            self.chain(run).noted(|| self.cache.discard(&self.key)).await;
        }
    }

    /// Number of the settled records of a result that has none any more. Without records it does not show whether the chain was
    /// reorganized there: a block that is known shows it. One that is absent does not, where other lists have what was kept.
    async fn num_missing_of_empty(&self, run: &Run, kept: &Contradicted) -> usize {
        let settled = kept.num_settled();
        if settled == 0 {
            return 0;
        }
        if let Some(anchor) = self.chain(run).anchor().await {
            // The query does not fail with it. A chain that cannot be compared explains no loss.
            let compared = self.chain(run).compared(&anchor).await;
            if self.is_of_set && compared.is_ok_and(|compared| compared == Compared::Absent) {
                return settled;
            }
        }
        let is_replaced = self.removals(run).await != self.removals_before;
        if is_replaced { 0 } else { settled }
    }

    /// Number of removals from the cache.
    pub async fn removals(&self, run: &Run) -> i64 {
        self.chain(run).removals().await.unwrap_or(NEVER)
    }

    /// Returns the entry of the result.
    pub async fn held(&mut self, run: &Run) -> Option<Entry> {
        let found = self.chain(run).noted(|| self.cache.get(&self.key, self.record, self.started)).await;
        let (removals, entry) = found.unwrap_or((NEVER, None));
        self.key.removals = removals;
        self.removals_before = removals;
        self.anchor_before = self.chain(run).anchor().await;
        entry
    }

    /// The chain that the cache has results of.
    pub fn chain<'a>(&'a self, run: &'a Run) -> KeptChain<'a> {
        KeptChain { cache: &self.cache, key: &self.key, query: &self.query, report: run.report() }
    }

    /// True if the records are all that the API has. A list of an address may be complete but for what is too old for it.
    fn has_all(&self, run: &Run, records: &Records) -> Result<bool, Error> {
        let report = run.report().read();
        if report.complete || self.query.endpoint().limit != ResultLimit::LastYear {
            return Ok(report.complete);
        }
        Ok(is_only(&report, self.age_limit(run, records, &self.evidence(records)?).as_ref()))
    }

    fn evidence(&self, records: &Records) -> Result<Evidence, Error> {
        let mut evidence = evidence_of(&self.query, Part::FromFirst)?;
        records.chunks().iter().for_each(|rows| evidence.add(rows));
        Ok(evidence)
    }

    /// Reason why records may be missing that are too old for the API, if the list was read to its end.
    fn age_limit(&self, run: &Run, records: &Records, evidence: &Evidence) -> Option<Message> {
        let count = records.len() as u64;
        let is_to_end = self.query.max_items().is_none_or(|wanted| count < wanted);
        age_limit(run.query(), count, evidence).filter(|_| is_to_end)
    }

    /// Reports records that were not requested.
    pub fn count_held(&self, run: &Run, held: usize, as_of: i64) {
        self.query.client().add_cached(held as u64);
        run.report().update(|report| {
            let cache = report.cache.get_or_insert_default();
            cache.records = held as u64;
            cache.as_of = Some(as_of);
        });
    }

    /// Reports all records, some of which were not requested, and their evidence. Returns true if they are all that the API
    /// has.
    pub fn served(&self, run: &Run, records: &Records) -> Result<bool, Error> {
        let evidence = self.evidence(records)?;
        let findings = evidence.findings(self.query.max_items().is_none());
        let limit = self.age_limit(run, records, &evidence);
        let is_limited = limit.is_some();
        let before = run.report().read();
        let has_all = before.complete || is_only(&before, limit.as_ref());
        limit.into_iter().for_each(|limit| run.report().add_reason(limit));
        run.report().update(|report| {
            report.evidence = findings;
            report.complete &= !is_limited;
            report.records = records.len() as u64;
            if !records.is_empty() {
                // They are about a run without records.
                report.remarks = Entries::default();
            }
        });
        Ok(has_all)
    }

    /// Keeps a result.
    pub async fn keep(&self, run: &Run, records: &Records, extent: Extent, read_at: i64) {
        let entry = Entry { facts: Facts { extent, read_at }, rows: records.chunks().into() };
        let now = now(self.query.client());
        let is_kept = self.chain(run).noted(|| self.cache.put(&self.key, self.record, &entry, now)).await;
        if is_kept == Some(false) {
            note(run.report(), READ_DURING_REMOVAL);
        }
    }

    /// Reads the first pages of a list, newest record first, until they meet what is kept of it.
    async fn known_list(&mut self, run: &mut Run) -> Result<Option<Records>, Error> {
        let Some(entry) = self.held(run).await else { return Ok(None) };
        let read_at = entry.facts.read_at;
        let Some(held) = HeldList::new(entry, &self.query, self.cache.settle()) else { return Ok(None) };
        if held.cannot_be_met() {
            note(run.report(), AGED);
            self.contradicted = Some(held.contradicted());
            return Ok(None);
        }
        let Some((shape, joint)) = self.met(run, &held).await? else {
            self.contradicted = Some(held.contradicted());
            return Ok(None);
        };
        let fresh = run.partial().read();
        let records = held.join(&fresh, &joint);
        self.count_held(run, records.len() - joint.fresh, self.started);
        if self.served(run, &records)? && joint.has_news {
            self.keep_list(run, &records, shape, read_at).await;
        }
        Ok(Some(records))
    }

    /// Reads pages until they meet the list that is kept. `None` if they do not.
    async fn met(&mut self, run: &mut Run, held: &HeldList) -> Result<Option<(Shape, Joint)>, Error> {
        run.compare_pages();
        let mut met = None;
        while let Some(page) = run.next().await? {
            self.add(run, &page);
            let is_first = is_first(run, &page);
            if is_first {
                // A list that changed meanwhile is read again.
                met = None;
            }
            let Some(shape) = self.shape() else { continue };
            if met.is_some() || !is_first && !held.may_meet(&page.columns) {
                continue;
            }
            match held.meet(&run.partial().read(), shape, is_first) {
                Ok(None) => {}
                Ok(Some(joint)) => {
                    met = Some((shape, joint));
                    run.end_here();
                }
                Err(difference) => {
                    match difference {
                        Difference::Contradiction => self.chain(run).discard().await,
                        Difference::Aged => note(run.report(), AGED),
                    }
                    run.read_without_comparison();
                    return Ok(None);
                }
            }
        }
        if met.is_none() {
            note(run.report(), NOT_MET);
        }
        Ok(met)
    }

    /// Size of a list on its first page.
    fn shape(&self) -> Option<Shape> {
        match self.kind {
            CachedKind::List(shape) => shape,
            _ => None,
        }
    }

    /// Keeps a list, and the highest settled block that it shows.
    async fn keep_list(&mut self, run: &Run, records: &Records, shape: Shape, read_at: i64) {
        if let Some(settled) = Settled::of(records, self.cache.settle()) {
            self.chain(run).saw_head(settled.top).await;
            self.anchor_by_list(run, records, settled.height).await;
        }
        self.keep(run, records, Extent::List { shape }, read_at).await;
    }

    /// Makes the highest settled block of a list the anchor, if the list shows that it is of the same chain as the anchor
    /// that is kept.
    async fn anchor_by_list(&mut self, run: &Run, records: &Records, settled: i64) {
        let Some(found) = highest_block(records, settled) else { return };
        if let Some(kept) = self.chain(run).anchor().await {
            match highest_block(records, kept.height) {
                Some(shown) if shown == kept => {}
                Some(shown) if shown.height == kept.height => {
                    self.chain(run).discard().await;
                    self.key.removals = self.removals(run).await;
                }
                _ => return,
            }
        }
        self.chain(run).raise_anchor(&found).await;
    }
}

/// True if a page begins with the first record of its list. Later pages of another size may have its number.
fn is_first(run: &Run, page: &Page) -> bool {
    page.number == 1 && run.partial().read().len() == page.columns.rows()
}

/// True if a result is incomplete for this reason alone.
fn is_only(report: &Report, reason: Option<&Message>) -> bool {
    reason.is_some_and(|reason| report.reasons.to_vec() == [reason.clone()])
}
