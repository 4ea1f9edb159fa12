//! Evidence that locates a page.

use super::super::delivered::Delivered;
use super::super::evidence::{Length, Snapshot};
use super::super::locate::{Expectation, Location, locate};
use super::super::spec::View;
use super::lists::Keys;

/// The offset of a page of three of nine records that was requested to begin at the third one.
fn offset_of(page: &[u64], delivered: &[u64]) -> Location {
    let snapshot = Snapshot { length: Length::Exact(9), page_limit: 3, page_rows: 3, ..Snapshot::default() };
    let rows = Keys(page.to_vec());
    let view = View { rows: &rows, page: 2, position: 3, page_size: 3, pages: Some(4), total: None };
    let mut read = Delivered::new(100);
    read.push(delivered);
    locate(&view, &snapshot, &read, 1, Expectation::Overlapping)
}

#[test]
fn one_shared_record_locates_a_page_unless_it_may_be_a_duplicate_further_down() {
    assert_eq!(offset_of(&[7, 8, 9], &[4, 5, 7]), Location::At(2));
    assert_eq!(offset_of(&[7, 8, 9], &[5, 5, 7]), Location::Ambiguous);
    assert_eq!(offset_of(&[7, 8, 7], &[4, 5, 7]), Location::Ambiguous);
    assert_eq!(offset_of(&[5, 7, 8], &[5, 5, 7]), Location::At(1));
    assert_eq!(offset_of(&[1, 2, 3], &[4, 5, 7]), Location::Lost);
}
