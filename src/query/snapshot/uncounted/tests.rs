use super::locator::Location;
use super::*;
use crate::query::snapshot::snapshot::PageSizes;
use crate::query::snapshot::tests::lists::{Keys, page, response, rest, serve, spec, uncounted};
use crate::query::snapshot::{FirstPage, ListKind, ListReader};

fn growing() -> UncountedReader {
    UncountedReader::new(spec(ListKind::Growing))
}

/// A list that was read in part. A request has shown its length.
fn of_known_length() -> UncountedReader {
    let mut reader = growing();
    reader.list.snapshot.length = Length::Exact(9);
    reader.list.delivered = Delivered::of(vec![1]);
    reader
}

/// A list of known length before its first record was located.
fn unread() -> UncountedReader {
    let mut reader = of_known_length();
    reader.list.delivered = Delivered::default();
    reader
}

/// An unread list, after a response without growth.
fn unread_and_stable() -> UncountedReader {
    let mut reader = unread();
    reader.list.drift.growth.observe(0);
    reader
}

/// An unread list, after other snapshots did not help.
fn unread_for_long() -> UncountedReader {
    let mut reader = unread();
    reader.history.restarts = MAX_RESTARTS;
    reader
}

/// A list of known length, where no request brings one record alone.
fn in_fixed_pages() -> UncountedReader {
    let mut reader = of_known_length();
    reader.list.snapshot.page_sizes = PageSizes { min: 3, max: 3 };
    reader
}

/// The beginning of a list whose length was not requested.
fn beginning() -> UncountedReader {
    let mut reader = UncountedReader::new(ListSpec { wanted: Some(4), ..spec(ListKind::Growing) });
    reader.list.snapshot.min_length = 100;
    reader.list.snapshot.page_limit = 3;
    reader.list.delivered = Delivered::of(vec![1]);
    reader
}

fn of_unknown_length() -> UncountedReader {
    let mut reader = growing();
    reader.list.snapshot.length = Length::Unknown;
    reader
}

#[test]
fn next_record_is_looked_for_in_more_expensive_ways_one_after_another() {
    let observed = Phase::Overlap(Attempt::Observed);
    type Case<'a> = (fn() -> UncountedReader, Attempt, (&'a Phase, &'a Phase));
    let cases: [Case<'_>; 11] = [
        (of_known_length, Attempt::Expected, (&Phase::Locate, &Phase::Locate)),
        (of_known_length, Attempt::Observed, (&Phase::Locate, &Phase::Locate)),
        (of_known_length, Attempt::Measured, (&Phase::Single, &Phase::Single)),
        (unread, Attempt::Measured, (&Phase::Single, &Phase::Length)),
        (unread_and_stable, Attempt::Measured, (&Phase::Single, &Phase::Single)),
        (unread_for_long, Attempt::Measured, (&Phase::Single, &Phase::Single)),
        (in_fixed_pages, Attempt::Expected, (&observed, &observed)),
        (beginning, Attempt::Expected, (&observed, &observed)),
        (beginning, Attempt::Observed, (&Phase::Length, &Phase::Length)),
        (of_unknown_length, Attempt::Expected, (&observed, &observed)),
        (of_unknown_length, Attempt::Observed, (&observed, &observed)),
    ];
    for (reader, attempt, (after_loss, after_ambiguity)) in cases {
        for (location, expected) in [(Location::Lost, after_loss), (Location::Ambiguous, after_ambiguity)] {
            let next = reader().next_attempt(attempt, location);
            assert_eq!(format!("{next:?}"), format!("{expected:?}"), "{attempt:?} {location:?}");
        }
    }
}

#[test]
fn length_is_not_requested_if_the_first_page_shows_that_the_list_reaches_the_result_window() {
    let list: Vec<u64> = (0..225).collect();
    let window = ListSpec { page_size: 20, max_page_size: 20, result_window: Some(200), ..spec(ListKind::Growing) };
    let mut reader = ListReader::new(window);
    assert_eq!(serve(&mut reader, &list, false).2.unwrap().rows, 0..20);
    assert!(reader.is_ahead());
    assert_eq!(reader.next_request(0).map(|request| request.page), Some(2));
}

#[test]
fn first_page_that_is_returned_at_once_has_a_checkpoint() {
    let list: Vec<u64> = (0..20).collect();
    let spec = ListSpec { height_bound: Some(i64::MAX), result_window: Some(1_000), ..spec(ListKind::Growing) };
    let mut reader = ListReader::new(ListSpec { first_page: FirstPage::AtOnce, ..spec });
    let (_, rows, accepted) = serve(&mut reader, &list, false);
    let accepted = accepted.unwrap();
    assert_eq!((accepted.rows.clone(), reader.returned()), (0..3, 3));
    assert_eq!(accepted.before.advanced(&rows, 3), reader.checkpoint());
}

#[test]
fn beginning_whose_length_contradicts_its_returned_first_page_is_an_error() {
    let list: Vec<u64> = (0..20).collect();
    for (lacking, is_error) in [(6, true), (0, false)] {
        let beginning = ListSpec { wanted: Some(u64::MAX), ..spec(ListKind::Growing) };
        let mut reader = ListReader::new(ListSpec { first_page: FirstPage::AtOnce, ..beginning });
        // A part of the service that lacks the newest records has the length and the second page.
        for served in [&list[..], &list[lacking..], &list, &list[lacking..]] {
            serve(&mut reader, served, false).2.unwrap();
        }
        reader.stop();
        assert_eq!(reader.error().is_some(), is_error, "{lacking}");
    }
}

#[test]
fn list_whose_head_is_replaced_each_time_is_begun_again_a_few_times() {
    let (mut begun, mut reader) = (0, ListReader::new(spec(ListKind::Growing)));
    for round in 1.. {
        begun += u32::from(matches!(uncounted(&mut reader).phase, Phase::Length));
        let list: Vec<u64> = (100 * round..100 * round + 20).collect();
        if serve(&mut reader, &list, false).2.is_err() {
            break;
        }
    }
    assert_eq!(begun, 1 + MAX_RESTARTS);
}

#[test]
fn list_of_which_only_the_first_record_is_left_ends_with_it() {
    let mut reader = ListReader::new(spec(ListKind::Growing));
    serve(&mut reader, &[1, 2, 3, 4], false).2.unwrap();
    assert_eq!((rest(&mut reader, &[1], false), reader.end()), (vec![1], Some(End::List)));
}

#[test]
fn pages_of_a_list_that_has_grown_follow_each_other_again() {
    let (mut list, mut reader) = ((100..160).collect::<Vec<_>>(), ListReader::new(spec(ListKind::Growing)));
    while reader.returned() < 9 {
        serve(&mut reader, &list, false).2.unwrap();
    }
    list.insert(0, 99);
    while !reader.is_ahead() || reader.drift() == 0 {
        serve(&mut reader, &list, false).2.unwrap();
    }
    // The first of them may begin with returned records.
    serve(&mut reader, &list, false).2.unwrap();
    while reader.returned() < 54 {
        assert_eq!(serve(&mut reader, &list, false).2.unwrap().rows, 0..3);
    }
}

/// The records of the snapshot's first page, newer than those that were returned, are replaced. Nothing else would show
/// that record 1 was skipped.
#[test]
fn pages_below_a_replaced_first_page_are_proven_in_the_end() {
    let first_page = ListCheckpoint::default().advanced(&Keys(vec![3]), 1);
    let spec = ListSpec { page_size: 2, ..spec(ListKind::Growing) };
    let mut reader = ListReader::resumed(spec, 1, &first_page);
    let list: Vec<u64> = (0..7).rev().collect();
    serve(&mut reader, &list, false).2.unwrap();
    serve(&mut reader, &list, false).2.unwrap();
    let requests: Vec<PageRequest> = (0..3).map_while(|in_flight| reader.next_request(in_flight)).collect();
    assert_eq!(requests.iter().map(|request| request.page).collect::<Vec<_>>(), [2, 3, 4]);
    let replaced = [9, 8, 7, 3, 2, 1, 0];
    let grown = [10, 9, 8, 7, 3, 2, 1, 0];
    let mut returned = Vec::new();
    for (request, list) in requests.iter().zip([&grown[..], &grown, &replaced]) {
        let rows = page(list, request);
        let accepted = reader.on_response(request, &response(&rows, list, request, false)).unwrap();
        returned.extend(&rows.0[accepted.rows]);
    }
    assert_eq!((returned, reader.end()), (vec![2, 0], None));
    assert!((0..3).any(|_| serve(&mut reader, &grown, false).2.is_err()));
}

/// As from a cursor without its position.
#[test]
fn list_of_which_more_was_returned_than_read_raises() {
    let mut reader = ListReader::resumed(spec(ListKind::Growing), 3, &ListCheckpoint::default());
    let list: Vec<u64> = (0..7).rev().collect();
    assert!((0..9).any(|_| serve(&mut reader, &list, false).2.is_err()));
    assert_eq!(reader.returned(), 3);
}

/// A list whose first three records were returned, and of which the latest is requested again.
fn at_locate() -> ListReader {
    let mut reader = of_known_length();
    reader.phase = Phase::Locate;
    reader.list.delivered = Delivered::of(vec![0, 1, 2]);
    reader.list.returned = 3;
    ListReader::Uncounted(reader)
}

#[test]
fn records_are_read_one_by_one_after_a_returned_record_was_found_where_it_should_be() {
    for (found, is_right) in [(2, true), (1, false)] {
        let mut reader = at_locate();
        let list = [0, 1, found, 3, 4, 5, 6, 7, 8];
        let (request, _, accepted) = serve(&mut reader, &list, false);
        assert_eq!((request.page, request.limit), (3, 1));
        assert_eq!(accepted.is_ok(), is_right);
        assert_eq!(matches!(uncounted(&mut reader).phase, Phase::Overlap(Attempt::Measured)), is_right);
    }
    // The list has moved: the record is requested again.
    let mut reader = at_locate();
    serve(&mut reader, &[9, 0, 1, 2, 3, 4, 5, 6, 7, 8], false).2.unwrap();
    assert!(matches!(uncounted(&mut reader).phase, Phase::Overlap(Attempt::Observed)));
}

#[test]
fn record_above_the_latest_may_have_been_replaced_in_a_list_of_known_length() {
    for (length, location) in [(Length::Exact(9), Some(3)), (Length::Unknown, None)] {
        let mut reader = of_known_length();
        reader.list.snapshot.length = length;
        reader.list.snapshot.page_limit = 3;
        reader.list.spec.max_page_size = 9;
        reader.list.delivered = Delivered::of(vec![0, 1, 2]);
        reader.phase = Phase::Overlap(Attempt::Expected);
        let mut reader = ListReader::Uncounted(reader);
        let accepted = serve(&mut reader, &[0, 20, 2, 3, 4, 5, 6, 7, 8], false).2.unwrap();
        assert_eq!(accepted.rows.clone().next(), location, "{length:?}");
    }
}
