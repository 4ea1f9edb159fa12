//! From what Python callers pass to the core's arguments.

use std::str::FromStr;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyString};

use super::errors;
use crate::client::Error;
use crate::interface::{Endpoint, ParamKind};
use crate::query::Arg;

pub fn is_instance(
    value: &Bound<'_, PyAny>,
    module: &str,
    name: &str,
    cache: &PyOnceLock<Py<PyAny>>,
) -> PyResult<bool> {
    value.is_instance(cache.import(value.py(), module, name)?)
}

pub static DECIMAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
pub static DATETIME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A whole number of any size, by its digits: one that is too large is refused where its name is known.
pub struct Whole(String);

impl Whole {
    pub fn of(number: i64) -> Self {
        Self(number.to_string())
    }

    /// As a setting, within what that can be.
    pub fn setting<T: FromStr>(&self, setting: &'static str) -> Result<T, Error> {
        self.0.parse().map_err(|_| Error::config(setting, format!("{} is out of range", self.0)))
    }
}

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match given.extract::<i64>() {
            Ok(number) => Ok(Self::of(number)),
            // More digits than Python writes are as much out of range as any.
            Err(error) if error.is_instance_of::<PyOverflowError>(given.py()) => {
                let digits = given.str().map_or_else(|_| "the number".to_owned(), |text| text.to_string());
                Ok(Self(digits))
            }
            Err(error) => Err(error),
        }
    }
}

/// Arguments that were given, by name; `None` is not given.
pub fn given(
    py: Python<'_>,
    endpoint: &Endpoint,
    values: &[(&'static str, Option<Bound<'_, PyAny>>)],
) -> PyResult<Vec<(String, Arg)>> {
    let mut args = Vec::new();
    for (name, value) in values {
        let Some(param) = endpoint.param(name) else {
            return Err(PyTypeError::new_err(format!("{} has no parameter {name}", endpoint.name)));
        };
        if let Some(value) = value {
            let arg = arg(value, param.kind).map_err(|problem| match problem {
                Problem::Refused(problem) => errors::parameter(py, name, problem),
                Problem::Raised(error) => error,
            })?;
            args.push(((*name).to_owned(), arg));
        }
    }
    Ok(args)
}

enum Problem {
    Refused(&'static str),
    Raised(PyErr),
}

impl From<PyErr> for Problem {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

fn arg(value: &Bound<'_, PyAny>, kind: ParamKind) -> Result<Arg, Problem> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Arg::Text(text.to_str()?.to_owned()));
    }
    if value.is_instance_of::<PyBool>() {
        return Err(Problem::Refused("is a bool"));
    }
    match kind {
        ParamKind::Text | ParamKind::OneOf(_) => Err(Problem::Refused("is not text")),
        ParamKind::Hashes { .. } => hashes(value),
        ParamKind::Height => digits(value).ok_or(Problem::Refused("is not a block height, a whole number")),
        ParamKind::Amount { .. } => {
            if is_instance(value, "decimal", "Decimal", &DECIMAL)? {
                return Ok(Arg::Decimal(value.str()?.to_str()?.to_owned()));
            }
            if value.is_instance_of::<PyFloat>() {
                return Err(Problem::Refused("is a float, not an exact decimal; use Decimal, int or text"));
            }
            digits(value).ok_or(Problem::Refused("is not an amount; use Decimal, int or text"))
        }
        ParamKind::Time => {
            if is_instance(value, "datetime", "datetime", &DATETIME)? {
                return microseconds(value)?
                    .map(Arg::Instant)
                    .ok_or(Problem::Refused("is a naive datetime; make it aware, with a tzinfo such as datetime.UTC"));
            }
            digits(value).ok_or(Problem::Refused(
                "is not a time; use an aware datetime, ISO 8601 text with its UTC offset, or epoch milliseconds",
            ))
        }
    }
}

/// Integers of any size, numpy's included.
fn digits(value: &Bound<'_, PyAny>) -> Option<Arg> {
    if value.is_instance_of::<PyBool>() {
        return None;
    }
    let index = value.call_method0("__index__").ok()?;
    Some(Arg::Integer(index.str().ok()?.to_str().ok()?.to_owned()))
}

fn hashes(value: &Bound<'_, PyAny>) -> Result<Arg, Problem> {
    let Ok(items) = value.try_iter() else {
        return Err(Problem::Refused("is neither a hash nor a list of hashes"));
    };
    let mut many = Vec::new();
    for item in items {
        match item?.cast::<PyString>() {
            Ok(text) => many.push(text.to_str()?.to_owned()),
            Err(_) => return Err(Problem::Refused("holds something that is not text; give a list of hashes")),
        }
    }
    Ok(Arg::Many(many))
}

/// Of an aware datetime, exactly; of a naive one, nothing.
pub fn microseconds(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    static EPOCH: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let py = value.py();
    if value.call_method0("utcoffset")?.is_none() {
        return Ok(None);
    }
    let (epoch, microsecond) = EPOCH.get_or_try_init(py, || {
        let module = py.import("datetime")?;
        let utc = module.getattr("timezone")?.getattr("utc")?;
        let epoch = module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
        let microsecond = module.getattr("timedelta")?.call1((0, 0, 1))?;
        Ok::<_, PyErr>((epoch.unbind(), microsecond.unbind()))
    })?;
    value.sub(epoch)?.floor_div(microsecond)?.extract().map(Some)
}
