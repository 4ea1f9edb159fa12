//! Lists with a count, and lists of one block.

use super::super::{End, ListKind, ListReader, ListSpec, Purpose, Response};
use super::lists::{Keys, rest, serve, spec};
use crate::client::Error;

#[test]
fn pages_of_a_counted_list_are_requested_ahead_unless_most_of_their_rows_were_returned() {
    for (grown, is_ahead) in [(1, true), (2, true), (3, false)] {
        let mut list: Vec<u64> = (100..120).collect();
        let mut reader = ListReader::new(ListSpec { page_size: 4, ..spec(ListKind::Growing) });
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
        let (list, mut reader) = ((0..length).collect::<Vec<_>>(), ListReader::new(spec(ListKind::Fixed)));
        assert_eq!(rest(&mut reader, &list, is_counted), list);
        assert_eq!(reader.end(), Some(End::List));
    }
}

#[test]
fn beginning_of_a_ranked_list_is_read_until_the_caller_stops() {
    let mut reader = ListReader::new(ListSpec { wanted: Some(6), ..spec(ListKind::Ranked) });
    for returned in [3, 6, 9] {
        let request = reader.next_request(0).unwrap();
        assert_eq!(request.purpose, Purpose::Records, "the length is not needed");
        let end = request.page * request.limit;
        let rows = Keys((end - request.limit..end).collect());
        let response =
            Response { rows: &rows, page: None, limit: Some(request.limit), total_pages: Some(99), total: None };
        reader.on_response(&request, &response).unwrap();
        // Some of the records may have been left out of the result.
        assert_eq!((reader.end(), reader.returned()), (None, returned));
    }
    assert!(reader.stop());
    assert_eq!((reader.end(), reader.next_request(0)), (Some(End::List), None));
}

#[test]
fn beginning_of_a_ranked_list_whose_records_move_is_not_certain() {
    let read = |reader: &mut ListReader, pages: &[[u64; 3]]| {
        for keys in pages {
            let request = reader.next_request(0).unwrap();
            let rows = Keys(keys.to_vec());
            let response = Response { rows: &rows, page: None, limit: Some(3), total_pages: Some(99), total: None };
            reader.on_response(&request, &response).unwrap();
        }
        reader.stop();
        reader.end()
    };
    let new = || ListReader::new(ListSpec { wanted: Some(6), page_size: 3, ..spec(ListKind::Ranked) });
    assert_eq!(read(&mut new(), &[[0, 1, 2], [3, 4, 5]]), Some(End::List));
    // Record 3 may have moved to the first page, from where 2 has come.
    assert_eq!(read(&mut new(), &[[0, 1, 2], [2, 4, 5]]), Some(End::Unsettled));
    // A run that continues reads the latest pages again.
    let mut first = new();
    read(&mut first, &[[0, 1, 2], [3, 4, 5]]);
    for (pages, end) in [
        ([[3, 4, 5], [6, 7, 8]], End::List),
        ([[2, 4, 5], [6, 7, 8]], End::List),
        ([[9, 4, 5], [6, 7, 8]], End::Unsettled),
        ([[3, 4, 5], [5, 7, 8]], End::Unsettled),
    ] {
        let mut next = ListReader::resumed(first.spec().clone(), 6, &first.checkpoint());
        assert_eq!(read(&mut next, &pages), Some(end), "{pages:?}");
    }
}

#[test]
fn only_page_of_a_ranked_list_that_shows_a_record_twice_may_lack_another() {
    for (keys, end) in [([1, 2], End::List), ([1, 1], End::Unsettled)] {
        let mut reader = ListReader::new(spec(ListKind::Ranked));
        let request = reader.next_request(0).expect("a request");
        let rows = Keys(keys.to_vec());
        let response = Response { rows: &rows, page: None, limit: Some(3), total_pages: Some(1), total: None };
        reader.on_response(&request, &response).unwrap();
        assert_eq!(reader.end(), Some(end), "{keys:?}");
    }
}

#[test]
fn length_of_a_ranked_list_that_is_less_than_its_first_page_is_unknown() {
    for (pages_of_one, end, recounts) in [(2, End::UnknownLength, 1), (6, End::List, 0)] {
        let mut reader = ListReader::new(ListSpec { page_size: 3, ..spec(ListKind::Ranked) });
        let mut received = Vec::new();
        while let Some(request) = reader.next_request(0) {
            let end = request.page * request.limit;
            let rows = Keys((end - request.limit..end).collect());
            let total_pages = Some(if request.limit == 1 { pages_of_one } else { 2 });
            let response = Response { rows: &rows, page: None, limit: Some(request.limit), total_pages, total: None };
            reader.on_response(&request, &response).unwrap();
            received.push((request.page, request.limit));
        }
        assert_eq!(received[..3], [(1, 3), (1, 1), (2, 3)]);
        assert_eq!(received[3..], [&[(2, 1); 1][..recounts], &[(1, 3)]].concat());
        assert_eq!((reader.end(), reader.returned()), (Some(end), 6));
    }
}

#[test]
fn length_of_a_ranked_list_that_is_less_than_its_pages_is_requested_again() {
    // Its pages have 6 records. Before the last page and after it, the length is 5 in the first passes, and 6 later.
    for (wrong_passes, end, requests) in
        [(0, End::List, 4), (1, End::List, 8), (2, End::List, 12), (3, End::UnknownLength, 13)]
    {
        let mut reader = ListReader::new(ListSpec { page_size: 3, ..spec(ListKind::Ranked) });
        let mut received = Vec::new();
        let mut passes = 0;
        while let Some(request) = reader.next_request(0) {
            let end = request.page * request.limit;
            let rows = Keys((end - request.limit..end).collect());
            let length = if passes < wrong_passes { 5 } else { 6 };
            passes += u64::from(received.last() == Some(&(2, 3)));
            let total_pages = Some(if request.limit == 1 { length } else { 2 });
            let response = Response { rows: &rows, page: None, limit: Some(request.limit), total_pages, total: None };
            reader.on_response(&request, &response).unwrap();
            received.push((request.page, request.limit));
        }
        assert_eq!((reader.end(), reader.returned(), received.len()), (Some(end), 6, requests), "{wrong_passes}");
    }
}

#[test]
fn record_of_a_one_record_page_of_a_ranked_list_is_looked_for() {
    // Six records, of which the last is known from the length alone until this pass.
    for (pass, end, returned) in [(1, End::List, 6), (2, End::List, 6), (3, End::List, 6), (9, End::Lacking, 5)] {
        let mut reader = ListReader::new(ListSpec { page_size: 3, ..spec(ListKind::Ranked) });
        let mut passes = 0;
        while let Some(request) = reader.next_request(0) {
            let is_probe = request.limit == 1;
            passes += u64::from(request.page == 2 && !is_probe);
            let length = if passes >= pass { 6 } else { 5 };
            let first = (request.page - 1) * request.limit;
            let rows = Keys(if is_probe { vec![5] } else { (first..length.min(first + request.limit)).collect() });
            let total_pages = Some(if is_probe { length } else { 2 });
            let response = Response { rows: &rows, page: None, limit: Some(request.limit), total_pages, total: None };
            reader.on_response(&request, &response).unwrap();
        }
        assert_eq!((reader.end(), reader.returned()), (Some(end), returned), "{pass}");
    }
}

#[test]
fn length_of_a_ranked_list_that_has_grown_is_that_of_its_last_page() {
    let mut reader = ListReader::new(ListSpec { page_size: 3, ..spec(ListKind::Ranked) });
    let mut received = Vec::new();
    while let Some(request) = reader.next_request(0) {
        let end = request.page * request.limit;
        let rows = Keys((end - request.limit..end).collect());
        // A record is added after the length was requested.
        let length = if received.len() > 1 { 6 } else { 5 };
        let total_pages = Some(if request.limit == 1 { length } else { 2 });
        let response = Response { rows: &rows, page: None, limit: Some(request.limit), total_pages, total: None };
        reader.on_response(&request, &response).unwrap();
        received.push((request.page, request.limit));
    }
    assert_eq!(received, [(1, 3), (1, 1), (2, 3), (2, 1), (1, 3)]);
    assert_eq!((reader.end(), reader.returned()), (Some(End::List), 6));
}

#[test]
fn pages_of_a_block_that_its_first_page_counts_are_requested_before_it_is_taken() {
    let mut reader = ListReader::new(spec(ListKind::Fixed));
    let first = reader.next_request(0).expect("a request");
    assert!(reader.next_request(1).is_none());
    reader.announce(3);
    let ahead: Vec<_> = (1..3).map(|in_flight| reader.next_request(in_flight).expect("a request")).collect();
    assert_eq!([ahead[0].page, ahead[1].page], [2, 3]);
    assert!(reader.next_request(3).is_none());
    assert_eq!([2, 3, 4].map(|page| reader.is_announced(page)), [true, true, false]);
    for (request, keys) in [first, ahead[0], ahead[1]].iter().zip([vec![1, 2, 3], vec![4, 5, 6], vec![7]]) {
        let rows = Keys(keys);
        let response = Response { rows: &rows, page: None, limit: Some(3), total_pages: Some(3), total: Some(7) };
        assert_eq!(reader.on_response(request, &response).unwrap().rows, 0..rows.0.len());
    }
    assert_eq!((reader.end(), reader.returned()), (Some(End::List), 7));
}

#[test]
fn first_page_that_is_cancelled_is_requested_again_before_those_that_it_counts() {
    let mut reader = ListReader::new(spec(ListKind::Fixed));
    let first = reader.next_request(0).expect("a request");
    reader.announce(2);
    let second = reader.next_request(1).expect("a request");
    reader.cancel(&second);
    reader.cancel(&first);
    assert_eq!([0, 1].map(|in_flight| reader.next_request(in_flight).map(|request| request.page)), [Some(1), Some(2)]);
}

/// The pages of a list of one block: their keys, and the number of pages and of records that they report.
fn read_block(pages: &[(&[u64], u64, Option<u64>)]) -> Result<u64, Error> {
    let mut reader = ListReader::new(spec(ListKind::Fixed));
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
