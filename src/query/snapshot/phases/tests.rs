use super::*;
use crate::query::snapshot::snapshot::PageSizes;
use crate::query::snapshot::spec::ListSpec;
use crate::query::snapshot::tests::lists::{Keys, page, response, rest, serve, spec};
use crate::query::snapshot::{ListCheckpoint, PageRequest, Response};

/// A list that was read in part, of which a request shows the length.
fn of_known_length() -> SnapshotReader {
    let mut reader = SnapshotReader::new(spec(ListKind::Growing));
    (reader.snapshot.length, reader.delivered) = (Length::Exact(9), Delivered::of(vec![1]));
    reader
}

/// The same before its first record was located.
fn unread() -> SnapshotReader {
    SnapshotReader { delivered: Delivered::default(), ..of_known_length() }
}

/// The same, after a response without growth.
fn unread_and_stable() -> SnapshotReader {
    let mut reader = unread();
    reader.drift.growth.observe(0, 1);
    reader
}

/// The same, after other snapshots did not help.
fn unread_for_long() -> SnapshotReader {
    let mut reader = unread();
    reader.drift.restarts = reader.spec.tuning.max_restarts;
    reader
}

/// The same, where no request brings one record alone.
fn in_fixed_pages() -> SnapshotReader {
    let mut reader = of_known_length();
    reader.snapshot.page_sizes = PageSizes { least: 3, most: 3 };
    reader
}

/// The beginning of a list, of which the length was not requested.
fn beginning() -> SnapshotReader {
    let mut reader = SnapshotReader::new(ListSpec { wanted: Some(4), ..spec(ListKind::Growing) });
    (reader.snapshot.min_length, reader.snapshot.page_limit) = (100, 3);
    reader.delivered = Delivered::of(vec![1]);
    reader
}

fn of_unknown_length() -> SnapshotReader {
    let mut reader = SnapshotReader::new(spec(ListKind::Growing));
    reader.snapshot.length = Length::Unknown;
    reader
}

#[test]
fn next_record_is_looked_for_in_more_expensive_ways_one_after_another() {
    let second = Phase::Overlap(Attempt::Second);
    type Case<'a> = (fn() -> SnapshotReader, Attempt, (&'a Phase, &'a Phase));
    let cases: [Case<'_>; 11] = [
        (of_known_length, Attempt::First, (&Phase::Locate, &Phase::Locate)),
        (of_known_length, Attempt::Second, (&Phase::Locate, &Phase::Locate)),
        (of_known_length, Attempt::Third, (&Phase::Single, &Phase::Single)),
        (unread, Attempt::Third, (&Phase::Single, &Phase::Length)),
        (unread_and_stable, Attempt::Third, (&Phase::Single, &Phase::Single)),
        (unread_for_long, Attempt::Third, (&Phase::Single, &Phase::Single)),
        (in_fixed_pages, Attempt::First, (&second, &second)),
        (beginning, Attempt::First, (&second, &second)),
        (beginning, Attempt::Second, (&Phase::Length, &Phase::Length)),
        (of_unknown_length, Attempt::First, (&second, &second)),
        (of_unknown_length, Attempt::Second, (&second, &second)),
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
    let mut reader = SnapshotReader::new(window);
    assert_eq!(serve(&mut reader, &list, false).2.unwrap().rows, 0..20);
    assert!(matches!(reader.phase, Phase::Ahead { next_page: 2 }));
}

#[test]
fn first_page_that_is_returned_at_once_has_a_checkpoint() {
    let list: Vec<u64> = (0..20).collect();
    let spec = ListSpec { height_bound: Some(i64::MAX), result_window: Some(1_000), ..spec(ListKind::Growing) };
    let mut reader = SnapshotReader::new(ListSpec { first_page: FirstPage::AtOnce, ..spec });
    let (_, rows, accepted) = serve(&mut reader, &list, false);
    let accepted = accepted.unwrap();
    assert_eq!((accepted.rows.clone(), reader.returned()), (0..3, 3));
    assert_eq!(accepted.before.advanced(&rows, 3), reader.checkpoint());
}

#[test]
fn list_whose_head_is_replaced_each_time_is_begun_again_a_few_times() {
    let (mut begun, mut reader) = (0, SnapshotReader::new(spec(ListKind::Growing)));
    for round in 1.. {
        begun += u32::from(matches!(reader.phase, Phase::Length));
        let list: Vec<u64> = (100 * round..100 * round + 20).collect();
        if serve(&mut reader, &list, false).2.is_err() {
            break;
        }
    }
    assert_eq!(begun, 1 + spec(ListKind::Growing).tuning.max_restarts);
}

#[test]
fn list_of_which_only_the_first_record_is_left_ends_with_it() {
    let mut reader = SnapshotReader::new(spec(ListKind::Growing));
    serve(&mut reader, &[1, 2, 3, 4], false).2.unwrap();
    assert_eq!((rest(&mut reader, &[1], false), reader.end()), (vec![1], Some(End::List)));
}

#[test]
fn pages_of_a_list_that_has_grown_follow_each_other_again() {
    let (mut list, mut reader) = ((100..160).collect::<Vec<_>>(), SnapshotReader::new(spec(ListKind::Growing)));
    while reader.returned() < 9 {
        serve(&mut reader, &list, false).2.unwrap();
    }
    list.insert(0, 99);
    while !matches!(reader.phase, Phase::Ahead { .. }) || reader.drift.offset == 0 {
        serve(&mut reader, &list, false).2.unwrap();
    }
    // The first of them may begin with returned records.
    serve(&mut reader, &list, false).2.unwrap();
    while reader.returned() < 54 {
        assert_eq!(serve(&mut reader, &list, false).2.unwrap().rows, 0..3);
    }
}

#[test]
fn pages_of_a_counted_list_are_requested_ahead_unless_most_of_their_rows_were_returned() {
    for (grown, is_ahead) in [(1, true), (2, true), (3, false)] {
        let mut list: Vec<u64> = (100..120).collect();
        let mut reader = SnapshotReader::new(ListSpec { page_size: 4, ..spec(ListKind::Growing) });
        serve(&mut reader, &list, true).2.unwrap();
        list.splice(0..0, 0..grown);
        let accepted = serve(&mut reader, &list, true).2.unwrap();
        assert_eq!(accepted.rows, grown as usize..4);
        assert_eq!(reader.is_ahead(), is_ahead, "{grown}");
    }
}

#[test]
fn list_of_one_block_is_read_page_by_page() {
    for (length, is_counted) in (0..=9).flat_map(|length| [(length, true), (length, false)]) {
        let (list, mut reader) = ((0..length).collect::<Vec<_>>(), SnapshotReader::new(spec(ListKind::Fixed)));
        assert_eq!(rest(&mut reader, &list, is_counted), list);
        assert_eq!(reader.end(), Some(End::List));
    }
}

/// The pages of a list of one block: their keys, and the number of pages and of records that they report.
fn read_block(pages: &[(&[u64], u64, Option<u64>)]) -> Result<u64, Error> {
    let mut reader = SnapshotReader::new(spec(ListKind::Fixed));
    for (keys, total_pages, total) in pages {
        let request = reader.next_request(0).expect("a request");
        let (rows, total_pages) = (Keys(keys.to_vec()), Some(*total_pages));
        let response = Response { rows: &rows, page: None, limit: Some(3), total_pages, total: *total };
        reader.on_response(&request, &response)?;
    }
    Ok(reader.returned())
}

#[test]
fn page_of_a_block_that_is_not_full_raises_with_the_next_one() {
    let pages = [(&[1, 2, 3][..], 3, None), (&[4, 5], 3, None), (&[7, 8, 9], 3, None)];
    assert_eq!(read_block(&pages[..2]).unwrap(), 5);
    assert!(read_block(&pages).is_err());
}

#[test]
fn list_of_one_block_that_changes_raises() {
    for (pages, total) in [(3, Some(9)), (4, Some(8)), (4, None)] {
        let first = (&[1, 2, 3][..], 3, total.map(|_| 8));
        assert!(read_block(&[first, (&[4, 5, 6], pages, total)]).is_err(), "{pages} {total:?}");
    }
    assert!(read_block(&[(&[1, 2, 3], 3, Some(8)), (&[4, 5, 6], 3, Some(8))]).is_ok());
}

/// The records of the snapshot's first page, newer than those that were returned, are replaced. Nothing else would show
/// that record 1 was skipped.
#[test]
fn pages_below_a_replaced_first_page_are_proven_in_the_end() {
    let first_page = ListCheckpoint::default().advanced(&Keys(vec![3]), 1);
    let spec = ListSpec { page_size: 2, ..spec(ListKind::Growing) };
    let mut reader = SnapshotReader::resumed(spec, 1, &first_page);
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

#[test]
fn records_are_read_one_by_one_after_a_returned_record_was_found_where_it_should_be() {
    for (found, is_right) in [(2, true), (1, false)] {
        let mut reader = of_known_length();
        (reader.phase, reader.delivered, reader.returned) = (Phase::Locate, Delivered::of(vec![0, 1, 2]), 3);
        let list = [0, 1, found, 3, 4, 5, 6, 7, 8];
        let (request, _, accepted) = serve(&mut reader, &list, false);
        assert_eq!((request.page, request.limit), (3, 1));
        assert_eq!(accepted.is_ok(), is_right);
        assert_eq!(matches!(reader.phase, Phase::Overlap(Attempt::Third)), is_right);
    }
    // The list has moved: the record is requested again.
    let mut reader = of_known_length();
    (reader.phase, reader.delivered) = (Phase::Locate, Delivered::of(vec![0, 1, 2]));
    serve(&mut reader, &[9, 0, 1, 2, 3, 4, 5, 6, 7, 8], false).2.unwrap();
    assert!(matches!(reader.phase, Phase::Overlap(Attempt::Second)));
}

#[test]
fn record_above_the_latest_may_have_been_replaced_in_a_list_of_known_length() {
    for (length, location) in [(Length::Exact(9), Some(3)), (Length::Unknown, None)] {
        let mut reader = of_known_length();
        (reader.snapshot.length, reader.delivered) = (length, Delivered::of(vec![0, 1, 2]));
        (reader.snapshot.page_limit, reader.spec.max_page_size) = (3, 9);
        reader.phase = Phase::Overlap(Attempt::First);
        let accepted = serve(&mut reader, &[0, 20, 2, 3, 4, 5, 6, 7, 8], false).2.unwrap();
        assert_eq!(accepted.rows.clone().next(), location, "{length:?}");
    }
}
