//! Progress that a caller sees while the list is read.

use super::super::{FirstPage, ListKind, SnapshotReader};
use super::lists::{serve, spec};

#[test]
fn number_of_records_to_come_is_known_or_that_of_full_pages() {
    let list: Vec<u64> = (0..20).collect();
    for (kind, is_counted, to_come) in [
        (ListKind::Growing, true, [17, 14]),
        (ListKind::Fixed, true, [17, 14]),
        // Seven pages of three.
        (ListKind::Fixed, false, [18, 15]),
    ] {
        let mut reader = SnapshotReader::new(spec(kind));
        assert_eq!(reader.to_come(), 0);
        for expected in to_come {
            serve(&mut reader, &list, is_counted).2.unwrap();
            assert_eq!(reader.to_come(), expected, "{kind:?} {is_counted}");
        }
        let seen = (reader.snapshot().min_length, reader.snapshot().total_pages);
        assert_eq!(seen, (19, Some(7)));
    }
}

#[test]
fn requests_that_are_cancelled_are_sent_again() {
    let list: Vec<u64> = (0..20).collect();
    let mut reader = SnapshotReader::new(spec(ListKind::Growing));
    serve(&mut reader, &list, true).2.unwrap();
    let requests: Vec<_> = (0..3).map(|in_flight| reader.next_request(in_flight).unwrap()).collect();
    assert_eq!(requests.iter().map(|request| request.page).collect::<Vec<_>>(), [2, 3, 4]);
    for request in requests.iter().skip(1).rev() {
        reader.cancel(request);
    }
    assert_eq!(reader.next_request(1).map(|request| request.page), Some(3));
    // No more than the list has pages.
    let further: Vec<_> = (1..).map_while(|in_flight| reader.next_request(in_flight)).map(|sent| sent.page).collect();
    assert_eq!(further, [4, 5, 6, 7]);
}

#[test]
fn first_page_is_returned_at_once_after_runs_that_returned_nothing() {
    let after = [0, 2, 3, 4].map(FirstPage::after_empty_runs);
    assert_eq!(after, [FirstPage::Located, FirstPage::Located, FirstPage::AtOnce, FirstPage::AtOnce]);
}
