//! `Cassette`, and the one that the environment names.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyTuple};

use super::client::Client;
use super::errors;
use crate::cassette::{self, Mode};
use crate::client::{self, Settings};

#[doc = doc!(Cassette)]
#[pyclass(frozen, eq, module = "chainframe.testing")]
#[derive(Clone, PartialEq)]
pub struct Cassette {
    pub inner: cassette::Cassette,
}

#[pymethods]
impl Cassette {
    #[new]
    #[pyo3(signature = (path, mode="once"))]
    fn new(py: Python<'_>, path: PathBuf, mode: &str) -> PyResult<Self> {
        let opened = Mode::named(mode, "mode").and_then(|mode| cassette::Cassette::open(&path, mode));
        opened.map(|inner| Self { inner }).map_err(|error| errors::raise(py, &error.into()))
    }

    #[getter]
    fn path(&self) -> &Path {
        self.inner.path()
    }

    #[getter]
    fn mode(&self) -> &'static str {
        self.inner.mode().name()
    }

    #[doc = doc!(Cassette.recording)]
    #[getter]
    fn recording(&self) -> bool {
        self.inner.records()
    }

    #[doc = doc!(Cassette.play_count)]
    #[getter]
    fn play_count(&self) -> usize {
        self.inner.played()
    }

    #[doc = doc!(Cassette.all_played)]
    #[getter]
    fn all_played(&self) -> bool {
        self.inner.played() == self.inner.len()
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.inner.path().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("Cassette('{}', mode='{}')", self.inner.path().display(), self.mode())
    }

    /// A cassette is shared, not copied: a copy would play everything once more.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = py.import("chainframe._native")?.getattr("_restore_cassette")?;
        Ok((restore, (self.path(), self.mode(), self.recording()).into_pyobject(py)?))
    }
}

/// Another process's part in a recording is a part of that recording, whatever the file holds by now.
#[pyfunction]
pub fn _restore_cassette(py: Python<'_>, path: PathBuf, mode: &str, recording: bool) -> PyResult<Cassette> {
    let restored = Mode::named(mode, "mode").and_then(|mode| {
        let joins = recording && mode != Mode::NewEpisodes;
        if joins { Ok(cassette::Cassette::join(&path, mode)) } else { cassette::Cassette::open(&path, mode) }
    });
    restored.map(|inner| Cassette { inner }).map_err(|error| errors::raise(py, &error.into()))
}

/// The same client with another cassette.
#[pyfunction]
pub fn _with_cassette(py: Python<'_>, client: &Bound<'_, Client>, cassette: &Bound<'_, Cassette>) -> PyResult<Client> {
    let cassette = Some(cassette.get().inner.clone());
    let settings = Settings { cassette, concurrency: 1, ..client.get().inner.settings().clone() };
    let made = client::Client::new(settings);
    made.map(|inner| Client { inner, progress: client.get().progress }).map_err(|error| errors::raise(py, &error))
}

/// The cassette that the environment names. All clients of the process share one opening of it; `fresh` opens it anew.
#[pyfunction]
pub fn _environment_cassette(py: Python<'_>, fresh: bool) -> PyResult<Option<Cassette>> {
    static OPENED: LazyLock<Mutex<HashMap<(PathBuf, &'static str), cassette::Cassette>>> =
        LazyLock::new(Mutex::default);
    let Some(path) = std::env::var_os("CHAINFRAME_CASSETTE").filter(|path| !path.is_empty()) else { return Ok(None) };
    let raise = |error: cassette::Error| errors::raise(py, &error.into());
    let name = std::env::var("CHAINFRAME_CASSETTE_MODE").ok().filter(|name| !name.is_empty());
    let mode = Mode::named(name.as_deref().unwrap_or("once"), "CHAINFRAME_CASSETTE_MODE").map_err(raise)?;
    let path = std::path::absolute(&path).unwrap_or_else(|_| path.into());
    let key = (path, mode.name());
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = opened.get(&key).filter(|_| !fresh).cloned();
    let inner = match known {
        Some(known) => known,
        None => cassette::Cassette::open(&key.0, mode).map_err(raise)?,
    };
    opened.insert(key, inner.clone());
    Ok(Some(Cassette { inner }))
}
