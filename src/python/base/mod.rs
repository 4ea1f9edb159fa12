//! Conversions, errors, waiting and logging, which everything else builds on.

pub mod arguments;
pub mod asyncio;
pub mod at_caller;
mod awaited_only;
pub mod block_on;
pub mod convert;
pub mod declaration;
pub mod dispatch;
pub mod errors;
pub mod finalize;
pub mod future_awaiter;
pub mod given;
pub mod hint;
pub mod log;
pub mod once;
pub mod paths;
pub mod pickle;
pub mod query_arguments;
pub mod telemetry;

use std::hash::{DefaultHasher, Hash, Hasher as _};

use pyo3::prelude::*;
use pyo3::types::PyType;

/// The hash of what equal objects have in common.
pub fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// `class[item]`, as `typing` has it.
pub fn generic(class: &Bound<'_, PyType>, item: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let alias = class.py().import("types")?.getattr("GenericAlias")?;
    alias.call1((class, item)).map(Bound::unbind)
}
