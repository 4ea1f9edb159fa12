//! `ReadDown`: a read of a list from its newest page down, for a follower.

use super::query_start::QueryStart;
use super::run::Run;
use crate::client::Error;
use crate::columns::{Columns, StringLayout};
use crate::interface::RecordType;
use crate::message::{Hint, Message};
use crate::query::follow::{ExportOverlap, RowFacts};
use crate::query::request::Query;
use crate::query::results::{Records, RecordsBuilder, Report, SharedReport};

/// A page and the facts of its rows.
pub(super) type PageRows = (Columns, Vec<RowFacts>);

/// A read from the newest page down.
pub(super) struct ReadDown {
    pub run: Run,
    pub returned: u64,
    /// Lowest height so far.
    lowest: Option<i64>,
    /// The part of its cost that is in the report.
    counted: Report,
}

impl ReadDown {
    pub fn new(list: &Query, repeats: u32) -> Self {
        // It stops anywhere: no record of the beginning may be skipped.
        let run = Run::new(&QueryStart::from(list.limited_to(u64::MAX)));
        Self {
            // A replaced first page can only be requested again while it is held back.
            run: if repeats == 0 { run.returning_first_page_at_once() } else { run },
            returned: 0,
            lowest: None,
            counted: Report::default(),
        }
    }

    /// Adds the cost so far to the report of the follower.
    pub fn add_cost(&mut self, report: &SharedReport) {
        let now = self.run.report().read();
        report.add_cost(&now.since(&self.counted));
        // Other reasons of a round, such as the result window, do not concern the follower.
        let dropped = now.dropped - self.counted.dropped;
        for reason in self.run.report().contradictions().into_iter().chain(self.run.contradictions()) {
            report.add_contradiction(reason);
        }
        report.update(|report| report.dropped += dropped);
        self.counted = now;
        if let Some(reason) = self.run.report().empty_responses_reason() {
            report.add_reason(reason);
        }
    }

    /// Fails if a record lies above those before it: what is new would be looked for at the wrong end of the list.
    pub fn check_order(&mut self, rows: &[RowFacts]) -> Result<(), Error> {
        for height in rows.iter().filter_map(|row| row.height) {
            if let Some(lowest) = self.lowest.replace(height).filter(|lowest| *lowest < height) {
                let problem = format!(
                    "a list is followed from its newest record down, and height {height} comes below {lowest} in it"
                );
                let endpoint = self.run.query().endpoint().name;
                return Err(Error::Drift { endpoint, problem: Message::new(problem).hint(Hint::RetryLater) });
            }
        }
        Ok(())
    }
}

/// Records of pages above a height and up to another one, oldest first, without those of the overlap.
pub(super) fn records_between(
    record: &'static RecordType,
    pages: &[PageRows],
    above: i64,
    up_to: i64,
    mut overlap: Option<ExportOverlap>,
) -> Records {
    let mut wanted = Vec::new();
    for (page, (_, rows)) in pages.iter().enumerate().rev() {
        for (row, facts) in rows.iter().enumerate().rev() {
            let Some(height) = facts.height.filter(|height| *height > above && *height <= up_to) else { continue };
            if !overlap.as_mut().is_some_and(|overlap| overlap.take(facts)) {
                wanted.push((height, page, row as u32));
            }
        }
    }
    // Heights read one by one came in ascending order.
    wanted.sort_by_key(|(height, ..)| *height);
    let mut built = RecordsBuilder::new(record, StringLayout::Utf8);
    let count = wanted.len();
    for run in wanted.chunk_by(|one, other| one.1 == other.1) {
        let rows: Vec<u32> = run.iter().map(|(.., row)| *row).collect();
        built.push(&pages[run[0].1].0.take(&rows), count.saturating_sub(built.rows() + rows.len()));
    }
    built.finish()
}

/// The rows of a page from a height on.
pub(super) fn from_height((columns, rows): &PageRows, low: i64) -> PageRows {
    let wanted = rows.iter().zip(0..).filter(|(row, _)| row.height.is_some_and(|height| height >= low));
    let (rows, indices): (Vec<RowFacts>, Vec<u32>) = wanted.map(|(row, index)| (*row, index)).unzip();
    (columns.take(&indices), rows)
}
