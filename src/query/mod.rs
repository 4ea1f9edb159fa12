//! From one GET to the complete result: which requests a call needs, their pages in order, and what is missing.

mod bind;
mod cursor;
mod list;
mod pace;
mod pages;
mod plan;
mod records;
mod report;
mod run;
mod seams;

pub use bind::{Arg, Options};
pub use cursor::{Cursor, Place};
pub use pages::{DeliveredPage, Pages};
pub use plan::Query;
pub use records::{Batch, Batches, Records, RecordsBuilder};
pub use report::{Report, SharedReport};
