//! Blocks and transactions of records that come from several lists or look-ups.

use super::Page;
use crate::query::audit::{Blocks, Source};

/// Records of a response: transactions with their heights and blocks.
type Rows<'a> = &'a [(u64, i64, u64)];

fn reasons(pages: &[(Source, Rows<'_>)]) -> Vec<String> {
    let mut blocks = Blocks::default();
    pages.iter().for_each(|(source, rows)| blocks.add(*source, &Page(rows.to_vec())));
    blocks.reasons().iter().map(ToString::to_string).collect()
}

#[test]
fn a_transaction_is_at_one_height() {
    let (first, second) = (Source::List(0), Source::List(1));
    let moved = "A transaction is in two blocks, of the heights 7 and 8";
    for (pages, is_moved) in [
        ([(first, &[(1, 7, 70)][..]), (second, &[(1, 8, 80), (2, 8, 80)])], true),
        ([(first, &[(1, 8, 80)]), (second, &[(2, 7, 70), (1, 7, 70)])], true),
        ([(Source::Lookup, &[(1, 7, 70)]), (Source::Lookup, &[(1, 8, 80), (2, 8, 80)])], true),
        // A list by itself is compared by its own audit.
        ([(first, &[(1, 7, 70)]), (first, &[(1, 8, 80), (2, 8, 80)])], false),
        // Several lists have it.
        ([(first, &[(1, 7, 70)]), (second, &[(1, 7, 70), (2, 7, 70)])], false),
        // One hash for all transactions is none.
        ([(first, &[(1, 7, 70)]), (second, &[(1, 8, 80)])], false),
    ] {
        let reasons = reasons(&pages);
        assert_eq!(reasons.iter().any(|reason| reason.starts_with(moved)), is_moved, "{pages:?} {reasons:?}");
        assert_eq!(reasons.len(), usize::from(is_moved), "{reasons:?}");
    }
}

#[test]
fn a_list_that_is_read_again_is_not_compared_with_its_first_reading() {
    let (first, second) = (Source::List(0), Source::List(1));
    let mut blocks = Blocks::default();
    blocks.add(first, &Page(vec![(1, 7, 70), (2, 7, 70)]));
    blocks.forget(first);
    blocks.add(second, &Page(vec![(1, 8, 80), (3, 8, 80)]));
    assert!(blocks.reasons().is_empty());
    blocks.add(first, &Page(vec![(1, 7, 70)]));
    assert_eq!(blocks.reasons().len(), 1);
    blocks.forget(first);
    assert!(blocks.reasons().is_empty());
}
