//! Threads that call Python for the runtime, so that its workers never wait for the interpreter.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use pyo3::prelude::*;

use super::finalize;
use crate::process::PerProcess;

type Job = Box<dyn FnOnce(Python<'_>) + Send>;

/// Settles asyncio futures.
pub static FUTURES: Dispatcher = Dispatcher::new("chainframe-asyncio");
/// Runs logging handlers.
pub static LOGS: Dispatcher = Dispatcher::new("chainframe-log");

/// One thread of each process that runs jobs in the order in which they were sent.
pub struct Dispatcher {
    name: &'static str,
    jobs: PerProcess<Sender<Job>>,
}

impl Dispatcher {
    const fn new(name: &'static str) -> Self {
        Self { name, jobs: PerProcess::new() }
    }

    /// Starts the thread unless it runs.
    pub fn start(&self) -> io::Result<Sender<Job>> {
        self.jobs.get(|| {
            let (sender, jobs) = channel();
            thread::Builder::new().name(self.name.into()).spawn(move || run(&jobs))?;
            Ok(sender)
        })
    }

    /// Runs `job` unless the interpreter is finalizing. False if no thread could be started for it.
    pub fn send(&self, job: impl FnOnce(Python<'_>) + Send + 'static) -> bool {
        self.start().is_ok_and(|jobs| jobs.send(Box::new(job)).is_ok())
    }
}

fn run(jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        let Some(_permit) = finalize::enter() else { return };
        Python::try_attach(|py| {
            let mut next = Some(job);
            while let Some(job) = next {
                // The panic's message is on stderr; later jobs still run.
                let _ = catch_unwind(AssertUnwindSafe(|| job(py)));
                next = if finalize::is_closing() { None } else { jobs.try_recv().ok() };
            }
        });
    }
}
