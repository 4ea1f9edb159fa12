//! Results of a run: pages, records, batches, the report. Nothing here sends requests.

mod batches;
mod entries;
mod keys;
mod page;
mod partial;
mod records;
mod report;
mod seen;
mod verdicts;

pub use batches::{Batch, Batches};
pub use entries::Entries;
pub use keys::record_keys;
pub(super) use keys::{KeyedRows, block_keys, content_keys};
pub(super) use page::SetPosition;
pub use page::{Checkpoint, Page};
pub(super) use page::{LatestCheckpoint, PageCheckpoint, Source};
pub use partial::Partial;
pub(super) use partial::PartialMark;
pub use records::Records;
pub(super) use records::RecordsBuilder;
pub use report::{CacheUse, Completeness, MembersReport, Progress, Report, SharedReport};
pub(super) use seen::{ANY_LIST, Seen, SeenLog};
pub use verdicts::{Verdict, Verdicts};
