//! Methods of `Query` that write files.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};

use super::query::{Query, count};
use crate::python::results::arrow;

#[pymethods]
impl Query {
    #[doc = doc!(Query.to_parquet)]
    #[pyo3(
        signature = (path, *, mode="resume", since=None, settle=None, columns=None, numbers="decimal", max_rows_per_file=None),
        text_signature = "($self, path, *, mode='resume', since=None, settle=None, columns=None, numbers='decimal', max_rows_per_file=65_536)"
    )]
    #[expect(clippy::too_many_arguments, reason = "the options, all by keyword")]
    fn to_parquet<'py>(
        slf: &Bound<'py, Self>,
        path: &Bound<'py, PyAny>,
        mode: &str,
        since: Option<&Bound<'py, PyAny>>,
        settle: Option<&Bound<'py, PyAny>>,
        columns: Option<Vec<String>>,
        numbers: &str,
        max_rows_per_file: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bounds = [("settle", settle), ("max_rows_per_file", max_rows_per_file)];
        exported(slf, "to_parquet", path, (mode, since, columns, numbers), &bounds)
    }

    #[doc = doc!(Query.to_parquet_async)]
    #[pyo3(
        signature = (path, *, mode="resume", since=None, settle=None, columns=None, numbers="decimal", max_rows_per_file=None),
        text_signature = "($self, path, *, mode='resume', since=None, settle=None, columns=None, numbers='decimal', max_rows_per_file=65_536)"
    )]
    #[expect(clippy::too_many_arguments, reason = "the options, all by keyword")]
    fn to_parquet_async<'py>(
        slf: &Bound<'py, Self>,
        path: &Bound<'py, PyAny>,
        mode: &str,
        since: Option<&Bound<'py, PyAny>>,
        settle: Option<&Bound<'py, PyAny>>,
        columns: Option<Vec<String>>,
        numbers: &str,
        max_rows_per_file: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bounds = [("settle", settle), ("max_rows_per_file", max_rows_per_file)];
        exported(slf, "to_parquet_async", path, (mode, since, columns, numbers), &bounds)
    }

    #[doc = doc!(Query.to_csv)]
    #[pyo3(
        signature = (path, *, mode="resume", since=None, columns=None, numbers="string"),
        text_signature = "($self, path, *, mode='resume', since=None, columns=None, numbers='string')"
    )]
    fn to_csv<'py>(
        slf: &Bound<'py, Self>,
        path: &Bound<'py, PyAny>,
        mode: &str,
        since: Option<&Bound<'py, PyAny>>,
        columns: Option<Vec<String>>,
        numbers: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        exported(slf, "to_csv", path, (mode, since, columns, numbers), &[])
    }

    #[doc = doc!(Query.to_csv_async)]
    #[pyo3(
        signature = (path, *, mode="resume", since=None, columns=None, numbers="string"),
        text_signature = "($self, path, *, mode='resume', since=None, columns=None, numbers='string')"
    )]
    fn to_csv_async<'py>(
        slf: &Bound<'py, Self>,
        path: &Bound<'py, PyAny>,
        mode: &str,
        since: Option<&Bound<'py, PyAny>>,
        columns: Option<Vec<String>>,
        numbers: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        exported(slf, "to_csv_async", path, (mode, since, columns, numbers), &[])
    }

    #[doc = doc!(Query.to_json)]
    #[pyo3(
        signature = (path, *, mode="resume", since=None, columns=None, numbers="string"),
        text_signature = "($self, path, *, mode='resume', since=None, columns=None, numbers='string')"
    )]
    fn to_json<'py>(
        slf: &Bound<'py, Self>,
        path: &Bound<'py, PyAny>,
        mode: &str,
        since: Option<&Bound<'py, PyAny>>,
        columns: Option<Vec<String>>,
        numbers: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        exported(slf, "to_json", path, (mode, since, columns, numbers), &[])
    }

    #[doc = doc!(Query.to_json_async)]
    #[pyo3(
        signature = (path, *, mode="resume", since=None, columns=None, numbers="string"),
        text_signature = "($self, path, *, mode='resume', since=None, columns=None, numbers='string')"
    )]
    fn to_json_async<'py>(
        slf: &Bound<'py, Self>,
        path: &Bound<'py, PyAny>,
        mode: &str,
        since: Option<&Bound<'py, PyAny>>,
        columns: Option<Vec<String>>,
        numbers: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        exported(slf, "to_json_async", path, (mode, since, columns, numbers), &[])
    }

    #[doc = doc!(Query.sync)]
    #[pyo3(
        signature = (target, *, table=None, settle=None),
        text_signature = "($self, target, *, table=None, settle=12)"
    )]
    fn sync<'py>(
        slf: &Bound<'py, Self>,
        target: &Bound<'py, PyAny>,
        table: Option<&Bound<'py, PyAny>>,
        settle: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let options = PyDict::new(py);
        options.set_item("table", table)?;
        if let Some(settle) = settle {
            options.set_item("settle", settle)?;
        }
        PyModule::import(py, "chainframe.sinks.base")?.getattr("sync")?.call((slf, target), Some(&options))
    }
}

type ExportOptions<'a, 'py> = (&'a str, Option<&'a Bound<'py, PyAny>>, Option<Vec<String>>, &'a str);

fn exported<'py>(
    query: &Bound<'py, Query>,
    method: &str,
    path: &Bound<'py, PyAny>,
    (mode, since, columns, numbers): ExportOptions<'_, 'py>,
    bounds: &[(&'static str, Option<&Bound<'py, PyAny>>)],
) -> PyResult<Bound<'py, PyAny>> {
    let py = query.py();
    arrow::numbers(py, numbers)?;
    let options = PyDict::new(py);
    options.set_item("mode", mode)?;
    options.set_item("since", since)?;
    options.set_item("columns", columns)?;
    options.set_item("numbers", numbers)?;
    for (name, given) in bounds.iter().filter(|(_, given)| given.is_some()) {
        options.set_item(name, count(name, *given)?)?;
    }
    let client = query.get().client.bind(py);
    PyModule::import(py, "chainframe.exports.methods")?.getattr(method)?.call((query, client, path), Some(&options))
}
