//! `ListState`: what a reader knows of its list, whatever its kind, and the steps that several kinds share.

use std::ops::Range;

use super::checkpoint::{Accepted, CHECKPOINT_KEYS, ListCheckpoint};
use super::delivered::Delivered;
use super::growth::GrowthRate;
use super::snapshot::{Proof, Snapshot};
use super::spec::{End, ListSpec, PageRequest, Purpose, Response, View};
use crate::client::Error;
use crate::message::{Message, counted};
use crate::planted::Bug;

/// Responses in a row without drift after which pages are requested ahead again.
const STABLE: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct ListState {
    pub spec: ListSpec,
    pub stage: Stage,
    pub snapshot: Snapshot,
    pub delivered: Delivered,
    pub drift: Drift,
    /// Evidence that the list will need in the end.
    pub proof: Proof,
    /// Number of records returned, and so the offset of the next one in the result.
    pub returned: u64,
    /// Page that follows the latest one that was requested, where pages are requested ahead.
    pub next_page: u64,
    /// Most keys of returned records that are kept.
    pub max_keys: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// The phase of the reader says how.
    Reading,
    /// All was read. A record of the first page is looked for where it should be.
    FinalLook {
        /// Anchors that are looked for.
        group: usize,
        /// The end that follows.
        end: End,
    },
    Ended(End),
    Failed(Error),
}

/// Number of positions by which records have moved since the snapshot.
#[derive(Clone, Debug)]
pub(super) struct Drift {
    pub offset: i64,
    pub growth: GrowthRate,
    /// Latest responses in a row without a new record.
    pub misses: u32,
}

impl Drift {
    pub fn new(offset: i64) -> Self {
        Self { offset, growth: GrowthRate::default(), misses: 0 }
    }
}

/// Attempts to find the next record in a page around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attempt {
    /// At the position that the growth of the latest responses leads to.
    Expected,
    /// At the position that the latest response leads to, which showed the drift if the list has a length.
    Observed,
    /// At the same position, after one record alone did not contradict it.
    Measured,
}

impl ListState {
    pub fn new(spec: ListSpec) -> Self {
        Self::resumed(spec, 0, &ListCheckpoint::default())
    }

    /// The state after `returned` records, with a checkpoint there.
    pub fn resumed(spec: ListSpec, returned: u64, checkpoint: &ListCheckpoint) -> Self {
        let ListCheckpoint { mut snapshot, delivered, drift, proof, .. } = checkpoint.clone();
        snapshot.keep_anchors_before(delivered.end());
        snapshot.page_limit = spec.page_size;
        let drift = Drift::new(drift);
        let stage = Stage::Reading;
        let mut list = Self { spec, stage, snapshot, delivered, drift, proof, returned, next_page: 1, max_keys: 0 };
        list.set_next_page();
        list
    }

    /// The position after the records returned so far.
    pub fn checkpoint(&self) -> ListCheckpoint {
        ListCheckpoint {
            snapshot: self.snapshot.with_few_anchors(),
            delivered: self.delivered.latest(CHECKPOINT_KEYS),
            drift: self.drift.offset,
            proof: self.proof,
            height_bound: None,
            ranked_page: None,
        }
    }

    /// Ends the list, after a final look where that is the proof.
    pub fn end_with(&mut self, end: End) {
        let needs_look = self.proof == Proof::FinalLook && !Bug::FinalLookSkipped.is_planted();
        self.stage = if needs_look { Stage::FinalLook { group: 0, end } } else { Stage::Ended(end) };
    }

    pub fn fail(&mut self, error: Error) {
        self.stage = Stage::Failed(error);
    }

    /// A response with its position, which depends on the page sizes that it shows.
    pub fn view<'a>(&mut self, request: &PageRequest, response: &Response<'a>) -> View<'a> {
        self.snapshot.learn_page_sizes(request, response);
        self.snapshot.view(request, response, self.spec.window())
    }

    // Positions and pages

    /// Position of a record at the latest response.
    pub fn position(&self, offset: u64) -> u64 {
        (offset as i64 + self.drift.offset).max(0) as u64
    }

    pub fn page(&self, page: u64) -> PageRequest {
        PageRequest::new(Purpose::Records, page, self.spec.page_size)
    }

    /// Requests ahead from the page of the next record on.
    pub fn set_next_page(&mut self) {
        self.next_page = self.position(self.delivered.end()) / self.snapshot.page_rows() + 1;
    }

    /// True if the list has this page, as far as is known.
    pub fn has_page(&self, page: u64) -> bool {
        let length = self.snapshot.length.exact().unwrap_or(self.snapshot.max_length());
        page <= self.position(length).div_ceil(self.snapshot.page_rows())
    }

    /// The record at this offset, alone.
    pub fn one_record(&self, offset: u64, purpose: Purpose) -> PageRequest {
        let page = self.position(offset) + self.drift.growth.expected() + 1;
        PageRequest::new(purpose, page, 1)
    }

    /// The page that begins `overlap` records before the next one and reaches furthest beyond it. Pages begin at multiples
    /// of their size, so a smaller page may reach further.
    pub fn page_around_next(&self, attempt: Attempt, overlap: u64) -> PageRequest {
        let next = self.delivered.end();
        let size = self.snapshot.page_rows();
        let sizes = self.snapshot.page_sizes;
        // The largest page is the likeliest to contain the next record.
        let max_page_size = sizes.served(size.max(self.spec.max_page_size));
        // Right after a measurement, a page that begins too early is of more use than one that begins too late.
        let growth = if attempt > Attempt::Expected { 0 } else { self.drift.growth.expected() };
        let from = self.position(next - overlap.min(max_page_size - 1).min(next)) + growth;
        // While the list is stable, no page contains records that are not returned if another one shows as many that are.
        let is_stable = self.drift.offset == 0 && self.drift.misses == 0;
        let last = if is_stable { self.spec.wanted.unwrap_or(u64::MAX).min(next + size) } else { u64::MAX };
        let best = (sizes.min..=max_page_size).max_by_key(|limit| {
            let end = (from / limit + 1) * limit;
            (end.min(last), end <= last, *limit)
        });
        let best = best.unwrap_or(size);
        let limit = if best == size { self.spec.page_size } else { best };
        PageRequest::new(Purpose::Records, from / best + 1, limit)
    }

    // Rows

    /// Takes the anchors from the first rows of the list. The first of several partitions begins with those of its snapshot.
    pub fn set_anchors(&mut self, view: &View<'_>, rows: Range<usize>) {
        if self.delivered.end() == 0 && self.snapshot.anchors.is_empty() {
            self.snapshot.set_anchors(&view.keys(rows), self.spec.tuning.max_anchors);
        }
    }

    /// Reads rows as the next records of the snapshot.
    pub fn read(&mut self, view: &View<'_>, rows: Range<usize>) {
        self.snapshot.add_first_difference(self.delivered.end(), rows.clone().map(|row| view.rows.key(row)));
        self.delivered.push(rows.map(|row| view.rows.key(row)), self.max_keys);
    }

    /// The rows of a response from the next record on, if its first row has this offset: no more than a page of them.
    /// Without the next record, they begin beyond the response.
    pub fn new_rows(&self, view: &View<'_>, offset: i64) -> Range<usize> {
        let from = usize::try_from(self.delivered.end() as i64 - offset).unwrap_or(usize::MAX);
        let max_rows = self.snapshot.page_rows().max(self.spec.page_size) as usize;
        from..view.rows.len().min(from.saturating_add(max_rows))
    }

    /// Records the drift of a response. True if it is another one than before.
    pub fn observe(&mut self, drift: i64) -> bool {
        let grown = drift - self.drift.offset;
        self.drift.growth.observe(grown);
        self.drift.offset = drift;
        grown != 0
    }

    /// True if the list did not drift at the latest responses.
    pub fn is_stable(&self) -> bool {
        self.drift.growth.is_stable(STABLE)
    }

    /// A response without a new record.
    pub fn miss(&mut self, view: &View<'_>) -> Result<Accepted, Error> {
        self.drift.misses += 1;
        if self.drift.misses <= self.spec.tuning.max_misses {
            return Ok(Accepted::default());
        }
        Err(self.drift_error(format!(
            "gave up after too many responses without new records: page {} contains none that follows those returned, or \
             the list changes faster than it can be read",
            view.page
        )))
    }

    // The end

    /// True if as many records were read as the snapshot has.
    pub fn is_read(&self) -> bool {
        self.snapshot.length.exact().is_some_and(|length| self.delivered.end() >= length)
    }

    /// True if a response shows that no record is missing, as far as the length or the pages tell.
    pub fn has_all(&self, view: &View<'_>) -> bool {
        match self.snapshot.length.exact() {
            Some(_) => self.is_read(),
            None => view.is_last() && self.delivered.end() >= self.snapshot.min_length,
        }
    }

    /// True if this response ends where the API returns no more of a longer list.
    pub fn is_at_window_end(&self, view: &View<'_>) -> bool {
        let is_below_window = self.snapshot.length.exact().is_some_and(|length| length < view.window);
        view.is_at_window(self.spec.result_window) && !(is_below_window && self.is_read())
    }

    /// The error for a list of which the last page was read, and yet too few records.
    pub fn too_short(&self) -> Error {
        let length = self.snapshot.length.exact().unwrap_or(self.snapshot.min_length);
        let read = self.delivered.end();
        let records = counted(length, "record");
        let problem = format!("the list had {records}, of which {read} could be read: it changed meanwhile");
        self.drift_error(problem)
    }

    /// The end of a list, once a response shows it.
    pub fn end_after(&self, view: &View<'_>) -> Result<Option<End>, Error> {
        let is_as_counted =
            self.drift.offset == 0 && view.total.is_some() && view.total == self.snapshot.length.exact();
        let is_window = view.is_at_window(self.spec.result_window);
        if self.has_all(view) || view.is_last() && (is_as_counted || is_window) {
            let is_unknown = self.snapshot.length.exact().is_none() && view.pages.is_none();
            let unless_cut = if is_unknown { End::UnknownLength } else { End::List };
            return Ok(Some(if self.is_at_window_end(view) { End::ResultWindow } else { unless_cut }));
        }
        if view.is_last() { Err(self.too_short()) } else { Ok(None) }
    }

    /// Offset of the lowest record of a group of anchors, for which a final look looks. The record furthest down outlasts
    /// replaced records at the head.
    pub fn anchor(&self, group: usize) -> u64 {
        self.snapshot.anchors.get(group).and_then(|group| group.last()).map_or(0, |(offset, _)| *offset)
    }

    /// Offset of the lowest anchor of a group that a page within the result window shows, or of the lowest one.
    pub fn reachable_anchor(&self, group: usize) -> u64 {
        let mut anchors = self.snapshot.anchors.get(group).into_iter().flatten().map(|(offset, _)| *offset);
        anchors.rfind(|offset| self.position(*offset) < self.spec.window()).unwrap_or_else(|| self.anchor(group))
    }

    /// Compares a response with the anchors of this group and of those after it, and ends the list once all were found. An
    /// anchor at the offset that the count gives it shows that no record below it was deleted since the snapshot: each
    /// response in between had its rows at the offsets that its own count gave them.
    pub fn on_final_look(&mut self, view: &View<'_>, group: usize, end: End) -> Result<Accepted, Error> {
        let Some(offset) = self.snapshot.offset_by_count(view) else { return self.miss(view) };
        if self.snapshot.anchors.is_empty() {
            // Without a record of the first page, no response shows that no record was deleted.
            return Err(self.changed_error());
        }
        for (group, records) in self.snapshot.anchors.iter().enumerate().skip(group) {
            match view.shows_one(records, offset) {
                Some(true) => self.drift.misses = 0,
                Some(false) => return Err(self.changed_error()),
                None => {
                    self.stage = Stage::FinalLook { group, end };
                    self.observe(view.position - offset);
                    return self.miss(view);
                }
            }
        }
        self.stage = Stage::Ended(end);
        Ok(Accepted::default())
    }

    pub fn changed_error(&self) -> Error {
        self.drift_error("records that were being read were deleted or replaced")
    }

    /// The error for a list that contradicts itself.
    pub fn drift_error(&self, problem: impl Into<String>) -> Error {
        let problem = Message::new(problem).hints(self.spec.hints.clone());
        Error::Drift { endpoint: self.spec.endpoint, problem }
    }
}
