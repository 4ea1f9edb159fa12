//! `RateLimitState`: state of a client's rate limiter at one moment.

use std::time::Duration;

use pyo3::prelude::*;

use crate::client::RateLimiterState;
use crate::python::base::pickle::{Reduced, reduced};

#[doc = doc!(RateLimitState)]
#[pyclass(frozen, eq, module = "chainframe")]
#[derive(Clone, Copy, PartialEq)]
pub struct RateLimitState {
    pub inner: RateLimiterState,
}

getters! { RateLimitState { rate: Option<f64>, waiting: usize, throttled: u64 } }

#[pymethods]
impl RateLimitState {
    #[doc = doc!(RateLimitState.pause)]
    #[getter]
    fn pause(&self) -> f64 {
        self.inner.pause.as_secs_f64()
    }

    fn __repr__(&self) -> String {
        let RateLimiterState { rate, waiting, throttled, pause } = self.inner;
        let rate = rate.map_or("None".into(), |rate| format!("{rate:.2}"));
        let pause = pause.as_secs_f64();
        format!("RateLimitState(rate={rate}, waiting={waiting}, throttled={throttled}, pause={pause:.3})")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "_restore_rate_limit_state", (self.rate(), self.waiting(), self.throttled(), self.pause()))
    }
}

#[pyfunction]
pub fn _restore_rate_limit_state(rate: Option<f64>, waiting: usize, throttled: u64, pause: f64) -> RateLimitState {
    let pause = Duration::try_from_secs_f64(pause).unwrap_or_default();
    RateLimitState { inner: RateLimiterState { rate, waiting, throttled, pause } }
}
