//! Lists of keys, and the responses that a service would return of them.

use std::cell::Cell;

use super::super::spec::Rows;
use super::super::uncounted::UncountedReader;
use super::super::{Accepted, FirstPage, ListKind, ListReader, ListSpec, PageRequest, Response, Tuning};
use crate::client::Error;

pub(in crate::query::snapshot) struct Keys(pub Vec<u64>);

thread_local! {
    /// Number of keys that were made.
    pub(in crate::query::snapshot) static KEYS_MADE: Cell<usize> = const { Cell::new(0) };
}

impl Rows for Keys {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn key(&self, row: usize) -> u64 {
        KEYS_MADE.set(KEYS_MADE.get() + 1);
        self.0[row]
    }

    fn height(&self, row: usize) -> Option<i64> {
        Some(-(self.0[row] as i64))
    }
}

pub(in crate::query::snapshot) fn spec(kind: ListKind) -> ListSpec {
    ListSpec {
        endpoint: "list",
        kind,
        page_size: 3,
        max_page_size: 3,
        height_bound: None,
        result_window: None,
        wanted: None,
        first_page: FirstPage::Located,
        hints: Vec::new(),
        tuning: Tuning::default(),
    }
}

pub(in crate::query::snapshot) fn page(list: &[u64], request: &PageRequest) -> Keys {
    let limit = request.limit as usize;
    Keys(list.chunks(limit).nth(request.page as usize - 1).unwrap_or_default().to_vec())
}

pub(in crate::query::snapshot) fn response<'a>(
    rows: &'a Keys,
    list: &[u64],
    request: &PageRequest,
    is_counted: bool,
) -> Response<'a> {
    let length = list.len() as u64;
    Response {
        rows,
        page: Some(request.page),
        limit: Some(request.limit),
        total_pages: Some(length.div_ceil(request.limit)),
        total: is_counted.then_some(length),
    }
}

/// Serves the next request from a list. Returns the request, its rows, and what the reader accepts of them.
pub(in crate::query::snapshot) fn serve(
    reader: &mut ListReader,
    list: &[u64],
    is_counted: bool,
) -> (PageRequest, Keys, Result<Accepted, Error>) {
    let request = reader.next_request(0).expect("a request");
    let rows = page(list, &request);
    let is_counted = is_counted && !reader.spec().is_capped(list.len() as u64);
    let accepted = reader.on_response(&request, &response(&rows, list, &request, is_counted));
    (request, rows, accepted)
}

/// Reads to the end, and returns the keys.
pub(in crate::query::snapshot) fn rest(reader: &mut ListReader, list: &[u64], is_counted: bool) -> Vec<u64> {
    let mut keys = Vec::new();
    while reader.end().is_none() {
        let (_, rows, accepted) = serve(reader, list, is_counted);
        keys.extend(&rows.0[accepted.expect("no error").rows]);
    }
    keys
}

/// A reader of a list that has no count so far.
pub(in crate::query::snapshot) fn uncounted(reader: &mut ListReader) -> &mut UncountedReader {
    if let ListReader::Uncounted(reader) = reader { reader } else { panic!("another kind: {reader:?}") }
}
