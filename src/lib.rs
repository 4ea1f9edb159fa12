//! On-chain data, every record exactly once with its exact value.
//!
//! `interface` declares the API. `decode` turns the bytes of a response into `columns`. `client` sends one signed GET, with
//! retries, or replays it from a `cassette`. `query` reads complete results, of which the `cache` keeps what cannot change.
//! `events` decodes event logs. `display` draws results for notebooks and terminals. `service` is a local server of the API,
//! or its simulation in `virtual_time`, and `python` has the Python bindings.

pub mod cache;
pub mod cassette;
pub mod client;
pub mod columns;
pub mod decode;
pub mod display;
#[cfg(feature = "events")]
pub mod events;
mod files;
pub mod interface;
pub mod message;
pub mod planted;
pub mod process;
#[cfg(feature = "python")]
#[expect(clippy::doc_lazy_continuation, reason = "docstrings are plain text for help(), with examples")]
mod python;
pub mod query;
mod redaction;
#[cfg(feature = "service")]
pub mod service;
mod virtual_time;

// The tests of `tests/rust` are modules of the crate, which is compiled once for all tests. They use what is public.
#[cfg(test)]
extern crate self as chainframe;
#[cfg(test)]
#[path = "../tests/rust/mutations.rs"]
mod mutations;
#[cfg(all(test, feature = "service"))]
#[path = "../tests/rust/service.rs"]
mod over_http;
#[cfg(test)]
#[path = "../tests/rust/payloads.rs"]
mod payloads;
#[cfg(all(test, feature = "service", feature = "planted-bugs"))]
#[path = "../tests/rust/simulation.rs"]
mod simulation;
