//! The audit of a result. The reader of a list decides which rows are returned; the audit looks at the same responses with
//! rules of its own, and says what contradicts the request, the declaration or another response. It does no I/O. It shares
//! requests, responses and record keys with the reader, which tells it as well which rows are about to be returned, how long
//! the snapshot is, how far the list has moved, and how many rows a full page has (`ReaderState`, `End`): by these the audit finds
//! records again.
//!
//! | Check | Evidence | Consequence | File |
//! |---|---|---|---|
//! | arguments | a value that no record can have under the arguments | the row is dropped, with a reason | `arguments.rs` |
//! | echo | the number of another page, the name of another chain | `PaginationDriftError`; the rows are dropped | `numbers.rs` |
//! | record keys | a key that occurs once comes again; or comes again and no response shows it twice | `PaginationDriftError` | `list.rs`, `repeats.rs` |
//! | one block | two block hashes, or other records in the end, on the first page or on those after it; fewer than a discarded reading received | `PaginationDriftError` | `one_block.rs` |
//! | order | a page begins above the end of the page before it; pages of blocks rise and fall | `PaginationDriftError` | `heights.rs` |
//! | order | a record that a response showed above a returned one, where no two are equal | `PaginationDriftError` | `returned.rs` |
//! | order | a record above those that an earlier run returned | a reason | `heights.rs` |
//! | order | more records between two that an earlier run returned than it did | a reason | `distances.rs` |
//! | position | a list that is continued after another record than the one that was returned last | `PaginationDriftError` | `returned.rs` |
//! | forks | records of one height and two blocks, on one page or on two; records of one block hash with two heights | a reason | `forks.rs` |
//! | forks | a transaction at two heights | a reason; without block hashes `PaginationDriftError` | `forks.rs` |
//! | blocks | records of several look-ups or lists that give one height two blocks, or one block or transaction two heights | a reason | `blocks.rs` |
//! | lists | a record that one list shows, and another list of the set, which should have it, lacks | a reason | `in_common.rs` |
//! | lists | records of a list that is empty, in another list of the set | it is read again; a reason | `in_common.rs` |
//! | heights | blocks whose heights are not consecutive | a reason | `heights.rs` |
//! | end | a record below a returned one that was not returned, and is still there; one that only a discarded reading received | `PaginationDriftError` | `list/end_requests.rs`, `unreturned/below.rs`, `unreturned/first_rows.rs` |
//! | end | a record below a returned one of its chain that was not returned, and is not there any more | a reason | `list/end_requests.rs`, `unreturned/below.rs`, `unreturned/first_rows.rs` |
//! | end | a record that was not returned with the others of its block, also of those that an earlier run received or a discarded reading returned; and is still there | a reason; `PaginationDriftError` | `unreturned/in_blocks.rs` |
//! | end | fewer equal records than one response showed | `PaginationDriftError` | `unreturned/copies.rs` |
//! | end | the first record of a discarded reading, where others of its block were returned | `PaginationDriftError` | `returned.rs` |
//! | end | no record, although a response had some | `PaginationDriftError` | `list/conclusion.rs` |
//! | between | a record that was not returned, between two returned ones of other heights | `PaginationDriftError` | `list/end_requests.rs` |
//! | head | without block hashes: a record of the first page in its place, and below one of its height that was not there | `PaginationDriftError` | `growth.rs` |
//! | slices | a record of a height that a response showed before, and the list of the height has not | a reason | `list/conclusion.rs` |
//! | growth | a length that rises by more than the first records move down | a reason | `growth.rs` |
//! | ends | a partition that does not begin or end with the records at its cuts | `PaginationDriftError` | `list.rs` |
//! | numbers | records on a page beyond the last; fewer records than each response says that there are | `PaginationDriftError` | `numbers.rs`, `lengths.rs` |
//! | chain | a block below a returned one that is not the one that was returned | `PaginationDriftError` | `heights.rs` |
//! | short pages | a first page with fewer records than it says, and newer ones later; a page of the beginning of a ranked list that has fewer than another one | `PaginationDriftError` | `short_pages.rs` |
//! | short pages | of a beginning that has pages with fewer records than they say: another record in place of the last one | `PaginationDriftError` | `short_pages.rs` |
//! | small pages | records after the last page, or another length, where pages are smaller than requested | `PaginationDriftError` | `small_pages.rs` |
//! | places | records that do not follow each other by the count, or are in the place of a returned one; a count that was not confirmed in the end | `PaginationDriftError` | `counted_places.rs` |

mod arguments;
mod blocks;
mod checkpoint;
mod counted_places;
mod distances;
mod forks;
mod growth;
mod heights;
mod in_common;
mod known_keys;
mod latest;
mod lengths;
mod list;
mod numbers;
mod one_block;
mod pages;
mod repeats;
mod returned;
mod returned_facts;
mod short_pages;
mod small_pages;
mod subject;
#[cfg(test)]
mod tests;
mod unreturned;

pub use arguments::Arguments;
pub use blocks::{Blocks, Source};
pub use checkpoint::{AuditCheckpoint, AuditedPage};
pub use in_common::{InCommon, Reach, SharedBlock};
pub use latest::Latest;
pub use list::ListAudit;
pub use numbers::check_count;
pub use pages::{page_of_both, records_before};
pub use subject::{AcceptedRows, End, ReaderState, Subject};
