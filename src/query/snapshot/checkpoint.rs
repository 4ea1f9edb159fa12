//! `ListCheckpoint`: a position within a list, from which another reader continues.

use serde::{Deserialize, Serialize};

use super::delivered::{Delivered, latest_runs};
use super::evidence::{Length, Snapshot};
use super::reader::{Attempt, Drift, Earlier, End, Phase, Proof, SnapshotReader};
use super::spec::{ListKind, ListSpec, PageRequest, Response, Rows, Tuning};
use super::tail::Tail;

/// Everything a reader needs to continue, apart from what the query says. Hashes are not made before they are needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListCheckpoint {
    snapshot: Snapshot,
    /// Offset of the next record in the snapshot.
    offset: u64,
    /// Drift at the latest response.
    shift: i64,
    proof: Proof,
    /// Keys of the latest records, oldest first: each with how often it occurs in a row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keys: Vec<(u64, u64)>,
    /// Greatest height of the part of the list that is being read, if that is not the query's.
    #[serde(skip_serializing_if = "Option::is_none")]
    height_bound: Option<i64>,
    tail: Tail,
}

impl ListCheckpoint {
    /// True if nothing of the list has been returned, and any snapshot will do.
    pub fn is_start(&self) -> bool {
        self.offset == 0 && self.proof == Proof::Overlap
    }

    /// The position for one of several partitions of the snapshot.
    #[must_use]
    pub fn of_partition(self) -> Self {
        Self { proof: Proof::FinalLook, ..self }
    }

    /// The position after the first `rows` of these rows, which come next.
    #[must_use]
    pub fn advanced(mut self, rows: &dyn Rows, count: usize) -> Self {
        let end = self.offset + count as u64;
        self.snapshot.add_first_difference(self.offset, (0..count).map(|row| rows.key(row)));
        self.offset = end;
        self.tail = self.tail.after(rows, 0..count);
        if !self.snapshot.is_counted() {
            let fresh = (0..count).rev().map(|row| (rows.key(row), 1));
            self.keys = latest_runs(fresh.chain(self.keys.iter().rev().copied()), Tuning::default().checkpoint_keys);
        }
        self
    }
}

impl SnapshotReader {
    /// A reader that continues from a checkpoint, after `returned` records.
    pub fn resumed(spec: ListSpec, returned: u64, checkpoint: &ListCheckpoint) -> Self {
        let mut reader = Self::new(spec);
        if checkpoint.is_start() {
            return reader;
        }
        let kept = reader.max_keys(&checkpoint.snapshot);
        reader.returned = returned;
        reader.bound = checkpoint.height_bound;
        reader.tail = checkpoint.tail;
        reader.proof = checkpoint.proof;
        reader.snapshot = checkpoint.snapshot.clone();
        reader.snapshot.keep_anchors_before(checkpoint.offset);
        reader.snapshot.page_limit = reader.spec.page_size;
        reader.drift = Drift { shift: checkpoint.shift, ..Drift::default() };
        if checkpoint.snapshot.length == Length::Pending {
            let keys = checkpoint.keys.iter().flat_map(|(key, times)| vec![*key; *times as usize]).collect();
            reader.earlier = Some(Earlier { keys, records: checkpoint.offset });
            reader.delivered = Delivered::new(kept);
            reader.phase = if checkpoint.height_bound.is_some() { Phase::First } else { Phase::Length };
        } else {
            reader.delivered = Delivered::resumed(checkpoint.offset, &checkpoint.keys, kept);
            reader.continue_delivered();
        }
        reader
    }

    /// The position after the records returned so far.
    pub fn checkpoint(&self) -> ListCheckpoint {
        let least = self.spec.tuning.checkpoint_keys;
        let checkpoint = ListCheckpoint {
            snapshot: self.snapshot.clone(),
            offset: self.delivered.end(),
            shift: self.drift.shift,
            proof: self.proof,
            keys: latest_runs(self.delivered.keys().rev().map(|key| (key, 1)), least),
            height_bound: self.bound,
            tail: self.tail,
        };
        let Some(Earlier { keys, records }) = &self.earlier else { return checkpoint };
        // The list is read again from its first record, which needs nothing but the returned ones.
        ListCheckpoint {
            snapshot: Snapshot { length: Length::Pending, ..self.snapshot.clone() },
            offset: *records,
            shift: 0,
            keys: latest_runs(keys.iter().rev().map(|key| (*key, 1)), least),
            ..checkpoint
        }
    }

    /// The end of a page of a list with a count: its offset, and the position there.
    pub fn checkpoint_after(&self, request: &PageRequest, response: &Response<'_>) -> Option<(u64, ListCheckpoint)> {
        let mut snapshot = self.snapshot.clone();
        let view = snapshot.view(request, response, self.spec.window());
        let offset = super::locate::by_count(&view, &snapshot)? + view.len() as i64;
        let offset = u64::try_from(offset).ok()?;
        let shift = view.position + view.len() as i64 - offset as i64;
        Some((offset, ListCheckpoint { offset, shift, tail: Tail::Unordered, ..self.checkpoint() }))
    }

    fn continue_delivered(&mut self) {
        if self.is_read() {
            self.end_with(End::List);
        } else if self.snapshot.is_counted() || self.spec.kind == ListKind::Fixed {
            self.phase = self.ahead();
        } else {
            self.phase = Phase::Overlap(Attempt::First);
        }
    }
}

#[cfg(test)]
mod tests;
