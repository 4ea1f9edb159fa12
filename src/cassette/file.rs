//! The file: read whole at first, and written a line at a time, each by one write under a lock, so that processes that
//! record into one file leave each other's lines whole.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use super::Error;
use super::interaction::{Interaction, Request};

/// A file that is not there holds nothing.
pub fn load(path: &Path) -> Result<Vec<Interaction>, Error> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused(path, "cannot be read", &error)),
    };
    let mut interactions = Vec::new();
    for (place, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let read = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned()).and_then(Interaction::of_line);
        interactions.push(read.map_err(|problem| Error::Line { path: path.to_owned(), line: place + 1, problem })?);
    }
    Ok(interactions)
}

/// Appends a line; `replaced` are the first so many lines of a request, which go.
pub fn append(path: &Path, line: &str, replaced: Option<(&Request, usize)>) -> Result<(), Error> {
    let write = || {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        // Let go of when the file is closed. Where a file system has no locks, one write is still one line.
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => file.lock()?,
            Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        if let Some((request, count)) = replaced {
            remove(&mut file, request, count)?;
        }
        let mut bytes = Vec::with_capacity(line.len() + 2);
        // A line that somebody was killed in shall spoil no other.
        if !ends_its_line(&mut file)? {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        file.write_all(&bytes)
    };
    write().map_err(|error| refused(path, "cannot be written", &error))
}

fn remove(file: &mut File, request: &Request, count: usize) -> std::io::Result<()> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let mut left = count;
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if left > 0 && Interaction::of_line(line.trim()).is_ok_and(|interaction| interaction.request == *request) {
            left -= 1;
        } else {
            kept.push_str(line);
        }
    }
    file.set_len(0)?;
    file.write_all(kept.as_bytes())
}

fn ends_its_line(file: &mut File) -> std::io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == [b'\n'])
}

fn refused(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::File { path: path.to_owned(), problem: format!("{what}: {error}") }
}
