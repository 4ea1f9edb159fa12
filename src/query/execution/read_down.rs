//! `ReadDown`: a read of a list from its newest page down, for a follower.

use super::query_start::QueryStart;
use super::run::Run;
use crate::client::Error;
use crate::columns::Columns;
use crate::message::{Hint, Message};
use crate::query::follow::RowFacts;
use crate::query::request::Query;
use crate::query::results::Report;

/// A page and the facts of its rows.
pub(super) type PageRows = (Columns, Vec<RowFacts>);

/// A read from the newest page down.
pub(super) struct ReadDown {
    pub run: Run,
    pub returned: u64,
    /// Lowest height so far.
    lowest: Option<i64>,
    /// The part of its cost that is in the report.
    pub counted: Report,
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

/// The rows of a page from a height on.
pub(super) fn from_height((columns, rows): &PageRows, low: i64) -> PageRows {
    let wanted = rows.iter().zip(0..).filter(|(row, _)| row.height.is_some_and(|height| height >= low));
    let (rows, indices): (Vec<RowFacts>, Vec<u32>) = wanted.map(|(row, index)| (*row, index)).unzip();
    (columns.take(&indices), rows)
}
