//! The file of a cassette: read at the opening, then appended to an interaction at a time, each by one write under a lock.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::error::Error;
use super::interaction::{Interaction, Request};
use super::layout;
use super::matching::MatchOn;
use super::options::{Mode, Options};
use crate::files;

/// A line of the file.
#[derive(Debug)]
pub struct Line {
    pub interaction: Interaction,
    /// The recordings of the request on the lines before no longer count.
    pub replaces: bool,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.interaction.to_line();
        match line.strip_suffix('}') {
            Some(open) if self.replaces => write!(f, "{open},{REPLACES}}}"),
            _ => f.write_str(&line),
        }
    }
}

const REPLACES: &str = "\"replaces\":true";
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Interactions of a file; none if it does not exist. `match_on` decides which requests replace each other.
pub fn load(path: &Path, match_on: &MatchOn) -> Result<Vec<Interaction>, Error> {
    match files::read(path) {
        Ok(bytes) => Ok(in_order(parse(path, &bytes)?, match_on)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::cannot_read(path, error)),
    }
}

pub fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<Line>, Error> {
    let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
    let mut lines = Vec::new();
    for (first, line) in layout::interactions(bytes) {
        let read = std::str::from_utf8(line).map_err(|_| "invalid UTF-8".to_owned()).and_then(parse_line);
        lines.push(read.map_err(|problem| Error::Line { path: path.to_owned(), line: first, problem })?);
    }
    Ok(lines)
}

fn parse_line(line: &str) -> Result<Line, String> {
    if ["<<<<<<<", "=======", ">>>>>>>", "|||||||"].iter().any(|marker| line.starts_with(marker)) {
        return Err("a conflict marker of a merge".into());
    }
    let line = line.trim();
    let open = line.strip_suffix('}').and_then(|line| line.trim_end().strip_suffix(REPLACES));
    match open.and_then(|line| line.trim_end().strip_suffix(',')) {
        Some(line) => {
            Interaction::from_line(&format!("{line}}}")).map(|interaction| Line { interaction, replaces: true })
        }
        None => Interaction::from_line(line).map(|interaction| Line { interaction, replaces: false }),
    }
}

/// Without the interactions that were replaced. Those that replace them take their places and notes.
fn in_order(lines: Vec<Line>, match_on: &MatchOn) -> Vec<Interaction> {
    let keys: Vec<Request> = lines.iter().map(|line| match_on.key(&line.interaction.request)).collect();
    let replacing = keys.iter().enumerate().zip(&lines).filter(|(_, line)| line.replaces);
    let since: HashMap<&Request, usize> = replacing.map(|((position, key), _)| (key, position)).collect();
    let mut placed: Vec<(usize, Interaction)> = Vec::new();
    let mut replaced: HashMap<&Request, VecDeque<(usize, Option<String>)>> = HashMap::new();
    for (position, (key, Line { mut interaction, .. })) in keys.iter().zip(lines).enumerate() {
        let is_replaced = since.get(key).is_some_and(|since| position < *since);
        if is_replaced {
            replaced.entry(key).or_default().push_back((position, interaction.note));
            continue;
        }
        let mut place = position;
        if let Some(places) = replaced.get_mut(key) {
            // Of more than were replaced, the others follow the last.
            let last = if places.len() > 1 {
                places.pop_front()
            } else {
                places.front_mut().map(|(at, note)| (*at, note.take()))
            };
            let (at, note) = last.unwrap_or((position, None));
            place = at;
            interaction.note = interaction.note.or(note);
        }
        placed.push((place, interaction));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, interaction)| interaction).collect()
}

/// Adds the recordings of another file, as the mode says: where it has more of a request than this file, or in place of
/// those of the same request, and with "rewrite" in place of all. Returns the requests that the other file does not have.
pub fn merge(options: &Options, other: &Path, mode: Mode) -> Result<Vec<Request>, Error> {
    let Options { path, match_on, .. } = options;
    let _lock = locked(path).map_err(|error| Error::cannot_write(path, error))?;
    let (before, _) = options.scrub_earlier(true, load(path, match_on)?)?;
    let mut added = load(other, match_on)?;
    let held = count_requests(&before, match_on);
    let recorded = count_requests(&added, match_on);
    let is_recorded = |interaction: &Interaction| recorded.contains_key(&match_on.key(&interaction.request));
    let left = before
        .iter()
        .filter(|interaction| !is_recorded(interaction))
        .map(|interaction| interaction.request.clone())
        .collect();
    if mode == Mode::NewEpisodes {
        added.retain(|interaction| {
            let key = match_on.key(&interaction.request);
            recorded.get(&key) > held.get(&key)
        });
    }
    let mut seen: HashSet<Request> = HashSet::new();
    let is_first: Vec<bool> = added.iter().map(|interaction| seen.insert(match_on.key(&interaction.request))).collect();
    let before = before.into_iter().map(|interaction| Line { interaction, replaces: false });
    let added = added.into_iter().zip(is_first).map(|(interaction, replaces)| Line { interaction, replaces });
    let mut merged = in_order(before.chain(added).collect(), match_on);
    merged.retain(|interaction| mode != Mode::Rewrite || is_recorded(interaction));
    write(path, &merged)?;
    Ok(left)
}

/// Number of recordings of each request.
fn count_requests(interactions: &[Interaction], match_on: &MatchOn) -> HashMap<Request, usize> {
    let mut counts = HashMap::new();
    interactions.iter().for_each(|interaction| *counts.entry(match_on.key(&interaction.request)).or_default() += 1);
    counts
}

/// Reads what was added after `read`, and appends the line that `next` makes of it; returns true if there was one.
pub fn append(path: &Path, read: &mut u64, next: impl FnOnce(&[Line]) -> Option<String>) -> Result<bool, Error> {
    let mut file = locked(path).map_err(|error| Error::cannot_write(path, error))?;
    let mut added = || -> std::io::Result<(Vec<u8>, u64)> {
        let length = file.metadata()?.len();
        // It is shorter if another process has compacted it.
        file.seek(SeekFrom::Start((*read).min(length)))?;
        let mut added = Vec::new();
        file.read_to_end(&mut added)?;
        Ok((added, length))
    };
    let (added, length) = added().map_err(|error| Error::cannot_read(path, error))?;
    // A line that another process was killed in does not count.
    let complete: Vec<Line> = layout::interactions(&added)
        .into_iter()
        .filter_map(|(_, line)| parse_line(std::str::from_utf8(line).ok()?).ok())
        .collect();
    *read = length;
    let Some(line) = next(&complete) else { return Ok(false) };
    let mut bytes = Vec::with_capacity(line.len() + 2);
    let mut append = || -> std::io::Result<u64> {
        // An unfinished line must not spoil this one.
        if length > 0 && !ends_line(&mut file)? {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        file.write_all(&bytes)?;
        Ok(length + bytes.len() as u64)
    };
    let appended = append();
    if appended.is_err() {
        // On a full disk the beginning of the line is there, with which no later run could read the file.
        let _ = file.set_len(length);
    }
    *read = appended.map_err(|error| Error::cannot_write(path, error))?;
    Ok(true)
}

/// Rewrites the file without what was replaced; returns its length.
pub fn compact(path: &Path, match_on: &MatchOn) -> Result<u64, Error> {
    let _lock = locked(path).map_err(|error| Error::cannot_write(path, error))?;
    write(path, &load(path, match_on)?)
}

/// Replaces the content of a file; returns its length.
pub fn write(path: &Path, interactions: &[Interaction]) -> Result<u64, Error> {
    let mut content = String::new();
    for interaction in interactions {
        content.push_str(&interaction.to_line());
        content.push('\n');
    }
    replace(path, content.as_bytes()).map_err(|error| Error::cannot_write(path, error))?;
    Ok(content.len() as u64)
}

/// Removes all interactions; the file may be new.
pub fn empty(path: &Path) -> Result<(), Error> {
    let file = locked(path).map_err(|error| Error::cannot_write(path, error))?;
    file.set_len(0).map_err(|error| Error::cannot_write(path, error))
}

/// Replaces a file through a new one with a random name, so that nothing is written through a link that another user of
/// the directory has planted.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let permissions = path.symlink_metadata()?.permissions();
    let random = RandomState::new().hash_one(std::process::id());
    let temporary = PathBuf::from(format!("{}.{random:016x}.tmp", path.display()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let written = file.set_permissions(permissions).and_then(|()| file.write_all(content));
    written.and_then(|()| std::fs::rename(&temporary, path)).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

/// The file, locked until it is closed.
fn locked(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    loop {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        // A link may have been put there since the cassette was opened.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
        let file = options.open(path)?;
        // Without locks, a line of the file is still written by one call, so lines of two processes do not mix.
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => file.lock()?,
            Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        // Another process may have replaced the file while this one waited for its lock.
        if is_current(&file, path) {
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_current(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.metadata()) {
        (Ok(opened), Ok(current)) => id(opened) == id(current),
        _ => false,
    }
}

/// An open file cannot be replaced.
#[cfg(not(unix))]
fn is_current(_file: &File, _path: &Path) -> bool {
    true
}

fn ends_line(file: &mut File) -> std::io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == [b'\n'])
}
