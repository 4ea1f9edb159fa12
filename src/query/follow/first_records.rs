//! `FirstRecords`: the first records of a round. If they are still there after the last page, all pages are of one moment.

use super::fingerprint::RowFacts;

/// Records are compared by height, key and block: other fields may change while they are read.
type RecordInBlock = (i64, u64, u64);

#[derive(Clone, Debug, Default)]
pub struct FirstRecords {
    rows: Vec<RecordInBlock>,
    /// Records of the pages that were requested again, newest first.
    seen: Vec<RecordInBlock>,
}

/// Outcome of a recheck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rechecked {
    /// The list has only grown since the reading began.
    Same,
    Different,
    /// The records are not on the pages so far.
    NotVisible,
}

fn ids(rows: &[RowFacts]) -> impl Iterator<Item = RecordInBlock> {
    rows.iter().filter_map(|row| Some((row.height?, row.key, row.block)))
}

impl FirstRecords {
    /// Takes a page of the round. The first page with records of a block is the one that is compared.
    pub fn take(&mut self, rows: &[RowFacts]) {
        if self.rows.is_empty() {
            self.rows = ids(rows).collect();
        }
    }

    /// Begins a recheck, at the newest page.
    pub fn begin_recheck(&mut self) {
        self.seen.clear();
    }

    /// True if all of the first records are among the visible ones, but for those below them. Others may have been added between.
    fn is_whole(&self, visible: &[RecordInBlock], is_last: bool) -> bool {
        let mut missing = self.rows.iter().peekable();
        for row in visible {
            missing.next_if_eq(&row);
        }
        let lowest = visible.last().map_or(i64::MAX, |(height, ..)| *height);
        missing.all(|(height, ..)| !is_last && *height <= lowest)
    }

    /// Compares the next page of a recheck. Whatever replaces or removes records at the head of the list replaces the first one.
    pub fn recheck(&mut self, rows: &[RowFacts], is_last: bool) -> Rechecked {
        self.seen.extend(ids(rows));
        let Some(first) = self.rows.first() else { return Rechecked::Same };
        match self.seen.iter().position(|row| row == first) {
            Some(at) if self.is_whole(&self.seen[at..], is_last) => Rechecked::Same,
            Some(_) => Rechecked::Different,
            None if is_last || self.seen.last().is_some_and(|(height, ..)| *height < first.0) => Rechecked::Different,
            None => Rechecked::NotVisible,
        }
    }
}
