//! `credentials`: a callable of the caller that issues credentials. It may wait for a network, so that it runs in a thread of
//! its own, never in one of the core.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use pyo3::prelude::*;
use tokio::sync::oneshot;

use super::observer::Callable;
use crate::client::{CredentialSource, Credentials, Error, Issued, Secret};
use crate::message::Message;
use crate::process;
use crate::python::base::finalize;

const SETTING: &str = "credentials";
/// In place of secrets that no request needs.
pub(super) const NO_CREDENTIALS: &str = "no-credentials-for-a-replay";

pub struct CallableSource {
    callable: Arc<Callable>,
    account: String,
    /// True if the deployment signs requests, for which it needs all three secrets.
    signed: bool,
}

thread_local! {
    /// The callable that this thread runs.
    static ISSUING: Cell<*const Callable> = const { Cell::new(std::ptr::null()) };
}

impl CallableSource {
    pub fn new(py: Python<'_>, callable: Arc<Callable>, signed: bool) -> Self {
        let given = callable.get(py);
        let hash = given.as_ref().and_then(|given| given.bind(py).hash().ok());
        // Equal callables issue the credentials of one account. One without a hash is equal to itself only.
        let account = hash.map_or_else(|| format!("callable at {:p}", callable), |hash| format!("callable {hash}"));
        Self { callable, account, signed }
    }
}

impl CredentialSource for CallableSource {
    fn issue(&self) -> BoxFuture<'static, Result<Issued, Error>> {
        let (sender, issued) = oneshot::channel();
        let answer = Answer { callable: self.callable.clone(), signed: self.signed, sender: Mutex::new(Some(sender)) };
        Box::pin(async move {
            let thread = thread::Builder::new().name("chainframe-credentials".into()).spawn(move || {
                let Some(_permit) = finalize::enter() else { return };
                Python::try_attach(|py| answer.start(py));
            });
            thread.map_err(|error| problem(format!("could not be asked for: {error}")))?;
            match issued.await {
                Ok(issued) => issued,
                Err(_) => Err(problem("could not be asked for: the interpreter is shutting down")),
            }
        })
    }

    fn is_issuing_here(&self) -> bool {
        ISSUING.get() == Arc::as_ptr(&self.callable)
    }

    fn account(&self) -> &str {
        &self.account
    }
}

/// Receives what the callable issues, in the thread that runs it.
#[pyclass(frozen)]
struct Answer {
    callable: Arc<Callable>,
    signed: bool,
    sender: Mutex<Option<oneshot::Sender<Result<Issued, Error>>>>,
}

impl Answer {
    /// Has the callable run in a thread that Python starts: one that waits in it when the interpreter finalizes must have no
    /// frame of this module, and no one has to wait for it.
    fn start(self, py: Python<'_>) {
        let Some(callable) = self.callable.get(py) else {
            return self.send(Err(problem("are those of a client that was collected")));
        };
        let started = Bound::new(py, self).and_then(|answer| {
            let started = py.import("chainframe._credentials")?.call_method1("start", (callable, &answer));
            if let Err(error) = &started {
                answer.get().send(Err(problem(format!("could not be asked for: {}", type_name(error.value(py))))));
            }
            started.map(drop)
        });
        drop(started);
    }

    fn send(&self, issued: Result<Issued, Error>) {
        let sender = process::lock(&self.sender).take();
        // The request may have been given up.
        let _ = sender.map(|sender| sender.send(issued));
    }
}

#[pymethods]
impl Answer {
    fn begin(&self) {
        ISSUING.set(Arc::as_ptr(&self.callable));
    }

    fn issued(&self, issued: &Bound<'_, PyAny>) {
        self.send(checked(issued, self.signed));
    }

    /// The text of an exception may have a secret in it, and is not repeated.
    fn failed(&self, name: &str) {
        self.send(Err(problem(format!("raised {name}: no request was sent; call it yourself to see why"))));
    }
}

fn checked(issued: &Bound<'_, PyAny>, signed: bool) -> Result<Issued, Error> {
    let py = issued.py();
    let class = py.import("chainframe._credentials").and_then(|module| module.getattr("Credentials"));
    if !class.is_ok_and(|class| issued.is_instance(&class).unwrap_or(false)) {
        return Err(problem(format!("must return chainframe.Credentials; got {}", type_name(issued))));
    }
    read(issued, signed).map_err(|error| {
        let name = type_name(error.value(py));
        problem(format!("must return chainframe.Credentials of strings: {name}"))
    })
}

fn problem(problem: impl Into<Message>) -> Error {
    Error::config(SETTING, problem)
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or("?".into(), |name| name.to_string())
}

/// The members of a `Credentials`. A deployment without signatures needs its key alone.
fn read(issued: &Bound<'_, PyAny>, signed: bool) -> PyResult<Issued> {
    let api_key: String = issued.getattr("api_key")?.extract()?;
    let secret_key: String = issued.getattr("secret_key")?.extract()?;
    let passphrase: String = issued.getattr("passphrase")?.extract()?;
    let credentials = Credentials {
        api_key: Secret::new(api_key),
        secret_key: Secret::new(if signed { secret_key } else { or_none(secret_key) }),
        passphrase: Secret::new(if signed { passphrase } else { or_none(passphrase) }),
    };
    let expires: Option<f64> = issued.getattr("_expires")?.extract()?;
    Ok(Issued { credentials, expires: expires.map(time_of_epoch) })
}

fn or_none(secret: String) -> String {
    if secret.is_empty() { NO_CREDENTIALS.into() } else { secret }
}

/// The time of epoch seconds. One that is out of range is in the past.
fn time_of_epoch(seconds: f64) -> SystemTime {
    let since = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
}
