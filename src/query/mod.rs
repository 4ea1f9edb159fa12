//! From one GET to the complete result: which requests a call needs, their pages in order, and what is missing.

mod bind;
mod pages;
mod plan;
mod records;
mod report;
mod run;

pub use bind::{Arg, Options};
pub use pages::{DeliveredPage, Pages};
pub use plan::Query;
pub use records::{Batches, Records, RecordsBuilder};
pub use report::{Outlook, Report, SharedReport};
