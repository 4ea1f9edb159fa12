//! A validated call and the requests it is made of. Nothing is sent from here.

mod params;
mod query;
mod set;
mod slices;

pub use params::{Arg, Options, parse_time, sent_value};
pub use query::{GrowthOrder, Query};
pub(super) use slices::Unresolved;
