//! Progress that a caller sees while the list is read.

use super::super::{ListKind, ListReader, ListSpec, PageRequest};
use super::lists::{page, response, rest, serve, spec};

#[test]
fn number_of_records_to_come_is_known_or_that_of_full_pages() {
    let list: Vec<u64> = (0..20).collect();
    for (kind, is_counted, to_come) in [
        (ListKind::Growing, true, [17, 14]),
        (ListKind::Fixed, true, [17, 14]),
        // Seven pages of three.
        (ListKind::Fixed, false, [18, 15]),
    ] {
        let mut reader = ListReader::new(spec(kind));
        for expected in to_come {
            serve(&mut reader, &list, is_counted).2.unwrap();
            assert_eq!(reader.to_come(), expected, "{kind:?} {is_counted}");
        }
        assert_eq!(reader.snapshot().min_length, 19);
    }
}

#[test]
fn requests_that_are_cancelled_are_sent_again() {
    let list: Vec<u64> = (0..20).collect();
    let mut reader = ListReader::new(spec(ListKind::Growing));
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

/// Serves a page of at most `max_served` records, whatever is requested.
fn serve_small(reader: &mut ListReader, list: &[u64], max_served: u64, is_counted: bool) -> Vec<u64> {
    let request = reader.next_request(0).unwrap();
    let served = PageRequest { limit: request.limit.min(max_served), ..request };
    let rows = page(list, &served);
    let accepted = reader.on_response(&request, &response(&rows, list, &served, is_counted)).unwrap();
    rows.0[accepted.rows].to_vec()
}

#[test]
fn one_page_that_is_smaller_than_the_others_has_its_own_position() {
    let list: Vec<u64> = (0..95).collect();
    let mut reader = ListReader::new(ListSpec { page_size: 20, max_page_size: 20, ..spec(ListKind::Growing) });
    let mut keys: Vec<u64> =
        [20, 10].iter().flat_map(|max_served| serve_small(&mut reader, &list, *max_served, true)).collect();
    keys.extend(rest(&mut reader, &list, true));
    assert_eq!(keys, list);
}

#[test]
fn beginning_of_a_list_is_read_however_small_the_largest_page_is() {
    let list: Vec<u64> = (0..30).collect();
    for (size, wanted) in (1..6).flat_map(|size| (1..12).map(move |wanted| (size, wanted))) {
        let spec = ListSpec { page_size: size, max_page_size: size, wanted: Some(wanted), ..spec(ListKind::Growing) };
        let (mut reader, mut keys) = (ListReader::new(spec), Vec::new());
        while (keys.len() as u64) < wanted {
            keys.extend(serve_small(&mut reader, &list, size, false));
        }
        assert_eq!(keys[..wanted as usize], list[..wanted as usize], "{wanted} in pages of {size}");
    }
}

#[test]
fn beginning_of_a_list_is_read_in_smaller_pages_than_requested() {
    let list: Vec<u64> = (0..30).collect();
    for page_size in [4, 8] {
        let spec = ListSpec { page_size, max_page_size: 100, wanted: Some(15), ..spec(ListKind::Growing) };
        let (mut reader, mut keys) = (ListReader::new(spec), Vec::new());
        while keys.len() < 15 {
            keys.extend(serve_small(&mut reader, &list, 4, false));
        }
        assert_eq!(keys[..15], list[..15]);
    }
}

/// The result is the list as it was when its first page was served.
#[test]
fn records_that_are_newer_than_the_first_page_are_not_returned() {
    let list: Vec<u64> = (100..112).collect();
    for added in 0..8 {
        let mut reader = ListReader::new(spec(ListKind::Growing));
        serve(&mut reader, &list, false).2.expect("no error");
        let grown: Vec<u64> = (0..added).chain(list.iter().copied()).collect();
        assert_eq!(rest(&mut reader, &grown, false), list, "{added} added");
    }
}
