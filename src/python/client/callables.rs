//! The settings of a client that are callables, and which client owns them.

use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::credentials::CallableSource;
use super::observer::{AttemptObserver, Callable};
use crate::client::{CredentialSource, Environment, Error, Observer};
use crate::python::base::arguments;

/// A derived client holds the client that owns the callable: the garbage collector must visit each reference once.
pub enum CallableSetting {
    None,
    Own(Arc<Callable>),
    Derived { owner: Py<PyAny>, callable: Option<Arc<Callable>> },
}

impl CallableSetting {
    pub fn new(setting: &'static str, given: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        match given {
            None => Ok(Self::None),
            Some(callable) if callable.is_callable() => Ok(Self::Own(Arc::new(Callable::new(callable.unbind())))),
            // Only the class is shown: the value of `credentials` may be a secret.
            Some(given) => {
                let problem = format!("must be callable; got {}", arguments::class_of(&given));
                Err(Error::config(setting, problem).into())
            }
        }
    }

    /// The setting of a client that is derived from `owner`, whose setting this is.
    pub fn derived(&self, owner: Py<PyAny>) -> Self {
        Self::Derived { owner, callable: self.callable().cloned() }
    }

    pub fn callable(&self) -> Option<&Arc<Callable>> {
        match self {
            Self::None => None,
            Self::Own(callable) => Some(callable),
            Self::Derived { callable, .. } => callable.as_ref(),
        }
    }

    /// The callable, unless its client was collected.
    pub fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.callable()?.get(py)
    }

    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::None => Ok(()),
            Self::Own(callable) => callable.traverse(visit),
            Self::Derived { owner, .. } => visit.call(owner),
        }
    }

    pub fn clear(&self) {
        if let Self::Own(callable) = self {
            callable.clear();
        }
    }
}

/// The callables of a client.
pub struct Callables {
    pub on_attempt: CallableSetting,
    pub credentials: CallableSetting,
}

impl Callables {
    /// The callables of a client that is derived from `owner`, to which these belong.
    pub fn derived(&self, py: Python<'_>, owner: &Py<PyAny>) -> Self {
        Self {
            on_attempt: self.on_attempt.derived(owner.clone_ref(py)),
            credentials: self.credentials.derived(owner.clone_ref(py)),
        }
    }

    /// The environment of a client with these callables, whose deployment has signatures or not.
    pub fn environment(&self, py: Python<'_>, signed: bool) -> PyResult<Environment> {
        let observer: Arc<dyn Observer> = Arc::new(AttemptObserver(self.on_attempt.callable().cloned()));
        let source = self.credentials.callable().map(|callable| CallableSource::new(py, callable.clone(), signed));
        let credentials = source.map(|source| Arc::new(source) as Arc<dyn CredentialSource>);
        Ok(Environment { observer: Some(observer), credentials, ..Environment::default() })
    }

    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.on_attempt.traverse(visit)?;
        self.credentials.traverse(visit)
    }

    pub fn clear(&self) {
        self.on_attempt.clear();
        self.credentials.clear();
    }
}
