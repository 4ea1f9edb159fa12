//! The first argument in which two queries differ.

use serde_json::{Map, Value};

use super::query::Query;
use crate::client::Error;
use crate::interface::{ParamKind, in_one_case};

/// Characters of a value that a message shows.
const MAX_SHOWN: usize = 80;

/// Returns what differs between the canonical arguments of two queries; `None` if they request the same.
pub fn difference(theirs: &Map<String, Value>, ours: &Map<String, Value>) -> Option<String> {
    let mut names = theirs.keys().chain(ours.keys());
    let name = names.find(|name| !is_same(theirs.get(*name), ours.get(*name)))?;
    Some(match (theirs.get(name), ours.get(name)) {
        (Some(Value::Array(theirs)), Some(Value::Array(ours))) => difference_of_lists(name, theirs, ours),
        (theirs, ours) => format!("{name} is {} there and {} here", shown(theirs), shown(ours)),
    })
}

/// Returns what differs between the query of a cursor and the query that a caller names; `None` if the cursor may be of it.
pub fn difference_of_rest(rest: &Query, whole: &Query) -> Result<Option<String>, Error> {
    let names = [rest, whole].map(|query| query.endpoint().name);
    if names[0] != names[1] {
        return Ok(Some(format!("the call is {} there and {} here", names[0], names[1])));
    }
    let chains = [rest.chain(), whole.chain()];
    if !chains[0].eq_ignore_ascii_case(chains[1]) {
        return Ok(Some(format!("chain is {} there and {} here", chains[0], chains[1])));
    }
    let mut theirs = rest.canonical_args()?;
    let mut ours = whole.canonical_args()?;
    // A cursor may have heights in place of times.
    let is_resolved = rest.unresolved().is_some() != whole.unresolved().is_some();
    for param in whole.endpoint().params {
        match param.kind {
            ParamKind::Height | ParamKind::Time if is_resolved && param.range_end().is_some() => {
                theirs.remove(param.name);
                ours.remove(param.name);
            }
            ParamKind::Hashes { .. } => remove_looked_up(theirs.get(param.name), ours.get_mut(param.name)),
            _ => {}
        }
    }
    Ok(difference(&theirs, &ours))
}

/// Removes the hashes that a cursor lacks because they were looked up before.
fn remove_looked_up(rest: Option<&Value>, whole: Option<&mut Value>) {
    if let (Some(Value::Array(rest)), Some(Value::Array(whole))) = (rest, whole) {
        whole.drain(..whole.len().saturating_sub(rest.len()));
    }
}

fn difference_of_lists(name: &str, theirs: &[Value], ours: &[Value]) -> String {
    let lacks = |values: &[Value], wanted: &Value| !values.iter().any(|value| is_same(Some(value), Some(wanted)));
    if let Some(value) = theirs.iter().find(|value| lacks(ours, value)) {
        return format!("{name} has {} there and not here", shown(Some(value)));
    }
    match ours.iter().find(|value| lacks(theirs, value)) {
        Some(value) => format!("{name} has {} here and not there", shown(Some(value))),
        None => format!("{name} has its values in another order there than here"),
    }
}

fn is_same(theirs: Option<&Value>, ours: Option<&Value>) -> bool {
    match (theirs, ours) {
        (Some(Value::String(theirs)), Some(Value::String(ours))) => in_one_case(theirs) == in_one_case(ours),
        (Some(Value::Array(theirs)), Some(Value::Array(ours))) => {
            theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(one, other)| is_same(Some(one), Some(other)))
        }
        (theirs, ours) => theirs == ours,
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "not given".to_owned() };
    let text = value.to_string();
    let is_cut = text.chars().count() > MAX_SHOWN;
    if is_cut { format!("{}…", text.chars().take(MAX_SHOWN).collect::<String>()) } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn first_difference_is_named_with_both_values() {
        for (theirs, ours, expected) in [
            (json!({"address": "0xAb", "height": 1}), json!({"address": "0XaB", "height": 1}), None),
            (json!({"address": "TAb"}), json!({"address": "Tab"}), Some(r#"address is "TAb" there and "Tab" here"#)),
            (json!({"height": 1}), json!({}), Some("height is 1 there and not given here")),
            (json!({}), json!({"height": 1}), Some("height is not given there and 1 here")),
            (json!({"ids": ["0xA", "0xb"]}), json!({"ids": ["0xa", "0xB"]}), None),
            (json!({"ids": ["0xA"]}), json!({"ids": ["0xa", "b"]}), Some(r#"ids has "b" here and not there"#)),
            (json!({"ids": ["a", "b"]}), json!({"ids": ["a"]}), Some(r#"ids has "b" there and not here"#)),
            (
                json!({"ids": ["a", "b"]}),
                json!({"ids": ["b", "a"]}),
                Some("ids has its values in another order there than here"),
            ),
        ] {
            let maps = [theirs, ours].map(|value| value.as_object().unwrap().clone());
            assert_eq!(difference(&maps[0], &maps[1]).as_deref(), expected);
        }
    }
}
