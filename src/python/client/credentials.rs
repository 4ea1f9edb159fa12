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
        let (callable, signed, (answer, issued)) = (self.callable.clone(), self.signed, oneshot::channel());
        Box::pin(async move {
            let ask = move || {
                let Some(_permit) = finalize::enter() else { return };
                Python::try_attach(|py| drop(answer.send(call(py, &callable, signed))));
            };
            thread::Builder::new()
                .name("chainframe-credentials".into())
                .spawn(ask)
                .map_err(|error| Error::config(SETTING, format!("could not be asked for: {error}")))?;
            let ended = |_| Err(Error::config(SETTING, "could not be asked for: the interpreter is shutting down"));
            issued.await.unwrap_or_else(ended)
        })
    }

    fn account(&self) -> &str {
        &self.account
    }
}

/// The text of an exception may have a secret in it, and is not repeated.
fn call(py: Python<'_>, callable: &Callable, signed: bool) -> Result<Issued, Error> {
    let problem = |problem: String| Error::config(SETTING, problem);
    let name = |object: &Bound<'_, PyAny>| object.get_type().name().map_or("?".into(), |name| name.to_string());
    let callable = callable.get(py).ok_or_else(|| problem("are those of a client that was collected".into()))?;
    let issued = callable.call0(py).map_err(|error| {
        problem(format!("raised {}: no request was sent; call it yourself to see why", name(error.value(py))))
    })?;
    let issued = issued.bind(py);
    let class = py.import("chainframe._credentials").and_then(|module| module.getattr("Credentials"));
    if !class.is_ok_and(|class| issued.is_instance(&class).unwrap_or(false)) {
        return Err(problem(format!("must return chainframe.Credentials; got {}", name(issued))));
    }
    let secret = |member: &str| -> PyResult<Secret> {
        let text: String = issued.getattr(member)?.extract()?;
        let is_needed = signed || member == "api_key";
        Ok(Secret::new(if text.is_empty() && !is_needed { NO_CREDENTIALS.into() } else { text }))
    };
    let read = || -> PyResult<Issued> {
        let credentials = Credentials {
            api_key: secret("api_key")?,
            secret_key: secret("secret_key")?,
            passphrase: secret("passphrase")?,
        };
        let expires: Option<f64> = issued.getattr("_expires")?.extract()?;
        let at = |seconds: f64| {
            Duration::try_from_secs_f64(seconds).ok().and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since))
        };
        Ok(Issued { credentials, expires: expires.map(|seconds| at(seconds).unwrap_or(SystemTime::UNIX_EPOCH)) })
    };
    read().map_err(|error| problem(format!("must return chainframe.Credentials of strings: {}", name(error.value(py)))))
}
