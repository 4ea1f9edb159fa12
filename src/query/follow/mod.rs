//! Follows a list that grows at its head: each record once, oldest first, whole heights only. Requests go out and rows
//! come in; nothing here does I/O, so that every schedule of them can be tried.
//!
//! A *round* reads the list from its newest page down to what is known, as of one instant, or ranges of heights where
//! that is not possible. [`FollowState`] holds a fingerprint of each of the last delivered heights; a round compares all
//! heights that it reads. With [`Changes::Held`], heights within `settle` of the head are held back and a change of a
//! delivered height is an error; with [`Changes::Undone`], heights are delivered as soon as a higher one is known, those
//! that were within `settle` of the head when they were read last are read again in every round that finds something new,
//! and a change is an [`EventKind::Undo`].
//!
//! | Phase | Request | Response | Next phase |
//! |---|---|---|---|
//! | `Resting` | `Wait`, unless the interval has passed | heights are held back, only the head of the chain can show that they are whole, and the last round requested the list | `HeadFirst` |
//! | | | only the head of the chain can show it, in the first round | `Head` |
//! | | | otherwise | `Newest` |
//! | `HeadFirst` | `Head` | no height became deliverable | `Resting` |
//! | | | otherwise | `Newest` |
//! | `Head` | `Head` | the newest block | `Newest` |
//! | `Newest` | `Newest` | no records, although a response showed some that no reorganization removes | the list changed while it was read |
//! | | | no records, although there were some: in a list that drops none, or settled ones that are too young to have left it | the list changed while it was read; after three such responses in a row, a reorganization |
//! | | | no records, and known ones are missing that are too young to have left the list | `Head`, then as after `ReadDown` |
//! | | | no records otherwise | `Resting` |
//! | | | the same page as in the last round, and no height became deliverable | `Resting` |
//! | | | something new; held back, and the head was not requested in this round | `Head` |
//! | | | reaches down to what is known | as after `ReadDown` |
//! | | | reading on takes more requests than reading ranges, or holds too many records | `Range` |
//! | | | otherwise | `ReadDown` |
//! | `ReadDown` | `Older` | the next page | `ReadDown` |
//! | | | reaches down to what is known, or to a height from which on known heights changed | `Verify` |
//! | | | the list ends at the result window, or holds too many records | `Range`, height by height only up to where another reading down reaches; `Failed` if the list cannot be read by height; `Verify` if ranges are lists, which end where the rows of this one begin |
//! | `Oldest` | `Oldest` | the height of the first block, where ranges begin at the beginning | `Range` |
//! | `OldestFirst` | `Oldest` | the height of the first block, where the first page shows that reading down cannot reach it | as after `ReadDown` |
//! | `Verify` | `Verify` | the pages are of one instant, by the count of the list | `Resting`, with events; `Failed` if known heights changed and changes are not undone |
//! | | | the pages are of one instant, and ranges follow | `Range` |
//! | | | the list has no count | `Recheck` |
//! | `Recheck` | `Recheck` | the first records of the reading are still there | as after `Verify` |
//! | | | they are not on the pages so far | `Recheck` |
//! | | | they were replaced | the list changed while it was read |
//! | `Range` | `Range` | unchanged where it was known; of fewer heights, where it was cut | `Range`, with an event; `Resting` after the last one |
//! | | | too many records | `Range`, half of it |
//! | | | known heights changed | `Fork`, or `Failed` if changes are not undone |
//! | `Fork` | `Range` of all that is remembered | changed from a height on | `Resting`, with `Undo` |
//! | any | | a height that changed is below all that is remembered | `Failed` |
//! | any | | the list changed while it was read | `Resting`: the round is repeated |
//! | any, with events | | the round lacks records that a response of it or of a discarded round showed | `Resting`: the round is repeated |
//! | any | | a request failed | the phase it was in: it is sent again |
//! | `Resting` | | caught up, with [`Poll::Once`] | `Finished` |

mod discarded;
mod fingerprint;
mod first_records;
mod follower;
mod pace;
mod ranges;
mod reading;
mod rounds;
mod spec;
mod state;
#[cfg(test)]
mod tests;

pub use discarded::Shown;
pub use fingerprint::{RowFacts, facts, page_hash};
pub use follower::Follower;
pub use spec::{Event, EventKind, FollowSpec, Forgets, HeadSource, Poll, Ranges, Request, RoundProof, Start, Stop};
pub use state::{Beginning, ChainHead, Changes, ExportOverlap, FollowState, OldestKnown};
