//! Recorded interactions: requests and their responses, as JSON, replayed in place of the network. Headers,
//! hosts, secrets and times are not recorded.

mod closest_match;
mod error;
mod file;
mod interaction;
mod journal;
mod json_error;
mod layout;
mod matching;
mod network;
mod options;
mod scrub;
mod writer;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub use closest_match::explain as explain_miss;
pub use error::Error;
pub use interaction::{Interaction, Outcome, RecordedFailure, RecordedResponse, Request};
pub use json_error::explain;
pub use matching::MatchOn;
pub use network::{Origin, Sender, block as block_network, check as check_network, note_sent, sent};
pub use options::{Mode, Options};
pub use scrub::Scrub;

use arc_swap::ArcSwapOption;
use journal::{Journal, Missed};
use writer::Writer;

/// Adds the recordings of a file to a cassette, as the mode says. Returns the requests of the cassette that the file does
/// not have; with "rewrite" their recordings are removed.
pub fn merge(options: &Options, file: &Path, mode: Mode) -> Result<Vec<String>, Error> {
    Ok(file::merge(options, file, mode)?.iter().map(Request::to_string).collect())
}

/// Interactions of a file with a service; none if it does not exist.
pub fn read(path: &Path) -> Result<Vec<Interaction>, Error> {
    let mut interactions = file::load(path, &MatchOn::default())?;
    interactions.retain(|interaction| interaction.request.is_sent());
    Ok(interactions)
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
    journal: Arc<Journal>,
    /// Number of interactions that were recorded without `scrub` and scrubbed at the opening.
    scrubbed: usize,
    /// Path of a call that is recorded for other times than it was made for, and advice.
    other_times: ArcSwapOption<(String, String)>,
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
        // A pipe of a shell can be replayed. Recording would wait for its end, and has to seek.
        if options.mode != Mode::None && metadata.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            let problem = "is not a regular file; name another to record".into();
            return Err(Error::File { path: options.path, problem });
        }
        let is_missing = metadata.is_none();
        let interactions = file::load(options.file(), &options.match_on)?;
        let can_record = match options.mode {
            Mode::None => false,
            // An empty file holds nothing to replay.
            Mode::Once => interactions.is_empty(),
            Mode::NewEpisodes | Mode::All | Mode::Rewrite => true,
        };
        if can_record && options.file().is_symlink() {
            let problem = "is a symbolic link; to record, remove it, or name what it refers to".into();
            return Err(Error::File { path: options.path, problem });
        }
        // Other processes may write into a file that was begun for this run, also before this one does.
        let is_emptied = options.mode == Mode::Rewrite && options.staging.is_some();
        if is_emptied {
            file::empty(options.file())?;
        }
        let (interactions, scrubbed) = options.scrub_earlier(can_record, interactions)?;
        if scrubbed > 0 && !is_emptied {
            file::write(options.file(), &interactions)?;
        }
        let start = file::length(options.file());
        let opened = Self::new(options, can_record, is_missing, (interactions, scrubbed), start);
        opened.inner.has_emptied.store(is_emptied, Ordering::Relaxed);
        Ok(opened)
    }

    /// Another process's part in a recording that was begun before: what that has written is not replayed.
    pub fn join(mut options: Options) -> Self {
        options.path = std::path::absolute(&options.path).unwrap_or(options.path);
        let start = if options.mode == Mode::All { file::length(options.file()) } else { 0 };
        Self::new(options, true, false, (Vec::new(), 0), start)
    }

    fn new(
        options: Options,
        can_record: bool,
        is_missing: bool,
        (interactions, scrubbed): (Vec<Interaction>, usize),
        start: u64,
    ) -> Self {
        let mut by_request: HashMap<Request, Recordings> = HashMap::new();
        let mut order = Vec::new();
        for interaction in interactions {
            let key = options.match_on.key(&interaction.request);
            let recordings = by_request.entry(key.clone()).or_default();
            if recordings.interactions.is_empty() {
                order.push(key);
            }
            recordings.interactions.push(interaction);
        }
        let has_emptied = AtomicBool::new(false);
        let is_closed = AtomicBool::new(false);
        let inner = Inner {
            can_record,
            is_missing,
            by_request,
            order,
            recorded: AtomicUsize::new(0),
            has_emptied,
            is_closed,
            writer: Writer::new(start, options.match_on.clone()),
            journal: Arc::new(Journal::new(options.journal.clone())),
            scrubbed,
            other_times: ArcSwapOption::empty(),
            options,
        };
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
        let replaced = |recordings: &&Recordings| {
            is_emptied || self.mode().only_records() && recordings.played.load(Ordering::Relaxed) > 0
        };
        let held = self
            .inner
            .by_request
            .values()
            .filter(|recordings| !replaced(recordings))
            .map(|recordings| recordings.interactions.len());
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
        let Inner { by_request, order, .. } = &*self.inner;
        let recordings = order.iter().filter_map(|request| by_request.get(request));
        recordings
            .map(|recordings| {
                let played = if self.mode().only_records() { 0 } else { recordings.played() };
                Summary { interactions: recordings.interactions.clone(), played }
            })
            .collect()
    }

    /// Refuses all further requests: the test of the cassette has ended.
    pub fn close(&self) {
        self.inner.is_closed.store(true, Ordering::Relaxed);
    }

    /// Fails if the cassette is closed; `origin` is that of the client.
    pub fn check_open(&self, origin: Option<&Origin>) -> Result<(), Error> {
        if !self.inner.is_closed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let client = origin.map_or_else(|| "a client".into(), |origin| format!("the client made at {}", origin.place));
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
        let key = options.match_on.key(request);
        let recordings = by_request.get(&key);
        let next = recordings.and_then(|recordings| {
            let position = recordings.played.fetch_add(1, Ordering::Relaxed);
            let last = if options.allow_playback_repeats { recordings.interactions.last() } else { None };
            let next = recordings.interactions.get(position).or(last)?;
            self.inner.journal.note_played(&key, position);
            Some(next.outcome.clone())
        });
        if next.is_some() || *can_record {
            return Ok(next);
        }
        let problem = if *is_missing {
            format!("does not exist: there is no recording of {request} (was it committed?)")
        } else {
            let times = recordings.map_or(0, |recordings| recordings.interactions.len());
            let known = by_request.keys().filter(|other| other.is_sent());
            let problem = closest_match::explain_part(request, &key, times, known);
            match self.inner.other_times.load().as_deref() {
                Some((path, advice)) if *path == request.path => format!("{problem}; {advice}"),
                _ => problem,
            }
        };
        let path = options.path.clone();
        let hint = options.hint.clone();
        Err(Error::Miss { path, problem, hint, missed: Missed::new(&self.inner.journal, request) })
    }

    /// Advice where the cassette has the facts of a call for other times. It is added to the error of each request of that
    /// path that has no recording from now on.
    pub fn explain_times(&self, facts: &Request) -> Option<String> {
        let key = self.stored(facts).map(|facts| self.inner.options.match_on.key(&facts)).ok()?;
        let mut others = self.inner.by_request.keys().filter(|other| !other.is_sent() && other.path == key.path);
        let option = others.find_map(|other| closest_match::leave_times_out(&key, other))?;
        let advice = format!("heights are those of the call's times: {option}");
        self.inner.other_times.store(Some(Arc::new((key.path, advice.clone()))));
        Some(advice)
    }

    /// Requests of interactions that no process of the test has played. One that equals the last played one of its request
    /// does not count: while it records, a client sends some requests again to check an empty response.
    pub fn unplayed(&self) -> Vec<String> {
        let played = self.inner.journal.played();
        let mut unplayed = Vec::new();
        for key in &self.inner.order {
            let Some(recordings) = self.inner.by_request.get(key) else { continue };
            let own = if self.mode().only_records() { 0 } else { recordings.played() };
            let mut last_played = None;
            for (position, interaction) in recordings.interactions.iter().enumerate() {
                if position < own || played.contains(&(key.clone(), position)) {
                    last_played = Some(&interaction.outcome);
                } else if last_played != Some(&interaction.outcome) {
                    unplayed.push(interaction.request.to_string());
                }
            }
        }
        unplayed
    }

    /// Requests without a recording, of all processes of the test.
    pub fn missed(&self) -> Vec<String> {
        self.inner.journal.missed()
    }

    /// Number of interactions that were recorded without `scrub` and scrubbed at the opening.
    pub fn scrubbed(&self) -> usize {
        self.inner.scrubbed
    }

    /// True if the request will be played once more.
    pub fn has_next(&self, request: &Request) -> bool {
        let Inner { options, by_request, .. } = &*self.inner;
        let Ok(request) = self.stored(request) else { return false };
        let Some(recordings) = by_request.get(&options.match_on.key(&request)) else { return false };
        let is_left = recordings.played.load(Ordering::Relaxed) < recordings.interactions.len();
        !self.mode().only_records() && (options.allow_playback_repeats || is_left)
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
        let is_first = before.is_some_and(|recordings| recordings.played.swap(1, Ordering::Relaxed) == 0);
        let replaces = options.mode == Mode::All && is_first;
        // A file that is emptied loses its remarks, but for those on requests that are recorded again.
        let kept = if options.mode == Mode::Rewrite && is_first { before } else { None };
        let note = kept.and_then(|recordings| recordings.interactions.first()?.note.clone());
        if options.mode == Mode::Rewrite && !self.inner.has_emptied.swap(true, Ordering::Relaxed) {
            writer.empty(options.file())?;
        }
        let interaction = Interaction { note, request, outcome, is_scrubbed: options.scrub.is_some() };
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
        scrub::failed(self.path(), &problem)
    }

    /// True if a recording may be replayed for a request with another value of that parameter.
    pub fn may_differ(&self, parameter: &str, value: &str) -> bool {
        let Options { match_on, scrub, .. } = &self.inner.options;
        let scrubbed = scrub.as_ref().and_then(|scrub| scrub.text(value).ok());
        self.may_replay() && (!match_on.is_compared(parameter) || scrubbed.is_some_and(|scrubbed| scrubbed != value))
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
