//! The `on_attempt` setting of a client, and which client owns its callable.

use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::observer::{AttemptObserver, Callable};
use crate::client::{Environment, Error, Observer};
use crate::python::base::errors;

/// A derived client holds the client that owns the callable: the garbage collector must visit each reference once.
pub enum OnAttempt {
    None,
    Own(Arc<Callable>),
    Derived { owner: Py<PyAny>, callable: Option<Arc<Callable>> },
}

impl OnAttempt {
    pub fn new(py: Python<'_>, given: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        match given {
            None => Ok(Self::None),
            Some(callable) if callable.is_callable() => Ok(Self::Own(Arc::new(Callable::new(callable.unbind())))),
            Some(_) => Err(errors::raise(py, &Error::config("on_attempt", "must be callable"))),
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

    /// The environment of a client whose attempts are reported.
    pub fn environment(&self) -> Environment {
        let observer: Arc<dyn Observer> = Arc::new(AttemptObserver(self.callable().cloned()));
        Environment { observer: Some(observer), ..Environment::default() }
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
