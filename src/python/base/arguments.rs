//! From what Python callers pass to the core's arguments.

use std::path::PathBuf;

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyString, PyTuple};

use super::errors;
use super::once::MadeOnce;
use crate::client::Error;
use crate::interface::ParamKind;
use crate::query::Arg;

/// An argument for a setting, or why it cannot be converted. PyO3's own errors name no setting: the conversion fails when
/// `named` says which one it is.
#[derive(Clone)]
pub struct DeferredArg<T>(pub Result<T, String>);

pub trait Readable: Sized {
    const EXPECTED: &'static str;
    /// True if a message may show a value of another type. A text may be a secret.
    const IS_SHOWN: bool = true;

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self>;

    /// The problem with a value that cannot be read.
    fn problem(given: &Bound<'_, PyAny>) -> String {
        match Self::IS_SHOWN {
            true => format!("{}; got {}", Self::EXPECTED, shown(given)),
            false => Self::EXPECTED.into(),
        }
    }
}

macro_rules! readable {
    ($($kind:ty: $expected:literal, shown: $is_shown:literal),* $(,)?) => {
        $(impl Readable for $kind {
            const EXPECTED: &'static str = $expected;
            const IS_SHOWN: bool = $is_shown;

            fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
                given.extract()
            }
        })*
    };
}

readable! {
    bool: "must be True or False", shown: true,
    String: "must be a valid Unicode string", shown: false,
    PathBuf: "must be a path", shown: false,
}

macro_rules! readable_number {
    ($($kind:ty: $expected:literal),* $(,)?) => {
        $(impl Readable for $kind {
            const EXPECTED: &'static str = $expected;

            fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
                if is_bool(given) { Err(PyTypeError::new_err(Self::EXPECTED)) } else { given.extract() }
            }
        })*
    };
}

readable_number! {
    f64: "must be a finite float",
    u16: "must be an integer from 0 to 65535",
    u32: "must be an integer from 0 to 4294967295",
    u64: "must be an integer from 0 to 18446744073709551615",
    i64: "must be a 64-bit integer",
}

macro_rules! readable_pair {
    ($($first:ty, $second:ty: $expected:literal),* $(,)?) => {
        $(impl Readable for ($first, $second) {
            const EXPECTED: &'static str = $expected;

            fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
                let (first, second): (Bound<'_, PyAny>, Bound<'_, PyAny>) = given.extract()?;
                Ok((<$first>::read(&first)?, <$second>::read(&second)?))
            }
        })*
    };
}

readable_pair! {
    u64, u32: "must be two non-negative integers",
    f64, u32: "must be a number and a non-negative integer",
}

/// True for a bool, numpy's included. It is a number to Python, but never meant as one here.
fn is_bool(given: &Bound<'_, PyAny>) -> bool {
    given.is_instance_of::<PyBool>() || given.get_type().name().is_ok_and(|name| name == "bool" || name == "bool_")
}

impl<'py, T: Readable> FromPyObject<'_, 'py> for DeferredArg<T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(T::read(&given).map_err(|_| T::problem(&given))))
    }
}

impl<T> DeferredArg<T> {
    pub fn named(self, setting: &'static str) -> Result<T, Error> {
        self.0.map_err(|problem| Error::config(setting, problem))
    }

    /// The argument of a parameter that is no setting.
    pub fn of_parameter(self, py: Python<'_>, name: &str) -> PyResult<T> {
        self.0.map_err(|problem| errors::parameter(py, name, &problem))
    }
}

/// The text of a parameter.
pub fn text(given: &Bound<'_, PyString>) -> Result<String, &'static str> {
    String::read(given).map_err(|_| String::EXPECTED)
}

pub fn is_instance(value: &Bound<'_, PyAny>, module: &str, name: &str, cache: &MadeOnce<PyAny>) -> PyResult<bool> {
    value.is_instance(cache.import(value.py(), module, name)?)
}

pub static DECIMAL: MadeOnce<PyAny> = MadeOnce::new();
pub static DATETIME: MadeOnce<PyAny> = MadeOnce::new();

/// Arguments of a call by name: those by position have the names of the required parameters.
pub fn bound<'py>(
    function: impl Fn() -> PyResult<Bound<'py, PyAny>>,
    required: impl Iterator<Item = &'static str> + Clone,
    args: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let max_positional = required.clone().count();
    if args.len() > max_positional {
        let name = qualified_name(&function()?)?;
        let problem = format!("takes {max_positional} positional arguments; got {}", args.len());
        return Err(PyTypeError::new_err(format!("{name}() {problem}")));
    }
    let mut all: Vec<_> = required.clone().map(str::to_owned).zip(args.iter()).collect();
    for (name, value) in named.into_iter().flatten() {
        let name: String = name.extract()?;
        if all.iter().any(|(other, _)| *other == name) {
            let function = qualified_name(&function()?)?;
            return Err(PyTypeError::new_err(format!("{function}() got multiple values for argument '{name}'")));
        }
        all.push((name, value));
    }
    match required.clone().find(|name| all.iter().all(|(given, _)| given != name)) {
        Some(missing) => Err(self::missing(&function()?, missing, all.iter().map(|(name, _)| name.as_str()))),
        None => Ok(all),
    }
}

/// The error about a call without a required argument, or about one that was given under another name.
fn missing<'a>(function: &Bound<'_, PyAny>, name: &str, given: impl Iterator<Item = &'a str>) -> PyErr {
    let given: Vec<&str> = given.collect();
    let made = function.py().import("chainframe._arguments");
    made.and_then(|module| module.call_method1("missing", (function, name, given)))
        .map_or_else(|error| error, PyErr::from_value)
}

fn qualified_name(function: &Bound<'_, PyAny>) -> PyResult<String> {
    function.getattr("__qualname__")?.extract()
}

/// The error about a keyword that the function does not take. It names the parameter that was probably meant.
pub fn unexpected(function: &Bound<'_, PyAny>, keyword: &str) -> PyErr {
    let made = function.py().import("chainframe._arguments");
    made.and_then(|module| module.call_method1("unexpected", (function, keyword)))
        .map_or_else(|error| error, PyErr::from_value)
}

/// The end of a message about an unknown name: the known name that was probably meant, or nothing.
pub fn similar(py: Python<'_>, name: &str, known: &[&str]) -> PyResult<String> {
    py.import("chainframe._arguments")?.call_method1("similar", (name, known))?.extract()
}

/// Advice on an unknown attribute of a record: the field that it stands for elsewhere, or nothing.
pub fn field_of_word(py: Python<'_>, word: &str, fields: &[&str]) -> PyResult<String> {
    py.import("chainframe._arguments")?.call_method1("field_of_word", (word, fields))?.extract()
}

/// Advice on an unknown name of a call: the one that it ends or begins with, or nothing.
pub fn renamed(py: Python<'_>, name: &str, calls: &[&str]) -> PyResult<String> {
    py.import("chainframe._arguments")?.call_method1("renamed", (name, calls))?.extract()
}

/// The error about an attribute that an object does not have. Python suggests a similar one where it prints the error.
pub fn no_attribute(object: &Bound<'_, PyAny>, name: &str, advice: &str) -> PyErr {
    attribute_error(object, name, advice).unwrap_or_else(|error| error)
}

fn attribute_error(object: &Bound<'_, PyAny>, name: &str, advice: &str) -> PyResult<PyErr> {
    let separator = if advice.is_empty() { "" } else { "; " };
    let class = object.get_type().name()?;
    let error = PyAttributeError::new_err(format!("'{class}' object has no attribute '{name}'{separator}{advice}"));
    error.value(object.py()).setattr("name", name)?;
    error.value(object.py()).setattr("obj", object)?;
    Ok(error)
}

/// Rejects keywords that a function does not take.
pub fn reject(function: &Bound<'_, PyAny>, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    match unknown.into_iter().flatten().next() {
        Some((name, _)) => Err(unexpected(function, &name.extract::<String>()?)),
        None => Ok(()),
    }
}

/// Rejects keywords that a method of a class does not take.
pub fn reject_in<T: PyTypeInfo>(py: Python<'_>, method: &str, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    if unknown.is_some() { reject(&py.get_type::<T>().getattr(method)?, unknown) } else { Ok(()) }
}

/// The value that a string names; the error lists all names.
pub fn one_of<T: Copy>(parameter: &str, given: &Bound<'_, PyAny>, values: &[(&str, T)]) -> PyResult<T> {
    let text = given.extract::<String>().ok();
    if let Some((_, value)) = values.iter().find(|(name, _)| text.as_deref() == Some(*name)) {
        return Ok(*value);
    }
    let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
    let shown = text.map_or_else(|| given.repr().map(|text| text.to_string()), |text| Ok(format!("{text:?}")))?;
    Err(errors::parameter(given.py(), parameter, &format!("must be one of {}; got {shown}", names.join(", "))))
}

/// Names of columns.
pub struct ColumnNames(pub Vec<String>);

impl<'py> FromPyObject<'_, 'py> for ColumnNames {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let names = if given.is_instance_of::<PyString>() { None } else { given.try_iter().ok() };
        let names: Option<Vec<String>> = names.and_then(|names| names.map(|name| name.ok()?.extract().ok()).collect());
        match names {
            Some(names) => Ok(Self(names)),
            None => {
                let problem = format!("must be a list of names; got {}", given.repr()?);
                Err(errors::parameter(given.py(), "columns", &problem))
            }
        }
    }
}

/// A parameter that every call has, where `None` is not given.
pub fn optional<T: Readable>(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<T>> {
    if value.is_none() {
        return Ok(None);
    }
    T::read(value).map(Some).map_err(|_| errors::parameter(value.py(), name, &T::problem(value)))
}

/// An option that is off unless it is given.
pub fn flag(name: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    Ok(given.map(|given| optional(given, name)).transpose()?.flatten().unwrap_or(false))
}

/// A single argument.
pub fn argument(py: Python<'_>, name: &str, value: &Bound<'_, PyAny>, kind: ParamKind) -> PyResult<Arg> {
    arg(value, kind).map_err(|problem| match problem {
        Problem::Hashes(problem) => errors::parameter(py, name, &problem),
        Problem::Item(index, problem) => errors::parameter(py, &format!("{name}[{index}]"), &problem),
        Problem::Rejected(problem) => match value.repr() {
            Ok(given) => errors::parameter(py, name, &format!("{problem}; got {}", first_line(&given.to_string()))),
            // An integer may have too many digits.
            Err(_) => errors::parameter(py, name, problem),
        },
        Problem::Raised(error) => error,
    })
}

/// An argument that may be a sequence of values.
pub fn one_or_several(py: Python<'_>, name: &str, value: &Bound<'_, PyAny>, kind: ParamKind) -> PyResult<Arg> {
    let is_one = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
    if is_one || value.is_instance_of::<PyDict>() || value.hasattr("columns")? {
        return argument(py, name, value, kind);
    }
    let Ok(items) = value.try_iter() else { return argument(py, name, value, kind) };
    let mut several = Vec::new();
    for (index, item) in items.enumerate() {
        let item = item?;
        // Items of Arrow arrays are scalars, which hold a value of Python.
        let item = item.call_method0("as_py").unwrap_or(item);
        match argument(py, &format!("{name}[{index}]"), &item, kind)? {
            Arg::String(text) | Arg::Integer(text) => several.push(text),
            _ => return argument(py, name, value, kind),
        }
    }
    Ok(Arg::List(several))
}

/// The repr of an object may have any length.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(80).collect()
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

fn arg(value: &Bound<'_, PyAny>, kind: ParamKind) -> Result<Arg, Problem> {
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
        ParamKind::Text | ParamKind::Hashes { .. } if let Some(hex) = hex_of_bytes(value) => Ok(Arg::String(hex)),
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
                return microseconds(value).ok().flatten().map(Arg::Time).ok_or(Problem::Rejected(
                    "must be an aware datetime; set a tzinfo such as datetime.UTC on the naive one",
                ));
            }
            digits(value).ok_or(Problem::Rejected(
                "must be an aware datetime, an ISO 8601 string with a UTC offset, or Unix seconds or milliseconds",
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

/// True for pandas.NaT and for floats that are not a number: they do not equal themselves.
fn is_missing(value: &Bound<'_, PyAny>) -> bool {
    value.ne(value).unwrap_or(false)
}

/// Hexadecimal form of an address or a hash that is given as bytes, as web3 and eth-account do.
fn hex_of_bytes(value: &Bound<'_, PyAny>) -> Option<String> {
    let bytes = value.cast::<PyBytes>().ok()?.as_bytes();
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    matches!(bytes.len(), 20 | 32).then(|| digits.fold("0x".to_owned(), |text, digits| text + &digits))
}

fn hashes(value: &Bound<'_, PyAny>) -> Result<Arg, Problem> {
    const FORM: &str = "must be a transaction hash or a list of them";
    let kind = value.get_type().qualname().map_or_else(|_| String::new(), |name| name.to_string());
    // The items of a data frame are its columns or their names, those of bytes are numbers.
    if value.hasattr("columns")? {
        return Err(Problem::Hashes(format!("{FORM}; got a {kind}: pass one of its columns")));
    }
    if value.is_instance_of::<PyBytes>() {
        return Err(Problem::Hashes(format!("{FORM}; got {kind} of {} bytes, not 32", value.len()?)));
    }
    let Ok(items) = value.try_iter() else {
        return Err(Problem::Hashes(format!("{FORM}; got {}", shown(value))));
    };
    let mut many = Vec::new();
    for (index, item) in items.enumerate() {
        many.push(hash(&item?).map_err(|problem| Problem::Item(index, problem))?);
    }
    Ok(Arg::List(many))
}

/// One hash of a list. Items of Arrow arrays are scalars, which hold a value of Python.
fn hash(item: &Bound<'_, PyAny>) -> Result<String, String> {
    let scalar = item.call_method0("as_py").ok();
    let item = scalar.as_ref().unwrap_or(item);
    if let Ok(text) = item.cast::<PyString>() {
        return self::text(text).map_err(str::to_owned);
    }
    hex_of_bytes(item).ok_or_else(|| format!("must be a string, or 32 bytes; got {}", shown(item)))
}

/// First line of the repr of a value.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "a value without a repr".into(), |text| first_line(&text.to_string()))
}

/// Microseconds since the epoch of an aware datetime; None of a naive one.
pub fn microseconds(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    static EPOCH: MadeOnce<PyAny> = MadeOnce::new();
    static MICROSECOND: MadeOnce<PyAny> = MadeOnce::new();
    let py = value.py();
    if value.call_method0("utcoffset")?.is_none() {
        return Ok(None);
    }
    let epoch = EPOCH.get(py, || {
        let module = py.import("datetime")?;
        let utc = module.getattr("timezone")?.getattr("utc")?;
        module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))
    })?;
    let microsecond = MICROSECOND.get(py, || py.import("datetime")?.getattr("timedelta")?.call1((0, 0, 1)))?;
    value.sub(epoch)?.floor_div(microsecond)?.extract().map(Some)
}
