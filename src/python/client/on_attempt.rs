//! The `on_attempt` setting of a client, and which client owns its callable.

use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::client::Client;
use super::observer::{AttemptObserver, Callable};
use crate::client::{Environment, Error, Observer};
use crate::python::base::errors;

/// A derived client holds the client that owns the callable: the garbage collector must visit each reference once.
pub enum OnAttempt {
    None,
    Own(Arc<Callable>),
    DerivedFrom(Py<Client>),
}

impl OnAttempt {
    pub fn new(py: Python<'_>, given: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        match given {
            None => Ok(Self::None),
            Some(callable) if callable.is_callable() => Ok(Self::Own(Arc::new(Callable::new(callable.unbind())))),
            Some(_) => Err(errors::raise(py, &Error::config("on_attempt", "must be callable"))),
        }
    }

    pub fn callable(&self) -> Option<&Arc<Callable>> {
        match self {
            Self::None => None,
            Self::Own(callable) => Some(callable),
            Self::DerivedFrom(client) => client.get().on_attempt.callable(),
        }
    }

    /// The environment of a client whose attempts are reported.
    pub fn environment(&self) -> Environment {
        let observer: Arc<dyn Observer> = Arc::new(AttemptObserver(self.callable().cloned()));
        Environment { observer: Some(observer), ..Environment::default() }
    }

    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::None => Ok(()),
            Self::Own(callable) => callable.traverse(visit),
            Self::DerivedFrom(client) => visit.call(client),
        }
    }

    pub fn clear(&self) {
        if let Self::Own(callable) = self {
            callable.clear();
        }
    }
}
