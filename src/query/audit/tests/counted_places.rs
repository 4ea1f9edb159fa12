//! Places of records by the count of their list.

use super::*;
use crate::query::snapshot::ListCheckpoint;

/// The verdict on a list of 9 records whose first two pages have the keys 1 to 6, and whose third page shows these keys.
fn end(shown: &[u64], count: u64, returned: std::ops::Range<usize>) -> Result<(), String> {
    let list = Subject { has_blocks: false, ..LIST };
    let mut audit = ListAudit::new(list, 0, &[]);
    let mut show = |page, keys: &[u64], count, returned| {
        let rows = Page(keys.iter().map(|key| (*key, 20 - *key as i64, 1)).collect());
        take_as(&mut audit, PageRequest { page, ..PageRequest::first(3) }, &rows, 4, Some(count), returned).unwrap();
    };
    show(1, &[1, 2, 3], 9, 0..3);
    show(2, &[4, 5, 6], 9, 0..3);
    show(3, shown, count, returned);
    // The first page has not moved.
    show(1, &[1, 2, 3], 9, 0..0);
    audit.on_end(&End { extent: Extent::Reachable, ..WHOLE })
}

#[test]
fn record_in_the_place_of_a_returned_one_is_a_contradiction() {
    assert_eq!(end(&[7, 8, 9], 9, 0..3), Ok(()));
    assert_eq!(end(&[6, 7, 8], 10, 1..3), Ok(()));
    // The other responses are of a part of the service that lacks record 10.
    let contradiction = Err("a response has another record in the place of a returned one".into());
    assert_eq!(end(&[10, 8, 9], 10, 1..3), contradiction);
    assert_eq!(end(&[10, 6, 7], 11, 2..3), contradiction);
}

#[test]
fn record_in_the_place_of_one_of_the_first_page_is_a_contradiction_if_that_is_found_again() {
    let ends = |head: &[i64], count| {
        let mut audit = ListAudit::new(LIST, 0, &[]);
        let mut show = |page, rows: &[i64], count, returned| {
            let request = PageRequest { page, ..PageRequest::first(3) };
            take_as(&mut audit, request, &heights(rows), 2, Some(count), returned).unwrap();
        };
        show(1, &[9, 8, 7], 4, 0..3);
        show(2, &[17, 6], 5, 1..2);
        show(1, head, count, 0..0);
        audit.on_end(&End { extent: Extent::Reachable, ..WHOLE })
    };
    assert!(ends(&[9, 8, 7], 4).is_err());
    // The first two records of the first page were replaced; the third one is in its place.
    assert!(ends(&[10, 19, 7], 4).is_err());
    assert_eq!(ends(&[19, 18, 17], 5), Err("no response confirms the first page".into()));
}

#[test]
fn first_page_of_an_earlier_run_is_to_be_found_again() {
    let ends = |proof: &str, shown: &[(u64, &[u64], u64)]| {
        let snapshot = r#"{"length":{"exact":5},"total":5,"page_limit":3,"first":1,"anchors":[[[1,2],[2,3]]]}"#;
        let json = format!(r#"{{"snapshot":{snapshot},"delivered":{{"end":3}},"proof":"{proof}"}}"#);
        let list: ListCheckpoint = serde_json::from_str(&json).unwrap();
        let mut audit = ListAudit::new(LIST, 3, &[1, 2, 3]).after_places(&list);
        for (page, rows, count) in shown {
            let request = PageRequest { page: *page, ..PageRequest::first(3) };
            let returned = if *page == 2 { rows.len() - 2..rows.len() } else { 0..0 };
            take_as(&mut audit, request, &keys(rows), 2, Some(*count), returned).unwrap();
        }
        audit.on_end(&End { extent: Extent::Reachable, ..WHOLE })
    };
    let lacks = Err("no response confirms the first page".into());
    let page = (2, &[4, 5][..], 5);
    assert_eq!((ends("overlap", &[]), ends("final_look", &[])), (Ok(()), lacks.clone()));
    assert_eq!((ends("overlap", &[page]), ends("final_look", &[page])), (lacks.clone(), lacks.clone()));
    assert_eq!(ends("final_look", &[page, (1, &[1, 2, 3], 5)]), Ok(()));
    assert_eq!(ends("final_look", &[page, (1, &[9, 1, 2], 6)]), Ok(()));
    assert_eq!(ends("final_look", &[page, (1, &[8, 9, 7], 5)]), lacks);
    // The page has a returned record as well.
    assert_eq!(ends("final_look", &[(2, &[3, 4, 5], 6)]), Ok(()));
}
