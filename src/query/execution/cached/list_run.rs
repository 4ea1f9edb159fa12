//! `CachedList`: the run of one list of a set, with what the cache has of it.

use super::read::CachedRead;
use crate::client::Error;
use crate::columns::{ColumnsBuilder, StringLayout};
use crate::decode::Paging;
use crate::query::execution::kept_chain::cache_of;
use crate::query::execution::query_start::QueryStart;
use crate::query::execution::run::{KnownPage, Run};
use crate::query::execution::set::{ListRun, NextPage};
use crate::query::execution::slice_fetcher::Discarded;
use crate::query::results::{Checkpoint, Page, Partial, Records, SharedReport};

pub(in crate::query::execution) struct CachedList {
    start: QueryStart,
    run: Run,
    stage: Stage,
}

enum Stage {
    /// The comparison with the cache is still to come.
    Unread,
    /// The run returns its pages, which are kept at the end.
    Reading(Option<Box<CachedRead>>),
    /// The comparison failed. What was received by then was returned.
    Failed(Error),
    Ended,
}

impl CachedList {
    /// Begins the run of a list.
    pub fn begin(start: &QueryStart) -> Box<dyn ListRun> {
        let partial = Partial::all(start.query().record(), StringLayout::Utf8);
        let run = Run::collect_into(start, partial).dividing();
        Box::new(Self { start: start.clone(), run, stage: Stage::Unread })
    }

    async fn next_page(&mut self) -> Result<Option<Page>, Error> {
        loop {
            match &mut self.stage {
                Stage::Unread => {
                    let known = self.known().await?;
                    if known.is_some() {
                        return Ok(known);
                    }
                }
                Stage::Reading(reading) => {
                    let page = self.run.next().await?;
                    match (&page, reading) {
                        (None, _) => self.end().await?,
                        (Some(page), Some(reading)) => reading.add(&self.run, page),
                        (Some(_), None) => {}
                    }
                    return Ok(page);
                }
                Stage::Failed(error) => return Err(error.clone()),
                Stage::Ended => return Ok(None),
            }
        }
    }

    /// Leaves the first stage. Returns the records that are known before the run returns pages of its own.
    async fn known(&mut self) -> Result<Option<Page>, Error> {
        let reading = match cache_of(self.start.query().client()) {
            Some(cache) => CachedRead::new(cache, &self.start, &self.run)?,
            None => None,
        };
        let Some(mut reading) = reading else {
            self.run.hand_out();
            self.stage = Stage::Reading(None);
            return Ok(None);
        };
        let (stage, page) = match reading.known(&mut self.run).await {
            Ok(Some(records)) => {
                let end = KnownPage::to_end(self.start.query(), self.run.report());
                (Stage::Ended, page_of(&records, Checkpoint::after(end, records.len())))
            }
            Ok(None) => (Stage::Reading(Some(Box::new(reading))), self.collected()),
            Err(error @ Error::Drift { .. }) => {
                // Nothing was returned: the set reads the list again.
                self.run.report().update(|report| report.records = 0);
                return Err(error);
            }
            Err(error) => (Stage::Failed(error), self.collected()),
        };
        self.stage = stage;
        self.run.hand_out();
        Ok(page)
    }

    /// Returns the records that the run has collected so far.
    fn collected(&self) -> Option<Page> {
        let after = self.run.partial().checkpoint()?;
        page_of(&self.run.partial().read(), after)
    }

    /// Keeps a list whose last page was returned.
    async fn end(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Reading(Some(reading)) => reading.finish(&self.run, &self.run.partial().read()).await,
            _ => Ok(()),
        }
    }
}

impl ListRun for CachedList {
    fn report(&self) -> &SharedReport {
        self.run.report()
    }

    fn set_max_in_flight(&mut self, pages: usize) {
        self.run.set_max_in_flight(pages);
    }

    fn discard(&mut self) -> Option<Discarded> {
        self.run.discard()
    }

    fn begin_after(&mut self, discarded: Discarded) {
        self.run.begin_after(discarded);
    }

    fn next(&mut self) -> NextPage<'_> {
        Box::pin(self.next_page())
    }
}

/// One page of records. Its caller stops before or after all of them.
fn page_of(records: &Records, checkpoint: Checkpoint) -> Option<Page> {
    let first = records.chunks().first()?;
    let mut all = ColumnsBuilder::with_capacity_from(first, records.len(), StringLayout::Utf8);
    records.chunks().iter().for_each(|chunk| all.append(chunk));
    Some(Page { number: 1, paging: Paging::default(), columns: all.finish(), checkpoint })
}
