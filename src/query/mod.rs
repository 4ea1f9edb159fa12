//! The complete result of a call from single GET requests. Modules import only from those before them: `hashed`, `request`,
//! `snapshot`, `audit`, `evidence`, `results`, `follow`, `execution`.

mod audit;
mod evidence;
mod execution;
mod follow;
mod hashed;
mod request;
mod results;
mod snapshot;

pub use evidence::{Evidence, Finding, Part};
pub use execution::{
    Bounds, Estimate, FollowCursor, FollowEvent, FollowItem, FollowOptions, FollowRun, FollowStart, Lag, QueryStart,
    Run, RunObserver, collect, collecting, height_at,
};
pub use follow::{Changes, OldestKnown, Poll};
pub use request::{Arg, GrowthOrder, Options, Query, parse_time, sent_value};
pub use results::{
    Batch, Batches, CacheUse, Checkpoint, Completeness, Cursor, Entries, FileFill, FileLimits, Page, Partial, Progress,
    Records, RecordsBuilder, Report, SharedReport, Verdict, Verdicts, record_keys,
};
