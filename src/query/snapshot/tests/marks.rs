//! Beginnings of lists without a count that are read up to a mark.

use super::super::{End, ListCheckpoint, ListKind, ListReader, ListSpec, PageRequest, Purpose};
use super::lists::{page, response, serve, spec};

fn beginning(wanted: u64) -> ListReader {
    ListReader::new(ListSpec { wanted: Some(wanted), max_page_size: 8, ..spec(ListKind::Growing) })
}

/// Reads with up to `concurrency` requests in flight until as many records as are wanted were returned. Returns these and the
/// requests.
fn read(reader: &mut ListReader, list: &[u64], concurrency: usize) -> (Vec<u64>, Vec<PageRequest>) {
    let (mut keys, mut requests, mut in_flight) = (Vec::new(), Vec::new(), Vec::<PageRequest>::new());
    let wanted = reader.spec().wanted.expect("a beginning");
    while reader.end().is_none() && reader.error().is_none() {
        let left = (wanted - reader.returned().min(wanted)).div_ceil(reader.spec().page_size);
        if left == 0 {
            reader.stop();
        }
        while in_flight.len() < concurrency.min(left as usize).max(1)
            && let Some(request) = reader.next_request(in_flight.len())
        {
            in_flight.push(request);
            requests.push(request);
        }
        if in_flight.is_empty() {
            break;
        }
        let request = in_flight.remove(0);
        let rows = page(list, &request);
        if let Ok(accepted) = reader.on_response(&request, &response(&rows, list, &request, false)) {
            keys.extend(&rows.0[accepted.rows]);
        }
        if !reader.is_ahead() {
            in_flight.drain(..).rev().for_each(|request| reader.cancel(&request));
        }
    }
    (keys, requests)
}

#[test]
fn stable_beginning_takes_its_pages_and_two_requests() {
    let list: Vec<u64> = (0..90).collect();
    for (wanted, concurrency) in [(16, 1), (17, 4), (30, 4), (88, 8)] {
        let mut reader = beginning(wanted);
        let (keys, requests) = read(&mut reader, &list, concurrency);
        let pages = wanted.div_ceil(3);
        assert_eq!((keys, reader.end()), ((0..pages * 3).collect(), Some(End::List)));
        assert_eq!(requests.len() as u64, pages + 2);
        let mark = &requests[1];
        // It shows the last record that is wanted, and the one above it.
        let shown = (mark.page - 1) * mark.limit..mark.page * mark.limit;
        assert!(shown.contains(&(wanted - 1)) && shown.contains(&(wanted - 2)), "{mark:?}");
        assert_eq!((mark.limit <= 3, mark.purpose), (true, Purpose::Probe));
        assert_eq!(requests[2].page, 1);
    }
}

/// Nothing but the mark shows that a record was skipped between two adjacent pages.
#[test]
fn beginning_raises_if_an_unread_record_is_deleted_before_its_mark() {
    let mut list: Vec<u64> = (0..90).collect();
    let mut reader = beginning(30);
    while reader.returned() < 9 {
        serve(&mut reader, &list, false).2.unwrap();
    }
    list.remove(4);
    let (keys, _) = read(&mut reader, &list, 1);
    assert!(!keys.contains(&29), "{keys:?}");
    assert!(reader.error().expect("an error").to_string().contains("were deleted or replaced"));
}

#[test]
fn beginning_whose_first_page_is_below_a_newer_record_that_equals_one_of_it_is_read() {
    for newer in [&[1][..], &[1, 50], &[0, 1], &[1, 50, 51], &[50, 51, 52, 2, 53]] {
        let mut list: Vec<u64> = (0..30).collect();
        let mut reader = beginning(20);
        serve(&mut reader, &list, false).2.unwrap();
        serve(&mut reader, &list, false).2.unwrap();
        list.splice(0..0, newer.iter().copied());
        let (keys, _) = read(&mut reader, &list, 4);
        assert!(reader.error().is_none() && keys.starts_with(&Vec::from_iter(3..20)), "{newer:?}: {keys:?}");
    }
}

#[test]
fn beginning_raises_if_its_first_page_has_lost_a_record_before_the_mark() {
    let mut list: Vec<u64> = (0..90).collect();
    let mut reader = beginning(30);
    serve(&mut reader, &list, false).2.unwrap();
    list.remove(1);
    let (keys, _) = read(&mut reader, &list, 1);
    assert!(reader.error().is_some() && keys.is_empty(), "{keys:?}");
}

#[test]
fn beginning_that_grew_before_its_mark_is_read_by_overlap() {
    let mut list: Vec<u64> = (10..90).collect();
    let mut reader = beginning(18);
    serve(&mut reader, &list, false).2.unwrap();
    list.insert(0, 9);
    let (keys, _) = read(&mut reader, &list, 4);
    assert_eq!((&keys[..15], reader.end()), (&(13..28).collect::<Vec<_>>()[..], Some(End::List)));
    assert_eq!(reader.snapshot().mark, None);
}

#[test]
fn record_that_is_equal_to_another_is_no_mark() {
    let mut list: Vec<u64> = (0..90).collect();
    // The last page of the beginning: one record occurs twice, the other is on the first page as well.
    list[15..18].copy_from_slice(&[1, 50, 50]);
    let mut reader = beginning(18);
    serve(&mut reader, &list, false).2.unwrap();
    serve(&mut reader, &list, false).2.unwrap();
    let request = reader.next_request(0).expect("a request");
    assert!(request.page > 1 || request.limit != 3, "{request:?}");
}

#[test]
fn mark_that_is_equal_to_a_record_further_up_shows_nothing() {
    for (equal, end) in [(6..8, End::UnknownLength), (7..8, End::List), (26..27, End::List)] {
        let mut list: Vec<u64> = (0..90).collect();
        list.copy_within(30 - equal.len()..30, equal.start);
        let mut reader = beginning(30);
        let (keys, _) = read(&mut reader, &list, 4);
        // A record that is equal to the mark has another one above it.
        assert_eq!((keys, reader.end()), (list[..30].to_vec(), Some(end)), "{equal:?}");
    }
}

#[test]
fn beginning_is_continued_up_to_its_mark_after_a_checkpoint() {
    let list: Vec<u64> = (0..90).collect();
    let mut reader = beginning(30);
    while reader.returned() < 12 {
        serve(&mut reader, &list, false).2.unwrap();
    }
    let json = serde_json::to_string(&reader.checkpoint()).unwrap();
    let checkpoint: ListCheckpoint = serde_json::from_str(&json).unwrap();
    let mut resumed = ListReader::resumed(reader.spec().clone(), 12, &checkpoint);
    let (keys, _) = read(&mut resumed, &list, 1);
    assert_eq!((&keys[..18], resumed.end()), (&(12..30).collect::<Vec<_>>()[..], Some(End::List)));
}
