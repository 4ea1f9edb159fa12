//! Equal records of which one response shows several.

use super::*;

const TOP: (u64, i64, u64) = (1, 9, 9);
const COPY: (u64, i64, u64) = (2, 8, 8);
const BELOW: (u64, i64, u64) = (3, 7, 7);

/// A list of these rows, of which a response showed others.
fn read(audit: &mut ListAudit, shown: &[(u64, i64, u64)], rows: &[(u64, i64, u64)]) -> Result<(), String> {
    take_as(audit, PageRequest::first(6), &Page(shown.to_vec()), 1, None, 0..0)?;
    take(audit, 1, &Page(rows.to_vec()), 1)?;
    audit.on_end(&WHOLE)
}

#[test]
fn fewer_equal_records_than_one_response_showed_are_a_contradiction() {
    let two = [TOP, COPY, COPY, BELOW];
    let error = read(&mut ListAudit::new(LIST, 0, &[]), &two, &[TOP, COPY, BELOW]).unwrap_err();
    assert!(error.contains("more equal records"), "{error}");
    read(&mut ListAudit::new(LIST, 0, &[]), &two, &two).unwrap();
    // Those of the newest height may be newer, and those of another block may have been replaced.
    read(&mut ListAudit::new(LIST, 0, &[]), &two[1..], &[COPY, BELOW]).unwrap();
    read(&mut ListAudit::new(LIST, 0, &[]), &two, &[TOP, (2, 8, 80), BELOW]).unwrap();
    // Without their blocks, they may have been as well.
    read(&mut ListAudit::new(Subject { has_blocks: false, ..LIST }, 0, &[]), &two, &[TOP, COPY, BELOW]).unwrap();
}

#[test]
fn equal_records_that_a_discarded_reading_received_are_due_also_of_the_newest_height() {
    let mut discarded = ListAudit::new(LIST, 0, &[]);
    take(&mut discarded, 1, &Page(vec![COPY, BELOW]), 1).unwrap();
    take_as(&mut discarded, PageRequest::first(6), &Page(vec![COPY, COPY, BELOW]), 1, None, 0..0).unwrap();
    let mut audit = ListAudit::new(LIST, 0, &[]).after_discarded(discarded);
    take(&mut audit, 1, &Page(vec![COPY, BELOW]), 1).unwrap();
    assert!(audit.on_end(&WHOLE).is_err());
}

#[test]
fn equal_records_that_an_earlier_run_returned_are_counted() {
    let latest = [4, 5, 6, 7, 10, 11, 2, 2];
    let mut audit = ListAudit::new(LIST, 20, &latest).below(Some(8)).after_block(Some((8, 8)));
    take_as(&mut audit, PageRequest::first(6), &Page(vec![TOP, COPY, COPY, BELOW]), 1, None, 0..0).unwrap();
    take(&mut audit, 7, &Page(vec![BELOW]), 7).unwrap();
    assert_eq!(audit.on_end(&WHOLE), Ok(()));
}
