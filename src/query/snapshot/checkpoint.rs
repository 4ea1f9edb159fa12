//! `ListCheckpoint`: a position within a list, from which another reader continues.

use serde::{Deserialize, Serialize};

use super::delivered::{Delivered, latest_runs};
use super::evidence::{Count, Length, Look, PageSizes, Snapshot, anchors_of};
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
    /// True if nothing of the list has been returned. With a count, the offset 0 belongs to a snapshot.
    pub fn is_start(&self) -> bool {
        self.offset == 0 && self.count == Count::Pages
    }

    /// The position after the first `rows` of these rows, which come next.
    #[must_use]
    pub fn advanced(mut self, rows: &dyn Rows, count: usize) -> Self {
        let end = self.offset + count as u64;
        if self.anchors.iter().any(|(offset, _)| *offset >= end) {
            // These rows and the anchors are of one response.
            let keys: Vec<u64> = (0..count).map(|row| rows.key(row)).collect();
            self.anchors.retain(|(offset, _)| *offset < end);
            if self.anchors.is_empty() {
                self.anchors = anchors_of(self.offset, &keys);
            }
        }
        self.offset = end;
        self.tail = self.tail.after(rows, 0..count);
        if self.count == Count::Pages {
            let fresh = (0..count).rev().map(|row| (rows.key(row), 1));
            let least = Tuning::default().checkpoint_keys;
            self.keys = latest_runs(fresh.chain(self.keys.iter().rev().copied()), least);
        }
        self
    }

    /// The position before the first record.
    #[must_use]
    pub(super) fn before_first(self) -> Self {
        Self { offset: 0, keys: Vec::new(), ..self }
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
        reader.snapshot.keep_evidence_before(checkpoint.offset);
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
        let checkpoint = ListCheckpoint {
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
            anchors: snapshot.anchors.clone(),
            checks: snapshot.checks.clone(),
            keys: latest_runs(self.delivered.keys().rev().map(|key| (key, 1)), least),
            height_bound: self.bound,
            tail: self.tail,
        };
        match &self.skip {
            Skip::Nothing => checkpoint,
            Skip::Newer { .. } => ListCheckpoint::default(),
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
        Some((offset, ListCheckpoint { offset, shift, tail: Tail::Unordered, ..self.checkpoint() }))
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
mod tests;
