//! The local service: a real HTTP server on loopback that answers the whole interface from a synthetic chain in SQLite.
//! It checks signatures, enforces limits and can misbehave on demand. For tests, demos and offline work; it knows
//! nothing of the client, and shares only the declared interface with it. A user's own records and recorded answers may
//! take the made-up chain's place.

mod answer;
mod check;
mod connection;
mod faults;
mod filter;
mod journal;
mod listing;
mod own;
mod parameters;
mod refusal;
mod routes;
mod schema;
mod server;
mod settings;
mod store;
mod synthesis;
mod throttle;

pub use faults::{Fault, FaultKind};
pub use journal::RequestEntry;
pub use server::Service;
pub use settings::{Credentials, LoadError, ServiceError, Settings};
