//! Reads a list that changes while it is read: its *snapshot*, each record once, or an error. Requests go out and
//! responses come in; nothing here does I/O, so that every schedule of them can be tried. docs/completeness.md has the
//! argument why the result is right.
//!
//! The *offset* of a record is its position in the snapshot. The *drift* is the number of positions by which records have moved
//! since then: position = offset + drift. [`Evidence`](evidence::Evidence) finds the offset of a response by its count, by
//! its overlap with delivered records, or by adjacency.
//!
//! | Phase | Request | Response | Next phase |
//! |---|---|---|---|
//! | `First` | page 1 | the only page | `Done` |
//! | | | has a count | `Ahead` |
//! | | | has none | `Length`; the page is read again, and rows that were returned are skipped |
//! | | | has none, and reaches the result window | `Ahead`; the result is incomplete |
//! | | | has none, and a few pages are wanted | `Overlap`; `Ahead` only after `Length` |
//! | | | has none, and more pages are wanted, but not all | `Mark` |
//! | `Mark` | the last page that is wanted | has a record that is not on the first page and occurs once: the mark | `Ahead`, from page 1 again |
//! | | | has none | `Overlap` |
//! | `Length` | page 1 with one record: its number of pages is the length | one record | `Ahead`, from page 1 again |
//! | | | fewer records than the pages have | `First`, and then as without a length |
//! | | | no length | `First`, and then `Ahead` with an incomplete result; `Overlap`, if only the beginning is wanted |
//! | `Ahead` | next pages, several in flight | located, no drift | `Ahead` |
//! | | | located, drift | `Overlap`; with a count, only if most rows were delivered |
//! | | | ambiguous, lost, or no new rows | as in `Overlap` |
//! | | | page 1 after `Mark`, the same as before | `Ahead` |
//! | | | page 1 after `Mark`, below newer records | `Overlap`, without the mark |
//! | | | page 1 after `Mark`, without a record that was returned; or the mark at another offset | `Failed` |
//! | `Overlap` | page that begins before the next record | located, new rows | `Overlap`; `Ahead` once the list is stable |
//! | | | located, no new rows, drift | `Overlap` |
//! | | | located, no new rows, no drift | `Locate`, then `Single` |
//! | | | located, the end of a list of unknown length | `Done` |
//! | | | ambiguous | as if lost; `Length` instead of `Single` before a record of a growing list was returned |
//! | | | lost | `Locate`, then `Single` |
//! | | | lost, without a length | `Overlap` once more; then `Length` once, if only the beginning is wanted |
//! | `Locate` | the latest delivered record that differs from the one before it: also the length, and so the drift | it is there, or none is known | `Overlap`, then `Single` |
//! | | | it is not shown | `Overlap`, then `Locate` again |
//! | | | another one is there | `Failed` |
//! | `Single` | one record where the next one should be | at its offset by the length | `Overlap`; `Single` in a run of duplicates |
//! | | | at another offset | `Single` |
//! | `TailLook` | the record after the last one | none, or a returned one | `FinalLook` or `Done` |
//! | | | another record | `Failed` |
//! | `FinalLook` | a record of the first page, where it should be by the count | equal | the next anchor, or `Done` |
//! | | | different | `Failed` |
//! | | | not visible | `FinalLook` |
//! | any | | the result window, and the list can be bounded by height | `Overlap`; `Done` if the bounded list begins with unknown records |
//! | | | an error before a record of the snapshot was returned | `Length`, a few times |
//! | | | too many responses without new records, or the end before the length is reached | `Failed` |
//!
//! The snapshot of a list without a count is that of `Length`, without records newer than the first page. Until a record of
//! it was returned, `Length` may begin another one. It contains the records that were returned before, if there are any.
//!
//! The beginning of a list without a count may be read by adjacent pages once its mark is known: a record at its end, received
//! before all records but those of page 1, which is received again. All records before the mark were in the list when the mark
//! was received, so that they are all of them if they are as many as there were then: if the mark is at its offset.
//!
//! A list with a count ends with `FinalLook`, and so does one of which records were delivered in `Single`, or of which several
//! pages were in flight. So does one of which pages were located by adjacency, if only the beginning was read, or before its
//! returned records were found. A list without a count that has grown and ends with a full page ends with `TailLook`.

#![expect(clippy::module_inception, reason = "the file has the name of its type")]

mod checkpoint;
mod deliver;
mod delivered;
mod ending;
mod evidence;
mod growth;
mod list;
mod phases;
mod ranked;
mod reader;
mod requests;
mod resume;
mod snapshot;
mod spec;
#[cfg(test)]
mod tests;

pub use checkpoint::{Accepted, Cut, ListCheckpoint};
pub use list::ListReader;
pub use reader::SnapshotReader;
pub use spec::{End, FirstPage, ListKind, ListSpec, PageRequest, Purpose, Response, Rows, Tuning};
