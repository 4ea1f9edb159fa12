//! On-chain data, every record exactly once with its exact value.
//!
//! `interface` says what the service is; `decode` turns an answer's bytes into `columns`; `client` makes one signed GET
//! that survives the network, or plays it from a `cassette`; `query` makes the complete result of it. `service` is a real
//! server of the same interface, and `python` the only place that knows Python.

pub mod cassette;
pub mod client;
pub mod columns;
pub mod decode;
pub mod interface;
pub mod message;
pub mod planted;
#[cfg(feature = "python")]
#[expect(clippy::doc_lazy_continuation, reason = "docstrings are plain text for help(), with examples")]
mod python;
pub mod query;
#[cfg(feature = "service")]
pub mod service;
