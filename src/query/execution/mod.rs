//! Runs of a query: requests in flight, pages in order, cursors, estimates and partitions.

mod bounds;
mod counted_range;
mod cursor;
mod estimate;
mod follow;
mod follow_cursor;
mod follow_plan;
mod height_search;
mod heights;
mod observed;
mod pages;
mod partitions;
mod progress;
mod reasons;
mod recorded_range;
mod reread;
mod resolve;
mod run;
mod sample;
mod selection;
mod set;
mod set_cursor;
mod slice_fetcher;
mod stable;
mod unique;
mod walk;

pub use bounds::Bounds;
pub use cursor::Cursor;
pub use estimate::Estimate;
pub use follow::{Follow, FollowEvent, FollowItem};
pub use follow_cursor::FollowCursor;
pub use follow_plan::{FollowOptions, FollowStart};
pub use heights::height_at;
pub use observed::RunObserver;
pub use pages::Pages;
pub use run::Run;
