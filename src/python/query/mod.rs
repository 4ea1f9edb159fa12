//! Queries and the ways to read them.

#![expect(clippy::module_inception, reason = "the class has the name of its layer")]

pub mod collect;
pub mod export;
pub mod feed;
pub mod follow;
pub mod follow_buffer;
pub mod internals;
pub mod iterator;
pub mod last_run;
pub mod observed_run;
pub mod part_buffer;
pub mod positions;
pub mod progress;
pub mod query;
pub mod reader;
pub mod run_source;
pub mod stream;
