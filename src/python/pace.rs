//! `RateLimitState`: what a client's pacer did when it was asked.

use pyo3::prelude::*;

use crate::client::PaceState;

#[doc = doc!(RateLimitState)]
#[pyclass(frozen, eq, module = "chainframe")]
#[derive(Clone, Copy, PartialEq)]
pub struct RateLimitState {
    pub inner: PaceState,
}

#[pymethods]
impl RateLimitState {
    #[getter]
    fn rate(&self) -> Option<f64> {
        self.inner.rate
    }

    #[getter]
    fn waiting(&self) -> usize {
        self.inner.waiting
    }

    #[getter]
    fn throttled(&self) -> u64 {
        self.inner.throttled
    }

    /// Seconds.
    #[getter]
    fn pause(&self) -> f64 {
        self.inner.pause.as_secs_f64()
    }

    fn __repr__(&self) -> String {
        let PaceState { rate, waiting, throttled, pause } = self.inner;
        let rate = rate.map_or("None".into(), |rate| format!("{rate:.2}"));
        let pause = pause.as_secs_f64();
        format!("RateLimitState(rate={rate}, waiting={waiting}, throttled={throttled}, pause={pause:.3})")
    }
}
