//! `SharedReport`: a report that a run updates while others read it.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::believed::{BelievedResponses, UNCONFIRMED};
use super::keys::KeyedRows;
use super::lookups::{Lookup, Lookups};
use super::members::MembersReport;
use super::report::{NOT_RETURNED, Report};
use super::search_state::SearchState;
use crate::client::{BelievedEmpty, EmptyResponses, GetRequest};
use crate::columns::Columns;
use crate::decode::Members;
use crate::message::Message;
use crate::process::{ForkSafeGuard, ForkSafeMutex};
use crate::query::request::{ShownRecord, ShownRecords};
use crate::query::snapshot::Rows;

/// Reason of a run with empty responses that may have been throttles.
const EMPTY_RESPONSES: &str = "Some responses were empty; some services throttle so: records may be missing";
/// Reason of a run with texts that are not as they were sent.
const REPLACED: &str = "Some texts are not valid Unicode: characters were replaced by U+FFFD";

/// Records that several reports may have.
pub type SharedShown = Arc<ForkSafeMutex<ShownRecords>>;

/// A report that a run updates while others read it.
#[derive(Clone, Debug)]
pub struct SharedReport {
    state: Arc<ForkSafeMutex<ReportState>>,
}

#[derive(Debug)]
struct ReportState {
    report: Report,
    /// Entries of `report.reasons`.
    seen_reasons: HashSet<Message>,
    is_of_follower: bool,
    contradictions: Vec<Message>,
    started: Instant,
    finished: bool,
    believed: BelievedResponses,
    identified: Identified,
    /// Records that responses beside those of the lists showed.
    shown: SharedShown,
    lookups: Lookups,
    /// Contradiction that ended the run, until its caller has the error.
    untaken: Option<Message>,
}

/// Records with and without the value that identifies them.
#[derive(Debug, Default)]
struct Identified {
    some: bool,
    not_all: bool,
}

impl Identified {
    /// Takes records, some of which have the value. True if others do not.
    fn are_mixed(&mut self, named: usize, records: usize) -> bool {
        self.some |= named > 0;
        self.not_all |= named < records;
        self.some && self.not_all
    }
}

impl Default for SharedReport {
    fn default() -> Self {
        Self::start(Vec::new(), Vec::new())
    }
}

impl SharedReport {
    /// Report of a run that starts, with reasons and missing hashes of the run it resumes.
    pub(in crate::query) fn start(reasons: Vec<Message>, missing: Vec<String>) -> Self {
        let started = Instant::now();
        let state = ReportState {
            report: Report::default(),
            seen_reasons: HashSet::new(),
            is_of_follower: false,
            contradictions: Vec::new(),
            started,
            finished: false,
            believed: BelievedResponses::new(started),
            identified: Identified::default(),
            shown: SharedShown::default(),
            lookups: Lookups::default(),
            untaken: None,
        };
        let report = Self { state: Arc::new(ForkSafeMutex::new(state)) };
        report.add_missing(missing);
        reasons.into_iter().for_each(|reason| report.add_reason(reason));
        report
    }

    /// Report of a follower, whose reasons advise what helps there.
    pub(in crate::query) fn of_follower() -> Self {
        let report = Self::default();
        report.lock().is_of_follower = true;
        report
    }

    fn lock(&self) -> ForkSafeGuard<'_, ReportState> {
        self.state.lock()
    }

    pub fn read(&self) -> Report {
        self.lock().report.clone()
    }

    /// Number of requests so far.
    pub fn requests(&self) -> u64 {
        self.lock().report.requests
    }

    pub(in crate::query) fn search(&self) -> Option<Arc<SearchState>> {
        self.lock().report.search.clone()
    }

    /// Changes the report. `elapsed` is the time of the last change, so that it stops after an error, an interrupt or
    /// when the caller stops iterating.
    pub(in crate::query) fn update(&self, change: impl FnOnce(&mut Report)) {
        let mut state = self.lock();
        if !state.finished {
            state.report.elapsed = state.started.elapsed();
        }
        change(&mut state.report);
    }

    /// Counts records that contradict the request, with the reason.
    pub(in crate::query) fn add_dropped(&self, rows: u64, reason: impl Into<Message>) {
        self.add_contradiction(reason);
        self.update(|report| report.dropped += rows);
    }

    /// Adds the reason that responses contradict each other, the request, or what the API documents.
    pub(in crate::query) fn add_contradiction(&self, reason: impl Into<Message>) {
        let reason = reason.into();
        self.add_reason(reason.clone());
        let contradictions = &mut self.lock().contradictions;
        if !contradictions.contains(&reason) {
            contradictions.push(reason);
        }
    }

    /// Adds a contradiction that is found after the run has ended.
    pub(in crate::query) fn contradict_ended(&self, reason: impl Into<Message>) {
        self.add_contradiction(reason);
        self.update(|report| report.complete = false);
    }

    pub(in crate::query) fn contradictions(&self) -> Vec<Message> {
        self.lock().contradictions.clone()
    }

    /// Adds a reason, once.
    pub(in crate::query) fn add_reason(&self, reason: impl Into<Message>) {
        let reason = reason.into();
        let state = &mut *self.lock();
        let reason = if state.is_of_follower { reason.of_follower() } else { reason };
        if state.seen_reasons.insert(reason.clone()) {
            state.report.reasons.push(reason);
        }
    }

    /// Adds an empty response that was taken to mean that nothing was found.
    pub(in crate::query) fn add_believed_empty(
        &self,
        known: &Arc<EmptyResponses>,
        response: BelievedEmpty,
        request: GetRequest,
    ) {
        let mut state = self.lock();
        state.believed.add(known, response, request);
        let are_disproved = state.believed.are_disproved();
        drop(state);
        if are_disproved {
            self.add_reason(EMPTY_RESPONSES);
        }
    }

    /// Returns the requests whose empty responses are unconfirmed, once, if they are several and can be confirmed now.
    pub(in crate::query) fn take_unconfirmed(&self) -> Vec<GetRequest> {
        self.lock().believed.take_unconfirmed()
    }

    /// Notes that as many empty responses were confirmed.
    pub(in crate::query) fn confirm_empty(&self, responses: usize) {
        self.lock().believed.confirm(responses as u64);
    }

    /// The report as of now, for a cursor: what is doubtful now is a reason, since the run that continues this one cannot
    /// confirm it.
    pub(in crate::query) fn read_for_cursor(&self) -> Report {
        let mut report = self.read();
        let doubt = self.empty_responses_reason().filter(|reason| !self.lock().seen_reasons.contains(reason));
        if let Some(doubt) = doubt {
            report.reasons = report.reasons.to_vec().into_iter().chain([doubt]).collect::<Vec<_>>().into();
        }
        report
    }

    /// Takes the page objects without records that a run of this follower believed: they may be disproved later.
    pub(in crate::query) fn take_counted(&self, run: &Self) {
        let counted = run.lock().believed.counted();
        self.lock().believed.take_counted(counted);
    }

    /// Adds the reason of empty responses where one was not to be expected.
    pub(in crate::query) fn doubt_empty_responses(&self) {
        self.lock().believed.unconfirmed += UNCONFIRMED + 1;
        self.add_reason(EMPTY_RESPONSES);
    }

    /// Adds the reason of empty responses that may have been throttles, by what is known now.
    pub(in crate::query) fn doubt_believed_empty(&self) {
        if let Some(reason) = self.empty_responses_reason() {
            self.add_reason(reason);
        }
    }

    /// Reason of empty responses that may have been throttles, by what is known now.
    pub(in crate::query) fn empty_responses_reason(&self) -> Option<Message> {
        self.lock().believed.are_doubtful().then(|| EMPTY_RESPONSES.into())
    }

    /// Adds records of a response beside those of the lists.
    pub(in crate::query) fn add_shown(&self, columns: &Columns) {
        let rows = KeyedRows::new(columns);
        let shown = self.lock().shown.clone();
        let mut shown = shown.lock();
        for row in 0..rows.len() {
            if let Some(height) = rows.height(row) {
                shown.add(height, ShownRecord { key: rows.key(row), block: rows.block(row) });
            }
        }
    }

    pub(in crate::query) fn shown(&self) -> ShownRecords {
        let shown = self.lock().shown.clone();
        let shown = shown.lock();
        shown.clone()
    }

    /// Has the records in common with other reports from now on.
    pub(in crate::query) fn share_shown(&self, shown: &SharedShown) {
        self.lock().shown = shown.clone();
    }

    /// Forgets these records: the chain has changed.
    pub(in crate::query) fn forget_shown(&self) {
        *self.lock().shown.lock() = ShownRecords::default();
    }

    /// Takes the look-ups that the run before this one had received and not returned.
    pub(in crate::query) fn continue_lookups(&self, earlier: &[Lookup]) {
        self.lock().lookups = Lookups::continued(earlier);
    }

    /// Adds the response to a look-up of one hash.
    pub(in crate::query) fn add_lookup(&self, slice: u64, rows: &Columns) {
        self.lock().lookups.add(slice, rows);
    }

    /// True if the run before this one had received other records of a look-up.
    pub(in crate::query) fn is_other_lookup(&self, slice: u64, rows: &Columns) -> bool {
        self.lock().lookups.contradict(slice, rows)
    }

    /// Look-ups after a slice that were received by now, for a run that begins with slice `first`.
    pub(in crate::query) fn lookups_after(&self, slice: u64, first: u64) -> Vec<Lookup> {
        self.lock().lookups.after(slice, first)
    }

    /// Keeps the contradiction that ended the run, which its caller may never ask for.
    pub fn keep_untaken(&self, problem: &Message) {
        self.lock().untaken = Some(problem.clone());
    }

    /// Marks the error of the run as raised.
    pub fn mark_raised(&self) {
        self.lock().untaken = None;
    }

    /// Reason of a run that continues this one, whose caller did not ask for the error that ended it.
    pub(super) fn untaken_reason(&self) -> Option<Message> {
        let problem = self.lock().untaken.clone()?;
        Some(Message::new("The earlier run failed behind the last record that was taken: ").append(problem))
    }

    /// Adds requested hashes that were not returned.
    pub(in crate::query) fn add_missing(&self, missing: Vec<String>) {
        if missing.is_empty() {
            return;
        }
        self.add_reason(NOT_RETURNED);
        self.update(|report| missing.into_iter().for_each(|hash| report.missing.push(hash)));
    }

    /// Takes back the records and reasons since an earlier report of the same run, whose cost remains.
    pub(in crate::query) fn rewind(&self, earlier: &Report) {
        let mut state = self.lock();
        state.seen_reasons = earlier.reasons.to_vec().into_iter().collect();
        let report = &mut state.report;
        report.reasons = earlier.reasons.to_vec().into();
        report.records = earlier.records;
        report.progress = earlier.progress;
        report.dropped = earlier.dropped;
        report.moved = earlier.moved;
        report.rereads += 1;
    }

    /// Adds the members of other records of the same type.
    pub(in crate::query) fn add_member_report(&self, other: &MembersReport) {
        self.lock().report.members.add(other);
    }

    /// Adds the cost of another run.
    pub(in crate::query) fn add_cost(&self, other: &Report) {
        self.update(|report| {
            report.requests += other.requests;
            report.retries += other.retries;
            report.pages += other.pages;
            report.bytes += other.bytes;
            report.members.add(&other.members);
        });
    }

    /// Adds the members of a page with records.
    pub(in crate::query) fn add_members(&self, declared: &Arc<[String]>, members: &Members) {
        self.update(|report| report.members.add_page(declared, members));
        self.doubt_spellings();
        if members.has_replaced {
            self.add_reason(REPLACED);
        }
    }

    /// Adds the reason of members that some records have in another spelling than others.
    fn doubt_spellings(&self) {
        let ambiguous = self.lock().report.members.ambiguous().map(str::to_owned);
        if let Some(name) = ambiguous {
            self.add_contradiction(format!(
                "Some records have the member {name} in another spelling than others: these values were not read."
            ));
        }
    }

    /// Notes whether records have the first value that identifies them, such as their hash.
    pub(in crate::query) fn add_identities(&self, columns: &Columns) {
        let record = columns.record();
        let name = record.identity[0];
        // Only records of a block must have one. A transfer between chains has no hash before it arrives, and the coin of a chain
        // has no contract.
        let Some(column) = record.position(name).filter(|_| record.block().is_some()) else { return };
        let named = (0..columns.rows()).filter(|row| columns.text(column, *row).is_some_and(|text| !text.is_empty()));
        let named = named.count();
        if self.lock().identified.are_mixed(named, columns.rows()) {
            self.add_contradiction(format!(
                "Some records have no {name}, and others have one: one may be there twice. Compare their other fields."
            ));
        }
    }

    /// Marks the end of the run, which is complete if no reason says otherwise.
    pub(in crate::query) fn finish(&self) {
        // The spellings of all lists of a set were added together.
        self.doubt_spellings();
        self.doubt_believed_empty();
        let mut state = self.lock();
        if !std::mem::replace(&mut state.finished, true) {
            state.report.elapsed = state.started.elapsed();
            state.report.complete = state.report.reasons.is_empty();
        }
    }
}
