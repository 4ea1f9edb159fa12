//! Recording into a file that other processes record into as well: the first process records a request, the others reuse
//! its recording.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::Error;
use super::file::{self, Line};
use super::interaction::{Interaction, Request};
use super::matching::MatchOn;

/// The state of a process. A forked child copies it; a lock that was held during the fork stays locked in the child, so
/// the child takes a new state then.
#[derive(Debug)]
pub struct Writer {
    current: ArcSwap<(u32, Mutex<WriterState>)>,
    start: u64,
    match_on: MatchOn,
}

#[derive(Clone, Debug, Default)]
struct WriterState {
    /// Length of the part of the file that was read.
    read: u64,
    /// Recordings in the file since the beginning, by the part of the request that is compared.
    in_file: HashMap<Request, usize>,
    /// Recordings of this process, by request, including those that were already in the file.
    own: HashMap<Request, usize>,
    has_replaced: bool,
}

impl Writer {
    /// `start` is the length of the file at the beginning: what comes later was recorded together with this process.
    pub fn new(start: u64, match_on: MatchOn) -> Self {
        let state = WriterState { read: start, ..WriterState::default() };
        Self { current: ArcSwap::from_pointee((std::process::id(), Mutex::new(state))), start, match_on }
    }

    fn current(&self) -> Arc<(u32, Mutex<WriterState>)> {
        let current = self.current.load_full();
        let process = std::process::id();
        if current.0 == process {
            return current;
        }
        let copied = current.1.try_lock().map(|state| state.clone());
        let state = copied.unwrap_or_else(|_| WriterState { read: self.start, ..WriterState::default() });
        // The parent compacts what it has replaced itself.
        let state = WriterState { has_replaced: false, ..state };
        let previous = self.current.compare_and_swap(&current, Arc::new((process, Mutex::new(state))));
        if previous.0 == process { Arc::clone(&previous) } else { self.current.load_full() }
    }

    /// Appends an interaction, unless it is in the file already; returns true if it was appended.
    pub fn write(&self, path: &Path, interaction: Interaction, replaces: bool) -> Result<bool, Error> {
        let current = self.current();
        let mut state = current.1.lock().unwrap_or_else(PoisonError::into_inner);
        let WriterState { read, in_file, own, has_replaced } = &mut *state;
        let request = self.match_on.key(&interaction.request);
        let count = own.entry(request.clone()).or_default();
        *count += 1;
        let count = *count;
        file::append(path, read, |added: &[Line]| {
            for line in added {
                let recorded = in_file.entry(self.match_on.key(&line.interaction.request)).or_default();
                *recorded = if line.replaces { 1 } else { *recorded + 1 };
            }
            let recorded = in_file.entry(request).or_default();
            if *recorded >= count {
                return None;
            }
            *recorded += 1;
            *has_replaced |= replaces;
            Some(Line { interaction, replaces }.to_string())
        })
    }

    /// Removes all interactions from the file.
    pub fn empty(&self, path: &Path) -> Result<(), Error> {
        let current = self.current();
        let mut state = current.1.lock().unwrap_or_else(PoisonError::into_inner);
        file::empty(path)?;
        *state = WriterState::default();
        Ok(())
    }

    pub fn compact(&self, path: &Path) -> Result<(), Error> {
        let current = self.current.load();
        if current.0 != std::process::id() {
            return Ok(());
        }
        let mut state = current.1.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut state.has_replaced) {
            state.read = file::compact(path, &self.match_on)?;
        }
        Ok(())
    }
}
