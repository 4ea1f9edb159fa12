//! A validated call and the requests it is made of. Nothing is sent from here.

mod advice;
mod args;
mod decimal;
mod filters;
mod params;
mod query;
mod ranges;
mod set;
mod shown_records;
mod slices;
mod times;
mod values;

pub use args::{Arg, Options};
pub(super) use filters::Unresolved;
pub use params::sent_value;
pub use query::{GrowthOrder, Query};
pub use ranges::ValueRange;
pub(super) use set::{Members, with_value};
pub use shown_records::{ShownRecord, ShownRecords};
pub use times::parse_time;
