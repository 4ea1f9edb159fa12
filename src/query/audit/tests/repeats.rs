//! Equal records, which one response has to show together.

use super::*;

#[test]
fn equal_records_on_two_pages_are_proven_by_one_response() {
    let read = || {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        take(&mut audit, 1, &keys(&[1, 2, 3]), 2).unwrap();
        take(&mut audit, 2, &keys(&[3, 4]), 2).unwrap();
        audit
    };
    // Records 3 and 4, or pages of another size that show both.
    let request = read().next_request(&WHOLE).expect("a request");
    assert_eq!((2 / request.limit, 3 / request.limit), (request.page - 1, request.page - 1));
    let mut twice = read();
    look(&mut twice, &keys(&[1, 2, 3, 3, 4]), 1).unwrap();
    assert!(!twice.is_open(&WHOLE));
    // Between its neighbors, it is there once.
    assert!(look(&mut read(), &keys(&[1, 2, 3, 4]), 1).unwrap_err().contains("received twice"));
    // The list has moved away: they are requested again, a few times.
    let mut moved = read();
    (0..8).for_each(|_| look(&mut moved, &keys(&[8, 9]), 2).unwrap());
    assert!(!moved.is_open(&WHOLE) && doubts(&moved).contains("equal records"));
}

#[test]
fn equal_records_of_one_response_need_no_proof() {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    take(&mut audit, 1, &keys(&[1, 1, 2]), 2).unwrap();
    take(&mut audit, 2, &keys(&[3, 1]), 2).unwrap();
    assert!(!audit.is_open(&WHOLE) && !doubts(&audit).contains("equal records"));
}

#[test]
fn one_response_shows_as_many_equal_records_as_were_returned() {
    let read = || {
        let mut audit = ListAudit::new(ONE_BLOCK, 0, &[]);
        for (page, key) in [(1, 1), (2, 1), (3, 1)] {
            take(&mut audit, page, &keys(&[key]), 3).unwrap();
        }
        look(&mut audit, &keys(&[1]), 3).unwrap();
        audit
    };
    let mut twice = read();
    assert!(look(&mut twice, &keys(&[2, 1, 1]), 1).unwrap_err().contains("received twice"));
    // So does a run that continues after each of them.
    let mut resumed = ListAudit::new(ONE_BLOCK, 0, &[]);
    for page in 1..=3 {
        take(&mut resumed, page, &keys(&[1]), 3).unwrap();
        let open = resumed.open_repeats().to_vec();
        resumed = ListAudit::new(ONE_BLOCK, page, &[1]).with_repeats(&open);
    }
    look(&mut resumed, &keys(&[2, 1, 1]), 3).unwrap();
    assert!(look(&mut resumed, &keys(&[2, 1, 1]), 1).unwrap_err().contains("received twice"));
    let mut thrice = read();
    look(&mut thrice, &keys(&[1, 1, 1]), 1).unwrap();
    assert!(!thrice.is_open(&WHOLE));
}

#[test]
fn equal_records_that_no_response_can_show_together_are_uncertain() {
    let mut audit = ListAudit::new(LIST, 0, &[]);
    for (page, rows) in [(1, [1, 2, 3]), (2, [4, 5, 6]), (3, [7, 8, 1])] {
        take(&mut audit, page, &keys(&rows), 3).unwrap();
    }
    assert!(audit.next_request(&WHOLE).is_none() && doubts(&audit).contains("equal records"));
}

#[test]
fn equal_records_that_are_less_than_half_a_page_apart_are_proven_wherever_they_are() {
    // No page of up to 50 records shows those at the offsets 25 and 50, and none of up to 100 those at 50 and 100.
    for max_page_size in [50, 100] {
        let subject = Subject { max_page_size, ..LIST };
        let mut audit = ListAudit::new(subject, max_page_size, &vec![1; max_page_size as usize - 1]);
        let request = PageRequest { page: max_page_size + 1, ..PageRequest::first(1) };
        take_as(&mut audit, request, &keys(&[1]), 999, None, 0..1).unwrap();
        look(&mut audit, &keys(&vec![1; max_page_size as usize]), 9).unwrap();
        assert!(!audit.is_open(&WHOLE) && doubts(&audit).is_empty(), "{max_page_size}");
    }
}
