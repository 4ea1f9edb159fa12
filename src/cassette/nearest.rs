//! What is said of a request that was not recorded: the nearest one that was, and where the two differ.

use std::collections::BTreeSet;

use super::interaction::Request;

/// Characters of a value that are shown: a list of hashes would fill the line.
const MOST: usize = 80;

/// `times` is how often the very request was recorded.
pub fn explain<'r>(asked: &Request, times: usize, recorded: impl Iterator<Item = &'r Request>) -> String {
    let request = describe(asked);
    if times > 0 {
        let answers = if times == 1 { "one answer".to_owned() } else { format!("{times} answers") };
        return format!("holds {answers} to {request}, and no more was left");
    }
    let differing = |other: &Request| (other.path != asked.path, differences(asked, other).len());
    // Of equally near ones always the same.
    let nearest = recorded.min_by(|a, b| (differing(a), &a.params, &a.path).cmp(&(differing(b), &b.params, &b.path)));
    match nearest {
        None => format!("holds nothing, and so no answer to {request}"),
        Some(other) if other.path != asked.path => {
            format!("holds no answer to {request}, and nothing of that path: the nearest is {}", describe(other))
        }
        Some(other) => {
            format!("holds no answer to {request}: the nearest has {}", differences(asked, other).join(", "))
        }
    }
}

fn differences(asked: &Request, other: &Request) -> Vec<String> {
    let names: BTreeSet<&String> = asked.params.keys().chain(other.params.keys()).collect();
    let differing = names.into_iter().filter_map(|name| match (asked.params.get(name), other.params.get(name)) {
        (Some(asked), Some(other)) if asked == other => None,
        (Some(asked), Some(other)) => Some(format!("{name}={} instead of {}", short(other), short(asked))),
        (None, Some(other)) => Some(format!("{name}={} as well", short(other))),
        _ => Some(format!("no {name}")),
    });
    differing.collect()
}

fn describe(request: &Request) -> String {
    let params: Vec<String> = request.params.iter().map(|(name, value)| format!("{name}={}", short(value))).collect();
    let query = if params.is_empty() { String::new() } else { format!("?{}", params.join("&")) };
    format!("{} {}{query}", request.method, request.path)
}

fn short(value: &str) -> String {
    let shown: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST).collect();
    if shown.chars().count() < value.chars().count() { shown + "…" } else { shown }
}
