//! Readers that continue from a checkpoint, and what a checkpoint has.

use super::super::delivered::Delivered;
use super::super::snapshot::{Length, Snapshot};
use super::super::{End, FirstPage, ListCheckpoint, ListKind, ListReader, ListSpec, PageRequest};
use super::lists::{KEYS_MADE, Keys, page, response, rest, serve, spec};

/// Serves the next request. Returns the new rows, and the checkpoint before them.
fn next_page(reader: &mut ListReader, list: &[u64], is_counted: bool) -> (Keys, ListCheckpoint) {
    let (_, rows, accepted) = serve(reader, list, is_counted);
    let accepted = accepted.unwrap();
    (Keys(rows.0[accepted.rows].to_vec()), accepted.before)
}

fn parsed(checkpoint: &ListCheckpoint) -> ListCheckpoint {
    serde_json::from_str(&serde_json::to_string(checkpoint).unwrap()).unwrap()
}

#[test]
fn partition_begins_where_a_later_page_of_a_counted_list_ends() {
    let (list, mut reader) = ((0..20).collect::<Vec<_>>(), ListReader::new(spec(ListKind::Growing)));
    next_page(&mut reader, &list, true);
    let grown: Vec<u64> = [101, 100].into_iter().chain(list.clone()).collect();
    let request = PageRequest { page: 3, ..PageRequest::first(3) };
    let rows = page(&grown, &request);
    let (offset, checkpoint) = reader.checkpoint_after(&request, &response(&rows, &grown, &request, true)).unwrap();
    assert_eq!((offset, &checkpoint.delivered, checkpoint.drift), (7, &Delivered::at(7), 2));
    let mut resumed = ListReader::resumed(spec(ListKind::Growing), offset, &parsed(&checkpoint));
    assert_eq!(resumed.next_request(0).map(|request| request.page), Some(4));
    let mut resumed = ListReader::resumed(spec(ListKind::Growing), offset, &parsed(&checkpoint));
    assert_eq!(rest(&mut resumed, &grown, true), list[7..]);
    // Without a count, the page shows no offset.
    assert_eq!(reader.checkpoint_after(&request, &response(&rows, &grown, &request, false)), None);
}

#[test]
fn first_partition_raises_if_the_first_record_of_the_snapshot_was_replaced() {
    for (first, is_right) in [(0, true), (100, false)] {
        let (mut list, mut reader) = ((0..20).collect::<Vec<_>>(), ListReader::new(spec(ListKind::Growing)));
        let (_, before) = next_page(&mut reader, &list, true);
        let mut first_partition = ListReader::resumed(spec(ListKind::Growing), 0, &before.between(None, None));
        list[0] = first;
        let mut has_raised = false;
        while first_partition.end().is_none() && !has_raised {
            has_raised = serve(&mut first_partition, &list, true).2.is_err();
        }
        assert_eq!(has_raised, !is_right);
    }
}

#[test]
fn checkpoint_has_what_is_needed_of_the_records_before_it() {
    for is_counted in [true, false] {
        let (list, mut reader) = ((0..20).collect::<Vec<_>>(), ListReader::new(spec(ListKind::Growing)));
        assert!(reader.checkpoint().is_start());
        let (mut rows, mut before) = (Keys(Vec::new()), ListCheckpoint::default());
        while rows.0.is_empty() {
            assert!(reader.checkpoint().is_start());
            (rows, before) = next_page(&mut reader, &list, is_counted);
        }
        assert_eq!((rows.0.len(), before.is_start(), reader.checkpoint().is_start()), (3, true, false));
        assert!(!before.clone().between(None, None).is_start());
        assert_eq!(ListReader::resumed(spec(ListKind::Growing), 0, &before).next_request(0).unwrap().page, 1);
        let inside = before.advanced(&rows, 2);
        assert_eq!(inside.delivered, if is_counted { Delivered::at(2) } else { Delivered::of(vec![0, 1]) });
        assert_eq!(reader.checkpoint().snapshot.anchors, [[(1, 1), (2, 2)]]);
    }
}

/// The offset of the first other record shows whether one of the equal records before it was deleted.
#[test]
fn part_of_a_page_has_the_first_record_that_differs_from_the_head() {
    let (list, mut reader) = (vec![6, 6, 6, 4, 4, 4, 0], ListReader::new(spec(ListKind::Growing)));
    next_page(&mut reader, &list, true);
    let (rows, before) = next_page(&mut reader, &list, true);
    assert_eq!(before.advanced(&rows, 1).snapshot.anchors, [[(0, 6)], [(3, 4)]]);
}

#[test]
fn anchors_lie_before_the_next_record() {
    let anchors = vec![vec![(1, 11), (2, 12)], vec![(1, 21)], vec![(2, 22)]];
    let snapshot = Snapshot { first: Some(10), anchors, ..Snapshot::default() };
    for (end, anchors) in [(2, &[[(1, 11)], [(1, 21)]][..]), (1, &[[(0, 10)]])] {
        let mut snapshot = snapshot.clone();
        snapshot.keep_anchors_before(end);
        assert_eq!(snapshot.anchors, anchors);
    }
}

#[test]
fn checkpoint_of_a_list_that_is_read_again_has_its_returned_records_only() {
    let returned = ListCheckpoint {
        delivered: Delivered::of(vec![0, 1, 2]),
        snapshot: Snapshot { page_limit: 3, ..Snapshot::default() },
        ..ListCheckpoint::default()
    };
    let mut reader = ListReader::resumed(spec(ListKind::Growing), 3, &returned);
    let mut grown: Vec<u64> = (100..105).rev().chain(0..20).collect();
    // The length, and pages of newer records.
    next_page(&mut reader, &grown, false);
    next_page(&mut reader, &grown, false);
    grown.insert(0, 105);
    while reader.drift() == 0 {
        next_page(&mut reader, &grown, false);
    }
    assert!(reader.snapshot().first.is_some() && !reader.snapshot().anchors.is_empty());
    let checkpoint = reader.checkpoint();
    assert_eq!((checkpoint.snapshot.length, checkpoint.drift), (Length::Pending, 0));
    assert_eq!(checkpoint.delivered, Delivered::of(vec![0, 1, 2]));
    assert_eq!(checkpoint.snapshot.page_rows(), 3);
}

#[test]
fn list_that_has_others_among_the_records_of_the_returned_first_page_is_not_continued_after_them() {
    let wide = ListSpec { page_size: 20, max_page_size: 20, first_page: FirstPage::AtOnce, ..spec(ListKind::Growing) };
    let list: Vec<u64> = (0..60).collect();
    let mut grown = list.clone();
    grown.insert(0, 100);
    // A part of the service that lacks some of the newest records has sent the first page.
    let lacking: Vec<u64> = list.iter().copied().filter(|key| !(2..9).contains(key)).collect();
    for (first, is_right) in [(&list, true), (&lacking, false)] {
        let mut reader = ListReader::new(wide.clone());
        let (_, rows, accepted) = serve(&mut reader, first, false);
        let returned = accepted.unwrap();
        assert_eq!(returned.rows, 0..20);
        // After all of the page, or after a row of it.
        for (rows_returned, at) in [(20, reader.checkpoint()), (12, returned.before.clone().advanced(&rows, 12))] {
            let mut resumed = ListReader::resumed(wide.clone(), rows_returned, &parsed(&at));
            while resumed.end().is_none() && resumed.error().is_none() {
                let _ = serve(&mut resumed, &grown, false);
            }
            assert_eq!(resumed.end() == Some(End::List), is_right, "{rows_returned} {:?}", resumed.error());
        }
    }
}

#[test]
fn pages_are_requested_ahead_after_a_resume_if_a_count_or_their_order_locates_them() {
    for (kind, is_counted, is_ahead) in [
        (ListKind::Growing, true, true),
        (ListKind::Growing, false, false),
        (ListKind::Fixed, true, true),
        (ListKind::Fixed, false, true),
    ] {
        let (list, mut reader) = ((0..20).collect::<Vec<_>>(), ListReader::new(spec(kind)));
        for _ in 0..3 {
            next_page(&mut reader, &list, is_counted);
        }
        let resumed = ListReader::resumed(spec(kind), reader.returned(), &parsed(&reader.checkpoint()));
        assert_eq!(resumed.is_ahead(), is_ahead, "{kind:?} {is_counted}");
    }
}

#[test]
fn checkpoint_has_the_drift() {
    let (mut list, mut reader) = ((0..20).collect::<Vec<_>>(), ListReader::new(spec(ListKind::Growing)));
    next_page(&mut reader, &list, true);
    list.insert(0, 100);
    next_page(&mut reader, &list, true);
    assert_eq!((reader.checkpoint().drift, reader.returned()), (1, 5));
}

#[test]
fn list_without_a_count_that_was_read_to_its_end_needs_a_look_after_a_resume() {
    let (list, mut reader) = ((0..7).collect::<Vec<_>>(), ListReader::new(spec(ListKind::Growing)));
    rest(&mut reader, &list, false);
    assert_eq!(reader.returned(), 7);
    for (list, is_whole) in [(list.clone(), true), ((0..8).collect(), false)] {
        let mut resumed = ListReader::resumed(spec(ListKind::Growing), 7, &parsed(&reader.checkpoint()));
        assert_eq!(serve(&mut resumed, &list, false).2.is_ok(), is_whole);
        assert_eq!(resumed.end(), is_whole.then_some(End::List));
    }
}

#[test]
fn keys_of_a_list_with_a_count_are_made_for_its_first_page_only() {
    let (list, mut reader) = ((0..20).collect::<Vec<_>>(), ListReader::new(spec(ListKind::Growing)));
    next_page(&mut reader, &list, true);
    KEYS_MADE.set(0);
    next_page(&mut reader, &list, true);
    assert_eq!(KEYS_MADE.get(), 0);
}

#[test]
fn checkpoint_with_numbers_that_no_list_has_is_not_plausible() {
    let (list, mut reader) = ((0..20).collect::<Vec<_>>(), ListReader::new(spec(ListKind::Growing)));
    next_page(&mut reader, &list, true);
    let checkpoint = serde_json::to_string(&reader.checkpoint()).unwrap();
    let is_plausible = |json: &str| serde_json::from_str::<ListCheckpoint>(json).unwrap().is_plausible();
    assert!(is_plausible(&checkpoint) && ListCheckpoint::default().is_plausible());
    for (number, other) in [
        ("\"shift\":0", "\"shift\":-9000000000000000000"),
        ("\"end\":3", "\"end\":18446744073709551615"),
        ("\"end\":3", "\"end\":1,\"keys\":[1,2]"),
        ("\"exact\":20", "\"exact\":9000000000000000000"),
        ("\"total\":20", "\"total\":9000000000000000000"),
        ("[1,1]", "[9000000000000000000,1]"),
        ("\"least\":1", "\"least\":0"),
        ("\"most\":18446744073709551615", "\"most\":0"),
    ] {
        assert!(checkpoint.contains(number), "{number} in {checkpoint}");
        assert!(!is_plausible(&checkpoint.replace(number, other)), "{other}");
    }
}
