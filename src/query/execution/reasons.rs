//! Reasons why a list that ended is incomplete.

use super::slice_fetcher::SliceFetcher;
use crate::interface::ResultLimit;
use crate::message::{Hint, Message, Narrowing, counted};
use crate::query::evidence::Evidence;
use crate::query::request::Query;
use crate::query::snapshot::End;

/// Reason of a list that cannot be shown to be complete.
pub(super) const UNKNOWN_LENGTH: &str = "No response confirms how many records the list has: some may be missing.";

/// The limit of a list of an address. A later start needs nothing that the API does not return.
pub(super) fn last_year(query: &Query, consequence: &str) -> Message {
    let problem = format!("The API returns only the last 12 months of an address{consequence}");
    let mut given = query.args().iter().map(|(name, _)| name.as_str());
    let narrowing = match given.find(|name| matches!(*name, "start_height" | "start_time")) {
        // The heights of a range of times were found.
        Some("start_height") if query.options().times.is_none() => Narrowing::Higher("start_height".into()),
        Some(_) => Narrowing::Later("start_time".into()),
        None => Narrowing::Pass("start_time".into()),
    };
    Message::new(problem).hint(Hint::NarrowQuery(vec![narrowing]))
}

/// Reason why a list of an address that was read to its end may lack its oldest records.
pub(super) fn age_limit(query: &Query, records: u64, evidence: &Evidence) -> Option<Message> {
    let is_limited = may_lack_oldest(query) && records > 0 && !evidence.proves_beginning();
    is_limited.then(|| lacks_oldest(query, earlier_records(query, evidence)))
}

/// True if the list may have had records that are too old for the API.
pub(super) fn may_lack_oldest(query: &Query) -> bool {
    query.endpoint().limit == ResultLimit::LastYear && !query.is_recent()
}

/// Number of records before the first one, where the records show that there were some.
pub(super) fn earlier_records(query: &Query, evidence: &Evidence) -> Option<u64> {
    let is_from_first = query.start_height().is_none() && query.unresolved().is_none();
    evidence.earlier().filter(|earlier| *earlier > 0 && is_from_first)
}

/// Reason of a list of an address whose oldest records may be missing, that many where their number is known.
pub(super) fn lacks_oldest(query: &Query, earlier: Option<u64>) -> Message {
    match earlier {
        Some(1) => last_year(query, ": 1 older record is missing"),
        Some(earlier) => last_year(query, &format!(": {earlier} older records are missing")),
        None => last_year(query, ": older records may exist"),
    }
}

/// Reasons why a slice that ended is incomplete by what the API documents.
pub(super) fn limits(query: &Query, fetcher: &SliceFetcher, evidence: &Evidence) -> Vec<Message> {
    let name = label(query, fetcher.slice);
    let list = &fetcher.list;
    let records = list.returned();
    let mut reasons: Vec<Message> = age_limit(query, records, evidence).into_iter().collect();
    match list.snapshot().total {
        Some(total) if total <= records => {}
        total if is_at_cap(query, fetcher) => reasons.push(at_window(query, &name, records, total)),
        _ => {}
    }
    reasons.extend(of_end(list.end()));
    reasons
}

/// Reason of a list that ended like this, whether or not more records of it were wanted.
pub(super) fn of_end(end: Option<End>) -> Option<Message> {
    match end? {
        End::Unsettled => {
            let problem =
                "The order of the list changed while it was read: some of its records may not have been received";
            Some(Message::new(problem).hint(Hint::RetryLater))
        }
        End::Shrunk => {
            let problem = "The list has fewer records than were received of it: some were removed while it was read";
            Some(Message::new(problem).hint(Hint::RetryLater))
        }
        End::Lacking => {
            let problem = "A response showed a record that the pages of the list do not have: a part of the service may lack it, \
                           or removed it";
            Some(Message::new(problem).hint(Hint::RunAgain))
        }
        End::UnknownLength => Some(UNKNOWN_LENGTH.into()),
        End::List | End::ResultWindow => None,
    }
}

/// Reason of a list that ends at the result window after `records` records. `total` is the number that the API counts.
pub(super) fn at_window(query: &Query, name: &str, records: u64, total: Option<u64>) -> Message {
    query.with_narrowing(match total {
        Some(total) => {
            format!("The API reports {total} records{name} but only the first {records} can be paged through")
        }
        None => {
            format!("The list{name} ends at {records} records, about as many as can be paged through: more may exist")
        }
    })
}

/// Reasons why a slice that ended is incomplete, since responses contradict each other.
pub(super) fn contradictions(query: &Query, fetcher: &SliceFetcher) -> Vec<Message> {
    let mut reasons = fetcher.doubts();
    let records = fetcher.list.returned();
    // More records than can be paged through are no contradiction: `limits` reports them. Nor are more than were wanted.
    let may_have_more = fetcher.was_stopped() || is_at_cap(query, fetcher);
    if let Some(total) = fetcher.list.contradicted_total()
        && !(total > records && may_have_more)
    {
        let name = label(query, fetcher.slice);
        reasons.insert(0, format!("The API reports {}{name} but returned {records}", counted(total, "record")).into());
    }
    if fetcher.lacks_shown_records(query) {
        let name = label(query, fetcher.slice);
        reasons.push(lacks_shown(&name));
    }
    reasons
}

/// Reason of a list with this name that lacks records which another response showed.
pub(super) fn lacks_shown(name: &str) -> Message {
    let reason = format!(
        "The list{name} lacks records that another response showed: the chain was reorganized, or a part of the \
         service lacks them"
    );
    Message::new(reason).hint(Hint::RunAgain)
}

/// Name of a slice in messages.
pub(super) fn label(query: &Query, slice: u64) -> String {
    query.slices().label(slice).map_or(String::new(), |name| format!(" of {name}"))
}

fn is_at_cap(query: &Query, fetcher: &SliceFetcher) -> bool {
    let records = fetcher.list.returned();
    fetcher.list.end() == Some(End::ResultWindow)
        || !query.is_paged() && query.result_window().is_some_and(|cap| records >= cap)
}
