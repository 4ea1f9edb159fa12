//! What a service is started with, and what can be wrong with it.

use std::path::PathBuf;

use super::faults::Fault;
use crate::cassette;
use crate::interface::Deployment;

/// Above this a chain no longer fits the memory of an ordinary machine.
const MOST_TRANSACTIONS: u64 = 10_000_000;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Transactions of the main chain; everything else is in proportion.
    pub transactions: u64,
    /// The same seed makes the same chain, byte for byte.
    pub seed: u64,
    pub deployment: Deployment,
    pub credentials: Credentials,
    /// `chainShortName` of the main chain.
    pub main_chain: String,
    /// `chainShortName` of the zone chain.
    pub zone_chain: String,
    /// How many records of a main-chain list can be reached.
    pub reach: u64,
    /// Requests per second; more are answered with 429 and code 50011.
    pub rate_limit: Option<f64>,
    /// New records at the head of every growing list after each answered list request.
    pub growth: u32,
    /// New records a second at the head of every growing list, whoever asks.
    pub growth_rate: Option<f64>,
    /// After every so many list requests, so many of the newest records are replaced by others.
    pub reorg: Option<(u64, u32)>,
    pub faults: Vec<Fault>,
    /// Where the database is kept; in memory without it.
    pub db: Option<PathBuf>,
    /// 0 takes any free port.
    pub port: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            transactions: 10_000,
            seed: 7,
            deployment: Deployment::default(),
            credentials: Credentials::default(),
            main_chain: "MAIN".into(),
            zone_chain: "ZONE_CHAIN".into(),
            reach: 10_000,
            rate_limit: None,
            growth: 0,
            growth_rate: None,
            reorg: None,
            faults: Vec::new(),
            db: None,
            port: 0,
        }
    }
}

/// The one account of the service. Not secret: anyone on this machine may read it.
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
    #[error("{setting}: {problem}")]
    Setting { setting: &'static str, problem: String },
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Bind { port: u16, source: std::io::Error },
    #[error("cannot start the service: {0}")]
    Start(#[source] std::io::Error),
    #[error("{}: {problem}", path.display())]
    NotOurs { path: PathBuf, problem: String },
    #[error("database: {0}")]
    Database(#[from] rusqlite::Error),
}

/// Why recorded answers cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Cassette(#[from] cassette::Error),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("{path} is no path of this service; give it the deployment that the answers were recorded from")]
    Path { path: String },
}

pub(super) fn check_rate(rate: Option<f64>) -> Result<(), ServiceError> {
    match rate {
        Some(rate) if !(rate.is_finite() && rate > 0.0) => {
            let problem = "must be a positive number of requests per second".into();
            Err(ServiceError::Setting { setting: "rate_limit", problem })
        }
        _ => Ok(()),
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), ServiceError> {
        let refuse = |setting, problem: &str| Err(ServiceError::Setting { setting, problem: problem.into() });
        if self.transactions > MOST_TRANSACTIONS {
            return refuse("transactions", &format!("at most {MOST_TRANSACTIONS} fit in memory"));
        }
        if self.growth_rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            return refuse("growth_rate", "must be a positive number of records per second");
        }
        if self.reorg.is_some_and(|(every, depth)| every == 0 || depth == 0) {
            return refuse("reorg", "must be two numbers of at least 1: every so many requests, so many records");
        }
        if self.reach == 0 {
            return refuse("reach", "must be at least 1");
        }
        check_rate(self.rate_limit)?;
        for (setting, text) in [
            ("main_chain", &self.main_chain),
            ("zone_chain", &self.zone_chain),
            ("api_key", &self.credentials.api_key),
            ("secret_key", &self.credentials.secret_key),
            ("passphrase", &self.credentials.passphrase),
        ] {
            if text.is_empty() {
                return refuse(setting, "must not be empty");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_settings_are_refused_by_name() {
        let refused = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().unwrap_err().to_string()
        };
        assert!(Settings::default().check().is_ok());
        assert!(refused(|settings| settings.transactions = u64::MAX).starts_with("transactions: "));
        assert!(refused(|settings| settings.reach = 0).starts_with("reach: "));
        assert!(refused(|settings| settings.rate_limit = Some(0.0)).starts_with("rate_limit: "));
        assert!(refused(|settings| settings.rate_limit = Some(f64::NAN)).starts_with("rate_limit: "));
        assert!(refused(|settings| settings.zone_chain.clear()).starts_with("zone_chain: "));
        assert!(refused(|settings| settings.credentials.secret_key.clear()).starts_with("secret_key: "));
    }
}
