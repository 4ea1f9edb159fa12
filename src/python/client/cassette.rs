//! `Cassette`, and the one that the environment names.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyList, PyModule, PyTuple};

use crate::cassette::{self, Mode, Options, Outcome};
use crate::client::variables;
use crate::python::base::arguments;
use crate::python::base::errors;

#[doc = doc!(Cassette)]
#[pyclass(frozen, eq, module = "chainframe.testing")]
#[derive(Clone, PartialEq)]
pub struct Cassette {
    pub inner: cassette::Cassette,
}

#[pymethods]
impl Cassette {
    #[new]
    #[pyo3(
        signature = (path, mode="once", *, allow_playback_repeats=None, **unknown),
        text_signature = "(path, mode='once', *, allow_playback_repeats=False)"
    )]
    fn new(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        mode: &str,
        allow_playback_repeats: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        arguments::reject(&py.get_type::<Self>(), unknown)?;
        let allow_playback_repeats = arguments::flag("allow_playback_repeats", allow_playback_repeats)?;
        let path = local_path(path, "path")?;
        let mode = Mode::named(mode, "mode").map_err(|error| errors::raise(py, &error.into()))?;
        open(py, Options { allow_playback_repeats, ..Options::new(path, mode) })
    }

    #[getter]
    fn path(&self) -> &Path {
        self.inner.path()
    }

    #[getter]
    fn mode(&self) -> &'static str {
        self.inner.mode().name()
    }

    #[doc = doc!(Cassette.can_record)]
    #[getter]
    fn can_record(&self) -> bool {
        self.inner.can_record()
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

    #[doc = doc!(Cassette.unplayed)]
    #[getter]
    fn unplayed(&self) -> Vec<String> {
        let left = |one: cassette::Summary| {
            let left = one.interactions.into_iter().skip(one.played);
            left.map(|interaction| interaction.request.to_string())
        };
        self.inner.summaries().into_iter().flat_map(left).collect()
    }

    #[doc = doc!(Cassette.interactions)]
    #[getter]
    fn interactions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for one in self.inner.summaries() {
            for (position, recorded) in one.interactions.iter().enumerate() {
                let interaction = PyDict::new(py);
                interaction.set_item("method", &recorded.request.method)?;
                interaction.set_item("path", &recorded.request.path)?;
                interaction.set_item("params", &recorded.request.params)?;
                let (status, error, size) = match &recorded.outcome {
                    Outcome::Response(response) => (Some(response.status), None, response.body.len()),
                    Outcome::Failure(failure) => (None, Some(&failure.phase), 0),
                };
                interaction.set_item("status", status)?;
                interaction.set_item("error", error)?;
                interaction.set_item("bytes", size)?;
                interaction.set_item("played", position < one.played)?;
                interaction.set_item("note", &recorded.note)?;
                list.append(interaction)?;
            }
        }
        Ok(list)
    }

    /// Removes from the file what was replaced.
    fn _compact(&self, py: Python<'_>) -> PyResult<()> {
        crate::python::base::finalize::detach(py, || self.inner.compact())
            .map_err(|error| errors::raise(py, &error.into()))
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// A cassette is true, however many interactions it has, so that `cassette or None` is the cassette.
    fn __bool__(&self) -> bool {
        true
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
        let Options { allow_playback_repeats, staging, hint, .. } = self.inner.options();
        let arguments = (self.path(), self.mode(), self.can_record(), *allow_playback_repeats, staging, hint);
        Ok((restore, arguments.into_pyobject(py)?))
    }
}

fn open(py: Python<'_>, options: Options) -> PyResult<Cassette> {
    let opened = crate::python::base::finalize::detach(py, || cassette::Cassette::open(options));
    opened.map(|inner| Cassette { inner }).map_err(|error| errors::raise(py, &error.into()))
}

/// Another process's part in a recording is a part of that recording, whatever the file holds by now.
#[pyfunction]
pub fn _restore_cassette(
    py: Python<'_>,
    path: PathBuf,
    mode: &str,
    can_record: bool,
    allow_playback_repeats: bool,
    staging: Option<PathBuf>,
    hint: Option<String>,
) -> PyResult<Cassette> {
    let mode = Mode::named(mode, "mode").map_err(|error| errors::raise(py, &error.into()))?;
    let options = Options { path, mode, allow_playback_repeats, staging, hint };
    if can_record && mode != Mode::NewEpisodes {
        return Ok(Cassette { inner: cassette::Cassette::join(options) });
    }
    open(py, options)
}

const MODE: &str = "CHAINFRAME_CASSETTE_MODE";

/// A path that a caller gave, with `~` expanded; a URL is refused.
fn local_path(path: &Bound<'_, PyAny>, parameter: &str) -> PyResult<PathBuf> {
    PyModule::import(path.py(), "chainframe._paths")?.getattr("local_path")?.call1((path, parameter))?.extract()
}

/// Cassettes that the environment names, or has named. Replaced as a whole, so that no lock is held while Python code
/// runs, nor during a fork.
static OPENED: LazyLock<ArcSwap<HashMap<PathBuf, cassette::Cassette>>> = LazyLock::new(ArcSwap::default);

/// The cassette that the environment names. All clients of the process share one opening of it.
#[pyfunction]
pub fn _environment_cassette(py: Python<'_>) -> PyResult<Option<Cassette>> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let Some(path) = named("CHAINFRAME_CASSETTE") else { return Ok(None) };
    let path = local_path(path.into_pyobject(py)?.as_any(), "CHAINFRAME_CASSETTE")?;
    let path = std::path::absolute(&path).unwrap_or(path);
    let name = variables::read(MODE, MODE).map_err(|error| errors::raise(py, &error))?;
    let mode = Mode::named(name.as_deref().filter(|name| !name.is_empty()).unwrap_or("once"), MODE)
        .map_err(|error| errors::raise(py, &error.into()))?;
    if let Some(known) = OPENED.load().get(&path).filter(|known| known.mode() == mode) {
        return Ok(Some(Cassette { inner: known.clone() }));
    }
    let staging = named("CHAINFRAME_CASSETTE_STAGING").map(PathBuf::from);
    let opened = open(py, Options { staging, ..Options::new(path, mode) })?;
    Ok(Some(Cassette { inner: share(&opened.inner) }))
}

/// Adds a cassette to those of the environment; returns the one that another thread has added meanwhile, if any.
fn share(opened: &cassette::Cassette) -> cassette::Cassette {
    let same = |other: &&cassette::Cassette| other.mode() == opened.mode();
    let before = OPENED.rcu(|all| match all.get(opened.path()).filter(same) {
        Some(_) => Arc::clone(all),
        None => {
            let mut all = HashMap::clone(all);
            all.insert(opened.path().to_owned(), opened.clone());
            Arc::new(all)
        }
    });
    before.get(opened.path()).filter(same).unwrap_or(opened).clone()
}

/// Opens a cassette for the clients that take theirs from the environment, in place of any earlier opening of it.
#[pyfunction]
pub fn _share_cassette(
    py: Python<'_>,
    path: PathBuf,
    mode: &str,
    allow_playback_repeats: bool,
    staging: Option<PathBuf>,
    hint: Option<String>,
) -> PyResult<Cassette> {
    let mode = Mode::named(mode, "mode").map_err(|error| errors::raise(py, &error.into()))?;
    let opened = open(py, Options { path, mode, allow_playback_repeats, staging, hint })?;
    _forget_cassette(&opened);
    Ok(Cassette { inner: share(&opened.inner) })
}

/// Forgets a cassette of the environment, and with it the bodies that it holds.
#[pyfunction]
pub fn _forget_cassette(cassette: &Cassette) {
    OPENED.rcu(|all| {
        let mut all = HashMap::clone(all);
        all.remove(cassette.inner.path());
        all
    });
}

/// Blocks or unblocks the network for every client of this process.
#[pyfunction]
pub fn _block_network(blocked: bool) {
    cassette::block_network(blocked);
}
