//! Number of requests of a list that does not change: its reader, on a list whose records have no content. An estimate is
//! so right by construction, and stays so when the reader changes.

use std::collections::VecDeque;

use crate::query::snapshot::{ListReader, ListSpec, PageRequest, Response, Rows};

/// Records of a page, which are told apart by their positions.
struct PositionRows {
    first: u64,
    count: u64,
}

impl Rows for PositionRows {
    fn len(&self) -> usize {
        self.count as usize
    }

    fn key(&self, row: usize) -> u64 {
        self.first + row as u64
    }

    fn height(&self, _row: usize) -> Option<i64> {
        None
    }
}

/// Requests that a list of `length` records without a count takes, `concurrency` of them at a time.
pub(super) fn requests_of(spec: ListSpec, length: u64, concurrency: usize) -> u64 {
    let page_size = spec.page_size.max(1);
    let wanted = spec.wanted.unwrap_or(u64::MAX);
    let mut reader = ListReader::new(spec);
    let mut in_flight: VecDeque<PageRequest> = VecDeque::new();
    let mut requests = 0;
    loop {
        let left = wanted.saturating_sub(reader.returned());
        if left == 0 {
            reader.stop();
            in_flight.clear();
        }
        let max_in_flight = u64::try_from(concurrency).unwrap_or(u64::MAX).min(left.div_ceil(page_size)).max(1);
        while (in_flight.len() as u64) < max_in_flight
            && let Some(request) = reader.next_request(in_flight.len())
        {
            in_flight.push_back(request);
            requests += 1;
        }
        let Some(request) = in_flight.pop_front() else { return requests };
        let first = request.position().min(length);
        let rows = PositionRows { first, count: request.limit.min(length - first) };
        let total_pages = Some(length.div_ceil(request.limit));
        let response =
            Response { rows: &rows, page: Some(request.page), limit: Some(request.limit), total_pages, total: None };
        if reader.on_response(&request, &response).is_err() {
            return requests;
        }
        if !reader.is_ahead() {
            in_flight.drain(..).rev().for_each(|request| reader.cancel(&request));
        }
    }
}
