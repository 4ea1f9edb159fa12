//! `GrowthRate`: how fast a list grows, to request a page where the wanted records will be.

use std::collections::VecDeque;

/// Latest rates of growth from which the next one is expected.
const SAMPLES: usize = 6;

/// Growth per request over the latest responses. It decides what is requested, never what is accepted.
#[derive(Clone, Debug, Default)]
pub(super) struct GrowthRate {
    samples: VecDeque<f64>,
    /// Responses since the latest observation.
    responses: u32,
}

impl GrowthRate {
    pub fn on_response(&mut self) {
        self.responses += 1;
    }

    /// Records the growth since the previous observation.
    pub fn observe(&mut self, grown: i64) {
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(grown as f64 / f64::from(self.responses.max(1)));
        self.responses = 0;
    }

    /// True if the list did not change at this many of the latest responses.
    pub fn is_stable(&self, responses: usize) -> bool {
        self.samples.len() >= responses && self.samples.iter().rev().take(responses).all(|rate| *rate == 0.0)
    }

    /// Least growth expected from the latest observation to the next response.
    pub fn expected(&self) -> u64 {
        let slowest = self.samples.iter().copied().reduce(f64::min).unwrap_or(0.0);
        (slowest * f64::from(self.responses + 1)) as u64
    }
}
