//! Recorded exchanges: what was asked and how it was answered, a JSON line each, and their playing in place of the
//! network. Knows nothing of who asks or whom: headers, hosts, secrets and times never get here.

mod file;
mod interaction;
mod nearest;
mod words;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use file::load as read;
pub use interaction::{Answer, Failure, Interaction, Outcome, Request};
pub use words::explain;

/// What a cassette does with a request, in the words and with the meaning of vcrpy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Replays, and never asks the service.
    None,
    /// Records into a new file; replays one that is there, and then never asks the service.
    Once,
    /// Replays what is recorded, and records the rest.
    NewEpisodes,
    /// Records everything anew.
    All,
}

impl Mode {
    pub const ALL: [Self; 4] = [Self::None, Self::Once, Self::NewEpisodes, Self::All];

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Once => "once",
            Self::NewEpisodes => "new_episodes",
            Self::All => "all",
        }
    }

    /// `setting` is where the name was given.
    pub fn named(name: &str, setting: &'static str) -> Result<Self, Error> {
        let known = Self::ALL.into_iter().find(|mode| mode.name() == name);
        known.ok_or_else(|| Error::Mode { setting, name: name.into() })
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("{setting}: {name:?} is none of none, once, new_episodes, all")]
    Mode { setting: &'static str, name: String },
    #[error("{}: {problem}", path.display())]
    File { path: PathBuf, problem: String },
    #[error("{} line {line}: {problem}; mend or delete the line, or record the file anew", path.display())]
    Line { path: PathBuf, line: usize, problem: String },
    #[error("{} {problem}; record it with mode \"new_episodes\"", path.display())]
    Miss { path: PathBuf, problem: String },
}

/// One opening of a file of recordings. Clones share it. What changes is atomic, so that a child forked at any moment
/// finds it usable, and goes on from where its parent was.
#[derive(Clone, Debug)]
pub struct Cassette {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    mode: Mode,
    /// Whether the service may be asked.
    records: bool,
    /// What the file held when it was opened.
    tracks: HashMap<Request, Track>,
    recorded: AtomicUsize,
}

/// The recordings of one request, in the order they are played.
#[derive(Debug, Default)]
struct Track {
    outcomes: Vec<Outcome>,
    /// How many were played, or, where everything is recorded anew, whether they were replaced.
    played: AtomicUsize,
}

impl Cassette {
    pub fn open(path: &Path, mode: Mode) -> Result<Self, Error> {
        let interactions = file::load(path)?;
        let records = match mode {
            Mode::None => false,
            // An empty file holds nothing to replay: somebody made room for a recording.
            Mode::Once => interactions.is_empty(),
            Mode::NewEpisodes | Mode::All => true,
        };
        Ok(Self::of(path, mode, records, interactions))
    }

    /// Another process's part in a recording that was begun before: what that has written is not replayed.
    pub fn join(path: &Path, mode: Mode) -> Self {
        Self::of(path, mode, true, Vec::new())
    }

    fn of(path: &Path, mode: Mode, records: bool, interactions: Vec<Interaction>) -> Self {
        let mut tracks = HashMap::<Request, Track>::new();
        for Interaction { request, outcome } in interactions {
            tracks.entry(request).or_default().outcomes.push(outcome);
        }
        // A working directory may change; the file stays.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { inner: Arc::new(Inner { path, mode, records, tracks, recorded: AtomicUsize::new(0) }) }
    }

    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    pub fn mode(&self) -> Mode {
        self.inner.mode
    }

    /// Whether it may come to ask the service, and write.
    pub fn records(&self) -> bool {
        self.inner.records
    }

    /// Whether it holds what is replayed.
    pub fn may_replay(&self) -> bool {
        self.inner.mode != Mode::All && !self.inner.tracks.is_empty()
    }

    /// Interactions that were there at the opening and were not replaced, and that were recorded since.
    pub fn len(&self) -> usize {
        let replaced = |track: &&Track| self.inner.mode == Mode::All && track.played.load(Ordering::Relaxed) > 0;
        let held = self.inner.tracks.values().filter(|track| !replaced(track)).map(|track| track.outcomes.len());
        held.sum::<usize>() + self.inner.recorded.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Interactions that were played so far.
    pub fn played(&self) -> usize {
        let played = |track: &Track| track.played.load(Ordering::Relaxed).min(track.outcomes.len());
        if self.inner.mode == Mode::All { 0 } else { self.inner.tracks.values().map(played).sum() }
    }

    /// The next recorded outcome of that request; nothing where the service is to be asked and the outcome recorded.
    pub fn play(&self, request: &Request) -> Result<Option<Outcome>, Error> {
        let Inner { path, mode, records, tracks, .. } = &*self.inner;
        if *mode == Mode::All {
            return Ok(None);
        }
        let next = tracks.get(request).and_then(|track| {
            let place = track.played.fetch_add(1, Ordering::Relaxed);
            track.outcomes.get(place).cloned()
        });
        if next.is_some() || *records {
            return Ok(next);
        }
        let times = tracks.get(request).map_or(0, |track| track.outcomes.len());
        let problem = nearest::explain(request, times, tracks.keys());
        Err(Error::Miss { path: path.clone(), problem })
    }

    /// Whether that request will be played once more.
    pub fn has_next(&self, request: &Request) -> bool {
        let left = |track: &Track| track.played.load(Ordering::Relaxed) < track.outcomes.len();
        self.inner.mode != Mode::All && self.inner.tracks.get(request).is_some_and(left)
    }

    /// Writes what came of a request to the end of the file; it is there when this returns.
    pub fn record(&self, request: &Request, outcome: Outcome) -> Result<(), Error> {
        let Inner { path, mode, tracks, recorded, .. } = &*self.inner;
        let replaced = tracks.get(request).filter(|track| {
            // Recorded anew, the old recordings of the request go with the first of the new ones.
            *mode == Mode::All && track.played.swap(1, Ordering::Relaxed) == 0
        });
        let line = Interaction { request: request.clone(), outcome }.to_line();
        file::append(path, &line, replaced.map(|track| (request, track.outcomes.len())))?;
        recorded.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl PartialEq for Cassette {
    fn eq(&self, other: &Self) -> bool {
        let Inner { path, mode, records, .. } = &*self.inner;
        (path, *mode, *records) == (&other.inner.path, other.inner.mode, other.inner.records)
    }
}

#[cfg(test)]
mod tests;
