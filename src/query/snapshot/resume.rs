//! Readers that continue from a checkpoint, and the checkpoints of a reader.

use super::checkpoint::{Cut, ListCheckpoint};
use super::delivered::Delivered;
use super::evidence::by_count;
use super::reader::{Attempt, Drift, Phase, SnapshotReader};
use super::snapshot::Length;
use super::spec::{End, ListKind, ListSpec, PageRequest, Response};

impl SnapshotReader {
    /// A reader that continues from a checkpoint, after `returned` records.
    pub fn resumed(spec: ListSpec, returned: u64, checkpoint: &ListCheckpoint) -> Self {
        let mut reader = Self::new(spec);
        if checkpoint.is_start() {
            return reader;
        }
        let ListCheckpoint { snapshot, delivered, drift, proof, height_bound, .. } = checkpoint.clone();
        reader.returned = returned;
        reader.bound = height_bound;
        reader.proof = proof;
        reader.drift = Drift { offset: drift, has_changed: true, ..Drift::default() };
        reader.snapshot = snapshot;
        reader.snapshot.keep_anchors_before(delivered.end());
        reader.snapshot.page_limit = reader.spec.page_size;
        if reader.snapshot.length == Length::Pending {
            reader.earlier = Some(delivered);
            reader.phase = Phase::Length;
            return reader;
        }
        reader.delivered = delivered;
        if reader.is_read() && !reader.snapshot.is_counted() && reader.spec.kind == ListKind::Growing {
            reader.phase = Phase::TailLook(End::List);
        } else if reader.is_read() {
            reader.end_with(End::List);
        } else if reader.snapshot.is_counted() || reader.spec.kind == ListKind::Fixed {
            reader.phase = reader.ahead();
        } else {
            reader.phase = Phase::Overlap(Attempt::First);
        }
        reader
    }

    /// The position after the records returned so far.
    pub fn checkpoint(&self) -> ListCheckpoint {
        let least = self.spec.tuning.checkpoint_keys;
        let mut snapshot = self.snapshot.clone();
        let mut delivered = self.delivered.latest(least);
        if let Some(earlier) = &self.earlier {
            // The list is read again from its first record, which needs nothing but the returned ones.
            snapshot.length = Length::Pending;
            delivered = if self.returned > 0 { earlier.latest(least) } else { Delivered::default() };
        }
        for group in &mut snapshot.anchors {
            group.drain(..group.len().saturating_sub(self.spec.tuning.checkpoint_anchors));
        }
        let drift = if self.earlier.is_some() { 0 } else { self.drift.offset };
        ListCheckpoint { snapshot, delivered, drift, proof: self.proof, height_bound: self.bound, ranked: None }
    }

    /// The cut that is nearest to an offset in a page of a list with a count.
    pub fn cut_near(&self, offset: u64, request: &PageRequest, response: &Response<'_>) -> Option<Cut> {
        let mut snapshot = self.snapshot.clone();
        let view = snapshot.view(request, response, self.spec.window());
        let first = by_count(&view, &snapshot)?;
        let row = (offset as i64 - first).clamp(1, (view.len() as i64 - 1).max(1)) as usize;
        if row >= view.rows.len() {
            return None;
        }
        let offset = u64::try_from(first + row as i64).ok()?;
        Some(Cut { offset, above: view.rows.key(row - 1), below: view.rows.key(row), drift: view.position - first })
    }

    /// The end of a page of a list with a count: its offset, and the position there.
    pub fn checkpoint_after(&self, request: &PageRequest, response: &Response<'_>) -> Option<(u64, ListCheckpoint)> {
        let mut snapshot = self.snapshot.clone();
        let view = snapshot.view(request, response, self.spec.window());
        let first = by_count(&view, &snapshot)?;
        let offset = u64::try_from(first + view.len() as i64).ok()?;
        let delivered = Delivered::at(offset);
        Some((offset, ListCheckpoint { delivered, drift: view.position - first, ..self.checkpoint() }))
    }
}

#[cfg(test)]
mod tests;
