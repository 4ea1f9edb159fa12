//! `SourceReader`: the process whose task reads a source. A child that is forked meanwhile must not wait for that task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

use crate::process;
use crate::python::base::errors;

/// Process of the task that reads, or 0.
#[derive(Clone, Default)]
pub struct SourceReader(Arc<AtomicU32>);

impl SourceReader {
    /// Fails in a child of the process that reads. `remedy` says what continues the iterator.
    pub fn check(&self, py: Python<'_>, remedy: &str) -> PyResult<()> {
        if [0, process::id()].contains(&self.0.load(Ordering::Acquire)) {
            return Ok(());
        }
        let problem =
            format!("another thread was reading this iterator when the process was forked; {remedy} continues it");
        Err(errors::context(py, &problem))
    }

    /// Marks the source as read by this process, until the mark is dropped.
    pub fn mark(&self) -> ReaderMark {
        self.0.store(process::id(), Ordering::Release);
        ReaderMark(self.0.clone())
    }
}

pub struct ReaderMark(Arc<AtomicU32>);

impl Drop for ReaderMark {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}
