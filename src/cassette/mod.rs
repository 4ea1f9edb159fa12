//! Recorded interactions: requests and their responses, as JSON, replayed in place of the network. Headers,
//! hosts, secrets and times are not recorded.

mod closest_match;
mod file;
mod interaction;
mod json_error;
mod layout;
mod matching;
mod network;
mod writer;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub use closest_match::explain as explain_miss;
pub use interaction::{Interaction, Outcome, RecordedFailure, RecordedResponse, Request};
pub use json_error::explain;
pub use matching::{MatchOn, Scrub};
pub use network::{block as block_network, check as check_network, note_unrecorded, unrecorded};

use writer::Writer;

/// Interactions of a file with a service; none if it does not exist.
pub fn read(path: &Path) -> Result<Vec<Interaction>, Error> {
    let mut interactions = file::load(path)?;
    interactions.retain(|interaction| interaction.request.is_sent());
    Ok(interactions)
}

/// Recording mode. Names and meanings are those of vcrpy, and of pytest-recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Replays, and never sends a request.
    None,
    /// Records into a new file; replays an existing one, and then never sends a request.
    Once,
    /// Replays what is recorded, and records the rest.
    NewEpisodes,
    /// Records everything again.
    All,
    /// Records everything again into a file that is emptied first.
    Rewrite,
}

impl Mode {
    pub const ALL: [Self; 5] = [Self::None, Self::Once, Self::NewEpisodes, Self::All, Self::Rewrite];

    /// True if nothing is replayed.
    pub const fn only_records(self) -> bool {
        matches!(self, Self::All | Self::Rewrite)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Once => "once",
            Self::NewEpisodes => "new_episodes",
            Self::All => "all",
            Self::Rewrite => "rewrite",
        }
    }

    /// The mode of that name; `setting` names the setting in the error.
    pub fn named(name: &str, setting: &'static str) -> Result<Self, Error> {
        let known = Self::ALL.into_iter().find(|mode| mode.name() == name);
        known.ok_or_else(|| Error::Mode { setting, name: name.into() })
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("{setting} must be one of none, once, new_episodes, all, rewrite; got {name:?}")]
    Mode { setting: &'static str, name: String },
    #[error("{}: {problem}", path.display())]
    File { path: PathBuf, problem: String },
    #[error("{} line {line}: {problem}; fix or delete the line, or record the file again", path.display())]
    Line { path: PathBuf, line: usize, problem: String },
    #[error("{} {problem}", path.display())]
    Miss { path: PathBuf, problem: String, hint: Option<String> },
    #[error("{request} was not sent: the network is blocked; use a cassette or a local service")]
    Blocked { request: String },
}

/// Path and options of a cassette.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub path: PathBuf,
    pub mode: Mode,
    /// The last recording of a request is played again when all were played.
    pub allow_playback_repeats: bool,
    /// File that is read and written in place of `path`, until a test has passed.
    pub staging: Option<PathBuf>,
    pub match_on: MatchOn,
    pub scrub: Option<Scrub>,
    /// Advice on recording, for the message about a request that was not recorded.
    pub hint: Option<String>,
}

impl Options {
    pub fn new(path: impl Into<PathBuf>, mode: Mode) -> Self {
        let (match_on, path) = (MatchOn::default(), path.into());
        Self { path, mode, allow_playback_repeats: false, staging: None, match_on, scrub: None, hint: None }
    }

    fn file(&self) -> &Path {
        self.staging.as_deref().unwrap_or(&self.path)
    }
}

/// One opening of a file of recordings, shared by its clones. What changes is atomic, so that a child forked at any
/// moment can use it, and continues where its parent was.
#[derive(Clone, Debug)]
pub struct Cassette {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    can_record: bool,
    is_missing: bool,
    /// Interactions in the file when it was opened, by request, and the order of the requests.
    by_request: HashMap<Request, Recordings>,
    order: Vec<Request>,
    recorded: AtomicUsize,
    has_emptied: AtomicBool,
    is_closed: AtomicBool,
    writer: Writer,
}

/// The recordings of one request, in the order they are played.
#[derive(Debug, Default)]
struct Recordings {
    interactions: Vec<Interaction>,
    /// Number of requests so far; in mode "all" 1 if the recordings were replaced.
    played: AtomicUsize,
}

impl Recordings {
    fn played(&self) -> usize {
        self.played.load(Ordering::Relaxed).min(self.interactions.len())
    }
}

/// The recordings of one request, and how many of them were played.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub interactions: Vec<Interaction>,
    pub played: usize,
}

impl Cassette {
    pub fn open(mut options: Options) -> Result<Self, Error> {
        // A working directory may change; the file stays.
        options.path = std::path::absolute(&options.path).unwrap_or(options.path);
        let metadata = options.file().metadata().ok();
        // A pipe can be replayed. Recording would wait for its end, and has to seek.
        if options.mode != Mode::None && metadata.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            let problem = "is not a regular file; name another to record".into();
            return Err(Error::File { path: options.path, problem });
        }
        let is_missing = metadata.is_none();
        let interactions = file::load(options.file())?;
        // Other processes may write into a file that was begun for this run, also before this one does.
        let is_emptied = options.mode == Mode::Rewrite && options.staging.is_some();
        if is_emptied {
            file::empty(options.file())?;
        }
        let can_record = match options.mode {
            Mode::None => false,
            // An empty file holds nothing to replay.
            Mode::Once => interactions.is_empty(),
            Mode::NewEpisodes | Mode::All | Mode::Rewrite => true,
        };
        let writer = Writer::new(file::length(options.file()));
        let opened = Self::new(options, can_record, is_missing, interactions, writer);
        opened.inner.has_emptied.store(is_emptied, Ordering::Relaxed);
        Ok(opened)
    }

    /// Another process's part in a recording that was begun before: what that has written is not replayed.
    pub fn join(mut options: Options) -> Self {
        options.path = std::path::absolute(&options.path).unwrap_or(options.path);
        let start = if options.mode == Mode::All { file::length(options.file()) } else { 0 };
        Self::new(options, true, false, Vec::new(), Writer::new(start))
    }

    fn new(
        options: Options,
        can_record: bool,
        is_missing: bool,
        interactions: Vec<Interaction>,
        writer: Writer,
    ) -> Self {
        let (mut by_request, mut order) = (HashMap::<Request, Recordings>::new(), Vec::new());
        for interaction in interactions {
            let key = options.match_on.key(&interaction.request);
            let recordings = by_request.entry(key.clone()).or_default();
            if recordings.interactions.is_empty() {
                order.push(key);
            }
            recordings.interactions.push(interaction);
        }
        let (has_emptied, is_closed) = (AtomicBool::new(false), AtomicBool::new(false));
        let recorded = AtomicUsize::new(0);
        let inner =
            Inner { options, can_record, is_missing, by_request, order, recorded, has_emptied, is_closed, writer };
        Self { inner: Arc::new(inner) }
    }

    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    pub fn path(&self) -> &Path {
        &self.inner.options.path
    }

    pub fn mode(&self) -> Mode {
        self.inner.options.mode
    }

    /// True if requests may be sent and recorded.
    pub fn can_record(&self) -> bool {
        self.inner.can_record
    }

    /// True if it holds interactions that are replayed.
    pub fn may_replay(&self) -> bool {
        !self.mode().only_records() && !self.inner.by_request.is_empty()
    }

    /// Number of interactions read at the opening and not replaced, and recorded since.
    pub fn len(&self) -> usize {
        let is_emptied = self.inner.has_emptied.load(Ordering::Relaxed);
        let replaced =
            |one: &&Recordings| is_emptied || self.mode().only_records() && one.played.load(Ordering::Relaxed) > 0;
        let held = self.inner.by_request.values().filter(|one| !replaced(one)).map(|one| one.interactions.len());
        held.sum::<usize>() + self.inner.recorded.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of interactions played so far.
    pub fn played(&self) -> usize {
        if self.mode().only_records() { 0 } else { self.inner.by_request.values().map(Recordings::played).sum() }
    }

    /// Contents of the file when it was opened, in its order.
    pub fn summaries(&self) -> Vec<Summary> {
        let summary = |request: &Request| {
            let recordings = self.inner.by_request.get(request)?;
            let played = if self.mode().only_records() { 0 } else { recordings.played() };
            Some(Summary { interactions: recordings.interactions.clone(), played })
        };
        self.inner.order.iter().filter_map(summary).collect()
    }

    /// Refuses all further requests: the test of the cassette has ended.
    pub fn close(&self) {
        self.inner.is_closed.store(true, Ordering::Relaxed);
    }

    /// Fails if the cassette is closed; `made_at` is the place where the client was made.
    pub fn check_open(&self, made_at: Option<&str>) -> Result<(), Error> {
        if !self.inner.is_closed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let client = made_at.map_or_else(|| "a client".into(), |place| format!("the client made at {place}"));
        let problem = format!("its test has ended, and {client} was used once more; make a client in each test");
        Err(Error::File { path: self.path().to_owned(), problem })
    }

    /// The next recorded outcome of a request; `None` if the request is to be sent and recorded.
    pub fn play(&self, request: &Request) -> Result<Option<Outcome>, Error> {
        let Inner { options, can_record, is_missing, by_request, .. } = &*self.inner;
        if options.mode.only_records() {
            return Ok(None);
        }
        let request = &self.stored(request)?;
        let recordings = by_request.get(&options.match_on.key(request));
        let next = recordings.and_then(|recordings| {
            let position = recordings.played.fetch_add(1, Ordering::Relaxed);
            let last = recordings.interactions.last().filter(|_| options.allow_playback_repeats);
            recordings.interactions.get(position).or(last).map(|interaction| interaction.outcome.clone())
        });
        if next.is_some() || *can_record {
            return Ok(next);
        }
        let problem = if *is_missing {
            format!("does not exist and so has no recording of {request} (was it committed?)")
        } else {
            let times = recordings.map_or(0, |recordings| recordings.interactions.len());
            closest_match::explain(request, times, by_request.keys().filter(|other| other.is_sent()))
        };
        let hint = options.hint.clone();
        Err(Error::Miss { path: options.path.clone(), problem, hint })
    }

    /// True if the request will be played once more.
    pub fn has_next(&self, request: &Request) -> bool {
        let left = |one: &Recordings| {
            self.inner.options.allow_playback_repeats || one.played.load(Ordering::Relaxed) < one.interactions.len()
        };
        let key = self.stored(request).map(|request| self.inner.options.match_on.key(&request));
        !self.mode().only_records() && key.is_ok_and(|key| self.inner.by_request.get(&key).is_some_and(left))
    }

    /// Appends the outcome of a request to the file, unless another process has recorded it; done when this returns.
    pub fn record(&self, request: &Request, outcome: Outcome) -> Result<(), Error> {
        let Inner { options, by_request, recorded, writer, .. } = &*self.inner;
        // A thread may have sent the request before the end of the test.
        self.check_open(None)?;
        let request = self.stored(request)?;
        let outcome = match &options.scrub {
            None => outcome,
            Some(scrub) => scrub.outcome(outcome).map_err(|problem| self.cannot_scrub(problem))?,
        };
        let before = by_request.get(&options.match_on.key(&request));
        let is_first = before.is_some_and(|one| one.played.swap(1, Ordering::Relaxed) == 0);
        let replaces = options.mode == Mode::All && is_first;
        // A file that is emptied loses its remarks, but for those on requests that are recorded again.
        let note = before.filter(|_| options.mode == Mode::Rewrite && is_first);
        let note = note.and_then(|one| one.interactions.first()?.note.clone());
        if options.mode == Mode::Rewrite && !self.inner.has_emptied.swap(true, Ordering::Relaxed) {
            writer.empty(options.file())?;
        }
        let interaction = Interaction { note, request, outcome };
        if writer.write(options.file(), interaction, replaces)? {
            recorded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The request as it is stored.
    fn stored(&self, request: &Request) -> Result<Request, Error> {
        match &self.inner.options.scrub {
            None => Ok(request.clone()),
            Some(scrub) => scrub.request(request).map_err(|problem| self.cannot_scrub(problem)),
        }
    }

    fn cannot_scrub(&self, problem: String) -> Error {
        Error::File { path: self.path().to_owned(), problem: format!("was not written: scrub {problem}") }
    }

    /// True if a recording may be replayed for a request with another value of that parameter.
    pub fn may_differ(&self, parameter: &str, value: &str) -> bool {
        let Options { match_on, scrub, .. } = &self.inner.options;
        let is_scrubbed = |scrub: &Scrub| scrub.text(value).is_ok_and(|scrubbed| scrubbed != value);
        self.may_replay() && (!match_on.is_compared(parameter) || scrub.as_ref().is_some_and(is_scrubbed))
    }

    /// Removes from the file what was replaced.
    pub fn compact(&self) -> Result<(), Error> {
        self.inner.writer.compact(self.inner.options.file())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The file is valid either way; what was replaced is only longer.
        let _ = self.writer.compact(self.options.file());
    }
}

impl PartialEq for Cassette {
    fn eq(&self, other: &Self) -> bool {
        (self.options(), self.can_record()) == (other.options(), other.can_record())
    }
}

#[cfg(test)]
mod tests;
