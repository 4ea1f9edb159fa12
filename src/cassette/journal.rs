//! Recordings that the processes of a test have played, and requests that they have missed. Each process appends to one
//! file, so that the test knows of all of them.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};

use super::interaction::Request;

#[derive(Debug, Serialize, Deserialize)]
enum Entry {
    /// The part of a request that is compared, and the position among its recordings.
    Played(Request, usize),
    /// A request without a recording.
    Missed(String),
}

#[derive(Debug)]
pub struct Journal {
    file: Option<PathBuf>,
    /// Requests that this process has missed; replaced as a whole, so that no lock is held during a fork.
    missed: ArcSwap<Vec<String>>,
}

/// A request without a recording. It is noted where its error is raised: what was requested ahead may never be needed.
#[derive(Clone, Debug)]
pub struct Missed {
    journal: Arc<Journal>,
    request: String,
}

impl Missed {
    pub fn new(journal: &Arc<Journal>, request: &Request) -> Self {
        Self { journal: Arc::clone(journal), request: request.to_string() }
    }

    pub fn note(&self) {
        self.journal.note_missed(&self.request);
    }
}

impl Journal {
    /// Without a file it knows of this process alone.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, missed: ArcSwap::default() }
    }

    pub fn note_played(&self, key: &Request, position: usize) {
        if self.file.is_some() {
            self.append(&Entry::Played(key.clone(), position));
        }
    }

    fn note_missed(&self, text: &str) {
        self.missed.rcu(|missed| {
            let mut missed = Vec::clone(missed);
            missed.push(text.to_owned());
            missed
        });
        self.append(&Entry::Missed(text.to_owned()));
    }

    /// The recordings that any of the processes has played.
    pub fn played(&self) -> HashSet<(Request, usize)> {
        let entries = self.read().into_iter();
        entries.filter_map(|entry| if let Entry::Played(key, at) = entry { Some((key, at)) } else { None }).collect()
    }

    /// The requests that any of the processes has missed.
    pub fn missed(&self) -> Vec<String> {
        if self.file.is_none() {
            return self.missed.load().to_vec();
        }
        let entries = self.read().into_iter();
        entries.filter_map(|entry| if let Entry::Missed(request) = entry { Some(request) } else { None }).collect()
    }

    /// A report of what was played is no reason to fail a request.
    fn append(&self, entry: &Entry) {
        let Some(file) = &self.file else { return };
        let Ok(mut file) = OpenOptions::new().append(true).open(file) else { return };
        if let Ok(line) = serde_json::to_string(entry) {
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }

    fn read(&self) -> Vec<Entry> {
        let content = self.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        content.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}
