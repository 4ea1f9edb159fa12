//! `Cassette`, and the one that the environment names.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyList, PyModule, PyTuple};

use crate::cassette::{self, MatchOn, Mode, Options, Outcome, Scrub};
use crate::client::{Error, variables};
use crate::interface::ENDPOINTS;
use crate::python::base::arguments::{self, Given, Readable};
use crate::python::base::{errors, finalize};

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
        signature = (path, mode=Given(Ok("once".into())), *, allow_playback_repeats=None, match_on=None, scrub=None, **unknown),
        text_signature = "(path, mode='once', *, allow_playback_repeats=False, match_on=None, scrub=None)"
    )]
    fn new(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        mode: Given<String>,
        allow_playback_repeats: Option<&Bound<'_, PyAny>>,
        match_on: Option<Given<Vec<String>>>,
        scrub: Option<Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        arguments::reject(&py.get_type::<Self>(), unknown)?;
        let allow_playback_repeats = arguments::flag("allow_playback_repeats", allow_playback_repeats)?;
        let path = local_path(path, "path")?;
        let raise = |error: Error| errors::raise(py, &error);
        let mode = Mode::named(&mode.named("mode").map_err(raise)?, "mode").map_err(|error| raise(error.into()))?;
        let match_on = match_on.map(|names| names.named("match_on")).transpose().map_err(raise)?;
        let match_on = read_match_on(match_on.unwrap_or_default()).map_err(raise)?;
        let scrub = scrub.map(read_scrub).transpose()?;
        open(py, Options { allow_playback_repeats, match_on, scrub, ..Options::new(path, mode) })
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
                let body = match &recorded.outcome {
                    Outcome::Response(response) => Some(String::from_utf8_lossy(&response.body)),
                    Outcome::Failure(_) => None,
                };
                interaction.set_item("bytes", size)?;
                interaction.set_item("body", body)?;
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
        let Options { allow_playback_repeats, match_on, scrub, staging, hint, .. } = self.inner.options();
        if scrub.is_some() {
            // Another process would write what is to be replaced.
            return Err(PyTypeError::new_err("cannot pickle a cassette with scrub: make it where it is used"));
        }
        let left_out = match_on.left_out.iter().map(|name| format!("-{name}"));
        let match_on: Vec<String> = match_on.compared.iter().cloned().chain(left_out).collect();
        let arguments = (self.path(), self.mode(), self.can_record(), *allow_playback_repeats, match_on, staging, hint);
        Ok((restore, arguments.into_pyobject(py)?))
    }
}

fn open(py: Python<'_>, options: Options) -> PyResult<Cassette> {
    let opened = crate::python::base::finalize::detach(py, || cassette::Cassette::open(options));
    opened.map(|inner| Cassette { inner }).map_err(|error| errors::raise(py, &error.into()))
}

/// Another process's part in a recording is a part of that recording, whatever the file holds by now.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the options, in order")]
pub fn _restore_cassette(
    py: Python<'_>,
    path: PathBuf,
    mode: &str,
    can_record: bool,
    allow_playback_repeats: bool,
    match_on: Vec<String>,
    staging: Option<PathBuf>,
    hint: Option<String>,
) -> PyResult<Cassette> {
    let mode = Mode::named(mode, "mode").map_err(|error| errors::raise(py, &error.into()))?;
    let match_on = read_match_on(match_on).map_err(|error| errors::raise(py, &error))?;
    let options = Options { path, mode, allow_playback_repeats, match_on, scrub: None, staging, hint };
    if can_record && mode != Mode::NewEpisodes {
        return Ok(Cassette { inner: cassette::Cassette::join(options) });
    }
    open(py, options)
}

impl Readable for Vec<String> {
    const EXPECTED: &'static str = "must be a list of names of parameters";

    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        given.extract()
    }
}

/// Reads names of parameters, in Python or in the API; one after "-" is left out.
fn read_match_on(given: Vec<String>) -> Result<MatchOn, Error> {
    const PAGING: [(&str, &str); 3] = [("page", "page"), ("page_size", "limit"), ("chain", "chainShortName")];
    let mut match_on = MatchOn::default();
    for text in given {
        let name = text.strip_prefix('-').unwrap_or(&text);
        let params = ENDPOINTS.iter().flat_map(|endpoint| endpoint.params);
        let declared = params.filter_map(|param| Some((param.name, param.wire()?))).chain(PAGING);
        let sent: Vec<_> = declared.filter(|(own, wire)| [*own, *wire].contains(&name)).map(|(_, wire)| wire).collect();
        if sent.is_empty() {
            let problem = "must have names of parameters that are sent, such as \"-start_time\" to leave one out";
            return Err(Error::config("match_on", format!("{problem}; got {text:?}")));
        }
        let names = if name.len() < text.len() { &mut match_on.left_out } else { &mut match_on.compared };
        names.extend(sent.into_iter().map(str::to_owned));
    }
    Ok(match_on)
}

fn read_scrub(callable: Bound<'_, PyAny>) -> PyResult<Scrub> {
    if !callable.is_callable() {
        return Err(errors::raise(
            callable.py(),
            &Error::config("scrub", "must be callable: it takes and returns a str"),
        ));
    }
    let callable = callable.unbind();
    Ok(Scrub::new(move |text| {
        let closing = || "was not called: the interpreter is shutting down".to_owned();
        let permit = finalize::enter().ok_or_else(closing)?;
        let scrubbed = Python::try_attach(|py| {
            drop(permit);
            let returned = callable.call1(py, (text,)).map_err(|error| format!("raised {error}"))?;
            returned.extract::<String>(py).map_err(|_| "must return a str".to_owned())
        });
        scrubbed.unwrap_or_else(|| Err(closing()))
    }))
}

const MODE: &str = "CHAINFRAME_CASSETTE_MODE";
const MATCH_ON: &str = "CHAINFRAME_CASSETTE_MATCH_ON";
const REPEATS: &str = "CHAINFRAME_CASSETTE_ALLOW_PLAYBACK_REPEATS";

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
    // Other processes cannot scrub, nor empty the file once more, and are given a mode of their own.
    let is_same = |known: &&cassette::Cassette| {
        let both_record = known.mode().only_records() && mode.only_records();
        known.mode() == mode || both_record || known.options().scrub.is_some()
    };
    if let Some(known) = OPENED.load().get(&path).filter(is_same) {
        return Ok(Some(Cassette { inner: known.clone() }));
    }
    let staging = named("CHAINFRAME_CASSETTE_STAGING").map(PathBuf::from);
    let match_on = variables::read(MATCH_ON, MATCH_ON).map_err(|error| errors::raise(py, &error))?.unwrap_or_default();
    let match_on = match_on.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let match_on = read_match_on(match_on).map_err(|error| errors::raise(py, &error))?;
    let allow_playback_repeats = match variables::read(REPEATS, REPEATS).map_err(|error| errors::raise(py, &error))? {
        None => false,
        Some(text) => match text.as_str() {
            "" | "0" => false,
            "1" => true,
            _ => return Err(errors::raise(py, &Error::config(REPEATS, format!("must be 0 or 1; got {text:?}")))),
        },
    };
    let opened = open(py, Options { staging, match_on, allow_playback_repeats, ..Options::new(path, mode) })?;
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
#[expect(clippy::too_many_arguments, reason = "the options, in order")]
pub fn _share_cassette(
    py: Python<'_>,
    path: PathBuf,
    mode: &str,
    allow_playback_repeats: Option<&Bound<'_, PyAny>>,
    match_on: Option<Given<Vec<String>>>,
    scrub: Option<Bound<'_, PyAny>>,
    staging: Option<PathBuf>,
    hint: Option<String>,
) -> PyResult<Cassette> {
    let allow_playback_repeats = arguments::flag("allow_playback_repeats", allow_playback_repeats)?;
    let mode = Mode::named(mode, "mode").map_err(|error| errors::raise(py, &error.into()))?;
    let match_on = match_on.map(|names| names.named("match_on")).transpose();
    let match_on = match_on.and_then(|names| read_match_on(names.unwrap_or_default()));
    let match_on = match_on.map_err(|error| errors::raise(py, &error))?;
    let scrub = scrub.map(read_scrub).transpose()?;
    let opened = open(py, Options { path, mode, allow_playback_repeats, match_on, scrub, staging, hint })?;
    forget(&opened);
    Ok(Cassette { inner: share(&opened.inner) })
}

/// Closes a cassette of the environment and forgets it, and with it the bodies that it holds.
#[pyfunction]
pub fn _forget_cassette(cassette: &Cassette) {
    cassette.inner.close();
    forget(cassette);
}

fn forget(cassette: &Cassette) {
    OPENED.rcu(|all| {
        let mut all = HashMap::clone(all);
        all.remove(cassette.inner.path());
        all
    });
}

/// True if the places are kept where clients are made.
static KEEPS_PLACES: AtomicBool = AtomicBool::new(false);

/// Keeps the places where clients are made from now on, and counts the requests that go past all cassettes.
#[pyfunction]
pub fn _keep_places() {
    KEEPS_PLACES.store(true, Ordering::Relaxed);
}

/// Number of requests that went past all cassettes, by the places where their clients were made.
#[pyfunction]
pub fn _unrecorded() -> HashMap<String, u64> {
    cassette::unrecorded().iter().map(|(place, count)| (place.to_string(), *count)).collect()
}

/// The line that calls the package, if places are kept.
pub fn made_at(py: Python<'_>) -> Option<Arc<str>> {
    if !KEEPS_PLACES.load(Ordering::Relaxed) {
        return None;
    }
    let outside = |mut frame: Bound<'_, PyAny>| loop {
        let module: String = frame.getattr("f_globals")?.get_item("__name__")?.extract().unwrap_or_default();
        if module.split('.').next() != Some("chainframe") {
            let file: String = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
            return Ok::<_, PyErr>(format!("{file}:{}", frame.getattr("f_lineno")?));
        }
        frame = frame.getattr("f_back")?;
    };
    let frame = py.import("sys").and_then(|sys| sys.call_method0("_getframe"));
    frame.and_then(outside).ok().map(Arc::from)
}

/// Blocks or unblocks the network for every client of this process.
#[pyfunction]
pub fn _block_network(blocked: bool) {
    cassette::block_network(blocked);
}
