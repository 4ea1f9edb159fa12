//! A value of a record as a Python object, and back.

use chrono::{DateTime, Datelike as _, Timelike as _};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};

use super::arguments::{self, DATETIME, DECIMAL, microseconds};
use super::once::MadeOnce;
use crate::columns::{Columns, ColumnsBuilder, Value};
use crate::interface::Kind;

pub fn to_python<'py>(py: Python<'py>, value: &Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Integer(value) => value.into_pyobject(py)?.into_any(),
        Value::Time(milliseconds) => datetime(py, *milliseconds)?,
        Value::Boolean(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(digits) => DECIMAL.import(py, "decimal", "Decimal")?.call1((*digits,))?,
        Value::Uint256(digits) => py.get_type::<PyInt>().call1((*digits,))?,
        Value::Utf8(text) => PyString::new(py, text).into_any(),
        Value::Utf8List(texts) => texts.into_pyobject(py)?.into_any(),
    })
}

/// An aware `datetime` in UTC, from the ten bytes that a pickled one has. Its class takes them as they are, where eight
/// numbers would be made, parsed and checked one by one; and the form cannot change, or old pickles would not load.
pub fn datetime<'py>(py: Python<'py>, milliseconds: i64) -> PyResult<Bound<'py, PyAny>> {
    static UTC: MadeOnce<PyAny> = MadeOnce::new();
    let utc = UTC.get(py, || py.import("datetime")?.getattr("timezone")?.getattr("utc"))?;
    let time = DateTime::from_timestamp_millis(milliseconds)
        .ok_or_else(|| PyValueError::new_err(format!("{milliseconds} is not a time of the years 1 to 9999")))?;
    let [_, micro @ ..] = time.timestamp_subsec_micros().to_be_bytes();
    let [high, low] = (time.year() as u16).to_be_bytes();
    let [month, day, hour, minute, second] =
        [time.month(), time.day(), time.hour(), time.minute(), time.second()].map(|part| part as u8);
    let state = [high, low, month, day, hour, minute, second, micro[0], micro[1], micro[2]];
    DATETIME.import(py, "datetime", "datetime")?.call1((PyBytes::new(py, &state), utc))
}

/// Puts a value that a caller made into a column; the message is why it does not fit.
pub fn put(
    rows: &mut ColumnsBuilder,
    column: usize,
    kind: Kind,
    value: &Bound<'_, PyAny>,
) -> PyResult<Result<(), String>> {
    if value.is_none() {
        return Ok(Ok(()));
    }
    Ok(match kind {
        Kind::Time => milliseconds(value)?.map(|time| rows.append_time(column, time)),
        Kind::Utf8List => match value.extract::<Vec<String>>() {
            Ok(texts) if !value.is_instance_of::<PyString>() => {
                rows.append_list(column, &texts);
                Ok(())
            }
            _ => Err("must be a list of str".into()),
        },
        _ => spelled(kind, value)?.and_then(|text| put_text(rows, column, &text)),
    })
}

fn milliseconds(value: &Bound<'_, PyAny>) -> PyResult<Result<i64, String>> {
    if !value.is_instance(DATETIME.import(value.py(), "datetime", "datetime")?)? {
        return Ok(Err("must be a datetime".into()));
    }
    Ok(match microseconds(value)? {
        Some(microseconds) if microseconds % 1_000 == 0 => Ok(microseconds / 1_000),
        Some(_) => Err("must have no fraction of a millisecond".into()),
        None => Err("must be an aware datetime; set a tzinfo such as datetime.UTC".into()),
    })
}

/// The text of a value in a response.
fn spelled(kind: Kind, value: &Bound<'_, PyAny>) -> PyResult<Result<String, String>> {
    let is_integer = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    Ok(match kind {
        Kind::Boolean => match value.cast::<PyBool>() {
            Ok(flag) => Ok(flag.is_true().to_string()),
            Err(_) => Err("must be a bool".into()),
        },
        Kind::Integer | Kind::Uint256 if is_integer => text_of_number(value),
        Kind::Integer | Kind::Uint256 => Err("must be an int".into()),
        Kind::Amount | Kind::ApproxDecimal => {
            if is_integer || value.is_instance(DECIMAL.import(value.py(), "decimal", "Decimal")?)? {
                text_of_number(value)
            } else {
                Err("must be a Decimal".into())
            }
        }
        // `put` has values of the last two by themselves.
        Kind::Utf8 | Kind::Direction | Kind::Time | Kind::Utf8List => match value.cast::<PyString>() {
            Ok(text) => arguments::text(text).map_err(str::to_owned),
            Err(_) => Err("must be a str".into()),
        },
    })
}

/// The digits of a number. Python converts no integer of several thousand digits.
fn text_of_number(value: &Bound<'_, PyAny>) -> Result<String, String> {
    value.str().map(|digits| digits.to_string()).map_err(|_| "must be a number of fewer digits".into())
}

fn put_text(rows: &mut ColumnsBuilder, column: usize, text: &str) -> Result<(), String> {
    if text.is_empty() {
        rows.append_empty(column);
        return Ok(());
    }
    rows.append_str(column, text).map_err(|malformed| format!("must be {}", malformed.0))
}

/// The text of a value. A decimal has all its digits: `str` writes a zero with 18 places as 0E-18.
pub fn digits<'py>(value: &Bound<'py, PyAny>, kind: Kind) -> PyResult<Bound<'py, PyAny>> {
    match kind {
        Kind::Amount | Kind::ApproxDecimal => value.call_method1("__format__", ("f",)),
        _ => value.str().map(Bound::into_any),
    }
}

/// The value as JSON has it: a string, if JSON has no such type.
pub fn for_json(value: Bound<'_, PyAny>, kind: Kind) -> PyResult<Bound<'_, PyAny>> {
    if value.is_none() {
        return Ok(value);
    }
    match kind {
        Kind::Time => value.call_method0("isoformat"),
        Kind::Integer => Ok(value),
        kind if kind.is_number() => digits(&value, kind),
        _ => Ok(value),
    }
}

/// One value of one row.
pub fn cell<'py>(py: Python<'py>, columns: &Columns, column: usize, row: usize) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &columns.value(column, row))
}

/// Text of a value for display, where there is a value.
pub fn cell_text(py: Python<'_>, columns: &Columns, column: usize, row: usize) -> PyResult<Option<String>> {
    let value = cell(py, columns, column, row)?;
    if value.is_none() {
        return Ok(None);
    }
    let text: String = digits(&value, columns.kind(column))?.extract()?;
    let is_time = columns.kind(column) == Kind::Time;
    Ok(Some(if is_time { text.replace("000+00:00", "").replace("+00:00", "") } else { text }))
}
