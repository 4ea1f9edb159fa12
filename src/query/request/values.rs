//! `CheckedValue`: the value of a parameter, of the form that is declared for it.

use std::collections::HashSet;

use chrono::{DateTime, SecondsFormat};
use serde::Serialize;

use super::args::Arg;
use super::times::parse_time;
use crate::client::Error;
use crate::interface::{Number, Param, ParamKind, digits, foreign_character, meaning};
use crate::message::{Hint, Message, quoted};

/// A validated value.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum CheckedValue {
    String(String),
    Number(i64),
    Amount(String),
    Hashes(Vec<String>),
}

pub(super) fn shown(param: &Param, value: &CheckedValue) -> String {
    match value {
        CheckedValue::String(text) | CheckedValue::Amount(text) => text.clone(),
        CheckedValue::Number(time) if param.kind == ParamKind::Time => DateTime::from_timestamp_millis(*time)
            .map_or_else(|| time.to_string(), |time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
        CheckedValue::Number(number) => number.to_string(),
        CheckedValue::Hashes(hashes) => match hashes.as_slice() {
            [hash] => hash.clone(),
            _ => format!("{} hashes", hashes.len()),
        },
    }
}

pub(super) fn check(param: &Param, arg: &Arg) -> Result<CheckedValue, Error> {
    let checked = match param.kind {
        ParamKind::Time => return parse_time(param.name, arg, param.range_end()).map(CheckedValue::Number),
        ParamKind::Hashes { .. } => return hashes(param, arg),
        ParamKind::Text => text(param, arg),
        ParamKind::Height => height(arg),
        ParamKind::Amount { min } => amount(min, arg),
        ParamKind::OneOf(choices) => choice(choices, arg),
    };
    checked.map_err(|problem| Error::parameter(param.name, problem))
}

fn text(param: &Param, arg: &Arg) -> Result<CheckedValue, Message> {
    let Arg::String(text) = arg else { return Err("must be a string".into()) };
    if text.is_empty() && param.required {
        return Err("is required and must not be empty".into());
    }
    if text.is_empty() {
        return Err(Message::new("must not be empty").hint(Hint::Omit(param.name.into())));
    }
    match foreign_character(text) {
        Some(found) if is_address_or_hash(param) => Err(format!("must be one address or hash; {found}").into()),
        Some(found) => Err(format!("must be one value; {found}").into()),
        None => Ok(CheckedValue::String(text.clone())),
    }
}

fn is_address_or_hash(param: &Param) -> bool {
    ["address", "hash", "tx_id"].iter().any(|suffix| param.name.ends_with(suffix))
}

fn height(arg: &Arg) -> Result<CheckedValue, Message> {
    let (Arg::Integer(digits) | Arg::String(digits)) = arg else {
        return Err("must be a block height, an integer from 0 to 2^63-1".into());
    };
    match digits.parse() {
        Ok(height) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(CheckedValue::Number(height)),
        _ => Err(format!("must be a block height, an integer from 0 to 2^63-1; got {}", quoted(digits)).into()),
    }
}

fn amount(min: u32, arg: &Arg) -> Result<CheckedValue, Message> {
    let (Arg::Integer(text) | Arg::Decimal(text) | Arg::String(text)) = arg else {
        return Err("must be a decimal number".into());
    };
    match Number::parse(text) {
        Some(number) if number.at_least(min) => Ok(CheckedValue::Amount(number.plain())),
        Some(_) => Err(format!("({text}) must be >= {min}").into()),
        None => Err(format!("must be a decimal number; got {}", quoted(text)).into()),
    }
}

fn choice(choices: &[&str], arg: &Arg) -> Result<CheckedValue, Message> {
    match arg {
        Arg::String(text) if choices.contains(&text.as_str()) => Ok(CheckedValue::String(text.clone())),
        Arg::String(text) => {
            let meant = choices.iter().find(|choice| is_alike(choice, text));
            let advice = meant.map_or_else(String::new, |choice| format!("; did you mean \"{choice}\"?"));
            Err(format!("must be one of {}; got {}{advice}", choices.join(", "), quoted(text)).into())
        }
        _ => Err(format!("must be one of {}", choices.join(", ")).into()),
    }
}

/// Each hash once, in the requested order; hexadecimal digits of either letter case are the same hash.
fn hashes(param: &Param, arg: &Arg) -> Result<CheckedValue, Error> {
    let given = match arg {
        Arg::String(hash) => std::slice::from_ref(hash),
        Arg::List(hashes) => hashes.as_slice(),
        _ => return Err(Error::parameter(param.name, "must be a transaction hash or a list of them")),
    };
    let mut seen = HashSet::new();
    let mut hashes = Vec::new();
    for (index, hash) in given.iter().enumerate() {
        let found = if hash.is_empty() { Some("got \"\"".to_owned()) } else { foreign_character(hash) };
        if let Some(found) = found {
            let problem = Message::new(format!("must be one transaction hash; {found}"));
            let problem = if hash.contains(',') { problem.hint(Hint::PassSeveral) } else { problem };
            return Err(Error::parameter(format!("{}[{index}]", param.name), problem));
        }
        if seen.insert(meaning(hash)) {
            hashes.push(hash.clone());
        }
    }
    Ok(CheckedValue::Hashes(hashes))
}

/// True for spellings that differ in case and underscores only, and for names of one number: `ERC20` and `token_20`.
fn is_alike(choice: &str, text: &str) -> bool {
    let number = digits(choice);
    plain(choice) == plain(text) || !number.is_empty() && number == digits(text)
}

fn plain(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}
