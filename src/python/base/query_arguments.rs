//! Arguments of a query: values of Python as the core checks them.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyMapping, PyString};

use super::arguments::{DATETIME, DECIMAL, is_instance, microseconds, shown, text};
use crate::client::Error;
use crate::interface::ParamKind;
use crate::query::Arg;

/// Advice where a data frame was given, whose items are its columns or their names.
const ONE_COLUMN: &str = "pass one of its columns";

/// A single argument.
pub fn argument(name: &str, value: &Bound<'_, PyAny>, kind: ParamKind) -> PyResult<Arg> {
    arg(name, value, kind).map_err(|problem| match problem {
        Problem::Hashes(problem) => Error::parameter(name, problem).into(),
        Problem::Item(index, problem) => Error::parameter(format!("{name}[{index}]"), problem).into(),
        Problem::Rejected(problem) => {
            let advice = own_value(value, name);
            Error::parameter(name, format!("{problem}; got {}{advice}", shown(value))).into()
        }
        Problem::Raised(error) => error,
    })
}

/// Advice about an object that was given in place of its member of that name, such as a record.
fn own_value(object: &Bound<'_, PyAny>, name: &str) -> String {
    match object.hasattr(name) {
        Ok(true) => format!("; pass its {name}"),
        _ => String::new(),
    }
}

/// True if it is a data frame or a query, by its class: to look for values in a query would send its requests.
fn is_table(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = value.get_type();
    Ok(class.hasattr("columns")? || class.hasattr("collect")?)
}

/// An argument that may be a sequence of values.
pub fn one_or_several(name: &str, value: &Bound<'_, PyAny>, kind: ParamKind) -> PyResult<Arg> {
    if is_table(value)? {
        let class = value.get_type().qualname()?;
        return Err(Error::parameter(name, format!("must be one value or several; got a {class}: {ONE_COLUMN}")).into());
    }
    let is_one = value.is_instance_of::<PyString>() || bytes(value).is_some();
    if is_one {
        return argument(name, value, kind);
    }
    if let Some(problem) = mapping(value) {
        return Err(Error::parameter(name, format!("must be one value or several; {problem}")).into());
    }
    let Ok(items) = value.try_iter() else { return argument(name, value, kind) };
    let mut several = Vec::new();
    for (index, item) in items.enumerate() {
        let item = item?;
        // Items of Arrow arrays are scalars, which hold a value of Python.
        let item = item.call_method0("as_py").unwrap_or(item);
        match argument(&format!("{name}[{index}]"), &item, kind)? {
            Arg::String(text) | Arg::Integer(text) => several.push(text),
            _ => return argument(name, value, kind),
        }
    }
    Ok(Arg::List(several))
}

/// The problem of a dict, whose keys or values may be meant.
fn mapping(value: &Bound<'_, PyAny>) -> Option<String> {
    let given = value.cast::<PyMapping>().ok()?;
    let kind = given.get_type().qualname().ok()?;
    Some(format!("got a {kind}: pass its keys() or its values()"))
}

enum Problem {
    Rejected(&'static str),
    /// Problem of a list of hashes.
    Hashes(String),
    /// Problem of one item of a list.
    Item(usize, String),
    Raised(PyErr),
}

impl From<PyErr> for Problem {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

fn arg(name: &str, value: &Bound<'_, PyAny>, kind: ParamKind) -> Result<Arg, Problem> {
    if let Ok(text) = value.cast::<PyString>() {
        return self::text(text).map(Arg::String).map_err(Problem::Rejected);
    }
    if value.is_instance_of::<PyBool>() {
        return Err(Problem::Rejected("must not be a bool"));
    }
    if !matches!(kind, ParamKind::Hashes { .. } | ParamKind::Amount { .. }) && is_missing(value) {
        return Err(Problem::Rejected("must not be a missing value"));
    }
    match kind {
        ParamKind::Text | ParamKind::Hashes { .. } if let Some(hex) = hex_of_bytes(value, lengths(name, kind)) => {
            Ok(Arg::String(hex))
        }
        ParamKind::Text | ParamKind::OneOf(_) => Err(Problem::Rejected("must be a string")),
        ParamKind::Hashes { .. } => hashes(value),
        ParamKind::Height => {
            digits(value).ok_or(Problem::Rejected("must be a block height, an integer from 0 to 2^63-1"))
        }
        ParamKind::Amount { .. } => {
            if is_instance(value, "decimal", "Decimal", &DECIMAL)? {
                return Ok(Arg::Decimal(value.str()?.to_str()?.to_owned()));
            }
            if value.is_instance_of::<PyFloat>() {
                return Err(Problem::Rejected("must be exact: pass a Decimal, int or string, not a float"));
            }
            digits(value).ok_or(Problem::Rejected("must be a Decimal, int or string"))
        }
        ParamKind::Time => {
            if is_instance(value, "datetime", "datetime", &DATETIME)? {
                return time(value).ok().flatten().map(Arg::Time).ok_or(Problem::Rejected(
                    "must be an aware datetime; set a tzinfo such as datetime.UTC on the naive one",
                ));
            }
            digits(value).ok_or(Problem::Rejected(
                "must be an aware datetime, an ISO 8601 string with a UTC offset, or an integer of Unix seconds or milliseconds",
            ))
        }
    }
}

/// Microseconds since the epoch of an aware datetime. The nanoseconds of a timestamp of pandas count as one, unless it is
/// between two milliseconds anyway.
fn time(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    let Some(microseconds) = microseconds(value)? else { return Ok(None) };
    let has_nanoseconds = value.getattr("nanosecond").is_ok_and(|count| count.is_truthy().unwrap_or(false));
    Ok(Some(microseconds + i64::from(has_nanoseconds && microseconds % 1_000 == 0)))
}

/// Integers of any size, numpy's included.
fn digits(value: &Bound<'_, PyAny>) -> Option<Arg> {
    if value.is_instance_of::<PyBool>() {
        return None;
    }
    let index = value.call_method0("__index__").ok()?;
    Some(Arg::Integer(index.str().ok()?.to_str().ok()?.to_owned()))
}

/// True for pandas.NaT and for floats that are not a number: they do not equal themselves.
fn is_missing(value: &Bound<'_, PyAny>) -> bool {
    value.ne(value).unwrap_or(false)
}

/// Number of bytes of a hash.
const HASH: usize = 32;

/// Numbers of bytes that a value of a parameter has: an address is no hash, and no record has it for one.
fn lengths(name: &str, kind: ParamKind) -> &'static [usize] {
    let name = name.split('[').next().unwrap_or_default();
    let is_hash = matches!(kind, ParamKind::Hashes { .. }) || name.ends_with("hash") || name == "tx_id";
    if is_hash { &[HASH] } else { &[20, HASH] }
}

/// Hexadecimal form of an address or a hash that is given as bytes, as web3 and eth-account do.
fn hex_of_bytes(value: &Bound<'_, PyAny>, lengths: &[usize]) -> Option<String> {
    let bytes = bytes(value)?;
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    lengths.contains(&bytes.len()).then(|| digits.fold("0x".to_owned(), |text, digits| text + &digits))
}

fn bytes(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    let is_bytes = value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>();
    if is_bytes { value.extract().ok() } else { None }
}

fn hashes(value: &Bound<'_, PyAny>) -> Result<Arg, Problem> {
    const FORM: &str = "must be a transaction hash or a list of them";
    let kind = value.get_type().qualname().map_or_else(|_| String::new(), |name| name.to_string());
    if is_table(value)? {
        return Err(Problem::Hashes(format!("{FORM}; got a {kind}: {ONE_COLUMN}")));
    }
    if let Some(bytes) = bytes(value) {
        return Err(Problem::Hashes(format!("{FORM}; got {kind} of {} bytes, not 32", bytes.len())));
    }
    if let Some(problem) = mapping(value) {
        return Err(Problem::Hashes(format!("{FORM}; {problem}")));
    }
    let Ok(items) = value.try_iter() else {
        return Err(Problem::Hashes(format!("{FORM}; got {}{}", shown(value), own_value(value, "tx_id"))));
    };
    let mut hashes = Vec::new();
    for (index, item) in items.enumerate() {
        hashes.push(hash(&item?).map_err(|problem| Problem::Item(index, problem))?);
    }
    if hashes.is_empty() {
        return Err(Problem::Hashes("must not be empty".into()));
    }
    Ok(Arg::List(hashes))
}

/// One hash of a list. Items of Arrow arrays are scalars, which hold a value of Python.
fn hash(item: &Bound<'_, PyAny>) -> Result<String, String> {
    let scalar = item.call_method0("as_py").ok();
    let item = scalar.as_ref().unwrap_or(item);
    if let Ok(text) = item.cast::<PyString>() {
        return self::text(text).map_err(str::to_owned);
    }
    hex_of_bytes(item, &[HASH])
        .ok_or_else(|| format!("must be a string, or 32 bytes; got {}{}", shown(item), own_value(item, "tx_id")))
}
