//! Reads a list that changes while it is read: its *snapshot*, each record once, or an error. Requests go out and
//! responses come in; nothing here does I/O, so that every schedule of them can be tried. docs/completeness.md has the
//! argument why the result is right.
//!
//! The *offset* of a record is its position in the snapshot. The *drift* is the number of positions by which records have moved
//! since then: position = offset + drift.
//!
//! | Kind of list | Reader | Offset of a response |
//! |---|---|---|
//! | does not change | [`BlockReader`](block::BlockReader) | its position |
//! | grows, and reports its length | [`CountedReader`](counted::CountedReader) | by the length: counted from its end |
//! | grows, and does not report its length | [`UncountedReader`](uncounted::UncountedReader) | by overlap with delivered records, or by adjacency |
//! | changes in any way | [`RankedReader`](ranked::RankedReader) | none: records are known by their keys |
//!
//! [`ListReader`] is one of them, by the endpoint and the arguments. A list that may grow is first taken to report no length;
//! its first response shows whether it does. Each reader has a table of its phases, requests and responses at the head of its
//! file. [`ListState`](state::ListState) has what all of them know.

#![expect(clippy::module_inception, reason = "the file has the name of its type")]

mod block;
mod checkpoint;
mod counted;
mod delivered;
mod growth;
mod list;
mod ranked;
mod reader;
mod snapshot;
mod spec;
mod state;
#[cfg(test)]
mod tests;
mod uncounted;

pub use checkpoint::{Accepted, Cut, ListCheckpoint};
pub use list::ListReader;
pub use spec::{End, FirstPage, ListKind, ListSpec, PageRequest, Purpose, Response, Rows, Tuning};
