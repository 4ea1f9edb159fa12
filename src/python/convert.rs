//! A value of a record as a Python object, and back.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};

use super::arguments::{self, DATETIME, DECIMAL, microseconds};
use crate::columns::{Columns, ColumnsBuilder, Value};
use crate::interface::Kind;

const DAY: i64 = 86_400_000;

pub fn to_python<'py>(py: Python<'py>, value: &Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Integer(value) => value.into_pyobject(py)?.into_any(),
        Value::Time(milliseconds) => datetime(py, *milliseconds)?,
        Value::Flag(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(digits) => DECIMAL.import(py, "decimal", "Decimal")?.call1((*digits,))?,
        Value::RawInteger(digits) => py.get_type::<PyInt>().call1((*digits,))?,
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::Texts(texts) => texts.into_pyobject(py)?.into_any(),
    })
}

/// An aware `datetime` in UTC, from the ten bytes that a pickled one has. Its class takes them as they are, where eight
/// numbers would be made, parsed and checked one by one; and the form cannot change, or old pickles would not load.
fn datetime<'py>(py: Python<'py>, milliseconds: i64) -> PyResult<Bound<'py, PyAny>> {
    static UTC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let utc =
        UTC.get_or_try_init(py, || py.import("datetime")?.getattr("timezone")?.getattr("utc").map(Bound::unbind))?;
    let (year, month, day) = civil(milliseconds.div_euclid(DAY));
    let time = milliseconds.rem_euclid(DAY);
    let (hour, minute, second) = (time / 3_600_000, time / 60_000 % 60, time / 1_000 % 60);
    let [_, micro @ ..] = ((time % 1_000 * 1_000) as u32).to_be_bytes();
    let [high, low] = (year as u16).to_be_bytes();
    let [month, day, hour, minute, second] = [month, day, hour, minute, second].map(|part| part as u8);
    let state = [high, low, month, day, hour, minute, second, micro[0], micro[1], micro[2]];
    DATETIME.import(py, "datetime", "datetime")?.call1((PyBytes::new(py, &state), utc))
}

/// Year, month and day of a day counted from 1970-01-01, by eras of 400 years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Puts a value that a caller made into a column; the message is why it does not fit.
pub fn put(
    rows: &mut ColumnsBuilder,
    column: usize,
    kind: Kind,
    value: &Bound<'_, PyAny>,
) -> PyResult<Result<(), String>> {
    let py = value.py();
    if value.is_none() {
        return Ok(Ok(()));
    }
    let text = match kind {
        Kind::Flag => match value.cast::<PyBool>() {
            Ok(flag) => if flag.is_true() { "true" } else { "false" }.to_owned(),
            Err(_) => return Ok(Err("is not a bool".into())),
        },
        Kind::Integer | Kind::RawInteger => match value.cast::<PyInt>() {
            Ok(integer) if !value.is_instance_of::<PyBool>() => integer.str()?.to_str()?.to_owned(),
            _ => return Ok(Err("is not an int".into())),
        },
        Kind::Amount | Kind::Estimate => {
            let is_decimal = value.is_instance(DECIMAL.import(py, "decimal", "Decimal")?)?;
            if !is_decimal && (!value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>()) {
                return Ok(Err("is not a Decimal".into()));
            }
            value.str()?.to_str()?.to_owned()
        }
        Kind::Time => {
            if !value.is_instance(DATETIME.import(py, "datetime", "datetime")?)? {
                return Ok(Err("is not a datetime".into()));
            }
            match microseconds(value)? {
                Some(microseconds) if microseconds % 1_000 == 0 => {
                    rows.put_time(column, microseconds / 1_000);
                    return Ok(Ok(()));
                }
                Some(_) => return Ok(Err("is finer than a millisecond".into())),
                None => return Ok(Err("is a naive datetime; give it a tzinfo, such as datetime.UTC".into())),
            }
        }
        Kind::Text | Kind::Direction => match value.cast::<PyString>() {
            Ok(text) => match arguments::text(text) {
                Ok(text) => text,
                Err(problem) => return Ok(Err(problem.into())),
            },
            Err(_) => return Ok(Err("is not a str".into())),
        },
        Kind::Texts => match value.extract::<Vec<String>>() {
            Ok(texts) if !value.is_instance_of::<PyString>() => {
                rows.put_texts(column, &texts);
                return Ok(Ok(()));
            }
            _ => return Ok(Err("is not a list of str".into())),
        },
    };
    if text.is_empty() {
        rows.put_empty(column);
        return Ok(Ok(()));
    }
    Ok(rows.put_text(column, &text).map_err(|malformed| format!("is not {}", malformed.0)))
}

/// One value of one row.
pub fn cell<'py>(py: Python<'py>, columns: &Columns, column: usize, row: usize) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &columns.value(column, row))
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(-719_162), (1, 1, 1));
        assert_eq!(civil(2_932_896), (9999, 12, 31));
    }
}
