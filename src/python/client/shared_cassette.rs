//! Cassettes of the environment, which clients without one of their own share.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use super::cassette::{Cassette, given_match_on, open, read_match_on, read_scrub};
use crate::cassette::{self, Mode, Options};
use crate::client::{Error, variables};
use crate::python::base::arguments::{self, DeferredArg};
use crate::python::base::finalize;
use crate::python::base::paths::cassette_path;

const PATH: &str = "CHAINFRAME_CASSETTE";
const MODE: &str = "CHAINFRAME_CASSETTE_MODE";
const MATCH_ON: &str = "CHAINFRAME_CASSETTE_MATCH_ON";
/// Set by the pytest plugin for processes that a test starts.
const STAGING: &str = "CHAINFRAME_CASSETTE_STAGING";
const JOURNAL: &str = "CHAINFRAME_CASSETTE_JOURNAL";
const HINT: &str = "CHAINFRAME_CASSETTE_HINT";
const REPEATS: &str = "CHAINFRAME_CASSETTE_ALLOW_PLAYBACK_REPEATS";

/// Cassettes that the environment names, or has named. Replaced as a whole, so that no lock is held while Python code
/// runs, nor during a fork.
static OPENED: LazyLock<ArcSwap<HashMap<PathBuf, cassette::Cassette>>> = LazyLock::new(ArcSwap::default);

/// The value of a variable that is set and not empty.
fn named(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// The cassette that the environment names. All clients of the process share one opening of it.
pub fn environment_cassette(py: Python<'_>) -> PyResult<Option<Cassette>> {
    let Some(path) = named(PATH) else { return Ok(None) };
    let path = cassette_path(path.into_pyobject(py)?.as_any(), PATH)?;
    let path = std::path::absolute(&path).unwrap_or(path);
    let name = variables::read(MODE, MODE)?;
    let mode = Mode::named(name.as_deref().filter(|name| !name.is_empty()).unwrap_or("once"), MODE)?;
    if let Some(known) = OPENED.load().get(&path) {
        let both_record = known.mode().only_records() && mode.only_records();
        let is_same_mode = known.mode() == mode || mode_of_others(known) == mode;
        if is_same_mode || both_record || known.options().scrub.is_some() {
            return Ok(Some(Cassette { inner: known.clone() }));
        }
    }
    let staging = named(STAGING).map(PathBuf::from);
    let journal = named(JOURNAL).map(PathBuf::from);
    let hint = variables::read(HINT, HINT)?.filter(|hint| !hint.is_empty());
    let match_on = variables::read(MATCH_ON, MATCH_ON)?.unwrap_or_default();
    let match_on = match_on.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let match_on = read_match_on(MATCH_ON, match_on)?;
    let allow_playback_repeats = read_flag(REPEATS)?;
    let opened =
        open(py, Options { staging, journal, hint, match_on, allow_playback_repeats, ..Options::new(path, mode) })?;
    Ok(Some(Cassette { inner: share(&opened.inner) }))
}

/// The value of a variable that is 0, 1 or not set.
fn read_flag(variable: &'static str) -> Result<bool, Error> {
    match variables::read(variable, variable)?.as_deref() {
        None | Some("" | "0") => Ok(false),
        Some("1") => Ok(true),
        Some(text) => Err(Error::config(variable, format!("must be 0 or 1; got {text:?}"))),
    }
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
    match_on: Option<DeferredArg<Vec<String>>>,
    scrub: Option<Bound<'_, PyAny>>,
    files: (Option<PathBuf>, Option<PathBuf>),
    hint: Option<String>,
) -> PyResult<Cassette> {
    let allow_playback_repeats = arguments::flag("allow_playback_repeats", allow_playback_repeats)?;
    let mode = Mode::named(mode, "mode")?;
    let match_on = given_match_on(match_on)?;
    let scrub = scrub.map(read_scrub).transpose()?;
    let (staging, journal) = files;
    let opened = open(
        py,
        Options { allow_playback_repeats, match_on, scrub, staging, hint, journal, ..Options::new(path, mode) },
    )?;
    forget(&opened);
    Ok(Cassette { inner: share(&opened.inner) })
}

/// The mode in which another process opens a cassette. It cannot scrub, nor empty the file once more, and finds the file
/// that this one has begun.
fn mode_of_others(cassette: &cassette::Cassette) -> Mode {
    match cassette.mode() {
        _ if cassette.options().scrub.is_some() => Mode::None,
        Mode::Rewrite => Mode::All,
        Mode::Once if cassette.can_record() => Mode::NewEpisodes,
        Mode::Once => Mode::None,
        mode => mode,
    }
}

/// Has clients take an open cassette where the environment names its path. Returns the variables that name it, for this
/// process and those that it starts.
#[pyfunction]
pub fn _name_cassette(cassette: &Cassette) -> Vec<(&'static str, OsString)> {
    forget(cassette);
    share(&cassette.inner);
    let Options { allow_playback_repeats, match_on, .. } = cassette.inner.options();
    vec![
        (PATH, cassette.inner.path().into()),
        (MODE, mode_of_others(&cassette.inner).name().into()),
        (MATCH_ON, match_on.names().join(",").into()),
        (REPEATS, if *allow_playback_repeats { "1" } else { "" }.into()),
        (STAGING, OsString::new()),
        (JOURNAL, OsString::new()),
        (HINT, OsString::new()),
    ]
}

/// Has clients take an open cassette no more, and removes from its file what was replaced.
#[pyfunction]
pub fn _unname_cassette(py: Python<'_>, cassette: &Cassette) -> PyResult<()> {
    forget(cassette);
    Ok(finalize::detach(py, || cassette.inner.compact())?)
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
