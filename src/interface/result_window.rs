//! The number of records of a list that its pages show.

/// Defaults of the API: main-chain lists end at about 10,000 records, the logs of a transaction at about 1,000.
pub const RESULT_WINDOW: u64 = 10_000;
pub const LOG_WINDOW: u64 = 1_000;

/// Number of records from which a list may have more than its pages show: the limits of the API are approximate.
pub fn certain_window(window: u64) -> u64 {
    window - window / 100
}
