//! The pages that the reader requests.

use super::super::delivered::Delivered;
use super::super::state::Attempt;
use super::super::uncounted::{Phase, UncountedReader};
use super::super::{ListKind, ListReader, ListSpec, Purpose, Response};
use super::lists::{Keys, serve, spec};

/// Page and limit of the request for the record at offset 40, in a list in pages of 20 that has grown so.
fn overlapping_page(grown: &[i64], drift: i64, wanted: Option<u64>) -> (u64, u64) {
    let spec = ListSpec { page_size: 20, max_page_size: 50, wanted, ..spec(ListKind::Growing) };
    let mut reader = UncountedReader::new(spec);
    let list = &mut reader.list;
    list.snapshot.page_limit = 20;
    list.delivered = Delivered::at(38);
    list.delivered.push([1, 2].into_iter(), 100);
    list.drift.offset = drift;
    for grown in grown {
        list.drift.growth.observe(*grown);
    }
    reader.phase = Phase::Overlap(Attempt::Expected);
    let request = ListReader::Uncounted(reader).next_request(0).expect("a request");
    (request.page, request.limit)
}

#[test]
fn overlapping_page_begins_before_the_next_record_and_reaches_furthest() {
    // From 40 to 79, where a page of 50 would end at 49.
    assert_eq!(overlapping_page(&[], 2, None), (2, 40));
    // The page begins 5 records later: the least growth.
    assert_eq!(overlapping_page(&[5, 59], 2, None), (2, 45));
    assert_eq!(overlapping_page(&[15, 15], 12, None), (2, 50));
}

#[test]
fn overlapping_page_does_not_reach_further_than_needed_while_the_list_is_stable() {
    // The next 20 records, which are returned as one page, and no others; or fewer that are wanted.
    assert_eq!(overlapping_page(&[], 0, None), (2, 30));
    assert_eq!(overlapping_page(&[], 0, Some(54)), (2, 27));
    assert_eq!(overlapping_page(&[], 0, Some(57)), (3, 19));
    assert_eq!(overlapping_page(&[], 1, Some(55)), overlapping_page(&[], 1, None));
}

/// Purpose of the second request for a list without a count.
fn second_request(records: u64, wanted: u64) -> Purpose {
    let list: Vec<u64> = (0..records).collect();
    let mut reader = ListReader::new(ListSpec { wanted: Some(wanted), ..spec(ListKind::Growing) });
    serve(&mut reader, &list, false).2.unwrap();
    reader.next_request(0).expect("a request").purpose
}

#[test]
fn length_is_not_requested_for_a_few_pages_of_a_longer_list() {
    assert_eq!(second_request(60, 10), Purpose::Records);
    assert_eq!(second_request(60, 15), Purpose::Records);
    assert_eq!(second_request(60, 16), Purpose::Probe);
    // All that the list may have.
    assert_eq!(second_request(6, 5), Purpose::Records);
    assert_eq!(second_request(6, 6), Purpose::Probe);
}

#[test]
fn length_is_requested_where_pages_of_a_fixed_size_cannot_overlap() {
    let mut reader = ListReader::new(ListSpec { wanted: Some(4), page_size: 2, ..spec(ListKind::Growing) });
    let request = reader.next_request(0).expect("a request");
    let response = Response { rows: &Keys(vec![1, 2, 3]), page: None, limit: None, total_pages: Some(7), total: None };
    reader.on_response(&request, &response).unwrap();
    assert_eq!(reader.next_request(0).map(|request| request.purpose), Some(Purpose::Probe));
}
