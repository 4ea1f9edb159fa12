//! From one GET to the complete result: which requests a call needs, their pages in order, and what is missing.

mod bind;
mod cursor;
mod explain;
mod list;
mod pace;
mod pages;
mod partial;
mod partition;
mod plan;
mod records;
mod report;
mod run;
mod seams;

pub use bind::{Arg, Options};
pub use cursor::{Cursor, Place};
pub use explain::Plan;
pub use pages::{DeliveredPage, Pages};
pub use partial::Partial;
pub use plan::Query;
pub use records::{Batch, Batches, Records};
pub use report::{Outlook, Report, SharedReport};
pub use seams::identities;
