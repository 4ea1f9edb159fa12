//! How fast a list grows, in records a request, so that the next page can be asked for where it will be.

use std::collections::VecDeque;

const SAMPLES: usize = 6;
/// Requests in a row without growth after which a list counts as still, the first time.
const STILL: u32 = 2;

#[derive(Clone, Debug, Default)]
pub struct Pace {
    samples: VecDeque<f64>,
    still: u32,
}

impl Pace {
    /// The list grew by so much over so many requests.
    pub fn observe(&mut self, grown: i64, requests: u64) {
        self.still = if grown == 0 { self.still + 1 } else { 0 };
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back((grown.max(0) as f64) / requests.max(1) as f64);
    }

    /// Whether it has come to rest: it is believed less readily each time it moved on.
    pub fn is_still(&self, relapses: u32) -> bool {
        self.still >= STILL << relapses.min(5)
    }

    /// The least and the mean that the next request will see.
    pub fn expected(&self) -> (u64, u64) {
        if self.samples.is_empty() {
            return (0, 0);
        }
        let least = self.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = self.samples.iter().sum::<f64>() / self.samples.len() as f64;
        (least as u64, mean.ceil() as u64)
    }
}
