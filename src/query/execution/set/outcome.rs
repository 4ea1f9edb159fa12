//! `Outcome`: what became of the lists of a set. The report of the set has their sum, and a verdict on each.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::ended::EndedLists;
use super::open_list::add_counts;
use crate::client::Error;
use crate::interface::ApiErrorKind;
use crate::message::{Hint, Message};
use crate::query::evidence;
use crate::query::request::Members;
use crate::query::results::{Progress, Report, SharedReport, Verdict};

/// Arguments that a reason names.
const NAMED: usize = 5;

#[derive(Default)]
pub(super) struct Outcome {
    /// Index of the verdict of each list. A list that an earlier run has read has none.
    verdicts: Vec<Option<usize>>,
    /// Lists that ended with an error.
    pub refused: Vec<(usize, Message)>,
    /// Error of the first of them in this run.
    pub error: Option<Error>,
    /// Reasons why ended lists are incomplete.
    pub reasons: Vec<Message>,
    /// Reasons of the lists that have some, each once.
    shared: HashSet<Arc<[Message]>>,
    /// Sum of the reports of ended lists.
    total: Report,
    /// Requests of the first reading of lists that are read again.
    earlier_requests: BTreeMap<usize, u64>,
}

impl Outcome {
    /// Adds a verdict on each list that is left, and on those that were refused.
    pub fn add_verdicts(&mut self, members: &Members, ended: &EndedLists, report: &SharedReport) {
        let errors: BTreeMap<usize, &Message> = self.refused.iter().map(|(index, error)| (*index, error)).collect();
        let mut verdicts = Vec::new();
        for (index, value) in members.values.iter().enumerate() {
            let error = errors.get(&index).map(|error| (*error).clone());
            let is_reported = error.is_some() || !ended.contains(index);
            self.verdicts.push(is_reported.then_some(verdicts.len()));
            if is_reported {
                verdicts.push(Verdict { argument: value.clone(), error, ..Verdict::default() });
            }
        }
        report.update(|report| report.verdicts.replace(verdicts));
    }

    /// Adds a list that has ended, and the error that ended it.
    pub fn add(&mut self, index: usize, argument: &str, list: Report, error: Option<Error>, report: &SharedReport) {
        add_counts(&mut self.total, &list);
        let requests = self.requests(index, &list);
        let reasons = self.shared(list.reasons.to_vec());
        report.add_member_report(&list.members);
        if let Some(error) = &error {
            self.refused.push((index, error.message()));
            self.error.get_or_insert_with(|| error.clone());
        }
        for reason in reasons.iter() {
            self.add_reason(reason.clone(), report);
        }
        report.update(|report| evidence::add(&mut report.evidence, argument, list.evidence));
        self.update_verdict(index, report, |verdict| {
            *verdict = Verdict {
                argument: std::mem::take(&mut verdict.argument),
                complete: error.is_none() && reasons.is_empty(),
                records: list.records,
                requests,
                reasons,
                error: error.map(|error| error.message()),
            };
        });
    }

    /// Lists that have ended without a reason.
    pub fn complete_lists(&self, report: &SharedReport) -> HashSet<usize> {
        let verdicts = report.read().verdicts;
        let mut complete = HashSet::new();
        for (list, at) in self.verdicts.iter().enumerate() {
            if at.and_then(|at| verdicts.get(at)).is_some_and(|verdict| verdict.complete) {
                complete.insert(list);
            }
        }
        complete
    }

    /// Takes note that a list that has ended is read again.
    pub fn begin_again(&mut self, index: usize, report: &SharedReport) {
        let Some(at) = self.verdicts[index] else { return };
        let requests = report.read().verdicts.get(at).map_or(0, |verdict| verdict.requests);
        self.earlier_requests.insert(index, requests);
    }

    /// Requests of all readings of a list, of which this is the report of the last one.
    fn requests(&self, index: usize, list: &Report) -> u64 {
        self.earlier_requests.get(&index).map_or(0, |requests| *requests) + list.requests
    }

    /// Adds a reason why lists that have ended are incomplete.
    pub fn doubt(&mut self, lists: &[usize], reason: &Message, report: &SharedReport) {
        self.add_reason(reason.clone(), report);
        let verdicts = report.read().verdicts;
        for index in lists {
            let Some(at) = self.verdicts[*index] else { continue };
            let mut reasons = verdicts.get(at).map_or_else(Vec::new, |verdict| verdict.reasons.to_vec());
            reasons.push(reason.clone());
            let reasons = self.shared(reasons);
            self.update_verdict(*index, report, |verdict| {
                verdict.complete = false;
                verdict.reasons = reasons.clone();
            });
        }
    }

    /// Adds a reason why the set is incomplete, once.
    pub fn add_reason(&mut self, reason: Message, report: &SharedReport) {
        report.add_reason(reason.clone());
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// The one copy of these reasons.
    fn shared(&mut self, reasons: Vec<Message>) -> Arc<[Message]> {
        if let Some(shared) = self.shared.get(reasons.as_slice()) {
            return shared.clone();
        }
        let reasons: Arc<[Message]> = reasons.into();
        self.shared.insert(reasons.clone());
        reasons
    }

    fn update_verdict(&self, index: usize, report: &SharedReport, change: impl FnOnce(&mut Verdict)) {
        let Some(at) = self.verdicts[index] else { return };
        report.update(|report| report.verdicts.update(at, change));
    }

    /// Brings the report up to date, with the reports of the lists that are being read.
    pub fn account(&self, open: impl Iterator<Item = (usize, Report)>, progress: Progress, report: &SharedReport) {
        let mut sum = self.total.clone();
        for (index, list) in open {
            let requests = self.requests(index, &list);
            self.update_verdict(index, report, |verdict| {
                verdict.records = list.records;
                verdict.requests = requests;
            });
            add_counts(&mut sum, &list);
        }
        report.update(|report| {
            report.requests = sum.requests;
            report.retries = sum.retries;
            report.pages = sum.pages;
            report.records = sum.records;
            report.bytes = sum.bytes;
            report.duplicates_dropped = sum.duplicates_dropped;
            report.dropped = sum.dropped;
            report.moved = sum.moved;
            report.rereads = sum.rereads;
            report.progress = progress;
            if sum.search.is_some() {
                report.search = sum.search;
            }
            if sum.cache.is_some() {
                report.cache = sum.cache;
            }
        });
    }

    /// Reason of a set of which some lists were refused.
    pub fn refusals(&self, members: &Members) -> Option<Message> {
        if self.refused.is_empty() {
            return None;
        }
        let names = first_of(self.refused.iter().map(|(index, _)| members.values[*index].clone()));
        let reason = Message::new(format!("Records of {} of the values of ", self.refused.len()))
            .parameter(members.name)
            .text(format!(" are missing, since their lists could not be read: {names}"));
        Some(reason.hint(Hint::ReadVerdicts))
    }
}

/// The first of some names, and how many others there are.
pub(super) fn first_of(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let names: Vec<String> = names.take(NAMED).collect();
    let names = names.join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}

/// True of an error that another argument need not have, and that this one will have again.
pub(in crate::query::execution) fn is_of_one_list(error: &Error) -> bool {
    match error {
        Error::Service(error) => matches!(
            error.kind,
            ApiErrorKind::BadRequest | ApiErrorKind::NotFound | ApiErrorKind::PermissionDenied | ApiErrorKind::Other
        ),
        Error::Format { retryable, .. } => !retryable,
        Error::Drift { .. } | Error::Window { .. } => true,
        _ => false,
    }
}
