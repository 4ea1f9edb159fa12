//! What is wrong with JSON that somebody wrote, in words for people who know JSON and not Rust.

use serde_json::error::Category;

/// What serde calls what Rust has, and JSON does not.
const WORDS: &[(&str, &str)] = &[
    ("any valid JSON value", "a value"),
    ("sequence", "a list"),
    ("a sequence", "a list"),
    ("map", "an object"),
    ("a map", "an object of texts"),
    ("u16", "a whole number from 0 to 65535"),
    ("u64", "a whole number from 0 on"),
    ("usize", "a whole number from 0 on"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("a string", "a text"),
    ("a boolean", "true or false"),
];

fn word(text: &str) -> String {
    if text.starts_with("struct ") {
        return "an object".into();
    }
    let known = WORDS.iter().find(|(word, _)| *word == text);
    known.map_or_else(|| text.replace('`', ""), |(_, words)| (*words).into())
}

pub fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(&*text, |(text, _)| text);
    if error.classify() != Category::Data {
        return format!("it is not JSON: {text}");
    }
    let member = |text: &str| text.trim_matches('`').to_owned();
    if let Some(name) = text.strip_prefix("missing field ") {
        return format!("it has no {:?}", member(name));
    }
    if let Some(name) = text.strip_prefix("duplicate field ") {
        return format!("it has {:?} twice", member(name));
    }
    if let Some((name, expected)) = text.strip_prefix("unknown field ").and_then(|rest| rest.split_once(", ")) {
        let known = expected.trim_start_matches("expected ").trim_start_matches("one of ").replace('`', "");
        return format!("it has {:?}, which is none of {known}", member(name));
    }
    let mismatch = ["invalid type: ", "invalid value: "].iter().find_map(|kind| text.strip_prefix(kind));
    match mismatch.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("it has {} in place of {}", word(found), word(expected)),
        None => text.to_owned(),
    }
}
