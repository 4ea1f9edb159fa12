//! `EmptyResponses`: what a client knows of responses without records that do not count none. By them a service says that
//! nothing was found, or throttles in disguise; the request is repeated until one of the two is shown.
//!
//! Evidence of a throttle: a repeated request brings a page, or a control request, for a page that had records, is empty
//! as well. Evidence of nothing found: repeated requests are empty and a response to a request of the same time has
//! records. Records that are new are weak evidence of a throttle: one part of a service may have them later than another.

use std::time::Duration;

use tokio::time::Instant;

use super::get_request::GetRequest;
use crate::columns::Columns;
use crate::process::ForkSafeMutex;

/// Wait before the first repetition; it doubles with each. Services count requests over a second as a rule, so that two
/// waits outlast a throttle.
const FIRST_WAIT: Duration = Duration::from_millis(400);
/// Repetitions before an empty response is believed. One is not enough for a service that empties responses at random: of
/// few lists, two empty responses in a row may be the only ones.
const REPETITIONS: u32 = 2;
/// Repetitions of a routine one, if a page is known to have records.
const ROUTINE_REPETITIONS: u32 = 1;
/// Repetitions at a service that has throttled by empty responses.
const REPETITIONS_IF_THROTTLING: u32 = 4;
/// Confirmed empty responses after which a service is taken to answer so where it finds nothing: the rate limiter does not
/// hear of further ones, unless they are disproved, and they are repeated sooner.
const ROUTINE: u32 = 4;
/// Wait before the repetition of a routine one. If it falls within a throttle as well, so do the responses of its time.
const ROUTINE_WAIT: Duration = Duration::from_millis(100);
/// Age up to which a part of a service may lack records that another part has.
pub const NEW_RECORDS: Duration = Duration::from_secs(60 * 60);
/// Time after which an empty response that new records disproved says nothing of later ones, if others have come. A service
/// that throttles so does it again within this time, if it is asked as often.
const DOUBT: Duration = Duration::from_secs(10 * 60);

/// Evidence for an empty response that was taken to mean that nothing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BelievedEmpty {
    /// A response of the same time had records.
    Confirmed,
    /// Repeated requests were empty as well.
    Repeated,
    /// Its page object counts none.
    Counted,
}

/// A request for a page that had records.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub request: GetRequest,
    /// Records that are the same whenever they are requested: those of a look-up or of one block.
    pub fixed: Option<Columns>,
    pub age: Age,
}

/// Age of the records that disprove an empty response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// A part of the service may have lacked all of them.
    New,
    Old,
}

impl Age {
    /// The age of records, up to the time of the newest old ones in Unix milliseconds. Those without a time are old.
    pub fn of(columns: &Columns, newest_old: i64) -> Self {
        let mut times = columns.times().peekable();
        let has_times = times.peek().is_some();
        if has_times && times.all(|time| time.is_some_and(|time| time > newest_old)) { Self::New } else { Self::Old }
    }
}

/// Throttling by empty responses, as those that were disproved show it.
#[derive(Debug, Default)]
enum Throttling {
    #[default]
    Unseen,
    /// New records disproved one, most recently at this time.
    Suspected(Instant),
    Seen,
}

/// Records that do not change, and what the control request for them returned.
#[derive(Debug)]
pub struct RepeatedPage {
    pub before: Columns,
    pub after: Columns,
}

#[derive(Debug, Default)]
pub struct EmptyResponses(ForkSafeMutex<EmptyState>);

#[derive(Debug, Default)]
struct EmptyState {
    control: Option<Control>,
    /// Latest time of sending of a request that returned records.
    last_records: Option<Instant>,
    throttling: Throttling,
    /// True once a page object that counted none was disproved.
    has_false_counts: bool,
    confirmed: u32,
}

impl EmptyState {
    /// True if a request that was sent no earlier returned records.
    fn is_confirmed(&self, sent: Instant) -> bool {
        self.last_records.is_some_and(|records| records >= sent)
    }

    fn is_throttling(&self) -> bool {
        match self.throttling {
            Throttling::Unseen => false,
            Throttling::Suspected(at) => {
                let has_recovered = self.last_records.is_some_and(|records| records > at);
                !has_recovered || at.elapsed() < DOUBT
            }
            Throttling::Seen => true,
        }
    }

    /// Repetitions before an empty response is believed, and the wait before the first of them.
    fn repetitions(&self) -> (u32, Duration) {
        if self.is_throttling() {
            (REPETITIONS_IF_THROTTLING, FIRST_WAIT)
        } else if self.confirmed < ROUTINE {
            (REPETITIONS, FIRST_WAIT)
        } else if self.control.is_some() {
            (ROUTINE_REPETITIONS, ROUTINE_WAIT)
        } else {
            (REPETITIONS, ROUTINE_WAIT)
        }
    }
}

/// Number of requests by which an empty response is checked: repetitions, and a control request where one is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    pub min: u64,
    pub expected: u64,
    pub max: u64,
}

/// Next step after an empty response.
#[derive(Debug)]
pub(super) enum Verdict {
    RepeatAfter(Duration),
    Check(Control),
    Believe(BelievedEmpty),
}

impl EmptyResponses {
    /// True if the service throttles by empty responses, as far as is known, or may have done so since `start`.
    pub fn has_throttled_since(&self, start: Instant) -> bool {
        let state = self.0.lock();
        state.is_throttling() || matches!(state.throttling, Throttling::Suspected(at) if at >= start)
    }

    /// True if the service has throttled by page objects that count none: from then on they are repeated like responses that
    /// do not count.
    pub fn has_false_counts(&self) -> bool {
        self.0.lock().has_false_counts
    }

    /// True if empty responses are no sign of a throttle, as far as is known.
    pub(super) fn is_routine(&self) -> bool {
        let state = self.0.lock();
        !state.is_throttling() && state.confirmed >= ROUTINE
    }

    /// Takes a response with records to a request sent at `sent`.
    pub(super) fn on_records(&self, control: Option<Control>, sent: Instant) {
        let mut state = self.0.lock();
        state.last_records = state.last_records.max(Some(sent));
        if control.is_some() {
            state.control = control;
        }
    }

    /// Notes that an empty response was disproved: its repetition brought records of this age, or a control request for such
    /// records was empty.
    pub(super) fn on_disproved(&self, age: Age) {
        let throttling = &mut self.0.lock().throttling;
        match (age, &throttling) {
            (Age::New, Throttling::Unseen | Throttling::Suspected(_)) => {
                *throttling = Throttling::Suspected(Instant::now());
            }
            _ => *throttling = Throttling::Seen,
        }
    }

    /// Notes that a page object that counted none was a throttle: a list has records where it said that there are none.
    pub fn on_false_count(&self) {
        self.0.lock().has_false_counts = true;
    }

    /// Forgets a control request whose response was empty: its records may be gone for good.
    pub(super) fn discard_control(&self) {
        self.0.lock().control = None;
    }

    /// True if a page is known that had records.
    pub fn has_control(&self) -> bool {
        self.0.lock().control.is_some()
    }

    /// The control request, unless a response with records was sent for after `sent`.
    pub(super) fn control_after(&self, sent: Instant) -> Option<Control> {
        let state = self.0.lock();
        state.control.clone().filter(|_| !state.is_confirmed(sent))
    }

    /// Confirms empty responses to requests that were sent up to `sent`. False if no response of the same time had records.
    pub(super) fn confirm(&self, responses: usize, sent: Instant) -> bool {
        let mut state = self.0.lock();
        let is_confirmed = state.is_confirmed(sent);
        if is_confirmed {
            state.confirmed = state.confirmed.saturating_add(u32::try_from(responses).unwrap_or(u32::MAX));
        }
        is_confirmed
    }

    /// Requests by which an empty response is checked before it is believed, as far as is known now.
    pub fn checks(&self) -> Checks {
        let state = self.0.lock();
        let (expected, _) = state.repetitions();
        let (min, max) = if state.is_throttling() {
            (REPETITIONS_IF_THROTTLING, REPETITIONS_IF_THROTTLING)
        } else {
            (ROUTINE_REPETITIONS, REPETITIONS)
        };
        let control = u32::from(state.control.is_some());
        Checks { min: min.into(), expected: (expected + control).into(), max: (max + 1).into() }
    }

    /// Decides about an empty response to a request that was repeated `repetitions` times, the last time at `sent`.
    pub(super) fn decide(&self, repetitions: u32, sent: Instant) -> Verdict {
        let mut state = self.0.lock();
        let (wanted, first_wait) = state.repetitions();
        if repetitions < wanted {
            return Verdict::RepeatAfter(first_wait * (1 << repetitions));
        }
        let is_confirmed = state.is_confirmed(sent);
        match &state.control {
            Some(control) if !is_confirmed => Verdict::Check(control.clone()),
            _ => {
                state.confirmed += u32::from(is_confirmed);
                Verdict::Believe(if is_confirmed { BelievedEmpty::Confirmed } else { BelievedEmpty::Repeated })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Expectation;
    use crate::columns::{ColumnsBuilder, Projection};
    use crate::interface::ENDPOINTS;

    fn control() -> Option<Control> {
        let expectation = Expectation {
            row_hint: 1,
            page: 1,
            offset: 0,
            must_have_rows: true,
            is_fixed: false,
            projection: Projection::ALL,
        };
        let request = GetRequest { endpoint: &ENDPOINTS[0], target: "/".into(), expectation };
        Some(Control { request, fixed: None, age: Age::Old })
    }

    /// Repetitions until a request at `sent` is believed or compared with a control request.
    fn repetitions(responses: &EmptyResponses, sent: Instant) -> (u32, Verdict) {
        let verdict = |count| responses.decide(count, sent);
        let is_repeated = |count: &u32| matches!(verdict(*count), Verdict::RepeatAfter(_));
        let count = (0..10).take_while(is_repeated).count() as u32;
        (count, verdict(count))
    }

    #[test]
    fn empty_response_is_believed_by_repetition_or_by_records_of_the_same_time() {
        let (responses, start) = (EmptyResponses::default(), Instant::now());
        let later = start + Duration::from_secs(1);
        let believed = |verdict| if let Verdict::Believe(believed) = verdict { Some(believed) } else { None };
        let (count, verdict) = repetitions(&responses, later);
        assert_eq!((count, believed(verdict)), (REPETITIONS, Some(BelievedEmpty::Repeated)));
        responses.on_records(control(), start);
        let (count, verdict) = repetitions(&responses, later);
        assert_eq!((count, believed(verdict)), (REPETITIONS, None));
        assert!(responses.control_after(later).is_some());
        assert!(!responses.confirm(1, later));
        responses.on_records(None, later);
        assert!(responses.control_after(later).is_none());
        assert!(responses.confirm(1, later));
        let (count, verdict) = repetitions(&responses, later);
        assert_eq!((count, believed(verdict)), (REPETITIONS, Some(BelievedEmpty::Confirmed)));
    }

    #[test]
    fn empty_responses_are_routine_until_one_is_disproved() {
        let (responses, now) = (EmptyResponses::default(), Instant::now());
        responses.on_records(control(), now);
        for _ in 0..ROUTINE {
            assert!(!responses.is_routine());
            responses.decide(REPETITIONS, now);
        }
        assert!(responses.is_routine());
        assert_eq!(repetitions(&responses, now).0, ROUTINE_REPETITIONS);
        assert_eq!(responses.checks(), Checks { min: 1, expected: 2, max: 3 });
        responses.on_disproved(Age::Old);
        assert!(!responses.is_routine() && responses.has_throttled_since(Instant::now()));
        assert_eq!(repetitions(&responses, now).0, REPETITIONS_IF_THROTTLING);
        assert_eq!(responses.checks(), Checks { min: 4, expected: 5, max: 5 });
    }

    #[tokio::test(start_paused = true)]
    async fn new_records_cast_doubt_for_a_while() {
        let (responses, start) = (EmptyResponses::default(), Instant::now());
        responses.on_disproved(Age::New);
        tokio::time::advance(DOUBT / 2).await;
        let later = Instant::now();
        for _ in 0..2 {
            assert!(responses.has_throttled_since(later));
            assert_eq!(repetitions(&responses, later).0, REPETITIONS_IF_THROTTLING);
            // No records have come since.
            tokio::time::advance(DOUBT / 2).await;
        }
        responses.on_records(None, later);
        assert!(responses.has_throttled_since(start) && !responses.has_throttled_since(later));
        assert_eq!(repetitions(&responses, later).0, REPETITIONS);
        responses.on_disproved(Age::Old);
        responses.on_disproved(Age::New);
        assert!(responses.has_throttled_since(Instant::now()));
        assert_eq!(repetitions(&responses, later).0, REPETITIONS_IF_THROTTLING);
    }

    #[test]
    fn records_are_new_if_all_of_them_are() {
        let record = ENDPOINTS.iter().map(|endpoint| endpoint.record()).find(|record| record.time().is_some()).unwrap();
        let age = |times: &[i64]| {
            let mut rows = ColumnsBuilder::new(record, times.len());
            for time in times {
                rows.append_time(record.time().unwrap(), *time);
                rows.finish_row();
            }
            Age::of(&rows.finish(), 60)
        };
        assert_eq!([age(&[99, 61]), age(&[99, 60]), age(&[])], [Age::New, Age::Old, Age::Old]);
    }
}
