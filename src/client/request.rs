//! One page, requested until it arrives or until another attempt cannot help. For each attempt, `Client::get` asks for a
//! permit (`Client::admit` in `send.rs`) and passes it to `Client::attempt` in `attempt.rs`, which has the request signed and
//! sent (`Client::interact` in `send.rs`, by the `Transport` in `http.rs`) and classifies the response.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::Client;
use super::attempt::{FailedAttempt, Fetched, is_rejection};
use super::empty::{Age, BelievedEmpty, Control, NEW_RECORDS, RepeatedPage, Verdict};
use super::error::{Error, Phase};
use super::get_request::{Expectation, GetRequest};
use super::log::{self, Level};
use super::retry::{Policy, RetryDecision};
use super::send::Admission;
use crate::columns::Columns;
use crate::decode::Page;
use crate::interface::Endpoint;
use crate::message::{Hint, Message};
use crate::planted::Bug;

/// The attempts of one request so far.
#[derive(Default)]
struct Attempts {
    sent: u32,
    /// Attempts that were sent again for free, and do not count as retries.
    free: u32,
    /// Repetitions of a request whose response was empty; they do not count as retries.
    repetitions: u32,
    /// True if an empty response is no longer repeated.
    is_last: bool,
    /// Records of control requests, and what these requests returned before.
    repeated: Vec<RepeatedPage>,
    /// Time of sending of the first request whose response was empty.
    first_empty: Option<Instant>,
    /// True once a response was empty that had to have records.
    was_emptied: bool,
    /// True once one of these said that the list has no records at all.
    was_denied: bool,
    /// Time spent in attempts and in the pauses between them. The queue for a permit is not included: it says nothing
    /// about the service, and grows with the caller's own requests.
    spent: Duration,
    signed_again: bool,
    /// True once credentials were asked for since the service rejected others.
    renewed: bool,
}

/// Decision about a request whose response was empty.
enum Repetition {
    Again,
    /// Nothing was found; what is known of it, unless it was replayed.
    Needless(Option<BelievedEmpty>),
}

impl Client {
    /// Requests one page until it arrives, or until another attempt cannot help. Calls `on_send` for every attempt.
    pub async fn get(&self, request: &GetRequest, on_send: &(dyn Fn() + Sync)) -> Result<Fetched, Error> {
        self.get_after(Attempts::default(), request, on_send).await
    }

    /// Requests a page once more whose response was empty. If it still is, returns when that request was sent, and whether it was
    /// replayed.
    pub(super) async fn get_again(&self, request: &GetRequest, on_send: &(dyn Fn() + Sync)) -> Option<(Instant, bool)> {
        let attempts = Attempts { is_last: true, ..Attempts::default() };
        let fetched = self.get_after(attempts, request, on_send).await.ok()?;
        if fetched.believed_empty == Some(BelievedEmpty::Repeated) {
            return Some((fetched.sent, fetched.replayed));
        }
        self.inner.shared.empty_responses.on_disproved(self.age_of(&fetched.page.columns));
        None
    }

    /// True if a page has no records still. Calls `on_send` for every attempt.
    pub async fn is_empty_still(&self, request: &GetRequest, on_send: &(dyn Fn() + Sync)) -> Result<bool, Error> {
        let attempts = Attempts { is_last: true, ..Attempts::default() };
        match self.get_after(attempts, request, on_send).await {
            Ok(fetched) => Ok(fetched.page.columns.rows() == 0),
            Err(error) if error.is_absent_block() => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn get_after(
        &self,
        mut attempts: Attempts,
        request: &GetRequest,
        on_send: &(dyn Fn() + Sync),
    ) -> Result<Fetched, Error> {
        let GetRequest { target, expectation, .. } = request;
        let settings = self.settings();
        let max_retries = if Bug::RetriesUnbounded.is_planted() { u32::MAX } else { settings.max_retries };
        let policy = Policy { max_retries, deadline: settings.deadline };
        loop {
            let admission = self.admit(target, attempts.sent > attempts.repetitions).await?;
            if Bug::DeadlineIncludesQueue.is_planted() {
                attempts.spent += admission.waited();
            }
            attempts.sent += 1;
            on_send();
            let started = Instant::now();
            let Some(outcome) = self.attempt_in_time(request, &attempts, admission).await else {
                self.record_deadline(target)?;
                return Err(self.deadline_exceeded(request.endpoint, attempts.sent));
            };
            attempts.spent += started.elapsed();
            let failed = match outcome {
                Ok(mut fetched) => {
                    self.inner.shared.budget.deposit();
                    if self.is_doubtful(*expectation, &fetched.page) {
                        match self.prepare_repetition(target, policy, &mut attempts, &fetched, on_send).await {
                            Repetition::Again => continue,
                            Repetition::Needless(believed) => fetched.believed_empty = believed,
                        }
                    } else {
                        self.on_page(request, &attempts, &fetched);
                        fetched.believed_empty =
                            expectation.is_counted_empty(&fetched.page).then_some(BelievedEmpty::Counted);
                    }
                    fetched.attempts -= attempts.repetitions;
                    fetched.repeated = attempts.repeated;
                    return Ok(fetched);
                }
                Err(failed) => failed,
            };
            let pause = self.prepare_retry(target, policy, &mut attempts, failed).await?;
            attempts.spent += pause;
        }
    }

    /// Sends a request once. `None` if the deadline passed before its outcome.
    async fn attempt_in_time(
        &self,
        request: &GetRequest,
        attempts: &Attempts,
        admission: Admission,
    ) -> Option<Result<Fetched, FailedAttempt>> {
        let mut observation = self.observe(request, attempts.sent, admission.waited());
        let attempt = self.attempt(request, attempts.sent, admission, &mut observation);
        let Some(deadline) = self.settings().deadline else { return Some(attempt.await) };
        let outcome = tokio::time::timeout(deadline.saturating_sub(attempts.spent), attempt).await.ok();
        if let (None, Some(observation)) = (&outcome, &mut observation) {
            observation.report.error = Some(Phase::Deadline.as_str());
        }
        outcome
    }

    /// True if an empty response may be a throttle, by what is known of the service.
    pub fn is_doubtful(&self, expectation: Expectation, page: &Page) -> bool {
        expectation.is_doubtful(page)
            || expectation.is_counted_empty(page) && self.inner.shared.empty_responses.has_false_counts()
    }

    /// The age of records. A recording does not say when it was made: all of its records are old.
    pub fn age_of(&self, records: &Columns) -> Age {
        if self.only_replays() { Age::Old } else { Age::of(records, self.newest_old_time()) }
    }

    /// Time of the newest records that all parts of the service have long had, in Unix milliseconds.
    pub fn newest_old_time(&self) -> i64 {
        DateTime::<Utc>::from(self.now() - NEW_RECORDS).timestamp_millis()
    }

    /// Notes the response to a request, and what it shows of empty responses before it.
    fn on_page(&self, request: &GetRequest, attempts: &Attempts, fetched: &Fetched) {
        let empty_responses = &self.inner.shared.empty_responses;
        let age = self.age_of(&fetched.page.columns);
        if fetched.page.columns.rows() > 0 {
            // The first page of a list has records as long as the list does.
            let expectation = Expectation { must_have_rows: true, ..request.expectation };
            let is_first = expectation.page == 1;
            let fixed = expectation.is_fixed.then(|| fetched.page.columns.clone());
            let request = GetRequest { expectation, ..request.clone() };
            let control = is_first.then_some(Control { request, fixed, age });
            empty_responses.on_records(control, fetched.sent);
            if attempts.was_emptied {
                empty_responses.on_disproved(age);
            }
            if attempts.was_denied {
                empty_responses.on_false_count();
            }
        }
        if let Some(empty) = attempts.first_empty {
            empty_responses.on_disproved(age);
            if !fetched.replayed {
                self.limiter().confirm_suspicion(empty);
            }
        }
    }

    /// Waits until a request whose response was empty is to be repeated, or decides that nothing was found.
    async fn prepare_repetition(
        &self,
        target: &str,
        policy: Policy,
        attempts: &mut Attempts,
        fetched: &Fetched,
        on_send: &(dyn Fn() + Sync),
    ) -> Repetition {
        if attempts.is_last {
            return self.believe(Some(BelievedEmpty::Repeated));
        }
        attempts.first_empty.get_or_insert(fetched.sent);
        let empty_responses = &self.inner.shared.empty_responses;
        let mut verdict = empty_responses.decide(attempts.repetitions, fetched.sent);
        // A replay has the control request, and as many repetitions as there were, if the recording has them.
        if let Verdict::Check(control) = &verdict
            && !(fetched.replayed && self.is_played_out(&control.request.target))
        {
            attempts.repeated.extend(self.check_control(control, on_send).await);
            verdict = empty_responses.decide(attempts.repetitions, fetched.sent);
        }
        let wait = match verdict {
            Verdict::RepeatAfter(_) if fetched.replayed && self.is_played_out(target) => {
                return Repetition::Needless(None);
            }
            Verdict::RepeatAfter(wait) => wait.mul_f64(1.0 + (self.inner.shared.environment.jitter)() / 4.0),
            Verdict::Check(_) => return self.believe(None),
            Verdict::Believe(believed) if fetched.replayed => {
                // One that is in the recording once more was requested again to be confirmed.
                let is_again = believed == BelievedEmpty::Repeated && !self.is_played_out(target);
                return self.believe(is_again.then_some(believed));
            }
            Verdict::Believe(believed) => return self.believe(Some(believed)),
        };
        if !fetched.replayed {
            if policy.deadline.is_some_and(|deadline| attempts.spent + wait >= deadline) {
                return self.believe(Some(BelievedEmpty::Repeated));
            }
            log::emit(Level::Info, || {
                format!("GET {target} returned nothing; asking again in {:.3} s", wait.as_secs_f64())
            });
            tokio::time::sleep(wait).await;
            attempts.spent += wait;
        }
        attempts.repetitions += 1;
        Repetition::Again
    }

    fn believe(&self, believed: Option<BelievedEmpty>) -> Repetition {
        self.limiter().clear_suspicion();
        Repetition::Needless(believed)
    }

    /// Requests a page that had records, to see whether the service returns records now. Returns what it had and has, if
    /// that stays the same.
    pub(super) async fn check_control(&self, control: &Control, on_send: &(dyn Fn() + Sync)) -> Option<RepeatedPage> {
        let Control { request, fixed, age } = control;
        let empty_responses = &self.inner.shared.empty_responses;
        let Ok(admission) = self.admit(&request.target, false).await else {
            empty_responses.discard_control();
            return None;
        };
        on_send();
        let mut observation = self.observe(request, 1, admission.waited());
        match self.attempt(request, 1, admission, &mut observation).await {
            Ok(fetched) => {
                empty_responses.on_records(None, fetched.sent);
                return fixed.clone().map(|before| RepeatedPage { before, after: fetched.page.columns });
            }
            Err(FailedAttempt { error: Error::Empty { .. }, .. }) => {
                empty_responses.on_disproved(*age);
                empty_responses.discard_control();
            }
            Err(_) => empty_responses.discard_control(),
        }
        None
    }

    /// Waits until the failed attempt may be repeated and returns how long that took, or returns its error.
    async fn prepare_retry(
        &self,
        target: &str,
        policy: Policy,
        attempts: &mut Attempts,
        failed: FailedAttempt,
    ) -> Result<Duration, Error> {
        let FailedAttempt { error, retry, skew, rejected, replayed, stale_connection } = failed;
        attempts.was_emptied |= matches!(error, Error::Empty { .. });
        attempts.was_denied |= matches!(error, Error::Empty { denies_list: true, .. });
        // A replay ends where the recording ended.
        if replayed && self.is_played_out(target) {
            return Err(error);
        }
        if stale_connection && attempts.free == 0 {
            attempts.free = 1;
            // Other idle connections may be stale as well.
            self.close();
            log::emit(Level::Info, || format!("{error}; sending again on another connection"));
            return Ok(Duration::ZERO);
        }
        // A rejected timestamp is fixed by the service's own clock.
        if let Some((used, skew)) = skew
            && !attempts.signed_again
            && (replayed || self.inner.shared.clock.apply_skew(used, skew))
        {
            attempts.signed_again = true;
            log::emit(Level::Warning, || format!("{error}; clock skew corrected, signing again"));
            return Ok(Duration::ZERO);
        }
        if self.may_be_accepted_again(&error, rejected, replayed, &mut attempts.renewed).await? {
            log::emit(Level::Info, || format!("{error}; sending again with other credentials"));
            return Ok(Duration::ZERO);
        }
        // A replay takes no time and costs the service nothing.
        let policy = if replayed { Policy { deadline: None, ..policy } } else { policy };
        let jitter = (self.inner.shared.environment.jitter)();
        let counted = attempts.sent - attempts.free - attempts.repetitions;
        let decision = policy.decide(retry, counted, attempts.spent, jitter);
        let RetryDecision::RetryAfter(pause) = decision else { return Err(error) };
        if replayed {
            return Ok(Duration::ZERO);
        }
        if !self.inner.shared.budget.withdraw() {
            log::emit(Level::Warning, || format!("{error}; retry budget exhausted"));
            return Err(error);
        }
        // Throttles are expected: the rate limiter provokes them.
        let level = if error.is_throttle() { Level::Info } else { Level::Warning };
        log::emit(level, || format!("{error}; trying again in {:.3} s", pause.as_secs_f64()));
        tokio::time::sleep(pause).await;
        Ok(pause)
    }

    /// Asks for other credentials, once, after those of a generation were rejected. True if there are others.
    async fn may_be_accepted_again(
        &self,
        error: &Error,
        rejected: Option<u64>,
        replayed: bool,
        renewed: &mut bool,
    ) -> Result<bool, Error> {
        let account = &self.inner.shared.account;
        if !account.is_renewable() || *renewed || !is_rejection(error) {
            return Ok(false);
        }
        *renewed = true;
        if replayed {
            return Ok(true);
        }
        let before = account.latest().filter(|latest| Some(latest.generation) == rejected);
        let current = self.in_deadline(account.renewed(rejected)).await?;
        // Without those that were rejected, another request has replaced them.
        Ok(before.is_none_or(|before| before.credentials != current.credentials))
    }

    fn deadline_exceeded(&self, endpoint: &'static Endpoint, attempts: u32) -> Error {
        let seconds = self.settings().deadline.unwrap_or_default().as_secs_f64();
        let problem = Message::new(format!("deadline of {seconds} s exceeded"));
        let problem = problem.hint(Hint::RetryLater).hint(Hint::raise(&["deadline"]));
        Error::Timeout { endpoint: endpoint.name, phase: Phase::Deadline, problem, attempts }
    }
}
