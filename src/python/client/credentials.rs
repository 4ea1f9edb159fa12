//! `credentials`: a callable of the caller that issues credentials. It may wait for a network, so that it runs in a thread of
//! its own, never in one of the core.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use pyo3::prelude::*;
use tokio::sync::oneshot;

use super::observer::Callable;
use crate::client::{CredentialSource, Credentials, Error, Issued, Secret};
use crate::message::Message;
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

impl CallableSource {
    pub fn new(py: Python<'_>, callable: Arc<Callable>, signed: bool) -> PyResult<Self> {
        let hash = callable.get(py).map(|callable| callable.bind(py).hash()).transpose()?.unwrap_or_default();
        // Equal callables issue the credentials of one account.
        Ok(Self { callable, account: format!("callable {hash}"), signed })
    }
}

impl CredentialSource for CallableSource {
    fn issue(&self) -> BoxFuture<'static, Result<Issued, Error>> {
        let callable = self.callable.clone();
        let signed = self.signed;
        let (answer, issued) = oneshot::channel();
        Box::pin(async move {
            let thread = thread::Builder::new().name("chainframe-credentials".into()).spawn(move || {
                let Some(_permit) = finalize::enter() else { return };
                Python::try_attach(|py| drop(answer.send(call(py, &callable, signed))));
            });
            thread.map_err(|error| problem(format!("could not be asked for: {error}")))?;
            match issued.await {
                Ok(issued) => issued,
                Err(_) => Err(problem("could not be asked for: the interpreter is shutting down")),
            }
        })
    }

    fn account(&self) -> &str {
        &self.account
    }
}

/// The text of an exception may have a secret in it, and is not repeated.
fn call(py: Python<'_>, callable: &Callable, signed: bool) -> Result<Issued, Error> {
    let callable = callable.get(py).ok_or_else(|| problem("are those of a client that was collected"))?;
    let issued = callable.call0(py).map_err(|error| {
        let name = type_name(error.value(py));
        problem(format!("raised {name}: no request was sent; call it yourself to see why"))
    })?;
    let issued = issued.bind(py);
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
