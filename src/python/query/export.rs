//! Methods of `Query` that write files.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};

use super::query::Query;
use crate::columns::{DecimalPolicy, schema};
use crate::python::base::arguments::{self, ColumnNames};
use crate::python::base::at_caller::{self, CoroutineAtCaller};
use crate::python::results::arrow;
use crate::python::results::frames::ToFrame as _;

/// Declares methods that write records to a place, each with its awaited form. They differ in their options only.
macro_rules! methods {
    ($write:ident to $place:ident: $($name:ident $awaited:ident $signature:literal)*) => {
        methods! { @each $write to $place: $($name $signature $awaited $signature)* }
    };
    (@each $write:ident to $place:ident: $($name:ident $signature:literal)*) => {
        #[pymethods]
        impl Query {
            $(
                #[doc = doc!(Query.$name)]
                #[pyo3(signature = ($place, **options), text_signature = $signature)]
                fn $name<'py>(
                    slf: &Bound<'py, Self>,
                    $place: &Bound<'py, PyAny>,
                    options: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyAny>> {
                    $write(slf, stringify!($name), $place, options)
                }
            )*
        }
    };
}

methods! {
    exported to path:
    to_parquet to_parquet_async "($self, path, *, mode='resume', since=None, settle=None, columns=None, numbers=None, \
        max_rows_per_file=65_536, compression='zstd', rows_per_group=131_072, storage_options=None)"
    to_parquet_series to_parquet_series_async "($self, path, *, settle=64, columns=None, numbers=None, \
        max_rows_per_file=65_536, compression='zstd', rows_per_group=131_072, storage_options=None)"
    to_csv to_csv_async
        "($self, path, *, mode='resume', since=None, columns=None, numbers=None, storage_options=None)"
    to_json to_json_async
        "($self, path, *, mode='resume', since=None, columns=None, numbers=None, storage_options=None)"
}

methods! {
    synced to target:
    sync sync_async "($self, target, *, table=None, settle=12, columns=None, numbers=None, reset=False)"
}

fn synced<'py>(
    query: &Bound<'py, Query>,
    method: &str,
    target: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = query.py();
    let checked = PyDict::new(py);
    checked.set_item("numbers", numbers_of(query, None, DecimalPolicy::Decimal)?)?;
    for (name, value) in options.into_iter().flatten() {
        let name: String = name.extract()?;
        match name.as_str() {
            "columns" if value.is_none() => {}
            "columns" => {
                let names = value.extract::<ColumnNames>()?;
                arrow::project(py, schema(query.get().record(), DecimalPolicy::Decimal), Some(&names))?;
                checked.set_item(name, names.0)?;
            }
            "numbers" => checked.set_item(name, numbers_of(query, Some(&value), DecimalPolicy::Decimal)?)?,
            "reset" => checked.set_item(name, arguments::flag("reset", Some(&value))?)?,
            "table" | "settle" => checked.set_item(name, value)?,
            _ => return Err(arguments::unexpected(&query.getattr(method)?, &name)),
        }
    }
    let called = PyModule::import(py, "chainframe.sinks.sync")?.getattr(method)?.call((query, target), Some(&checked));
    at_caller(py, method, called)
}

/// The result of a method that is written in Python, or its exception, without the frames within it.
fn at_caller<'py>(py: Python<'py>, method: &str, called: PyResult<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let returned = called.map_err(|raised| at_caller::at_caller(py, raised))?;
    if method.ends_with("_async") {
        return Ok(Bound::new(py, CoroutineAtCaller::new(returned))?.into_any());
    }
    Ok(returned)
}

/// The type of amounts that was given, or that of the client, or the export's own.
fn numbers_of(
    query: &Bound<'_, Query>,
    given: Option<&Bound<'_, PyAny>>,
    own: DecimalPolicy,
) -> PyResult<&'static str> {
    let given: Option<DecimalPolicy> = given.map_or(Ok(None), |given| given.extract())?;
    Ok(given.or_else(|| query.get().numbers()).unwrap_or(own).name())
}

fn exported<'py>(
    query: &Bound<'py, Query>,
    method: &str,
    path: &Bound<'py, PyAny>,
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = query.py();
    let to_parquet = method.starts_with("to_parquet");
    let to_series = method.starts_with("to_parquet_series");
    let options = PyDict::new(py);
    // Text formats have no decimals.
    let own = if to_parquet { DecimalPolicy::Decimal } else { DecimalPolicy::String };
    options.set_item("numbers", numbers_of(query, None, own)?)?;
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        // The lists of a set grow each at its own head, and only a directory keeps their positions.
        if matches!(name.as_str(), "since" | "settle") && !to_parquet && !value.is_none() {
            query.get().reject_set(&format!("{method}({name}=...), where to_parquet(directory) takes several"))?;
        }
        match name.as_str() {
            "settle" if to_series && value.is_none() => options.set_item(&name, value)?,
            "settle" | "max_rows_per_file" | "rows_per_group" if to_parquet && value.is_none() => continue,
            "settle" | "max_rows_per_file" | "rows_per_group" if to_parquet => {
                options.set_item(&name, arguments::count(&name, &value)?)?;
            }
            "compression" if to_parquet => options.set_item(&name, value)?,
            "columns" if !value.is_none() => options.set_item(&name, value.extract::<ColumnNames>()?.0)?,
            "numbers" => options.set_item(&name, numbers_of(query, Some(&value), own)?)?,
            "columns" | "storage_options" => options.set_item(&name, value)?,
            "mode" | "since" if !to_series => options.set_item(&name, value)?,
            _ => return Err(arguments::unexpected(&query.getattr(method)?, &name)),
        }
    }
    let client = query.get().client.bind(py);
    let called = PyModule::import(py, "chainframe.exports.methods")?
        .getattr(method)?
        .call((query, client, path), Some(&options));
    at_caller(py, method, called)
}
