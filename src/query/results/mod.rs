//! Results of a run: pages, records, batches, the report. Nothing here sends requests.

mod batches;
mod cursor;
mod division;
mod entries;
mod key_hasher;
mod keys;
mod members;
mod page;
mod partial;
mod records;
mod report;
mod sealed;
mod search_state;
mod seen;
mod set_cursor;
mod shared_report;
mod verdicts;

pub use batches::{Batch, Batches};
pub use cursor::Cursor;
pub(super) use cursor::deployment;
pub(super) use division::Division;
pub use entries::Entries;
pub(super) use keys::{KeyedRows, block_keys, content_keys, transaction_keys};
pub use keys::{key_of_all, record_keys};
pub(super) use page::Resume;
pub use page::{Checkpoint, Page};
pub use partial::Partial;
pub(super) use partial::SavedPartial;
pub use records::{Records, RecordsBuilder};
pub use report::{CacheUse, Completeness, Progress, Report};
pub(super) use sealed::Sealed;
pub(super) use search_state::{Floor, SearchState, ShownBlock, TimePosition};
pub(super) use seen::{ANY_LIST, SeenLog, SeenRecord};
pub(super) use set_cursor::{SetCursor, bits_of};
pub use shared_report::SharedReport;
pub use verdicts::{Verdict, Verdicts};
