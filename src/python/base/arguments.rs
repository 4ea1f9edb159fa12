//! Arguments of settings and methods: what Python callers pass, and errors that name what is wrong with it.

use std::path::PathBuf;

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFrozenSet, PyInt, PyMapping, PySet, PyString, PyTuple};

use super::once::MadeOnce;
use crate::client::Error;
use crate::interface::RecordType;
use crate::message::quoted;

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
        if Self::IS_SHOWN { rejected(Self::EXPECTED, given) } else { Self::EXPECTED.into() }
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
    PathBuf: "must be a path", shown: false,
}

impl Readable for String {
    const EXPECTED: &'static str = "must be a valid Unicode string";

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        given.extract()
    }

    /// Does not show the value, which may be a secret.
    fn problem(given: &Bound<'_, PyAny>) -> String {
        if given.is_instance_of::<PyString>() {
            return Self::EXPECTED.into();
        }
        format!("must be a string; got {}", class_of(given))
    }
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
    f64: "must be a finite number",
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
    pub fn of_parameter(self, name: &str) -> Result<T, Error> {
        self.0.map_err(|problem| Error::parameter(name, problem))
    }
}

/// The value of a setting that may be left out.
pub fn named<T>(setting: &'static str, given: Option<DeferredArg<T>>) -> Result<Option<T>, Error> {
    given.map(|given| given.named(setting)).transpose()
}

/// The text of a parameter.
pub fn text(given: &Bound<'_, PyString>) -> Result<String, &'static str> {
    String::read(given).map_err(|_| String::EXPECTED)
}

pub fn is_instance(value: &Bound<'_, PyAny>, module: &str, name: &str, cache: &MadeOnce<PyAny>) -> PyResult<bool> {
    value.is_instance(cache.import(value.py(), module, name)?)
}

/// Characters of a repr in a message.
const SHOWN_CHARS: usize = 80;

pub static DECIMAL: MadeOnce<PyAny> = MadeOnce::new();
pub static DATETIME: MadeOnce<PyAny> = MadeOnce::new();

/// Arguments of a call by name: those by position have the names of the required parameters.
pub fn bound<'py>(
    function: impl Fn() -> PyResult<Bound<'py, PyAny>>,
    required: impl Iterator<Item = &'static str> + Clone,
    args: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let py = args.py();
    if args.len() > required.clone().count() {
        return Err(python_error(py, "too_many", (function()?, args.len())));
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
    python_error(function.py(), "missing", (function, name, given))
}

/// An error that a function of Python makes.
fn python_error<'py>(py: Python<'py>, function: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let module = py.import("chainframe._arguments");
    module.and_then(|module| module.call_method1(function, arguments)).map_or_else(|error| error, PyErr::from_value)
}

fn qualified_name(function: &Bound<'_, PyAny>) -> PyResult<String> {
    function.getattr("__qualname__")?.extract()
}

/// The error about a keyword that the function does not take. It names the parameter that was probably meant.
pub fn unexpected(function: &Bound<'_, PyAny>, keyword: &str) -> PyErr {
    python_error(function.py(), "unexpected", (function, keyword))
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
pub fn renamed(object: &Bound<'_, PyAny>, name: &str, calls: &[&str]) -> PyResult<String> {
    let arguments = (name, calls, object.get_type().dir()?);
    object.py().import("chainframe._arguments")?.call_method1("renamed", arguments)?.extract()
}

/// The error about an attribute that an object does not have. Without advice, Python suggests a similar attribute where it
/// prints the error.
pub fn no_attribute(object: &Bound<'_, PyAny>, name: &str, advice: &str) -> PyErr {
    attribute_error(object, name, advice).unwrap_or_else(|error| error)
}

/// As `no_attribute`, for an object of records: the advice is the attribute or the column that is spelt most like the name.
/// Notebooks do not print what Python suggests, and Python suggests private names too.
pub fn no_similar_attribute(object: &Bound<'_, PyAny>, name: &str, record: &RecordType) -> PyErr {
    if name.starts_with('_') {
        return no_attribute(object, name, "");
    }
    let columns: Vec<_> = record.fields.iter().map(|field| field.name).collect();
    let advice = object.get_type().dir().and_then(|attributes| {
        let module = object.py().import("chainframe._arguments")?;
        module.call_method1("similar_attribute", (name, attributes, columns))?.extract::<String>()
    });
    advice.map_or_else(|error| error, |advice| no_attribute(object, name, &advice))
}

fn attribute_error(object: &Bound<'_, PyAny>, name: &str, advice: &str) -> PyResult<PyErr> {
    let separator = if advice.is_empty() { "" } else { "; " };
    let class = object.get_type().name()?;
    let error = PyAttributeError::new_err(format!("'{class}' object has no attribute '{name}'{separator}{advice}"));
    error.value(object.py()).setattr("name", name)?;
    if advice.is_empty() {
        error.value(object.py()).setattr("obj", object)?;
    }
    Ok(error)
}

/// An attribute of the package that is imported when it is used, or the error about an unknown one. A module's function in
/// Python would be a frame below the caller's.
#[pyfunction]
pub fn _package_attribute(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    let module = match name {
        "Attempt" => "chainframe.attempts",
        "Credentials" => "chainframe._credentials",
        _ if name.starts_with('_') => {
            return Err(PyAttributeError::new_err(format!("module 'chainframe' has no attribute '{name}'")));
        }
        _ => {
            return Err(python_error(py, "unknown_name", (name,)));
        }
    };
    py.import(module)?.getattr(name).map(Bound::unbind)
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

/// A number of at least 1.
pub fn count(name: &str, given: &Bound<'_, PyAny>) -> PyResult<usize> {
    // Arrow and Parquet count with signed integers.
    let count = i64::read(given).ok().filter(|count| *count > 0).and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(|| Error::parameter(name, rejected("must be an integer from 1 to 2^63-1", given)).into())
}

/// The value that a string names; the error lists all names.
pub fn one_of<T: Copy>(parameter: &str, given: &Bound<'_, PyAny>, values: &[(&str, T)]) -> PyResult<T> {
    let text = given.extract::<String>().ok();
    if let Some((_, value)) = values.iter().find(|(name, _)| text.as_deref() == Some(*name)) {
        return Ok(*value);
    }
    let mut names = Vec::new();
    for (name, _) in values {
        // Two chains may have one short name.
        if !names.contains(name) {
            names.push(*name);
        }
    }
    let given = text.map_or_else(|| shown(given), |text| quoted(&text));
    Err(Error::parameter(parameter, format!("must be one of {}; got {given}", names.join(", "))).into())
}

/// Names of columns.
pub struct ColumnNames(pub Vec<String>);

impl<'py> FromPyObject<'_, 'py> for ColumnNames {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // A set has its names in another order in each process, and a dict may mean other names for them.
        let is_list = !given.is_instance_of::<PyString>()
            && !given.is_instance_of::<PySet>()
            && !given.is_instance_of::<PyFrozenSet>()
            && given.cast::<PyMapping>().is_err();
        let names = if is_list { given.try_iter().ok() } else { None };
        let names: Option<Vec<String>> = names.and_then(|names| names.map(|name| name.ok()?.extract().ok()).collect());
        let names = names.ok_or_else(|| Error::parameter("columns", rejected("must be a list of names", &given)))?;
        Ok(Self(names))
    }
}

/// A parameter that every call has, where `None` is not given.
pub fn optional<T: Readable>(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<T>> {
    if value.is_none() {
        return Ok(None);
    }
    T::read(value).map(Some).map_err(|_| Error::parameter(name, T::problem(value)).into())
}

/// An option that is off unless it is given.
pub fn flag(name: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    Ok(given.map(|given| optional(given, name)).transpose()?.flatten().unwrap_or(false))
}

/// The repr of an object may have any length.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let cut = line.char_indices().nth(SHOWN_CHARS).map_or(line, |(end, _)| &line[..end]);
    if cut.len() < text.trim_end().len() { format!("{cut}…") } else { cut.to_owned() }
}

/// First line of the repr of a value.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    match value.repr() {
        Ok(text) => first_line(&text.to_string()),
        // Python does not convert very long numbers to digits.
        Err(_) if value.is_instance_of::<PyInt>() => "a number of too many digits".into(),
        Err(_) => "a value without a repr".into(),
    }
}

/// The problem of a value that is not what was expected.
pub fn rejected(expected: &str, given: &Bound<'_, PyAny>) -> String {
    format!("{expected}; got {}", shown(given))
}

/// Name of the class of a value that is not shown.
pub fn class_of(value: &Bound<'_, PyAny>) -> String {
    let class = value.get_type().qualname().map_or_else(|_| "another type".into(), |name| name.to_string());
    format!("a value of type {class}")
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
