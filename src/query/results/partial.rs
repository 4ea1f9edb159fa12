//! Records that a run has fetched so far, for a caller that inspects them after an error: the run fills them while
//! others read.

use std::collections::VecDeque;
use std::sync::Arc;

use super::page::Checkpoint;
use super::records::{Records, RecordsBuilder};
use crate::columns::{Columns, StringLayout};
use crate::interface::RecordType;
use crate::process::{ForkSafeGuard, ForkSafeMutex};

/// Bounds of what a streaming run retains: little, since retained pages leave the processor's caches, and a loop over
/// records then waits for memory a tenth of its time.
const MAX_ROWS: usize = 2_500;
const MAX_BYTES: usize = 8 << 20;

/// Clones share the same run's records.
#[derive(Clone)]
pub struct Partial {
    retained: Arc<ForkSafeMutex<Retained>>,
}

enum Retained {
    /// All records, and the position after them.
    All(RecordsBuilder, Option<Checkpoint>),
    Latest(LastPages),
}

/// A number of collected records, and the position after them.
pub struct SavedPartial {
    rows: usize,
    after: Option<Checkpoint>,
}

/// The last pages, within bounds.
struct LastPages {
    record: &'static RecordType,
    pages: VecDeque<Columns>,
    rows: usize,
    bytes: usize,
}

impl Partial {
    /// Retains all records, for a run that collects.
    pub fn all(record: &'static RecordType, layout: StringLayout) -> Self {
        Self { retained: Arc::new(ForkSafeMutex::new(Retained::All(RecordsBuilder::new(record, layout), None))) }
    }

    /// Retains the last pages, for a run that streams.
    pub fn latest(record: &'static RecordType) -> Self {
        let latest = LastPages { record, pages: VecDeque::new(), rows: 0, bytes: 0 };
        Self { retained: Arc::new(ForkSafeMutex::new(Retained::Latest(latest))) }
    }

    fn lock(&self) -> ForkSafeGuard<'_, Retained> {
        self.retained.lock()
    }

    /// Adds a page, after which `expected` more records are expected.
    pub(in crate::query) fn push(&self, page: &Columns, expected: usize, after: Option<&Checkpoint>) {
        match &mut *self.lock() {
            Retained::All(builder, checkpoint) => {
                builder.push(page, expected);
                *checkpoint = after.cloned();
            }
            // Pages of some columns only are not kept: their records would be incomplete.
            Retained::Latest(_) if page.is_projected() => {}
            Retained::Latest(latest) => latest.push(page.clone()),
        }
    }

    /// Takes the position of a run that has moved without records.
    pub(in crate::query) fn move_to(&self, after: &Checkpoint) {
        if let Retained::All(_, checkpoint) = &mut *self.lock() {
            *checkpoint = Some(after.clone());
        }
    }

    /// The records that a run has collected so far, for `rewind`; `None` for a run that streams.
    pub(in crate::query) fn save(&self) -> Option<SavedPartial> {
        match &*self.lock() {
            Retained::All(builder, after) => Some(SavedPartial { rows: builder.rows(), after: after.clone() }),
            Retained::Latest(_) => None,
        }
    }

    /// Discards the records collected since they were saved.
    pub(in crate::query) fn rewind(&self, saved: &SavedPartial) {
        if let Retained::All(builder, after) = &mut *self.lock() {
            builder.truncate(saved.rows);
            after.clone_from(&saved.after);
        }
    }

    /// Position after all that a run has collected; `None` for a run that streams, whose position is the caller's.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        match &*self.lock() {
            Retained::All(_, checkpoint) => checkpoint.clone(),
            Retained::Latest(_) => None,
        }
    }

    pub fn read(&self) -> Records {
        match &mut *self.lock() {
            Retained::All(builder, _) => builder.snapshot(),
            Retained::Latest(latest) => Records::new(latest.record, latest.pages.iter().cloned().collect()),
        }
    }
}

impl LastPages {
    fn push(&mut self, page: Columns) {
        self.rows += page.rows();
        self.bytes += page.get_array_memory_size();
        self.pages.push_back(page);
        while self.pages.len() > 1 && (self.rows > MAX_ROWS || self.bytes > MAX_BYTES) {
            let Some(oldest) = self.pages.pop_front() else { return };
            self.rows -= oldest.rows();
            self.bytes -= oldest.get_array_memory_size();
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
        (0..rows).for_each(|_| page.finish_row());
        page.finish()
    }

    #[test]
    fn streaming_retains_the_last_pages_and_collecting_retains_all() {
        let block = record("Block").unwrap();
        let (latest, all) = (Partial::latest(block), Partial::all(block, StringLayout::Utf8));
        for rows in [MAX_ROWS / 2, MAX_ROWS / 2, 7, MAX_ROWS * 2, 3] {
            latest.push(&page(rows), 0, None);
            all.push(&page(rows), 0, None);
        }
        assert_eq!(latest.read().len(), 3);
        assert_eq!(all.read().len(), MAX_ROWS * 3 + 10);
        latest.push(&page(20), 0, None);
        assert_eq!(latest.read().len(), 23);
    }
}
