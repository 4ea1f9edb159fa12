//! `ShownLog`: what the responses to a follower showed, also those whose rows its runs did not return, and reasons to doubt
//! them.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::list_spec::list_spec;
use super::selection::is_of_other_chain;
use crate::decode::Page;
use crate::interface::ResultLimit;
use crate::message::Message;
use crate::process::ForkSafeMutex;
use crate::query::audit::{Arguments, records_before};
use crate::query::follow::{Shown, facts};
use crate::query::request::Query;
use crate::query::results::SharedReport;
use crate::query::snapshot::PageRequest;

/// Lists whose responses are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Logged {
    /// The followed list.
    #[default]
    List,
    /// Ranges of its heights. Their lengths say nothing about that of the list.
    Ranges,
}

#[derive(Clone, Default)]
pub(super) struct ShownLog {
    responses: Arc<ForkSafeMutex<Vec<Shown>>>,
    /// Reasons why the records of the round so far may not be all, or not those of one list.
    reasons: Arc<ForkSafeMutex<Vec<Message>>>,
    logged: Logged,
}

impl ShownLog {
    /// Returns this log for the responses to requests for ranges of heights.
    #[must_use]
    pub fn of_ranges(&self) -> Self {
        Self { logged: Logged::Ranges, ..self.clone() }
    }

    /// Adds a response, without the rows that contradict the request.
    pub fn add(&self, query: &Query, request: &PageRequest, page: &Page, arguments: &Arguments) {
        if is_of_other_chain(query, page) {
            return;
        }
        let columns = &page.columns;
        let mut possible: Vec<u32> = (0..columns.rows() as u32).collect();
        possible.retain(|row| arguments.contradicted(columns, *row as usize).is_none());
        let is_whole = possible.len() == columns.rows();
        let rows = if is_whole { facts(columns) } else { facts(&columns.take(&possible)) };
        let has_count = is_whole && self.logged == Logged::List;
        let count = if has_count { count(query, request, page) } else { None };
        self.responses.lock().push(Shown { rows, is_first: request.page == 1, count });
    }

    /// Adds reasons to doubt what a run of the round returned.
    pub fn doubt(&self, reasons: Vec<Message>) {
        self.reasons.lock().extend(reasons);
    }

    /// Adds the reasons of a round that has concluded to the report.
    pub fn conclude(&self, report: &SharedReport) {
        let reasons = std::mem::take(&mut *self.reasons.lock());
        reasons.into_iter().for_each(|reason| report.add_contradiction(reason));
    }

    /// Drops the reasons of a reading that is void.
    pub fn discard_reasons(&self) {
        self.reasons.lock().clear();
    }

    /// Takes what was logged so far.
    pub fn take(&self) -> Vec<Shown> {
        std::mem::take(&mut self.responses.lock())
    }
}

/// Number of records of a list from the first row of a page on. `None` if the oldest records leave the list, or if it may be
/// longer than the API shows.
fn count(query: &Query, request: &PageRequest, page: &Page) -> Option<RangeInclusive<u64>> {
    let limit = request.limit;
    if query.endpoint().limit == ResultLimit::LastYear || page.paging.limit.is_some_and(|served| served != limit) {
        return None;
    }
    let before = records_before(request, page.paging.limit);
    let rows = page.columns.rows() as u64;
    let length = match (page.paging.total, page.paging.total_pages) {
        (Some(total), _) => total..=total,
        (None, Some(pages)) if pages > request.page => {
            (pages - 1).saturating_mul(limit) + 1..=pages.saturating_mul(limit)
        }
        (None, Some(_)) => before + rows..=before + rows,
        (None, None) => return None,
    };
    let is_capped = *length.end() >= list_spec(query, None).window();
    (!is_capped).then(|| length.start().saturating_sub(before)..=length.end().saturating_sub(before))
}
