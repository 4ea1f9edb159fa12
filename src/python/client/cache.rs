//! `Cache`, as Python has it: settings of a directory with results, and what is in it.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::cache::{self, CacheError, DEFAULT_MAX_AGE, DEFAULT_MAX_BYTES, DEFAULT_SETTLE};
use crate::client::{Error, variables};
use crate::python::base::arguments::{self, DeferredArg};
use crate::python::base::convert;
use crate::python::base::paths::setting_path;
use crate::python::base::pickle::{Reduced, reduced};

#[doc = doc!(Cache)]
#[pyclass(frozen, eq, module = "chainframe")]
#[derive(Clone, PartialEq)]
pub struct Cache {
    pub inner: cache::Cache,
}

#[pymethods]
impl Cache {
    #[new]
    #[pyo3(signature = (
        directory, *, settle=DeferredArg(Ok(DEFAULT_SETTLE)), max_age=DeferredArg(Ok(DEFAULT_MAX_AGE)),
        max_bytes=DeferredArg(Ok(DEFAULT_MAX_BYTES)), **unknown,
    ), text_signature = "(directory, *, settle=32, max_age=2592000.0, max_bytes=1073741824)")]
    fn new(
        py: Python<'_>,
        directory: Bound<'_, PyAny>,
        settle: DeferredArg<i64>,
        max_age: DeferredArg<f64>,
        max_bytes: DeferredArg<i64>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        arguments::reject(&py.get_type::<Self>(), unknown)?;
        let directory = setting_path(&directory, "directory")?;
        let settle = settle.named("settle")?;
        let max_age = max_age.named("max_age")?;
        Ok(Self { inner: cache::Cache::new(directory, settle, max_age, max_bytes.named("max_bytes")?)? })
    }

    #[doc = doc!(Cache.directory)]
    #[getter]
    fn directory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.inner.directory().into_pyobject(py)
    }

    #[doc = doc!(Cache.settle)]
    #[getter]
    fn settle(&self) -> i64 {
        self.inner.settle()
    }

    #[doc = doc!(Cache.max_age)]
    #[getter]
    fn max_age(&self) -> f64 {
        self.inner.max_age().as_secs_f64()
    }

    #[doc = doc!(Cache.max_bytes)]
    #[getter]
    fn max_bytes(&self) -> u64 {
        self.inner.max_bytes()
    }

    #[doc = doc!(Cache.entries)]
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let cache = self.inner.clone();
        let found = py.detach(move || cache.list()).map_err(failed)?;
        let entries = PyList::empty(py);
        for summary in found {
            let entry = PyDict::new(py);
            entry.set_item("base_url", summary.base_url)?;
            entry.set_item("call", summary.call)?;
            entry.set_item("query", py.import("json")?.call_method1("loads", (summary.arguments,))?)?;
            entry.set_item("records", summary.records)?;
            entry.set_item("bytes", summary.bytes)?;
            entry.set_item("read_at", convert::datetime(py, summary.read_at)?)?;
            entry.set_item("used_at", convert::datetime(py, summary.used_at)?)?;
            entries.append(entry)?;
        }
        Ok(entries)
    }

    #[doc = doc!(Cache.clear)]
    fn clear(&self, py: Python<'_>) -> PyResult<usize> {
        let cache = self.inner.clone();
        py.detach(move || cache.clear()).map_err(failed)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let directory = PyString::new(py, &self.inner.directory().to_string_lossy()).repr()?;
        let settle = self.settle();
        let max_age = self.max_age();
        let max_bytes = self.max_bytes();
        Ok(format!("Cache({directory}, settle={settle}, max_age={max_age:?}, max_bytes={max_bytes})"))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let given = (self.inner.directory(), self.settle(), self.max_age(), self.max_bytes());
        reduced(py, "_restore_cache", given)
    }
}

#[pyfunction]
pub fn _restore_cache(directory: PathBuf, settle: i64, max_age: f64, max_bytes: i64) -> PyResult<Cache> {
    Ok(Cache { inner: cache::Cache::new(directory, settle, max_age, max_bytes)? })
}

fn failed(failure: cache::Failure) -> PyErr {
    CacheError { setting: "directory", problem: failure.text }.into()
}

/// The cache that a caller passes: a `Cache`, or a directory.
pub fn given_cache(given: &Bound<'_, PyAny>) -> PyResult<cache::Cache> {
    if let Ok(cache) = given.cast::<Cache>() {
        return Ok(cache.get().inner.clone());
    }
    if given.extract::<PathBuf>().is_err() {
        let problem = arguments::rejected("must be a Cache, the path of a directory or None", given);
        return Err(Error::config("cache", problem).into());
    }
    in_directory(given, "cache")
}

/// The cache of the environment.
pub fn cache_of_environment() -> PyResult<Option<cache::Cache>> {
    let Some(directory) = variables::read("CHAINFRAME_CACHE", "CHAINFRAME_CACHE")? else { return Ok(None) };
    Python::attach(|py| in_directory(PyString::new(py, &directory).as_any(), "CHAINFRAME_CACHE").map(Some))
}

/// A cache in a directory, with the bounds that it has by default.
fn in_directory(given: &Bound<'_, PyAny>, setting: &'static str) -> PyResult<cache::Cache> {
    let directory = setting_path(given, setting)?;
    let cache = cache::Cache::new(directory, DEFAULT_SETTLE, DEFAULT_MAX_AGE, DEFAULT_MAX_BYTES);
    Ok(cache.map_err(|error| Error::config(setting, error.problem))?)
}

#[pyfunction]
pub fn _environment_cache() -> PyResult<Option<Cache>> {
    Ok(cache_of_environment()?.map(|inner| Cache { inner }))
}
