//! Bounds of the schedules of a model.

use super::super::FirstPage;
use super::adversary::Defect;

/// Bounds of the schedules.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub counted: bool,
    pub max_length: usize,
    pub page_sizes: (usize, usize),
    /// Largest page that the API documents; 0 for the page size.
    pub max_page: usize,
    /// Largest page that it serves, if that is smaller; 0 if not.
    pub served: usize,
    /// Number of different keys; 0 if all are different.
    pub symbols: usize,
    /// Equal records are next to each other.
    pub rows: bool,
    /// Records added in all, and after one response.
    pub growth: (usize, usize),
    pub losses: usize,
    pub reorganizations: usize,
    /// Reorganizations leave a returned record.
    pub shallow: bool,
    pub deaths: usize,
    pub concurrency: usize,
    /// Responses that lack the count.
    pub omissions: usize,
    /// Records up to which the list can be paged through. Below, it is continued by height; a height has two records.
    pub window: Option<usize>,
    /// Most records after which the caller stops; 0 if it reads all.
    pub wanted: usize,
    pub first_page: FirstPage,
    /// Assumption about the API that does not hold.
    pub defect: Option<Defect>,
    /// True if the result is audited, as it is for a caller.
    pub is_audited: bool,
    /// Changes of a long list, in place of the bounds above.
    pub rates: Option<Rates>,
}

/// Changes of a list after each response.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Records added, or up to as many.
    pub growth: usize,
    pub is_steady: bool,
    /// Responses per reorganization, on average; 0 for none.
    pub reorganization: usize,
    /// Most records at the head that a reorganization replaces.
    pub depth: usize,
}

/// A list with a count that does not change.
pub const COUNTED: Bounds = Bounds {
    counted: true,
    max_length: 6,
    page_sizes: (1, 3),
    max_page: 0,
    served: 0,
    symbols: 0,
    rows: false,
    growth: (0, 0),
    losses: 0,
    reorganizations: 0,
    shallow: false,
    deaths: 0,
    concurrency: 1,
    omissions: 0,
    window: None,
    wanted: 0,
    first_page: FirstPage::Located,
    defect: None,
    is_audited: true,
    rates: None,
};
