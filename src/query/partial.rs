//! What a run has fetched so far, for whoever asks after a failure: the run fills it, others read it meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cursor::Place;
use super::records::{Records, RecordsBuilder};
use crate::columns::{Columns, Layout};
use crate::interface::RecordType;

/// What is kept of a run that hands its records on: little, since what is kept leaves the processor's caches, and a loop
/// over records then waits for memory a tenth of its time.
const MOST_ROWS: usize = 2_500;
const MOST_BYTES: usize = 8 << 20;

/// Clones are of the same run.
#[derive(Clone)]
pub struct Partial {
    kept: Arc<Mutex<Kept>>,
}

enum Kept {
    /// With the place after them.
    All(RecordsBuilder, Option<Place>),
    Latest(Latest),
}

/// The newest pages, within bounds.
struct Latest {
    record: &'static RecordType,
    pages: VecDeque<Columns>,
    rows: usize,
    bytes: usize,
}

impl Partial {
    /// Of a run that collects: the result in the making.
    pub fn all(record: &'static RecordType, layout: Layout) -> Self {
        Self { kept: Arc::new(Mutex::new(Kept::All(RecordsBuilder::new(record, layout), None))) }
    }

    /// Of a run that hands its records on.
    pub fn latest(record: &'static RecordType) -> Self {
        let latest = Latest { record, pages: VecDeque::new(), rows: 0, bytes: 0 };
        Self { kept: Arc::new(Mutex::new(Kept::Latest(latest))) }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page, after which so many records are expected.
    pub(super) fn push(&self, page: &Columns, ahead: usize, after: Option<&Place>) {
        match &mut *self.lock() {
            Kept::All(builder, place) => {
                builder.push(page, ahead);
                *place = after.cloned();
            }
            Kept::Latest(latest) => latest.push(page.clone()),
        }
    }

    /// The place after all that a run has collected. One that hands records on is as far as those are.
    pub fn place(&self) -> Option<Place> {
        match &*self.lock() {
            Kept::All(_, place) => place.clone(),
            Kept::Latest(_) => None,
        }
    }

    pub fn read(&self) -> Records {
        match &mut *self.lock() {
            Kept::All(builder, _) => builder.snapshot(),
            Kept::Latest(latest) => Records::new(latest.record, latest.pages.iter().cloned().collect()),
        }
    }
}

impl Latest {
    fn push(&mut self, page: Columns) {
        self.rows += page.rows();
        self.bytes += page.memory();
        self.pages.push_back(page);
        while self.pages.len() > 1 && (self.rows > MOST_ROWS || self.bytes > MOST_BYTES) {
            let Some(oldest) = self.pages.pop_front() else { return };
            self.rows -= oldest.rows();
            self.bytes -= oldest.memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::ColumnsBuilder;
    use crate::interface::record;

    fn page(rows: usize) -> Columns {
        let mut page = ColumnsBuilder::new(record("Block").unwrap(), rows);
        (0..rows).for_each(|_| page.end_row());
        page.finish()
    }

    #[test]
    fn a_run_that_hands_on_keeps_its_newest_pages_and_one_that_collects_keeps_all() {
        let block = record("Block").unwrap();
        let (latest, all) = (Partial::latest(block), Partial::all(block, Layout::Offsets));
        for rows in [MOST_ROWS / 2, MOST_ROWS / 2, 7, MOST_ROWS * 2, 3] {
            latest.push(&page(rows), 0, None);
            all.push(&page(rows), 0, None);
        }
        assert_eq!(latest.read().len(), 3);
        assert_eq!(all.read().len(), MOST_ROWS * 3 + 10);
        latest.push(&page(20), 0, None);
        assert_eq!(latest.read().len(), 23);
    }
}
