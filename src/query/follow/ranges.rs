//! The steps of a round that reads ranges of heights, where reading the list down to what is known is impossible or takes more
//! requests.

use std::time::Duration;

use super::discarded::Responses;
use super::fingerprint::RowFacts;
use super::follower::{Conclusion, Follower, Phase, Probe, Step};
use super::reading::Reading;
use super::spec::{Ranges, RoundProof, Stop};
use super::state::{Changes, FollowState};

/// Part of the heights that were read down by which ranges end above the lowest of them: a reading down that reaches as many
/// records again reaches less far, since the list grows meanwhile.
const GROWN_PART: i64 = 8;
/// Factor by which a range grows after one without records. A gap of a million heights takes eight ranges at most, and the first
/// one with records is halved a few times at most.
const EMPTY_GROWTH: i64 = 8;

impl Follower {
    pub(super) fn delivered_to(&self) -> i64 {
        self.state.as_ref().map_or(i64::MAX, FollowState::delivered_to)
    }

    /// Height up to which ranges are read: those above may still change, or are read down.
    pub(super) fn range_end(&self) -> i64 {
        let top = self.round.reading.top().unwrap_or(i64::MIN);
        let end = self.round.target.min(top.saturating_sub(self.spec.settle));
        self.round.reachable.map_or(end, |height| end.min(height - 1))
    }

    /// True if height by height takes fewer requests than the rest of the reading. One that has begun continues.
    pub(super) fn is_range_cheaper(&self, depth: i64) -> bool {
        let pages_per_height = (self.density() / self.spec.page_size as f64).ceil().max(1.0);
        let heights = (self.range_end() as f64 - self.delivered_to() as f64 + 1.0).max(1.0);
        let range = match self.spec.ranges {
            Ranges::ByHeight => heights * pages_per_height,
            Ranges::List | Ranges::ByCount | Ranges::None => f64::INFINITY,
        };
        self.round.pages == 1 && self.spec.changes == Changes::Held && range < self.pages_to(depth)
    }

    /// True if the reading holds more records than it may, or is going to: a list with a count shows it on its first page.
    pub(super) fn is_too_large(&self, depth: i64) -> bool {
        let is_foreseen = self.round.pages == 1 && self.spec.proof == RoundProof::Count;
        let to_come = if is_foreseen { self.pages_to(depth).max(1.0) } else { 1.0 };
        let to_come = self.round.more.map_or(to_come, |more| to_come.min(more as f64));
        self.round.reading.rows() as f64 + to_come * self.spec.page_size as f64 > self.spec.max_rows as f64
    }

    /// Records per height, by what was read.
    fn density(&self) -> f64 {
        self.round.reading.rows() as f64 / self.round.reading.num_heights().max(1) as f64
    }

    /// Pages that the reading is expected to take, at least 1.
    pub(super) fn pages_to_come(&self) -> u64 {
        let Some(state) = &self.state else { return 1 };
        self.pages_to(self.depth(state, Stop::Page(self.round.more))).max(1.0) as u64
    }

    fn pages_to(&self, depth: i64) -> f64 {
        let reading = &self.round.reading;
        let from = reading.complete_from() as f64;
        let read_heights = (reading.top().unwrap_or(depth) as f64 - from + 1.0).max(1.0);
        let heights = (from - depth as f64).max(0.0);
        let pages = heights * reading.rows() as f64 / read_heights / self.spec.page_size as f64;
        self.round.more.map_or(pages, |more| pages.min(more as f64))
    }

    /// True if the first page shows that the list has more records than a reading down may hold.
    pub(super) fn is_too_long_to_read_down(&self, stop: Stop) -> bool {
        let Stop::Page(Some(more)) = stop else { return false };
        more.saturating_add(1).saturating_mul(self.spec.page_size) >= self.spec.max_rows
    }

    /// Stops reading down, where that is too long. Ranges read as lists end where its rows begin, once these are proven.
    pub(super) fn stop_reading_down(&mut self) -> Step {
        if self.spec.ranges == Ranges::List && self.round.pages > 1 {
            self.phase = Phase::Verify(Conclusion::Ranges);
        } else {
            self.begin_ranges_below();
        }
        Ok(Vec::new())
    }

    /// Begins ranges since reading down cannot reach the position. Height by height, they end where another reading down can, with
    /// some room for the records that the list gains meanwhile.
    pub(super) fn begin_ranges_below(&mut self) {
        let top = self.round.reading.top().unwrap_or(i64::MAX);
        let reached = self.round.reading.complete_from();
        let reachable = reached.saturating_add(top.saturating_sub(reached) / GROWN_PART);
        let is_worth = self.spec.ranges == Ranges::ByHeight && reachable - 1 > self.delivered_to();
        self.round.reachable = is_worth.then_some(reachable);
        self.begin_ranges();
    }

    pub(super) fn begin_ranges(&mut self) {
        self.span = match self.spec.ranges {
            // It is cut where no more records may be held.
            Ranges::ByCount => i64::MAX / 2,
            // Half of what may be held, if the records are as dense everywhere.
            _ => ((self.spec.max_rows as f64 / 2.0 / self.density().max(1e-9)) as i64).clamp(1, i64::MAX / 2),
        };
        if self.needs_oldest() {
            self.phase = Phase::Oldest;
        } else {
            self.first_range();
        }
    }

    /// True if ranges begin at the beginning: a request for each height below the first block is too many.
    pub(super) fn needs_oldest(&self) -> bool {
        let is_beginning = self.state.as_ref().is_some_and(|state| state.delivered_to() < 0);
        self.spec.ranges == Ranges::ByHeight && is_beginning && self.round.beginning == Probe::NotYet
    }

    /// The first range of a round begins with the heights that may have changed.
    pub(super) fn first_range(&mut self) {
        self.next_range();
        let unsettled = self.state.as_ref().and_then(|state| self.unsettled(state, Stop::Window));
        if let (Phase::Range { low, .. }, Some(height)) = (&mut self.phase, unsettled) {
            *low = height.min(*low);
        }
    }

    /// The next range begins with the last height that is known, which it verifies.
    fn next_range(&mut self) {
        let Some(state) = &self.state else { return };
        let first = state.delivered_to().saturating_add(1);
        let low = match (self.spec.ranges, state.highest()) {
            // A request for each height without records is too many.
            (Ranges::ByHeight, None) => state.verified_from().max(state.delivered_to()),
            _ => state.verified_from(),
        };
        let low = low.min(first).min(state.overlap().map_or(first, |overlap| overlap.height)).max(0);
        let high = first.saturating_add(self.span - 1).min(self.range_end());
        self.phase = Phase::Range { low, high };
    }

    pub(super) fn on_span(&mut self, low: i64, up_to: i64, rows: &[RowFacts]) -> Step {
        self.compare_with_discarded(rows, low..=up_to)?;
        let reading = Reading::range(low, up_to, rows, self.overlap());
        let Some(state) = &mut self.state else { return Ok(Vec::new()) };
        if let Some(changed) = state.lowest_change(&reading, self.spec.changes) {
            if self.spec.changes == Changes::Held {
                return Err(self.spec.changed(changed));
            }
            let low = match self.spec.ranges {
                Ranges::List => state.oldest_known().height().saturating_add(1).max(0),
                // A request for each height below the known ones is too many.
                _ => state.from(i64::MIN).map_or(changed, |lowest| lowest.min(changed)),
            };
            let high = state.delivered_to();
            return self.go_to(Phase::Fork { low, high });
        }
        let first = state.delivered_to().saturating_add(1);
        let mut event = Self::deliver(&self.spec, state, &reading, up_to);
        if up_to < first && up_to < self.range_end() {
            // Known heights fill the range: it ends with the first new one, however many records that has.
            self.phase = Phase::Range { low, high: first };
        } else if up_to < self.range_end() {
            self.span = self.span_after(rows.len() as u64, up_to - low + 1);
            self.next_range();
        } else if up_to < self.round.target {
            self.phase = Phase::Resting { until: Duration::ZERO };
        } else {
            let last = self.last_round(self.round.reading.top().unwrap_or(i64::MIN), self.delivered_to());
            self.discarded = Responses::default();
            self.rest_after(last);
            if let (Some(event), Some(state)) = (&mut event, &self.state) {
                event.state = state.clone();
            }
        }
        Ok(event.into_iter().collect())
    }

    /// Length of the range after one with `rows` records in `heights` heights.
    fn span_after(&self, rows: u64, heights: i64) -> i64 {
        let doubled = self.span.saturating_mul(2);
        match (self.spec.ranges, rows) {
            (Ranges::List, 0) => self.span.saturating_mul(EMPTY_GROWTH),
            (Ranges::List, rows) => doubled.min(self.fitting_span(rows, heights)),
            // Other ranges are cut where they hold too many records.
            _ => doubled,
        }
    }

    pub(super) fn on_fork(&mut self, reading: Reading) -> Step {
        let Some(state) = &mut self.state else { return Ok(Vec::new()) };
        self.phase = Phase::Resting { until: Duration::ZERO };
        let Some(changed) = state.lowest_change(&reading, self.spec.changes) else { return Ok(Vec::new()) };
        if state.has_forgotten_all_below(changed) {
            return Err(self.spec.changed(changed));
        }
        Ok(vec![Self::undo(&self.spec, state, &reading, changed - 1)?])
    }
}
