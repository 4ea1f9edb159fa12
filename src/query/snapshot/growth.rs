//! `Growth`: how fast a list grows, to request a page where the wanted records will be.

use std::collections::VecDeque;

/// Growth per request over the latest responses. It decides what is requested, never what is accepted.
#[derive(Clone, Debug, Default)]
pub(super) struct Growth {
    samples: VecDeque<f64>,
    /// Latest responses in a row without growth.
    stable: u32,
    /// Responses since the latest observation.
    responses: u32,
}

impl Growth {
    pub fn on_response(&mut self) {
        self.responses += 1;
    }

    /// Records the growth since the previous observation; keeps the latest `samples` rates.
    pub fn observe(&mut self, grown: i64, samples: usize) {
        self.stable = if grown == 0 { self.stable + 1 } else { 0 };
        if self.samples.len() == samples {
            self.samples.pop_front();
        }
        self.samples.push_back(grown.max(0) as f64 / f64::from(self.responses.max(1)));
        self.responses = 0;
    }

    /// True if the list did not grow at this many of the latest responses.
    pub fn is_stable(&self, responses: u32) -> bool {
        self.stable >= responses
    }

    /// Least and mean growth expected from the latest observation to the next response; none after a response without
    /// growth.
    pub fn expected(&self) -> (u64, u64) {
        if self.samples.is_empty() || self.stable > 0 {
            return (0, 0);
        }
        let responses = f64::from(self.responses + 1);
        let least = self.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = self.samples.iter().sum::<f64>() / self.samples.len() as f64;
        ((least * responses) as u64, (mean * responses).ceil() as u64)
    }
}
