//! `Cache`: a directory, and bounds of what is kept in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Heights below the head from which on a chain is taken not to change: more than a follower waits for, since what is kept
/// serves for weeks.
pub const DEFAULT_SETTLE: i64 = 32;
pub const DEFAULT_MAX_AGE: f64 = 30.0 * 86_400.0;
pub const DEFAULT_MAX_BYTES: i64 = 1 << 30;

/// Longest age, which clocks can subtract.
const MAX_SECONDS: f64 = 100.0 * 366.0 * 86_400.0;

/// A directory of results that were read before. Clones and other processes may use it at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    directory: PathBuf,
    settle: i64,
    max_age: Duration,
    max_bytes: u64,
}

/// A setting of a cache is invalid, or a cache cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} {problem}")]
pub struct CacheError {
    pub setting: &'static str,
    pub problem: String,
}

impl Cache {
    /// Checks the settings and creates the directory, which only its owner can read.
    pub fn new(directory: PathBuf, settle: i64, max_age: f64, max_bytes: i64) -> Result<Self, CacheError> {
        let error = |setting, problem| CacheError { setting, problem };
        if settle < 1 {
            return Err(error("settle", format!("({settle}) must be at least 1")));
        }
        let is_age = max_age > 0.0 && max_age <= MAX_SECONDS;
        if !is_age {
            return Err(error(
                "max_age",
                format!("({max_age}) must be a number of seconds above 0 and at most {MAX_SECONDS}"),
            ));
        }
        let bytes = u64::try_from(max_bytes).ok().filter(|bytes| *bytes > 0);
        let max_bytes = bytes.ok_or_else(|| error("max_bytes", format!("({max_bytes}) must be at least 1")))?;
        create(&directory).map_err(|reason| {
            let place = directory.display();
            error("directory", format!("({place}) cannot be created: {reason}; name a directory that can be written"))
        })?;
        // A process may change its working directory.
        let directory = directory.canonicalize().unwrap_or(directory);
        Ok(Self { directory, settle, max_age: Duration::from_secs_f64(max_age), max_bytes })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn settle(&self) -> i64 {
        self.settle
    }

    pub fn max_age(&self) -> Duration {
        self.max_age
    }

    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }
}

/// Creates a directory unless it is there.
fn create(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}
