//! Errors about a cassette.

use std::path::PathBuf;

use super::journal::Missed;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("{setting} must be one of none, once, new_episodes, all, rewrite; got {name:?}")]
    Mode { setting: &'static str, name: String },
    #[error("{}: {problem}", path.display())]
    File { path: PathBuf, problem: String },
    #[error("{} line {line}: {problem}; fix or delete the line, or record the file again", path.display())]
    Line { path: PathBuf, line: usize, problem: String },
    #[error("{} {problem}", path.display())]
    Miss { path: PathBuf, problem: String, hint: Option<String>, missed: Missed },
    #[error("{request} was not sent: the network is blocked; use a cassette or a local service")]
    Blocked { request: String },
}
