//! Message about a request that was not recorded: the closest recorded request, and where the two differ.

use std::collections::BTreeSet;
use std::fmt;

use super::interaction::Request;

/// Characters of a value that are shown: a list of hashes would fill the line.
const MAX_SHOWN: usize = 80;

/// Parameters that are times, by their names in the API and in Python.
const TIMES: [(&str, &str); 2] = [("startTime", "start_time"), ("endTime", "end_time")];

/// `times` is the number of recordings of this exact request.
pub fn explain<'r>(request: &Request, times: usize, recorded: impl Iterator<Item = &'r Request>) -> String {
    explain_part(request, request, times, recorded)
}

/// `part` is the part of the request that is compared with those of the recorded requests.
pub fn explain_part<'r>(
    request: &Request,
    part: &Request,
    times: usize,
    recorded: impl Iterator<Item = &'r Request>,
) -> String {
    if times > 0 {
        let recordings = if times == 1 { "the one recording".to_owned() } else { format!("all {times} recordings") };
        return format!(
            "has no more recordings of {request}: {recordings} already played; \
             allow_playback_repeats=True plays the last one again"
        );
    }
    let closest = recorded.min_by_key(|&other| {
        let distance = (other.path != part.path, differences(part, other).len());
        // Ties go to the same request every time.
        (distance, &other.params, &other.path)
    });
    match closest {
        None => format!("is empty; no recording of {request}"),
        Some(other) if other.path != part.path => {
            format!("has no recording of {request}, and nothing of that path; closest match: {other}")
        }
        Some(other) => {
            let differences = differences(part, other).join(", ");
            let advice = leave_times_out(part, other).map(|advice| format!("; {advice}")).unwrap_or_default();
            format!("has no recording of {request}; the closest match has {differences}{advice}")
        }
    }
}

/// Advice where two requests differ in nothing but times.
pub fn leave_times_out(request: &Request, other: &Request) -> Option<String> {
    let names: BTreeSet<&String> = request.params.keys().chain(other.params.keys()).collect();
    let differ: Vec<&str> = names
        .into_iter()
        .filter(|name| request.params.get(*name) != other.params.get(*name))
        .map(String::as_str)
        .collect();
    let options =
        differ.iter().map(|name| TIMES.iter().find(|(wire, _)| wire == name).map(|(_, own)| format!("\"-{own}\"")));
    let options = options.collect::<Option<Vec<_>>>().filter(|options| !options.is_empty())?;
    Some(format!("match_on=[{}] replays it for any time", options.join(", ")))
}

fn differences(request: &Request, other: &Request) -> Vec<String> {
    let mut differences = Vec::new();
    if request.method != other.method {
        differences.push(format!("method {} instead of {}", other.method, request.method));
    }
    let names: BTreeSet<&String> = request.params.keys().chain(other.params.keys()).collect();
    differences.extend(names.into_iter().filter_map(|name| match (request.params.get(name), other.params.get(name)) {
        (Some(own), Some(other)) if own == other => None,
        (Some(own), Some(other)) => Some(format!("{name}={} instead of {}", short(other), short(own))),
        (None, Some(other)) => Some(format!("{name}={} as well", short(other))),
        _ => Some(format!("no {name}")),
    }));
    differences
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        for (position, (name, value)) in self.params.iter().enumerate() {
            write!(f, "{}{name}={}", if position == 0 { '?' } else { '&' }, short(value))?;
        }
        Ok(())
    }
}

fn short(value: &str) -> String {
    let shown: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_SHOWN).collect();
    if shown.chars().count() < value.chars().count() { shown + "…" } else { shown }
}
