//! Messages about invalid JSON in the terms of JSON, not of Rust.

use serde_json::error::Category;

/// Terms of serde, and of JSON.
const TERMS: &[(&str, &str)] = &[
    ("any valid JSON value", "a value"),
    ("sequence", "a list"),
    ("a sequence", "a list"),
    ("map", "an object"),
    ("a map", "an object of strings"),
    ("u16", "an integer from 0 to 65535"),
    ("u64", "a non-negative integer"),
    ("usize", "a non-negative integer"),
    ("i64", "an integer"),
    ("f64", "a number"),
    ("a string", "a string"),
    ("a boolean", "true or false"),
];

fn term(text: &str) -> String {
    if text.starts_with("struct ") {
        return "an object".into();
    }
    let known = TERMS.iter().find(|(term, _)| *term == text);
    known.map_or_else(|| text.replace('`', ""), |(_, terms)| (*terms).into())
}

pub fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(&*text, |(text, _)| text);
    if error.classify() != Category::Data {
        return format!("invalid JSON: {text}");
    }
    if let Some(name) = text.strip_prefix("missing field ") {
        return format!("{:?} is missing", name.trim_matches('`'));
    }
    if let Some(name) = text.strip_prefix("duplicate field ") {
        return format!("{:?} is given twice", name.trim_matches('`'));
    }
    if let Some((name, expected)) = text.strip_prefix("unknown field ").and_then(|rest| rest.split_once(", ")) {
        let known = expected.trim_start_matches("expected ").trim_start_matches("one of ").replace('`', "");
        return format!("unknown member {:?}; expected one of {known}", name.trim_matches('`'));
    }
    let mismatch = ["invalid type: ", "invalid value: "].iter().find_map(|kind| text.strip_prefix(kind));
    match mismatch.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("expected {}, got {}", term(expected), term(found)),
        None => text.to_owned(),
    }
}
