//! Paths that callers give. `chainframe._paths` checks them, as it does those of functions in Python.

use std::path::PathBuf;

use pyo3::prelude::*;

/// The path of a setting, with `~` expanded; a URL and a connection string are refused.
pub fn setting_path(given: &Bound<'_, PyAny>, setting: &str) -> PyResult<PathBuf> {
    checked("setting_path", given, setting)
}

/// The path of a cassette, which is refused also if no file can be there.
pub fn cassette_path(given: &Bound<'_, PyAny>, parameter: &str) -> PyResult<PathBuf> {
    checked("cassette_path", given, parameter)
}

fn checked(check: &str, given: &Bound<'_, PyAny>, name: &str) -> PyResult<PathBuf> {
    given.py().import("chainframe._paths")?.call_method1(check, (given, name))?.extract()
}
