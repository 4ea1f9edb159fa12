//! A client as text and in notebooks: its settings without secrets.

use pyo3::prelude::*;

use super::client::Client;
use crate::client::{Concurrency, RateLimit};
use crate::columns::DecimalPolicy;
use crate::display::html;
use crate::message::counted;
use crate::python::base::errors;

#[pymethods]
impl Client {
    fn __repr__(&self) -> String {
        let settings = self.inner.settings();
        format!(
            "Client(base_url='{}', main_chain='{}', zone_chain='{}')",
            settings.base_url(),
            errors::printable(&settings.main_chain),
            errors::printable(&settings.zone_chain)
        )
    }

    fn _repr_html_(&self) -> String {
        let settings = self.inner.settings();
        let rate = match (settings.rate_limit, self.inner.rate_limiter_state().rate) {
            (RateLimit::Auto, Some(rate)) => format!("auto ({rate:.1} requests/s)"),
            (RateLimit::Auto, None) => "auto (unthrottled)".into(),
            (RateLimit::PerSecond(rate), _) => format!("{rate} requests/s"),
            (RateLimit::Unlimited, _) => "none".into(),
        };
        let max_requests = match (settings.max_requests, self.inner.requests_left()) {
            (_, None) => "none".into(),
            (Some(most), Some(left)) => format!("{most}, of which {left} are left"),
            (None, Some(left)) => format!("{left} are left"),
        };
        let concurrency = match settings.concurrency {
            Concurrency::Auto => format!("auto ({})", counted(self.inner.concurrency() as u64, "request")),
            Concurrency::Fixed(requests) => requests.to_string(),
        };
        let deadline = settings.deadline.map_or("none".into(), |deadline| format!("{} s", deadline.as_secs_f64()));
        let facts = [
            ("main chain", settings.main_chain.clone()),
            ("zone chain", settings.zone_chain.clone()),
            ("rate limit", rate),
            ("maximum of requests", max_requests),
            ("concurrency", concurrency),
            ("timeout, deadline", format!("{} s, {deadline}", settings.timeout.as_secs_f64())),
            ("retries", settings.max_retries.to_string()),
            ("strict", if settings.strict { "True" } else { "False" }.into()),
            ("numbers", settings.numbers.map_or("default", DecimalPolicy::name).into()),
            ("cache", settings.cache.as_ref().map_or("none".into(), |cache| cache.directory().display().to_string())),
            ("usage", html::usage(&self.inner.usage())),
        ];
        html::form("Client", &format!("of {}", settings.base_url()), &[html::pairs(&facts)])
    }
}
