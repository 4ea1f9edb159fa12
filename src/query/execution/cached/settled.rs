//! Ranges of heights, lookups and lists of one block: what is settled of them is not requested again. One request shows
//! that the chain has not changed there: that of a settled block above, whose hash is kept. While the newest block is the
//! same, a range up to it is not requested again either.

use std::ops::RangeInclusive;

use super::lacking::{Contradicted, has_other_block, lacks_shown};
use super::list::{before_provisional, has_provisional};
use super::read::{CachedRead, HeightsRead, KeptHeights};
use super::{INCOMPLETE, highest_block};
use crate::cache::{Anchor, Entry, Extent};
use crate::client::Error;
use crate::interface::RecordType;
use crate::message::{Hint, Message};
use crate::query::execution::block_list::{fetch_newest_rows, shown_records};
use crate::query::execution::heights::ChainHeights;
use crate::query::execution::kept_chain::{READ_DURING_REMOVAL, highest_block_of, note, now};
use crate::query::execution::reasons;
use crate::query::execution::run::Run;
use crate::query::results::Records;

const NOT_SETTLED: &str = "The records are not settled yet, and not kept";

const REPLACED: &str = "A later response contradicts records of the cache that are in the result: the chain was reorganized \
                        while it was read, or a part of the service has another one";

const NOT_COMPARED: &str = "The chain could not be compared with what is kept, and the result is not kept";

/// Time after which the head of the chain is asked for again, in milliseconds.
const HEAD_VALID: i64 = 60_000;

impl CachedRead {
    /// Returns a range of heights, lowest first. Otherwise the caller reads the heights above those that are kept, which the
    /// run has collected.
    pub(super) async fn known_heights(&mut self, run: &mut Run) -> Result<(Option<Records>, HeightsRead), Error> {
        let mut held = self.held(run).await.and_then(|entry| HeldHeights::new(entry, self.record));
        let mut range = HeightsRead::default();
        if held.as_ref().is_none_or(HeldHeights::is_open) {
            range.newest = self.newest(run).await?;
            if let Some(held) = held.take_if(|held| held.head.is_some() && held.head == range.newest) {
                if self.forget_if_lacking(run, &held.records, held.low..=i64::MAX).await {
                    return Ok((None, range));
                }
                return Ok((Some(self.all_held(run, held, self.started)?), range));
            }
        }
        let held = held.filter(|held| self.shows_begin(held));
        let anchor = match &held {
            Some(_) => self.chain(run).unchanged_anchor(i64::MIN, true).await?,
            None => None,
        };
        let Some((anchor, as_of)) = anchor else {
            self.contradicted = held.map(HeldHeights::contradicted);
            return Ok((None, range));
        };
        let Some(mut held) = held else { return Ok((None, range)) };
        held.cut(anchor.height);
        if self.forget_if_lacking(run, &held.records, held.low..=held.next - 1).await {
            return Ok((None, range));
        }
        let wanted = self.query.max_items().map(|max_items| max_items.saturating_sub(held.records.len() as u64));
        if wanted == Some(0) || !held.is_open() {
            return Ok((Some(self.all_held(run, held, as_of)?), range));
        }
        run.continue_after(&held.records, held.next, wanted)?;
        self.count_held(run, held.records.len(), as_of);
        range.kept = Some(KeptHeights { low: held.low, next: held.next, anchor: anchor.height, read_at: held.read_at });
        Ok((None, range))
    }

    /// True if what is kept of a range shows where it begins: the height of a time is that of the chain up to an anchor that is
    /// not below it.
    fn shows_begin(&self, held: &HeldHeights) -> bool {
        let begins_at_time = self.query.unresolved().is_some_and(|range| range.start_time.is_some());
        !begins_at_time || held.low < held.next
    }

    /// Keeps a range of heights that was read to its end.
    pub(super) async fn finish_heights(&self, run: &Run, records: &Records, range: &HeightsRead) -> Result<(), Error> {
        if range.kept.is_some() {
            self.served(run, records)?;
        }
        if !self.is_cut(records) {
            report_lag(run, range);
        }
        let read_at = range.kept.as_ref().map_or(self.started, |kept| kept.read_at);
        self.keep_heights(run, records, range.newest.clone(), read_at).await;
        if let Some(kept) = &range.kept
            && self.is_replaced(run, records, kept).await
        {
            run.report().contradict_ended(Message::new(REPLACED).hint(Hint::RunAgain));
        }
        self.compare_shown(run, records, range.kept.as_ref().map(|kept| kept.low)).await;
        Ok(())
    }

    /// True if a later response showed another chain than that of the heights that were kept and are returned.
    async fn is_replaced(&self, run: &Run, records: &Records, kept: &KeptHeights) -> bool {
        if has_other_block(records, &shown_records(&self.query, run.report()), kept.low..=kept.next - 1) {
            self.chain(run).discard().await;
            return true;
        }
        self.chain(run).removals().await.is_some_and(|removals| removals > self.key.removals)
    }

    /// True if `max_items` may have ended the result.
    fn is_cut(&self, records: &Records) -> bool {
        self.query.max_items().is_some_and(|max_items| records.len() as u64 >= max_items)
    }

    fn all_held(&self, run: &mut Run, held: HeldHeights, as_of: i64) -> Result<Records, Error> {
        run.end_unread();
        self.count_held(run, held.records.len(), as_of);
        self.served(run, &held.records)?;
        Ok(held.records)
    }

    /// The newest block: while it is the same, no height has changed.
    async fn newest(&self, run: &Run) -> Result<Option<Anchor>, Error> {
        let newest = fetch_newest_rows(&self.query, run.report()).await?;
        Ok(highest_block_of(&newest, i64::MAX))
    }

    /// Returns a lookup or a list of one block.
    pub(super) async fn known_fixed(&mut self, run: &mut Run) -> Result<Option<Records>, Error> {
        let Some(entry) = self.held(run).await else { return Ok(None) };
        if entry.facts.extent != Extent::Settled {
            return Ok(None);
        }
        let records = Records::new(self.record, entry.rows.to_vec());
        // A comparison takes one request, as much as a small result takes itself.
        let is_costly = self.query.slices().count() > 1 || records.len() as u64 > self.query.page_size().max(1_000);
        let top = highest(&records).unwrap_or(i64::MAX);
        let Some((_, as_of)) = self.chain(run).unchanged_anchor(top, is_costly).await? else {
            self.contradicted = Some(Contradicted { settled: highest(&records), records });
            return Ok(None);
        };
        if self.forget_if_lacking(run, &records, self.heights_of(&records)).await {
            return Ok(None);
        }
        run.end_unread();
        self.count_held(run, records.len(), as_of);
        self.served(run, &records)?;
        Ok(Some(records))
    }

    /// The heights of records, which are all of their heights.
    fn heights_of(&self, records: &Records) -> RangeInclusive<i64> {
        let requested = self.query.height();
        let low = requested.or(lowest(records)).unwrap_or(i64::MAX);
        let high = requested.or(highest(records)).unwrap_or(i64::MIN);
        low..=high
    }

    /// Removes what is kept of the result if it lacks records of these heights that a response showed: it is read again.
    async fn forget_if_lacking(&self, run: &Run, held: &Records, heights: RangeInclusive<i64>) -> bool {
        let is_lacking = lacks_shown(held, &shown_records(&self.query, run.report()), heights);
        if is_lacking {
            self.chain(run).noted(|| self.cache.discard(&self.key)).await;
        }
        is_lacking
    }

    /// Gives a reason if a result that was read lacks records that responses beside those of its lists showed.
    /// `low` is the lowest height of a range of which the run has requested higher ones only.
    pub(super) async fn compare_shown(&self, run: &Run, records: &Records, low: Option<i64>) {
        if self.is_cut(records) || !run.report().read().complete {
            return;
        }
        let requested = run.query().slices().bounds();
        let heights = requested.map_or_else(|| self.heights_of(records), |(first, last)| low.unwrap_or(first)..=last);
        if self.forget_if_lacking(run, records, heights).await {
            run.report().contradict_ended(reasons::lacks_shown(""));
        }
    }

    /// Keeps a range of heights, up to the anchor: above it, also a height without records may get some in a reorganization that
    /// no comparison shows.
    async fn keep_heights(&self, run: &Run, records: &Records, newest: Option<Anchor>, read_at: i64) {
        if !run.report().read().complete {
            note(run.report(), INCOMPLETE);
            return;
        }
        let range = run.query().slices().bounds();
        let (Some(top), Some((low, last)), true) = (highest(records), range, is_ascending(records)) else { return };
        let low = low.min(lowest(records).unwrap_or(low));
        let Some(newest) = newest else { return };
        let settled = newest.height - self.cache.settle();
        let settled = settled.min(before_provisional(records).unwrap_or(i64::MAX));
        let is_cut = self.is_cut(records);
        let reaches_newest = !is_cut && top <= newest.height && newest.height <= last;
        if settled < low && !reaches_newest {
            note(run.report(), NOT_SETTLED);
            return;
        }
        let Some(anchored) = self.anchored_height(run, records, settled).await else { return };
        // After the anchor was learned: the lists and the anchor are of one chain if the block that was the newest one before
        // is still there. The query does not fail with it: its result is complete.
        if self.chain(run).block(newest.height).await.ok().flatten().as_ref() != Some(&newest) {
            note(run.report(), "The chain changed while a range of heights was read, which is not kept");
            return;
        }
        self.chain(run).saw_head(newest.height).await;
        let settled = settled.min(anchored);
        // `max_items` may have cut the records of the highest height: this height is read again.
        let next = if is_cut { top.min(settled + 1) } else { (last + 1).min(settled + 1) }.max(low);
        if next == low && !reaches_newest {
            note(run.report(), NOT_SETTLED);
            return;
        }
        let end = if is_cut { top } else { last };
        let is_ended = end <= settled && (is_cut || self.shows_end(end, anchored));
        let end = is_ended.then_some(end);
        let head = reaches_newest.then_some(newest);
        self.keep(run, records, Extent::Heights { low, next, end, head }, read_at).await;
    }

    /// True if an anchor shows that a range ends with a height: that of a time is shown by a block above it.
    fn shows_end(&self, end: i64, anchored: i64) -> bool {
        let ends_at_time = self.query.unresolved().is_some_and(|range| range.end_time.is_some());
        !ends_at_time || end < anchored
    }

    /// The height of the anchor, which is not below the highest settled block of the records. `None` if the chain could not be
    /// compared.
    async fn anchored_height(&self, run: &Run, records: &Records, settled: i64) -> Option<i64> {
        let anchor = match highest_block(records, settled) {
            Some(found) => Some(self.anchor_by(run, &found).await?),
            None => self.chain(run).anchor().await,
        };
        Some(anchor.map_or(i64::MIN, |anchor| anchor.height))
    }

    pub(super) async fn keep_fixed(&self, run: &Run, records: &Records) {
        let report = run.report().read();
        let Some(top) = highest(records) else { return };
        if !report.complete {
            note(run.report(), INCOMPLETE);
            return;
        }
        if has_provisional(records) {
            note(run.report(), NOT_SETTLED);
            return;
        }
        match self.settled_height(run, top, top).await {
            Some(settled) if top <= settled => {
                if self.is_anchored(run, records, top).await {
                    self.keep(run, records, Extent::Settled, self.started).await;
                }
            }
            _ => note(run.report(), NOT_SETTLED),
        }
    }

    /// The highest settled height, as far as it takes to tell whether `height` is settled. The chain has the height `seen`.
    async fn settled_height(&self, run: &Run, seen: i64, height: i64) -> Option<i64> {
        let settle = self.cache.settle();
        // Other lists of a set need the same height.
        let _comparing = self.query.client().cache_checks().compare().await;
        let known = self.chain(run).noted(|| self.cache.head(&self.key, self.query.chain())).await?;
        let head = known.map_or(seen, |(head, _)| head.max(seen));
        let is_recent = known.is_some_and(|(_, at)| (0..HEAD_VALID).contains(&(now(self.query.client()) - at)));
        if height <= head - settle || is_recent {
            return Some(head - settle);
        }
        // The query does not fail with it: its result is complete.
        let newest = ChainHeights::of(&self.query, run.report()).newest().await.ok().flatten()?;
        self.chain(run).saw_head(newest.height).await;
        Some(newest.height - settle)
    }

    /// True if the anchor shows whether settled records change, of which the highest one has this height.
    async fn is_anchored(&self, run: &Run, records: &Records, top: i64) -> bool {
        let Some(found) = highest_block(records, top).filter(|found| found.height == top) else { return false };
        let Some(anchor) = self.anchor_by(run, &found).await else { return false };
        if anchor == found || self.anchor_before.as_ref() == Some(&anchor) {
            return true;
        }
        // Another client learned the anchor after these records were read, and it may be of another chain.
        let is_same = self.chain(run).block(top).await.ok().flatten().as_ref() == Some(&found);
        if !is_same {
            note(run.report(), NOT_COMPARED);
        }
        is_same
    }

    /// Makes a settled block of the records the anchor, unless it is below the anchor that is kept. `None` if the records may be
    /// of another chain than what is kept.
    async fn anchor_by(&self, run: &Run, found: &Anchor) -> Option<Anchor> {
        let anchor = self.chain(run).anchor_by_request(found).await;
        if anchor.is_none() {
            let is_removed = self.removals(run).await != self.key.removals;
            note(run.report(), if is_removed { READ_DURING_REMOVAL } else { NOT_COMPARED });
        }
        anchor
    }
}

/// Gives a reason if a range ends below a block that was shown before: such a range would be kept as one that has ended.
fn report_lag(run: &Run, range: &HeightsRead) {
    let newest = range.newest.as_ref().map(|newest| newest.height);
    let shown = newest.max(range.kept.as_ref().map(|kept| kept.anchor));
    if let Some((shown, end)) = shown.zip(run.open_end())
        && end < shown
    {
        let problem = format!(
            "The range ends at height {end}, although another response showed height {shown}: a part of the service lags \
             behind"
        );
        run.report().contradict_ended(Message::new(problem).hint(Hint::RetryLater));
    }
}

/// A range of heights as it was kept.
struct HeldHeights {
    records: Records,
    low: i64,
    /// First height that is to be requested.
    next: i64,
    /// Last height of the range, if it is settled.
    end: Option<i64>,
    head: Option<Anchor>,
    read_at: i64,
}

impl HeldHeights {
    fn new(entry: Entry, record: &'static RecordType) -> Option<Self> {
        let Extent::Heights { low, next, end, head } = entry.facts.extent else { return None };
        let records = Records::new(record, entry.rows.to_vec());
        Some(Self { records, low, next, end, head, read_at: entry.facts.read_at })
    }

    /// The records, if they are not served. Those below the first height to be requested were settled.
    fn contradicted(self) -> Contradicted {
        Contradicted { records: self.records, settled: Some(self.next - 1) }
    }

    /// True if some heights of the range were not settled.
    fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// Drops the heights that are not settled, and those above a block.
    fn cut(&mut self, max_height: i64) {
        if self.end.is_some_and(|end| end <= max_height) {
            return;
        }
        self.end = None;
        self.next = self.next.min(max_height + 1).max(self.low);
        let kept = self.records.heights();
        let count = kept.take_while(|height| height.is_some_and(|height| height < self.next)).count();
        self.records = self.records.slice(0, count);
    }
}

fn highest(records: &Records) -> Option<i64> {
    records.heights().flatten().max()
}

fn lowest(records: &Records) -> Option<i64> {
    records.heights().flatten().min()
}

fn is_ascending(records: &Records) -> bool {
    let all: Vec<Option<i64>> = records.heights().collect();
    all.iter().all(Option::is_some) && all.is_sorted()
}
