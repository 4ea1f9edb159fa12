//! Settings of a service, and errors about them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::fault::{Fault, FaultKind};
use super::quirk::Quirk;
use super::request_log::RequestEntry;
use crate::cassette;
use crate::interface::{Deployment, ENDPOINTS};

/// Maximum number of transactions that fits in the memory of an ordinary machine.
const MOST_TRANSACTIONS: u64 = 10_000_000;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Transactions of the main chain; everything else is in proportion.
    pub transactions: u64,
    /// Start of the random numbers. Equal seeds make equal chains, byte for byte.
    pub seed: u64,
    pub deployment: Deployment,
    pub credentials: Credentials,
    /// `chainShortName` of the main chain.
    pub main_chain: String,
    /// `chainShortName` of the zone chain.
    pub zone_chain: String,
    /// Requests allowed per second; more get status 429 and code 50011.
    pub rate_limit: Option<f64>,
    /// Records added at the head of every growing list after each response to a request for a list.
    pub growth: u32,
    /// Records added per second at the head of every growing list.
    pub growth_rate: Option<f64>,
    /// `(n, m)`: after every `n`-th list request, the newest `m` heights of both chains are replaced.
    pub reorg: Option<(u64, u32)>,
    /// Records that are listed some heights after their own.
    pub late: Option<Delay>,
    /// Transactions that are pending until the chain is some heights longer.
    pub pending: Option<Delay>,
    pub faults: Vec<Fault>,
    pub quirks: Vec<Quirk>,
    pub compression: Option<Compression>,
    /// File of the database; `None` keeps it in memory.
    pub db: Option<PathBuf>,
    /// 0 selects a free port.
    pub port: u16,
    /// Time from a request's first byte to the end of its head; the connection is closed when it runs out.
    pub header_timeout: Duration,
}

const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

impl Default for Settings {
    fn default() -> Self {
        Self {
            transactions: 10_000,
            seed: 7,
            deployment: Deployment::default(),
            credentials: Credentials::default(),
            main_chain: "MAIN".into(),
            zone_chain: "ZONE_CHAIN".into(),
            rate_limit: None,
            growth: 0,
            growth_rate: None,
            reorg: None,
            late: None,
            pending: None,
            faults: Vec::new(),
            quirks: Vec::new(),
            compression: None,
            db: None,
            port: 0,
            header_timeout: HEADER_TIMEOUT,
        }
    }
}

/// The user's responses: one in place of the regular one, `None`, or the reason why there is none.
pub type Respond = Arc<dyn Fn(&RequestEntry) -> Result<Option<FaultKind>, String> + Send + Sync>;

/// A share of the records that the lists gain, and a number of heights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// Above 0, up to 1.
    pub share: f64,
    pub heights: u32,
}

/// Content encoding of responses to requests that accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    Gzip,
}

/// The only account of the service. It is not secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub api_key: String,
    pub secret_key: String,
    pub passphrase: String,
}

impl Default for Credentials {
    fn default() -> Self {
        Self { api_key: "local-key".into(), secret_key: "local-secret".into(), passphrase: "local-passphrase".into() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("{setting} {problem}")]
    Setting { setting: &'static str, problem: String },
    #[error("cannot start the service: {0}")]
    Start(#[source] std::io::Error),
    #[error("the database of the service failed: {0}")]
    Database(#[from] rusqlite::Error),
}

/// An error about recorded responses.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Cassette(#[from] cassette::Error),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("{path} is not a path of this service; start it with the deployment of the recorded responses")]
    Path { path: String },
}

impl ServiceError {
    pub(super) fn setting(setting: &'static str, problem: impl Into<String>) -> Self {
        Self::Setting { setting, problem: problem.into() }
    }
}

pub(super) fn check_reorg(reorg: Option<(u64, u32)>) -> Result<(), ServiceError> {
    let Some((every, depth)) = reorg.filter(|(every, depth)| *every == 0 || *depth == 0) else { return Ok(()) };
    let problem = "must be two positive integers: requests between reorganizations, and heights replaced";
    Err(ServiceError::setting("reorg", format!("{problem}; got ({every}, {depth})")))
}

/// Faults that select no path of the deployment would never apply, nor would those of connections that are there already.
pub(super) fn check_faults(faults: &[Fault], deployment: &Deployment, is_simulated: bool) -> Result<(), ServiceError> {
    let paths: Vec<String> = ENDPOINTS.iter().map(|endpoint| deployment.expand(endpoint.path)).collect();
    for fault in faults {
        if let Some(part) = &fault.path
            && (part.is_empty() || !paths.iter().any(|path| path.contains(part)))
        {
            let problem = format!("must have a path that is a part of one of {}; got {part:?}", paths.join(", "));
            return Err(ServiceError::setting("faults", problem));
        }
        if matches!(fault.kind, FaultKind::Unreachable(_)) && !is_simulated {
            let kind = fault.kind.name();
            let problem =
                format!("of kind {kind:?} need simulated=True: a server is connected before it has a request");
            return Err(ServiceError::setting("faults", problem));
        }
    }
    Ok(())
}

pub(super) fn check_quirks(quirks: &[Quirk], rate_limit: Option<f64>) -> Result<(), ServiceError> {
    if let Some(filter) = quirks.iter().find_map(|quirk| quirk.unknown_filter(&ENDPOINTS)) {
        let problem = format!("of kind \"filter_ignored\" must name a filter of a list; got {filter:?}");
        return Err(ServiceError::setting("quirks", problem));
    }
    if quirks.contains(&Quirk::EmptyThrottle {}) && rate_limit.is_none() {
        return Err(ServiceError::setting("quirks", "with \"empty_throttle\" need rate_limit; set it too"));
    }
    Ok(())
}

pub(super) fn check_delay(setting: &'static str, delay: Option<Delay>) -> Result<(), ServiceError> {
    match delay {
        Some(Delay { share, heights }) if !(share > 0.0 && share <= 1.0 && heights > 0) => {
            let problem = "must be a share of the records, above 0 and up to 1, and a positive number of heights";
            Err(ServiceError::setting(setting, format!("{problem}; got ({share}, {heights})")))
        }
        _ => Ok(()),
    }
}

pub(super) fn check_rate(rate: Option<f64>) -> Result<(), ServiceError> {
    match rate {
        Some(rate) if !(rate.is_finite() && rate > 0.0) => {
            let problem = format!("must be a positive number of requests per second; got {rate}");
            Err(ServiceError::setting("rate_limit", problem))
        }
        _ => Ok(()),
    }
}

impl Settings {
    /// The error of a statement, which in a file is one of the setting that names it: its disk may be full or read-only.
    pub(super) fn failed(&self, error: ServiceError) -> ServiceError {
        match (error, &self.db) {
            (ServiceError::Database(error), Some(path)) => {
                let path = path.display();
                let problem =
                    format!("({path}) cannot be used: {error}; name a file that can be written, on a disk with space");
                ServiceError::setting("db", problem)
            }
            (error, _) => error,
        }
    }

    pub(super) fn check(&self, is_simulated: bool) -> Result<(), ServiceError> {
        if self.transactions > MOST_TRANSACTIONS {
            let problem = format!("must be <= {MOST_TRANSACTIONS}, to fit in memory; got {}", self.transactions);
            return Err(ServiceError::setting("transactions", problem));
        }
        if let Some(rate) = self.growth_rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            let problem = format!("must be a positive number of records per second; got {rate}");
            return Err(ServiceError::setting("growth_rate", problem));
        }
        check_reorg(self.reorg)?;
        check_faults(&self.faults, &self.deployment, is_simulated)?;
        check_quirks(&self.quirks, self.rate_limit)?;
        check_delay("late", self.late)?;
        check_delay("pending", self.pending)?;
        if self.main_chain.eq_ignore_ascii_case(&self.zone_chain) {
            let problem = format!("must differ from main_chain; both are {:?}", self.zone_chain);
            return Err(ServiceError::setting("zone_chain", problem));
        }
        if let Some(db) = &self.db {
            let name = db.to_string_lossy();
            if name.is_empty() || name == ":memory:" || name.starts_with("file:") {
                let problem =
                    format!("must be the path of a file; got {name:?}; leave it out for a database in memory");
                return Err(ServiceError::setting("db", problem));
            }
        }
        check_rate(self.rate_limit)?;
        for (setting, text) in [
            ("main_chain", &self.main_chain),
            ("zone_chain", &self.zone_chain),
            ("api_key", &self.credentials.api_key),
            ("secret_key", &self.credentials.secret_key),
            ("passphrase", &self.credentials.passphrase),
        ] {
            if text.trim().is_empty() {
                return Err(ServiceError::setting(setting, "must not be empty"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        let rejected = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check(false).unwrap_err().to_string()
        };
        assert!(Settings::default().check(false).is_ok());
        assert!(rejected(|settings| settings.transactions = u64::MAX).starts_with("transactions "));
        assert!(rejected(|settings| settings.zone_chain = "main".into()).starts_with("zone_chain "));
        assert!(rejected(|settings| settings.db = Some(":memory:".into())).starts_with("db "));
        assert!(rejected(|settings| settings.db = Some("file:x?mode=memory".into())).starts_with("db "));
        assert!(rejected(|settings| settings.rate_limit = Some(0.0)).starts_with("rate_limit "));
        assert!(rejected(|settings| settings.rate_limit = Some(f64::NAN)).starts_with("rate_limit "));
        const fn delay(share: f64, heights: u32) -> Option<Delay> {
            Some(Delay { share, heights })
        }
        assert!(rejected(|settings| settings.late = delay(0.0, 1)).starts_with("late "));
        assert!(rejected(|settings| settings.late = delay(f64::NAN, 1)).starts_with("late "));
        assert!(rejected(|settings| settings.pending = delay(1.1, 1)).starts_with("pending "));
        assert!(rejected(|settings| settings.pending = delay(1.0, 0)).starts_with("pending "));
        let fault = |text: &str| vec![serde_json::from_str::<Fault>(text).unwrap()];
        let deployment = Deployment::default();
        let misspelt = check_faults(&fault(r#"{"kind":"reset","path":"blok-list"}"#), &deployment, false);
        assert!(misspelt.unwrap_err().to_string().contains("\"blok-list\""));
        let refused = fault(r#"{"kind":"refused","path":"block-list"}"#);
        assert!(check_faults(&refused, &deployment, true).is_ok());
        assert!(check_faults(&refused, &deployment, false).is_err());
        assert!(check_quirks(&[Quirk::EmptyThrottle {}], None).is_err());
        assert!(check_quirks(&[Quirk::FilterIgnored { filter: "page".into() }], None).is_err());
        assert!(rejected(|settings| settings.zone_chain.clear()).starts_with("zone_chain "));
        assert!(rejected(|settings| settings.credentials.secret_key.clear()).starts_with("secret_key "));
    }
}
