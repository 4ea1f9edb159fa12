//! Ends of a list: all of it, too little of it, or an error in place of more requests.

use super::super::snapshot::{Length, Proof, Snapshot};
use super::super::{End, FirstPage, ListKind, ListReader, ListSpec, Purpose, Response, Rows, Tuning};
use super::lists::{Keys, page, response, serve, spec, uncounted};

/// Serves the next request with a page of these keys; returns the keys that are new. The list has `pages` pages and
/// `total` records.
fn take(reader: &mut ListReader, keys: &[u64], pages: u64, total: Option<u64>) -> Result<Vec<u64>, String> {
    let request = reader.next_request(0).expect("a request");
    let rows = Keys(keys.to_vec());
    let response = Response { rows: &rows, page: None, limit: Some(request.limit), total_pages: Some(pages), total };
    let accepted = reader.on_response(&request, &response).map_err(|error| error.to_string())?;
    Ok(rows.0[accepted.rows].to_vec())
}

#[test]
fn rows_of_the_response_that_shows_an_error_are_returned() {
    let mut reader = ListReader::new(spec(ListKind::Growing));
    assert_eq!(take(&mut reader, &[1, 2, 3], 2, Some(6)).unwrap(), [1, 2, 3]);
    // A record was added, and yet there is no third page.
    assert_eq!(take(&mut reader, &[3, 4, 5], 2, Some(7)).unwrap(), [4, 5]);
    assert!(error(&reader).contains("had 6 records, of which 5 could be read"), "{}", error(&reader));
}

#[test]
fn lookup_that_fills_its_response_ends_with_it() {
    let window = ListSpec { page_size: 3, result_window: Some(3), ..spec(ListKind::Lookup) };
    let mut reader = ListReader::new(window);
    assert_eq!(take(&mut reader, &[1, 1, 1], 0, None).unwrap(), [1, 1, 1]);
    assert_eq!(reader.end(), Some(End::ResultWindow));
}

#[test]
fn only_page_does_not_show_the_length_if_it_reaches_the_result_window() {
    for (window, length) in [(3, Length::Unknown), (4, Length::Exact(3))] {
        let window = ListSpec { page_size: 3, result_window: Some(window), ..spec(ListKind::Growing) };
        let mut reader = ListReader::new(window);
        take(&mut reader, &[1, 2, 3], 1, None).unwrap();
        assert_eq!(reader.snapshot().length, length);
    }
}

/// In the place of the first page's second 1 is its first one, two records above.
#[test]
fn anchor_that_is_equal_to_one_above_it_does_not_prove_that_nothing_was_deleted() {
    let wide = ListSpec { page_size: 4, max_page_size: 4, ..spec(ListKind::Growing) };
    let mut reader = ListReader::new(wide);
    assert_eq!(take(&mut reader, &[1, 2, 1, 3], 3, Some(12)).unwrap(), [1, 2, 1, 3]);
    assert_eq!(take(&mut reader, &[5, 6, 5, 6], 3, Some(12)).unwrap(), [5, 6, 5, 6]);
    // 7 and 8 are deleted; the count says that two records are above those that are requested.
    let _ = take(&mut reader, &[9, 10], 3, Some(10));
    for _ in 0..20 {
        let Some(request) = reader.next_request(0) else { break };
        let list = [1, 2, 1, 3, 5, 6, 5, 6, 9, 10];
        let rows = page(&list, &request);
        let _ = reader.on_response(&request, &response(&rows, &list, &request, true));
    }
    assert_ne!(reader.end(), Some(End::List), "two records are missing");
}

/// The record may be where it was since another one was deleted.
#[test]
fn final_look_at_a_response_without_the_count_is_repeated() {
    let mut reader = ListReader::new(spec(ListKind::Growing));
    take(&mut reader, &[1, 2, 3], 2, Some(5)).unwrap();
    assert_eq!(take(&mut reader, &[3, 4, 5], 2, Some(6)).unwrap(), [4, 5]);
    take(&mut reader, &[3, 4, 5], 2, None).unwrap();
    assert_eq!(reader.end(), None);
    take(&mut reader, &[3, 4, 5], 2, Some(6)).unwrap();
    assert_eq!(reader.end(), Some(End::List));
}

/// As after a cursor that lacks the records of the first page.
#[test]
fn final_look_without_a_record_to_look_for_raises() {
    let mut reader = ListReader::new(spec(ListKind::Growing));
    take(&mut reader, &[1, 2, 3], 2, Some(5)).unwrap();
    let mut checkpoint = reader.checkpoint();
    checkpoint.snapshot = Snapshot { first: None, anchors: Vec::new(), ..checkpoint.snapshot };
    reader = ListReader::resumed(spec(ListKind::Growing), 3, &checkpoint);
    assert_eq!(take(&mut reader, &[4, 5], 2, Some(5)).unwrap(), [4, 5]);
    let error = take(&mut reader, &[1, 2, 3], 2, Some(5)).unwrap_err();
    assert!(error.contains("were deleted or replaced"), "{error}");
}

/// As from a service that ignores the limit of one request.
#[test]
fn page_that_ends_below_its_count_raises() {
    let mut reader = ListReader::new(spec(ListKind::Growing));
    take(&mut reader, &[1, 2, 3], 3, Some(9)).unwrap();
    let error = take(&mut reader, &[4, 5, 6], 2, Some(5)).unwrap_err();
    assert!(error.contains("ends below the last record"), "{error}");
}

/// The records that were returned are known by the count alone.
#[test]
fn response_of_a_counted_list_without_its_count_brings_no_record() {
    let mut reader = ListReader::new(spec(ListKind::Growing));
    take(&mut reader, &[10, 11, 12], 7, Some(20)).unwrap();
    assert!(take(&mut reader, &[12, 13, 14], 7, None).unwrap().is_empty());
}

#[test]
fn list_of_one_block_without_a_number_of_pages_is_read_and_incomplete() {
    for last in [&[7][..], &[]] {
        let mut reader = ListReader::new(spec(ListKind::Fixed));
        let pages = [&[1, 2, 3][..], &[4, 5, 6], last, &[]];
        for keys in &pages[..if last.is_empty() { 3 } else { 4 }] {
            let request = reader.next_request(0).expect("a request");
            let rows = Keys(keys.to_vec());
            let response = Response { rows: &rows, page: None, limit: None, total_pages: None, total: None };
            assert_eq!(reader.on_response(&request, &response).unwrap().rows, 0..keys.len());
        }
        assert_eq!((reader.returned(), reader.end()), (6 + last.len() as u64, Some(End::UnknownLength)));
    }
}

#[test]
fn list_without_a_result_window_to_speak_of_ends() {
    let mut reader = ListReader::new(ListSpec { result_window: Some(u64::MAX), ..spec(ListKind::Growing) });
    take(&mut reader, &[1, 2], 1, None).unwrap();
    assert_eq!(reader.end(), Some(End::List));
}

#[test]
fn list_of_fewer_records_than_its_count_ends() {
    let mut reader = ListReader::new(spec(ListKind::Growing));
    take(&mut reader, &[1, 2, 3], 2, Some(6)).unwrap();
    assert_eq!(take(&mut reader, &[4, 5], 2, Some(6)).unwrap(), [4, 5]);
    // The final look.
    assert_eq!(reader.end(), None);
    take(&mut reader, &[1, 2, 3], 2, Some(6)).unwrap();
    assert_eq!((reader.end(), reader.returned()), (Some(End::List), 5));
}

#[test]
fn first_page_without_records_is_followed_by_the_length() {
    for first_page in [FirstPage::Located, FirstPage::AtOnce] {
        let mut reader = ListReader::new(ListSpec { first_page, ..spec(ListKind::Growing) });
        assert!(take(&mut reader, &[], 2, None).unwrap().is_empty());
        assert!(take(&mut reader, &[1], 4, None).unwrap().is_empty());
        assert_eq!(take(&mut reader, &[1, 2, 3], 2, None).unwrap(), [1, 2, 3]);
        assert_eq!(take(&mut reader, &[4], 2, None).unwrap(), [4]);
        assert_eq!(reader.end(), Some(End::List));
    }
}

#[test]
fn list_whose_pages_are_empty_raises() {
    for (wanted, first_page) in
        [(None, FirstPage::Located), (Some(4), FirstPage::Located), (Some(4), FirstPage::AtOnce)]
    {
        let mut reader = ListReader::new(ListSpec { wanted, first_page, ..spec(ListKind::Growing) });
        while reader.error().is_none() && reader.end().is_none() {
            let request = reader.next_request(0).expect("a request");
            let rows = Keys(if (request.page, request.limit) == (1, 1) { vec![1] } else { Vec::new() });
            let response =
                Response { rows: &rows, page: None, limit: Some(request.limit), total_pages: Some(7), total: None };
            let _ = reader.on_response(&request, &response);
        }
        assert!(reader.end().is_none(), "{wanted:?}");
    }
}

/// Reads a list until it has ended or failed; returns the highest page that was requested.
fn read(reader: &mut ListReader, list: &[u64], is_counted: bool) -> u64 {
    let mut last = 0;
    while reader.end().is_none() && reader.error().is_none() {
        last = last.max(serve(reader, list, is_counted).0.page);
    }
    last
}

fn error(reader: &ListReader) -> String {
    reader.error().expect("an error").to_string()
}

#[test]
fn beginning_of_a_list_that_shrinks_below_its_least_length_raises() {
    let growing = spec(ListKind::Growing);
    let mut reader = ListReader::new(ListSpec { wanted: Some(6), max_page_size: 10, ..growing });
    take(&mut reader, &[1, 2, 3], 3, None).unwrap();
    read(&mut reader, &[1, 2, 3, 4], false);
    assert!(error(&reader).contains("had 7 records, of which 4 could be read"), "{}", error(&reader));
}

#[test]
fn list_is_given_up_after_more_responses_without_new_records_than_allowed() {
    let mut reader = ListReader::new(spec(ListKind::Growing));
    take(&mut reader, &[1, 2, 3], 2, Some(6)).unwrap();
    let given_up = (1..).find(|_| take(&mut reader, &[], 2, Some(6)).is_err());
    assert_eq!(given_up, Some(spec(ListKind::Growing).tuning.max_misses + 1));
}

#[test]
fn returned_records_that_are_gone_are_noticed_on_the_pages_that_could_contain_them() {
    let mut reader = ListReader::new(ListSpec { first_page: FirstPage::AtOnce, ..spec(ListKind::Growing) });
    assert_eq!(take(&mut reader, &[900, 901, 902], 20, None).unwrap(), [900, 901, 902]);
    let list: Vec<u64> = (0..60).collect();
    let last = read(&mut reader, &list, false);
    assert!(error(&reader).contains("the first page changed") && last <= 2, "page {last}: {}", error(&reader));
}

#[test]
fn list_of_about_as_many_records_as_the_result_window_ends_there() {
    let window = ListSpec { page_size: 50, max_page_size: 50, result_window: Some(100), ..spec(ListKind::Growing) };
    for (records, is_counted, end) in [
        (98, false, End::List),
        (99, false, End::ResultWindow),
        (100, false, End::ResultWindow),
        (105, false, End::ResultWindow),
        (106, false, End::UnknownLength),
        // The count of the window is that of any longer list.
        (98, true, End::List),
        (100, true, End::ResultWindow),
        (105, true, End::ResultWindow),
        (106, true, End::List),
    ] {
        let list: Vec<u64> = (0..records).collect();
        let mut reader = ListReader::new(window.clone());
        read(&mut reader, &list, is_counted);
        assert_eq!(reader.end(), Some(end), "{records} {is_counted}");
    }
    // Fewer pages than its count needs.
    let mut reader = ListReader::new(ListSpec { page_size: 30, ..window });
    for from in [0, 30] {
        take(&mut reader, &(from..from + 30).collect::<Vec<_>>(), 2, Some(300)).unwrap();
    }
    take(&mut reader, &(0..30).collect::<Vec<_>>(), 2, Some(300)).unwrap();
    assert_eq!(reader.end(), Some(End::ResultWindow));
}

#[test]
fn part_of_a_list_ends_with_a_look_at_its_first_page_and_at_its_last_record() {
    let list: Vec<u64> = (0..60).collect();
    // A record that was read alone does not show what was read ahead after it.
    for proof in [Proof::Length, Proof::FinalLook] {
        let mut reader = ListReader::new(spec(ListKind::Growing));
        while reader.returned() < 9 {
            serve(&mut reader, &list, false).2.unwrap();
        }
        uncounted(&mut reader).list.proof = proof;
        assert!(reader.stop());
        let looks: Vec<_> = std::iter::from_fn(|| {
            reader.end().is_none().then(|| {
                let (request, rows, _) = serve(&mut reader, &list, false);
                (request.purpose, rows.0[0])
            })
        })
        .collect();
        assert_eq!(looks, [(Purpose::FinalLook, 2), (Purpose::FinalLook, 8)]);
        assert_eq!(reader.end(), Some(End::List));
    }
}

#[test]
fn end_of_a_list_is_not_taken_for_the_result_window_far_from_it() {
    let window = ListSpec { page_size: 50, max_page_size: 50, result_window: Some(200), ..spec(ListKind::Growing) };
    let (list, mut reader) = ((0..160).collect::<Vec<_>>(), ListReader::new(window.clone()));
    while reader.returned() < 100 {
        serve(&mut reader, &list, false).2.unwrap();
    }
    read(&mut reader, &list[..150], false);
    assert!(error(&reader).contains("were deleted or replaced"), "{}", error(&reader));
    // As many pages as its count needs, the last of which is not full.
    let mut reader = ListReader::new(ListSpec { page_size: 30, ..window });
    for keys in [0..30, 30..50, 0..30] {
        take(&mut reader, &keys.collect::<Vec<_>>(), 2, Some(60)).unwrap();
    }
    assert_eq!(reader.end(), Some(End::List));
}

#[test]
fn list_that_grows_to_the_result_window_is_complete() {
    let window = ListSpec { page_size: 50, max_page_size: 50, result_window: Some(100), ..spec(ListKind::Growing) };
    let (list, mut reader) = ((100..197).collect::<Vec<_>>(), ListReader::new(window));
    while reader.returned() == 0 {
        serve(&mut reader, &list, false).2.unwrap();
    }
    let grown: Vec<u64> = (0..3).chain(list).collect();
    read(&mut reader, &grown, false);
    assert_eq!((reader.end(), reader.returned()), (Some(End::List), 97));
}

/// Records with a hundred keys per height.
struct Hundreds(Vec<u64>);

impl Rows for Hundreds {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn key(&self, row: usize) -> u64 {
        self.0[row]
    }

    fn height(&self, row: usize) -> Option<i64> {
        Some(-(self.0[row] as i64 / 100))
    }
}

/// Reads a list of which the API returns the first 12 records up to a height. Returns what was read, and the height up to
/// which the last part of it was read.
fn read_by_height(list: &[u64], spec: ListSpec) -> (Vec<u64>, Option<End>, Option<i64>) {
    let window = ListSpec { height_bound: Some(i64::MAX), result_window: Some(12), ..spec };
    let (mut reader, mut returned) = (ListReader::new(window), Vec::new());
    while reader.end().is_none() {
        let request = reader.next_request(0).expect("a request");
        let bound = request.height_bound.unwrap_or(i64::MAX);
        let shown: Vec<u64> = list.iter().copied().filter(|key| -(*key as i64 / 100) <= bound).take(12).collect();
        let rows = Hundreds(page(&shown, &request).0);
        let total_pages = Some((shown.len() as u64).div_ceil(request.limit));
        let response = Response { rows: &rows, page: None, limit: Some(request.limit), total_pages, total: None };
        let accepted = reader.on_response(&request, &response).unwrap();
        returned.extend(&rows.0[accepted.rows]);
    }
    (returned, reader.end(), uncounted(&mut reader).height_bound)
}

#[test]
fn list_is_continued_by_height_below_its_result_window() {
    for (step, last) in [(20, -17), (100, -88)] {
        let list: Vec<u64> = (0..90).map(|record| record * step).collect();
        for page_size in [3, 5, 12] {
            let spec = ListSpec { page_size, max_page_size: 20, ..spec(ListKind::Growing) };
            let (returned, end, bound) = read_by_height(&list, spec);
            assert_eq!((returned, end), (list.clone(), Some(End::UnknownLength)));
            assert!(bound.is_some_and(|bound| bound - last < 12), "{bound:?}");
        }
    }
}

#[test]
fn list_is_not_continued_in_a_height_that_fills_the_result_window() {
    let spec = ListSpec { page_size: 4, max_page_size: 4, ..spec(ListKind::Growing) };
    let full: Vec<u64> = (500..520).collect();
    assert_eq!(read_by_height(&full, spec.clone()), (full[..12].to_vec(), Some(End::ResultWindow), Some(-5)));
    let list: Vec<u64> = [100, 200].into_iter().chain(full.clone()).collect();
    assert_eq!(read_by_height(&list, spec.clone()), (list[..14].to_vec(), Some(End::ResultWindow), Some(-5)));
    // No record of the first page of that height is known.
    let spec = ListSpec { tuning: Tuning { max_keys: 4, ..Tuning::default() }, ..spec };
    assert_eq!(read_by_height(&full, spec), (full[..12].to_vec(), Some(End::ResultWindow), Some(-5)));
}

#[test]
fn list_that_is_not_in_the_order_of_heights_is_not_continued() {
    let list: Vec<u64> = (0..20).map(|record| record * 1_300 % 2_000).collect();
    let (returned, end, bound) = read_by_height(&list, spec(ListKind::Growing));
    assert_eq!((returned, end, bound), (list[..12].to_vec(), Some(End::ResultWindow), None));
}

#[test]
fn list_of_unknown_length_is_complete_if_its_pages_overlap() {
    let list: Vec<u64> = (0..225).collect();
    for (wanted, end) in [(Some(230), End::List), (None, End::UnknownLength)] {
        let window = ListSpec { page_size: 20, max_page_size: 20, result_window: Some(200), ..spec(ListKind::Growing) };
        let mut reader = ListReader::new(ListSpec { wanted, ..window });
        read(&mut reader, &list, false);
        assert_eq!((reader.end(), reader.returned()), (Some(end), 225));
    }
}
