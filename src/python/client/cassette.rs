//! `Cassette`, and what it is made of.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyList, PyTuple};

use crate::cassette::{self, MatchOn, Mode, Options, Outcome, Scrub};
use crate::client::Error;
use crate::client::log::{self, Level};
use crate::interface::ENDPOINTS;
use crate::python::base::arguments::{self, DeferredArg, Readable};
use crate::python::base::paths::cassette_path;
use crate::python::base::pickle::{Reduced, reduced};
use crate::python::base::{errors, finalize, hash_of};

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
        signature = (path, mode=DeferredArg(Ok("once".into())), *, allow_playback_repeats=None, match_on=None, scrub=None, **unknown),
        text_signature = "(path, mode='once', *, allow_playback_repeats=False, match_on=None, scrub=None)"
    )]
    fn new(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        mode: DeferredArg<String>,
        allow_playback_repeats: Option<&Bound<'_, PyAny>>,
        match_on: Option<DeferredArg<Vec<String>>>,
        scrub: Option<Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        arguments::reject(&py.get_type::<Self>(), unknown)?;
        let allow_playback_repeats = arguments::flag("allow_playback_repeats", allow_playback_repeats)?;
        let path = cassette_path(path, "path")?;
        let mode = Mode::named(&mode.named("mode")?, "mode")?;
        let match_on = given_match_on(match_on)?;
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
        self.inner.unplayed()
    }

    #[doc = doc!(Cassette.missed)]
    #[getter]
    fn missed(&self) -> Vec<String> {
        self.inner.missed()
    }

    #[doc = doc!(Cassette.interactions)]
    #[getter]
    fn interactions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for recordings in self.inner.summaries() {
            for (position, recorded) in recordings.interactions.iter().enumerate() {
                let interaction = PyDict::new(py);
                interaction.set_item("method", &recorded.request.method)?;
                interaction.set_item("path", &recorded.request.path)?;
                interaction.set_item("params", &recorded.request.params)?;
                let (status, error, body) = match &recorded.outcome {
                    Outcome::Response(response) => (Some(response.status), None, Some(&response.body)),
                    Outcome::Failure(failure) => (None, Some(&failure.phase), None),
                };
                interaction.set_item("status", status)?;
                interaction.set_item("error", error)?;
                interaction.set_item("bytes", body.map_or(0, |body| body.len()))?;
                interaction.set_item("body", body.map(|body| String::from_utf8_lossy(body)))?;
                interaction.set_item("played", position < recordings.played)?;
                interaction.set_item("note", &recorded.note)?;
                list.append(interaction)?;
            }
        }
        Ok(list)
    }

    /// Removes from the file what was replaced.
    fn _compact(&self, py: Python<'_>) -> PyResult<()> {
        Ok(finalize::detach(py, || self.inner.compact())?)
    }

    #[doc = doc!(Cassette.__enter__)]
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.py().import("chainframe.testing._cassette_block")?.call_method1("enter", (slf,))?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(slf: &Bound<'_, Self>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        slf.py().import("chainframe.testing._cassette_block")?.call_method1("leave", (slf,)).map(drop)
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// A cassette is true, however many interactions it has, so that `cassette or None` is the cassette.
    fn __bool__(&self) -> bool {
        true
    }

    fn __hash__(&self) -> u64 {
        hash_of(self.inner.path())
    }

    fn __repr__(&self) -> String {
        errors::printable(&format!("Cassette('{}', mode='{}')", self.inner.path().display(), self.mode()))
    }

    /// A cassette is shared, not copied: a copy would play everything once more.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let Options { allow_playback_repeats, match_on, scrub, staging, hint, journal, .. } = self.inner.options();
        if scrub.is_some() {
            // Another process would write what is to be replaced.
            return Err(PyTypeError::new_err("cannot pickle a cassette with scrub: make it where it is used"));
        }
        let files = (staging, journal);
        let names = match_on.names();
        let arguments = (self.path(), self.mode(), self.can_record(), *allow_playback_repeats, names, files, hint);
        reduced(py, "_restore_cassette", arguments)
    }
}

pub(super) fn open(py: Python<'_>, options: Options) -> PyResult<Cassette> {
    let inner = finalize::detach(py, || cassette::Cassette::open(options))?;
    if inner.scrubbed() > 0 {
        let path = inner.path().display();
        let count = inner.scrubbed();
        log::emit(Level::Warning, || {
            format!("{path}: interactions that were recorded without scrub were scrubbed now ({count})")
        });
    }
    Ok(Cassette { inner })
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
    files: (Option<PathBuf>, Option<PathBuf>),
    hint: Option<String>,
) -> PyResult<Cassette> {
    let mode = Mode::named(mode, "mode")?;
    let match_on = read_match_on("match_on", match_on)?;
    let (staging, journal) = files;
    let options = Options { allow_playback_repeats, match_on, staging, hint, journal, ..Options::new(path, mode) };
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

/// The argument `match_on`; none compares all parameters.
pub(super) fn given_match_on(given: Option<DeferredArg<Vec<String>>>) -> Result<MatchOn, Error> {
    let Some(names) = given.map(|names| names.named("match_on")).transpose()? else { return Ok(MatchOn::default()) };
    if names.is_empty() {
        let problem = "must name parameters; got []; [\"page\"] compares the page alone, None all parameters";
        return Err(Error::config("match_on", problem));
    }
    read_match_on("match_on", names)
}

/// Reads names of parameters, in Python or in the API, from an argument or a variable; one after "-" is left out.
pub(super) fn read_match_on(setting: &'static str, given: Vec<String>) -> Result<MatchOn, Error> {
    const PAGING: [(&str, &str); 3] = [("page", "page"), ("page_size", "limit"), ("chain", "chainShortName")];
    let mut match_on = MatchOn::default();
    for text in given {
        let name = text.strip_prefix('-').unwrap_or(&text);
        let params = ENDPOINTS.iter().flat_map(|endpoint| endpoint.params);
        let declared = params.filter_map(|param| Some((param.name, param.wire()?))).chain(PAGING);
        let sent: Vec<_> = declared.filter(|(own, wire)| [*own, *wire].contains(&name)).map(|(_, wire)| wire).collect();
        if sent.is_empty() {
            let problem = "must have names of parameters that are sent, such as \"-start_time\" to leave one out";
            return Err(Error::config(setting, format!("{problem}; got {text:?}")));
        }
        let names = if name.len() < text.len() { &mut match_on.left_out } else { &mut match_on.compared };
        names.extend(sent.into_iter().map(str::to_owned));
    }
    match match_on.compared.intersection(&match_on.left_out).next() {
        Some(name) => Err(Error::config(setting, format!("names {name:?} both with and without \"-\""))),
        None => Ok(match_on),
    }
}

/// Why `scrub` was not called.
const CLOSING: &str = "was not called: the interpreter is shutting down";

pub(super) fn read_scrub(callable: Bound<'_, PyAny>) -> PyResult<Scrub> {
    if !callable.is_callable() {
        return Err(Error::config("scrub", "must be callable: it takes and returns a str").into());
    }
    let callable = callable.unbind();
    Ok(Scrub::new(move |text| {
        let permit = finalize::enter().ok_or(CLOSING)?;
        let scrubbed = Python::try_attach(|py| {
            drop(permit);
            let returned = callable.call1(py, (text,)).map_err(|error| format!("raised {error}"))?;
            returned.extract::<String>(py).map_err(|_| "must return a str".to_owned())
        });
        scrubbed.unwrap_or_else(|| Err(CLOSING.to_owned()))
    }))
}

/// Adds the recordings of a file to a cassette, as a mode says. Returns the requests of the cassette that the file does not
/// have.
#[pyfunction]
pub fn _merge_cassette(cassette: &Cassette, py: Python<'_>, other: PathBuf, mode: &str) -> PyResult<Vec<String>> {
    let mode = Mode::named(mode, "mode")?;
    let options = cassette.inner.options();
    Ok(finalize::detach(py, || cassette::merge(options, &other, mode))?)
}

/// Blocks or unblocks the network for every client of this process.
#[pyfunction]
pub fn _block_network(blocked: bool) {
    cassette::block_network(blocked);
}
