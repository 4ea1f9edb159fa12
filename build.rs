//! Generates the macro `doc!` from the docstrings of the stub `_native.pyi`, so that `help()` shows them and each is
//! written once: `doc!(Client)`, `doc!(Client.tokens)`.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

const STUB: &str = "python/chainframe/_native.pyi";
const QUOTES: &str = "\"\"\"";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_PYTHON").is_none() {
        return;
    }
    println!("cargo::rerun-if-changed={STUB}");
    let stub = fs::read_to_string(STUB).expect("the stub is readable");
    let mut arms = String::new();
    for (name, text) in docstrings(&stub) {
        writeln!(arms, "    ({name}) => {{ r##\"{text}\"## }};").expect("writing to a string does not fail");
    }
    arms.push_str("    ($($name:tt)*) => { compile_error!(concat!(\"no docstring in _native.pyi: \", stringify!($($name)*))) };\n");
    let made = format!("macro_rules! doc {{\n{arms}}}\n");
    let folder = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&folder).join("docs.rs"), made).expect("OUT_DIR is writable");
}

/// Docstrings of classes and their members, without their indentation.
fn docstrings(stub: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut class, mut member) = ("", None);
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(rest) = line.strip_prefix("class ") {
            (class, member) = (word(rest), None);
        } else if let Some(rest) = text.strip_prefix("async ").unwrap_or(text).strip_prefix("def ") {
            member = Some(word(rest));
        } else if let Some(first) = text.strip_prefix(QUOTES).filter(|_| !class.is_empty()) {
            let name = member.map_or_else(|| class.to_owned(), |member| format!("{class}.{member}"));
            let mut text = first.to_owned();
            while !text.ends_with(QUOTES) {
                let line = lines.next().expect("the docstring is closed");
                text = format!("{text}\n{}", line.get(indent..).unwrap_or_default());
            }
            // The only escape that the docstrings use.
            found.push((name, text.trim_end_matches('"').trim_end().replace(r"\\", r"\")));
        }
    }
    found
}

fn word(text: &str) -> &str {
    text.split(|character: char| !character.is_alphanumeric() && character != '_').next().unwrap_or_default()
}
