//! Records, pages and reports, and their Arrow and HTML forms.

pub mod arrow;
pub mod conversions;
pub mod decoded_logs;
mod display;
pub mod estimate;
pub mod event;
pub mod frames;
pub mod incomplete;
pub mod page;
pub mod record;
pub mod record_classes;
mod record_iterator;
pub mod records;
pub mod report;
pub mod undo;
