//! `ListCheckpoint`: a position within a list, from which another reader continues.

use serde::{Deserialize, Serialize};

use super::delivered::{Delivered, latest_runs};
use super::evidence::{Count, Length, Look, PageSizes, Snapshot};
use super::reader::{Drift, End, Margin, Phase, Proof, Skip, SnapshotReader};
use super::spec::{ListKind, ListSpec, PageRequest, Response, Rows, Tuning};
use super::tail::Tail;

/// Everything a reader needs to continue, apart from what the query says. Hashes are not made before they are needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListCheckpoint {
    length: Length,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_pages: Option<u64>,
    min_length: u64,
    page_limit: u64,
    page_rows: u64,
    page_sizes: PageSizes,
    count: Count,
    /// Offset of the next record in the snapshot.
    offset: u64,
    /// Drift at the latest response.
    shift: i64,
    proof: Proof,
    /// Key of the first record.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    anchors: Vec<(u64, u64)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checks: Vec<(u64, u64)>,
    /// Keys of the latest records, oldest first: each with how often it occurs in a row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keys: Vec<(u64, u64)>,
    /// Greatest height of the part of the list that is being read, if that is not the query's.
    #[serde(skip_serializing_if = "Option::is_none")]
    height_bound: Option<i64>,
    tail: Tail,
}

impl ListCheckpoint {
    pub fn is_start(&self) -> bool {
        self.length == Length::Pending && self.keys.is_empty()
    }

    /// The position after the first `rows` of these rows, which come next.
    #[must_use]
    pub fn advanced(mut self, rows: &dyn Rows, count: usize) -> Self {
        let anchors = std::mem::take(&mut self.anchors);
        self.offset += count as u64;
        self.set_anchors(&anchors);
        self.tail = if self.tail == Tail::Unordered { self.tail } else { self.tail.after(rows, 0..count) };
        if self.count == Count::Pages {
            let fresh = (0..count).rev().map(|row| (rows.key(row), 1));
            let least = Tuning::default().checkpoint_keys;
            self.keys = latest_runs(fresh.chain(self.keys.iter().rev().copied()), least);
        }
        self
    }

    /// Keeps the anchors above the next record: one that is read again would not show what happened in the meantime.
    fn set_anchors(&mut self, anchors: &[(u64, u64)]) {
        self.anchors = anchors.iter().copied().filter(|(offset, _)| *offset < self.offset).collect();
        if self.anchors.is_empty() {
            self.anchors.extend(self.first.map(|key| (0, key)));
        }
        self.checks.retain(|(offset, _)| *offset < self.offset);
    }
}

impl SnapshotReader {
    /// A reader that continues from a checkpoint, after `returned` records.
    pub fn resumed(spec: ListSpec, returned: u64, checkpoint: &ListCheckpoint) -> Self {
        let mut reader = Self::new(spec);
        if checkpoint.is_start() {
            return reader;
        }
        let kept = reader.max_keys(checkpoint.count);
        reader.returned = returned;
        reader.bound = checkpoint.height_bound;
        reader.tail = checkpoint.tail;
        reader.proof = checkpoint.proof;
        reader.snapshot = Snapshot {
            length: checkpoint.length,
            total: checkpoint.total,
            total_pages: checkpoint.total_pages,
            min_length: checkpoint.min_length,
            page_limit: checkpoint.page_limit,
            page_rows: checkpoint.page_rows,
            page_sizes: checkpoint.page_sizes,
            count: checkpoint.count,
            first: checkpoint.first,
            anchors: checkpoint.anchors.clone(),
            checks: checkpoint.checks.clone(),
        };
        reader.snapshot = reader.snapshot.with_page_limit(reader.spec.page_size);
        reader.drift = Drift { shift: checkpoint.shift, ..Drift::default() };
        if checkpoint.length == Length::Pending {
            let keys = checkpoint.keys.iter().flat_map(|(key, times)| vec![*key; *times as usize]).collect();
            reader.skip = Skip::Until { keys, records: checkpoint.offset };
            reader.delivered = Delivered::new(kept);
            reader.phase = if checkpoint.height_bound.is_some() { Phase::First } else { Phase::Length };
        } else {
            reader.delivered = Delivered::resumed(checkpoint.offset, &checkpoint.keys, kept);
            reader.phase = reader.phase_of_resume();
        }
        reader
    }

    /// The position after the records returned so far.
    pub fn checkpoint(&self) -> ListCheckpoint {
        let least = self.spec.tuning.checkpoint_keys;
        let snapshot = &self.snapshot;
        let mut checkpoint = ListCheckpoint {
            length: snapshot.length,
            total: snapshot.total,
            total_pages: snapshot.total_pages,
            min_length: snapshot.min_length,
            page_limit: snapshot.page_limit,
            page_rows: snapshot.page_rows,
            page_sizes: snapshot.page_sizes,
            count: snapshot.count,
            offset: self.delivered.end(),
            shift: self.drift.shift,
            proof: self.proof,
            first: snapshot.first,
            anchors: Vec::new(),
            checks: snapshot.checks.clone(),
            keys: latest_runs(self.delivered.keys().rev().map(|key| (key, 1)), least),
            height_bound: self.bound,
            tail: self.tail,
        };
        checkpoint.set_anchors(&snapshot.anchors);
        match &self.skip {
            Skip::Nothing => checkpoint,
            // The list is read again from its first record, which needs nothing but the returned ones.
            Skip::Until { keys, records } => ListCheckpoint {
                length: Length::Pending,
                offset: *records,
                shift: 0,
                first: None,
                anchors: Vec::new(),
                checks: Vec::new(),
                keys: latest_runs(keys.iter().rev().map(|key| (*key, 1)), least),
                ..checkpoint
            },
        }
    }

    /// The end of a page of a list with a count: its offset, and the position there.
    pub fn checkpoint_after(&self, request: &PageRequest, response: &Response<'_>) -> Option<(u64, ListCheckpoint)> {
        let mut snapshot = self.snapshot.clone();
        let view = snapshot.view(request, response);
        let offset = super::locate::by_count(&view, &snapshot)? + view.len() as i64;
        let offset = u64::try_from(offset).ok()?;
        let shift = view.position + view.len() as i64 - offset as i64;
        let mut checkpoint = ListCheckpoint { offset, shift, tail: Tail::Unordered, ..self.checkpoint() };
        checkpoint.set_anchors(&self.snapshot.anchors);
        Some((offset, checkpoint))
    }

    fn phase_of_resume(&self) -> Phase {
        let is_read = self.snapshot.length.exact().is_some_and(|length| self.delivered.end() >= length);
        match self.proof {
            Proof::FinalLook if is_read => Phase::FinalLook(Look::Anchor, End::List),
            Proof::Overlap | Proof::Length if is_read => Phase::Done(End::List),
            _ if self.snapshot.is_counted() || self.spec.kind == ListKind::Fixed => self.ahead(),
            _ => Phase::Overlap(Margin::Narrow),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Keys(Vec<u64>);

    impl Rows for Keys {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn key(&self, row: usize) -> u64 {
            self.0[row]
        }

        fn height(&self, row: usize) -> Option<i64> {
            Some(-(self.0[row] as i64))
        }
    }

    fn spec(kind: ListKind) -> ListSpec {
        ListSpec {
            endpoint: "list",
            kind,
            page_size: 3,
            max_page_size: 3,
            height_bound: None,
            result_window: None,
            wanted: None,
            hints: Vec::new(),
            tuning: Tuning::default(),
        }
    }

    /// Answers the next request from a list that may be counted.
    fn answer(reader: &mut SnapshotReader, list: &[u64], is_counted: bool) -> (Keys, ListCheckpoint) {
        let request = reader.next_request(0).unwrap();
        let rows = page(list, &request);
        let accepted = reader.on_response(&request, &response(&rows, list, &request, is_counted)).unwrap();
        let returned = Keys(rows.0[accepted.rows].to_vec());
        (returned, accepted.before)
    }

    fn page(list: &[u64], request: &PageRequest) -> Keys {
        let limit = request.limit as usize;
        Keys(list.chunks(limit).nth(request.page as usize - 1).unwrap_or_default().to_vec())
    }

    fn response<'a>(rows: &'a Keys, list: &[u64], request: &PageRequest, is_counted: bool) -> Response<'a> {
        let length = list.len() as u64;
        Response {
            rows,
            limit: Some(request.limit),
            total_pages: Some(length.div_ceil(request.limit)),
            total: is_counted.then_some(length),
        }
    }

    fn parsed(checkpoint: &ListCheckpoint) -> ListCheckpoint {
        serde_json::from_str(&serde_json::to_string(checkpoint).unwrap()).unwrap()
    }

    /// Reads to the end, and returns the keys.
    fn rest(reader: &mut SnapshotReader, list: &[u64], is_counted: bool) -> Vec<u64> {
        let mut keys = Vec::new();
        while reader.end().is_none() {
            keys.extend(answer(reader, list, is_counted).0.0);
        }
        keys
    }

    #[test]
    fn partition_begins_where_a_later_page_of_a_counted_list_ends() {
        let (list, mut reader) = ((0..20).collect::<Vec<_>>(), SnapshotReader::new(spec(ListKind::Growing)));
        answer(&mut reader, &list, true);
        let grown: Vec<u64> = [101, 100].into_iter().chain(list.clone()).collect();
        let request = PageRequest { page: 3, ..PageRequest::first(3) };
        let rows = page(&grown, &request);
        let (offset, checkpoint) = reader.checkpoint_after(&request, &response(&rows, &grown, &request, true)).unwrap();
        assert_eq!((offset, checkpoint.offset, checkpoint.shift, checkpoint.tail), (7, 7, 2, Tail::Unordered));
        let mut resumed = SnapshotReader::resumed(spec(ListKind::Growing), offset, &parsed(&checkpoint));
        assert_eq!(resumed.next_request(0).map(|request| request.page), Some(4));
        let mut resumed = SnapshotReader::resumed(spec(ListKind::Growing), offset, &parsed(&checkpoint));
        assert_eq!(rest(&mut resumed, &grown, true), list[7..]);
        // Without a count, the page shows no offset.
        assert_eq!(reader.checkpoint_after(&request, &response(&rows, &grown, &request, false)), None);
    }

    #[test]
    fn checkpoint_has_what_is_needed_of_the_records_before_it() {
        for is_counted in [true, false] {
            let (list, mut reader) = ((0..20).collect::<Vec<_>>(), SnapshotReader::new(spec(ListKind::Growing)));
            assert!(reader.checkpoint().is_start());
            let (rows, before) = answer(&mut reader, &list, is_counted);
            assert_eq!((before.is_start(), reader.checkpoint().is_start()), (!is_counted, false));
            assert_eq!(SnapshotReader::resumed(spec(ListKind::Growing), 0, &before).next_request(0).unwrap().page, 1);
            let inside = before.advanced(&rows, 2);
            assert_eq!(inside.keys.is_empty(), is_counted);
            let all = if is_counted { vec![(1, 1), (2, 2)] } else { Vec::new() };
            assert_eq!(reader.checkpoint().anchors, all);
        }
    }

    #[test]
    fn anchors_and_checks_lie_before_the_next_record() {
        let (anchors, checks) = (vec![(1, 11), (2, 12), (3, 13)], vec![(1, 21), (2, 22), (3, 23)]);
        let mut checkpoint = ListCheckpoint { offset: 2, first: Some(10), checks, ..ListCheckpoint::default() };
        checkpoint.set_anchors(&anchors);
        assert_eq!((&*checkpoint.anchors, &*checkpoint.checks), (&[(1, 11)][..], &[(1, 21)][..]));
        checkpoint.offset = 1;
        checkpoint.set_anchors(&anchors);
        assert_eq!((&*checkpoint.anchors, &*checkpoint.checks), (&[(0, 10)][..], &[][..]));
    }

    #[test]
    fn checkpoint_of_a_list_that_is_read_again_has_its_returned_records_only() {
        let (list, mut reader) = ((0..20).collect::<Vec<_>>(), SnapshotReader::new(spec(ListKind::Growing)));
        answer(&mut reader, &list, false);
        let grown: Vec<u64> = (100..105).rev().chain(list).collect();
        // The length, and a page of newer records.
        answer(&mut reader, &grown, false);
        answer(&mut reader, &grown, false);
        assert!(reader.snapshot.first.is_some() && !reader.snapshot.checks.is_empty());
        let checkpoint = reader.checkpoint();
        assert_eq!((checkpoint.length, checkpoint.offset, checkpoint.shift), (Length::Pending, 3, 0));
        assert_eq!(checkpoint.keys, [(0, 1), (1, 1), (2, 1)]);
        assert_eq!((checkpoint.first, checkpoint.anchors, checkpoint.checks), (None, Vec::new(), Vec::new()));
    }

    #[test]
    fn pages_are_requested_ahead_after_a_resume_if_a_count_or_their_order_locates_them() {
        for (kind, is_counted, is_ahead) in [
            (ListKind::Growing, true, true),
            (ListKind::Growing, false, false),
            (ListKind::Fixed, true, true),
            (ListKind::Fixed, false, true),
        ] {
            let (list, mut reader) = ((0..20).collect::<Vec<_>>(), SnapshotReader::new(spec(kind)));
            for _ in 0..3 {
                answer(&mut reader, &list, is_counted);
            }
            let resumed = SnapshotReader::resumed(spec(kind), reader.returned(), &parsed(&reader.checkpoint()));
            assert_eq!(matches!(resumed.phase, Phase::Ahead { .. }), is_ahead, "{kind:?} {is_counted}");
        }
    }
}
