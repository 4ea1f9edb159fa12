//! `ListCheckpoint`: a position within a list, from which another reader continues.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::delivered::Delivered;
use super::evidence::{Length, Snapshot};
use super::locate::by_count;
use super::ranked::RankedCheckpoint;
use super::reader::{Attempt, Drift, End, Phase, Proof, SnapshotReader};
use super::spec::{ListKind, ListSpec, PageRequest, Response, Rows, Tuning};

/// Greatest offset that is accepted.
const MAX_OFFSET: u64 = 1 << 50;

/// Everything a reader needs to continue, apart from what the query says. Hashes are not made before they are needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListCheckpoint {
    snapshot: Snapshot,
    /// Records of the snapshot that were returned.
    delivered: Delivered,
    /// Drift at the latest response.
    shift: i64,
    proof: Proof,
    /// Greatest height of the part of the list that is being read, if that is not the query's.
    #[serde(skip_serializing_if = "Option::is_none")]
    height_bound: Option<i64>,
    /// Position in a ranked list, which needs nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranked: Option<RankedCheckpoint>,
}

impl ListCheckpoint {
    /// True if nothing of the list has been returned, and any snapshot will do.
    pub fn is_start(&self) -> bool {
        self.delivered.end() == 0 && self.proof == Proof::Overlap && self.ranked.is_none()
    }

    /// Some records of the first page, by offset and key.
    pub fn first_page(&self) -> Vec<(u64, u64)> {
        let first = self.snapshot.first.map(|key| (0, key));
        first.into_iter().chain(self.snapshot.anchors.iter().flatten().copied()).collect()
    }

    pub(super) fn of_ranked(ranked: RankedCheckpoint) -> Self {
        Self { ranked: Some(ranked), ..Self::default() }
    }

    pub(super) fn ranked(&self) -> Option<&RankedCheckpoint> {
        self.ranked.as_ref()
    }

    /// True if these numbers can be those of a list. A string from elsewhere may have others, with which offsets overflow.
    pub fn is_plausible(&self) -> bool {
        let Snapshot { total, min_length, page_limit, page_sizes, length, .. } = self.snapshot;
        let lengths = [total.unwrap_or(0), length.exact().unwrap_or(0), min_length, page_limit, page_sizes.least];
        let offsets = self.snapshot.anchors.iter().flatten().map(|(offset, _)| *offset);
        let mark = self.snapshot.mark.map_or(0, |(offset, _)| offset);
        let positions = [self.delivered.end(), self.shift.unsigned_abs(), mark];
        let are_small = lengths.into_iter().chain(positions).chain(offsets).all(|number| number <= MAX_OFFSET);
        let has_keys = self.delivered.keys().len() as u64 <= self.delivered.end();
        are_small && has_keys && (1..=page_sizes.most).contains(&page_sizes.least)
    }

    /// The position for one of several partitions of the snapshot, between two cuts.
    #[must_use]
    pub fn between(mut self, start: Option<&Cut>, end: Option<&Cut>) -> Self {
        if let Some(start) = start {
            self.delivered = Delivered::at(start.offset);
            self.shift = start.shift;
            self.snapshot.ends.push((start.offset, start.below));
        }
        self.snapshot.ends.extend(end.map(|end| (end.offset - 1, end.above)));
        Self { proof: Proof::FinalLook, ..self }
    }

    /// Records at the ends of a partition, by offset and key.
    pub fn ends(&self) -> &[(u64, u64)] {
        &self.snapshot.ends
    }

    /// The position after the first `rows` of these rows, which come next.
    #[must_use]
    pub fn advanced(mut self, rows: &dyn Rows, count: usize) -> Self {
        if let Some(ranked) = &mut self.ranked {
            let known: HashSet<u64> = ranked.keys.iter().copied().collect();
            ranked.keys.extend((0..count).map(|row| rows.key(row)).filter(|key| !known.contains(key)));
            return self;
        }
        let most = if self.snapshot.is_counted() { 0 } else { usize::MAX };
        self.snapshot.add_first_difference(self.delivered.end(), (0..count).map(|row| rows.key(row)));
        self.delivered.push((0..count).map(|row| rows.key(row)), most);
        self.delivered = self.delivered.latest(Tuning::default().checkpoint_keys);
        self.snapshot.pass_mark(self.delivered.end(), &mut self.proof);
        self
    }
}

/// A cut between two records that one response shows next to each other.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Offset of the record below.
    pub offset: u64,
    /// Keys of both.
    pub above: u64,
    below: u64,
    /// Drift at the response.
    shift: i64,
}

impl SnapshotReader {
    /// A reader that continues from a checkpoint, after `returned` records.
    pub fn resumed(spec: ListSpec, returned: u64, checkpoint: &ListCheckpoint) -> Self {
        let mut reader = Self::new(spec);
        if checkpoint.is_start() {
            return reader;
        }
        let ListCheckpoint { snapshot, delivered, shift, proof, height_bound, .. } = checkpoint.clone();
        reader.returned = returned;
        reader.bound = height_bound;
        reader.proof = proof;
        reader.drift = Drift { shift, has_changed: true, ..Drift::default() };
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
        let shift = if self.earlier.is_some() { 0 } else { self.drift.shift };
        ListCheckpoint { snapshot, delivered, shift, proof: self.proof, height_bound: self.bound, ranked: None }
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
        Some(Cut { offset, above: view.rows.key(row - 1), below: view.rows.key(row), shift: view.position - first })
    }

    /// The end of a page of a list with a count: its offset, and the position there.
    pub fn checkpoint_after(&self, request: &PageRequest, response: &Response<'_>) -> Option<(u64, ListCheckpoint)> {
        let mut snapshot = self.snapshot.clone();
        let view = snapshot.view(request, response, self.spec.window());
        let first = by_count(&view, &snapshot)?;
        let offset = u64::try_from(first + view.len() as i64).ok()?;
        let delivered = Delivered::at(offset);
        Some((offset, ListCheckpoint { delivered, shift: view.position - first, ..self.checkpoint() }))
    }
}

#[cfg(test)]
mod tests;
