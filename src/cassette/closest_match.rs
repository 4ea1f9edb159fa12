//! Message about a request that was not recorded: the closest recorded request, and where the two differ.

use std::collections::BTreeSet;
use std::fmt;

use super::interaction::Request;

/// Characters of a value that are shown: a list of hashes would fill the line.
const MAX_SHOWN: usize = 80;

/// `times` is the number of recordings of this exact request.
pub fn explain<'r>(request: &Request, times: usize, recorded: impl Iterator<Item = &'r Request>) -> String {
    if times > 0 {
        let recordings = if times == 1 { "the one recording".to_owned() } else { format!("all {times} recordings") };
        return format!(
            "has no more recordings of {request}: {recordings} already played; \
             allow_playback_repeats=True plays the last one again"
        );
    }
    let distance = |other: &Request| (other.path != request.path, differences(request, other).len());
    // Ties go to the same request every time.
    let closest = recorded.min_by(|a, b| (distance(a), &a.params, &a.path).cmp(&(distance(b), &b.params, &b.path)));
    match closest {
        None => format!("is empty; no recording of {request}"),
        Some(other) if other.path != request.path => {
            format!("has no recording of {request}, and nothing of that path; closest match: {other}")
        }
        Some(other) => {
            let differences = differences(request, other).join(", ");
            format!("has no recording of {request}; the closest match has {differences}")
        }
    }
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
