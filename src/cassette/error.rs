//! Errors about a cassette.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::journal::Missed;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("{setting} must be one of none, once, new_episodes, all, rewrite; got {name:?}")]
    Mode { setting: &'static str, name: String },
    #[error("{}: {problem}", path.display())]
    File { path: PathBuf, problem: String },
    /// The system refuses to read or write the file.
    #[error("{}: {failure}: {source}", path.display())]
    Disk { path: PathBuf, failure: &'static str, source: Arc<std::io::Error> },
    #[error("{} line {line}: {problem}; fix or delete the line, or record the file again", path.display())]
    Line { path: PathBuf, line: usize, problem: String },
    #[error("{} {problem}", path.display())]
    Miss { path: PathBuf, problem: String, hint: Option<String>, missed: Missed },
    #[error("{request} was not sent: the network is blocked; use a cassette or a local service")]
    Blocked { request: String },
}

impl Error {
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Mode { .. } | Self::Blocked { .. } => None,
            Self::File { path, .. } | Self::Disk { path, .. } | Self::Line { path, .. } | Self::Miss { path, .. } => {
                Some(path)
            }
        }
    }

    pub(super) fn cannot_read(path: &Path, error: std::io::Error) -> Self {
        Self::Disk { path: path.to_owned(), failure: "cannot be read", source: Arc::new(error) }
    }

    pub(super) fn cannot_write(path: &Path, error: std::io::Error) -> Self {
        Self::Disk { path: path.to_owned(), failure: "cannot be written", source: Arc::new(error) }
    }
}
