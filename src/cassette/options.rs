//! Options of a cassette.

use std::path::{Path, PathBuf};

use super::error::Error;
use super::interaction::Interaction;
use super::matching::MatchOn;
use super::scrub::{Scrub, failed};

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
    /// Advice for the message about a request that was not recorded.
    pub hint: Option<String>,
    /// File in which all processes note what they play and miss.
    pub journal: Option<PathBuf>,
}

impl Options {
    pub fn new(path: impl Into<PathBuf>, mode: Mode) -> Self {
        Self {
            path: path.into(),
            mode,
            allow_playback_repeats: false,
            staging: None,
            match_on: MatchOn::default(),
            scrub: None,
            hint: None,
            journal: None,
        }
    }

    pub(super) fn file(&self) -> &Path {
        self.staging.as_deref().unwrap_or(&self.path)
    }

    /// The interactions as `scrub` leaves them, and the number of those that were recorded without it.
    pub(super) fn scrub_earlier(
        &self,
        can_record: bool,
        interactions: Vec<Interaction>,
    ) -> Result<(Vec<Interaction>, usize), Error> {
        let Some(scrub) = &self.scrub else { return Ok((interactions, 0)) };
        let mut count = 0;
        let scrubbed = interactions.into_iter().map(|before| {
            if before.is_scrubbed {
                return Ok(before);
            }
            let after = scrub.interaction(before.clone()).map_err(|problem| failed(&self.path, &problem))?;
            if (&after.request, &after.outcome) == (&before.request, &before.outcome) {
                return Ok(before);
            }
            count += 1;
            Ok(after)
        });
        let scrubbed = scrubbed.collect::<Result<Vec<_>, Error>>()?;
        if count > 0 && !can_record {
            let advice = self.hint.as_deref().unwrap_or("record it with mode=\"new_episodes\"");
            let problem =
                format!("has interactions that were recorded without scrub ({count}); {advice} to scrub them");
            return Err(Error::File { path: self.path.clone(), problem });
        }
        Ok((scrubbed, count))
    }
}
