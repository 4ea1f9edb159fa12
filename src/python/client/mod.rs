//! The client and its settings, cassettes, and the local server.

#![expect(clippy::module_inception, reason = "the class has the name of its layer")]

pub mod cache;
pub mod callables;
pub mod calls;
pub mod cassette;
pub mod client;
pub mod credentials;
pub mod deployment;
mod display;
pub mod evidence;
mod height_at;
pub mod internal;
mod local_adjustable;
pub mod local_server;
pub mod observer;
pub mod origin;
pub mod pickle;
pub mod rate_limit_state;
pub mod recorded_response;
mod settings;
pub mod shared_cassette;
mod simulation;
pub mod usage;
