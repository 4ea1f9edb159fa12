//! The local service: an HTTP server on loopback, or a simulation of one in virtual time, that serves the whole API from a synthetic chain in SQLite.
//! It checks signatures, enforces limits and injects faults. For tests, demos and offline work. It does not depend on the
//! client, and shares only the declared API with it. Loaded or recorded data replaces the synthetic chain.

mod check;
mod connection;
mod database;
mod error_response;
mod fault;
mod faults;
mod filter;
mod kept_chains;
mod listing;
mod loader;
mod parameters;
mod quirk;
mod quirks;
mod render;
mod reply;
mod request_log;
mod rewrite;
mod routes;
mod schema;
mod server;
mod settings;
mod simulated;
mod store;
mod synthesis;
mod throttle;
mod user_data;

pub use fault::{Fault, FaultKind, Unreachable, read as read_faults, read_one as read_fault};
pub use quirk::{Quirk, read as read_quirks};
pub use request_log::RequestEntry;
#[cfg(test)]
pub use routes::in_process::{InProcess, Reply};
pub use server::Service;
pub use settings::Respond;
pub use settings::{Compression, Credentials, Delay, LoadError, ServiceError, Settings};
pub use simulated::{NoResponse, Simulated};
