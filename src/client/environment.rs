//! The surroundings of a client: network, time of day, randomness, and the rate limiters that clients share. A simulation
//! replaces all of them; nothing else in the core reads a clock of the system or a random number.

use std::sync::Arc;
use std::time::SystemTime;

use super::account::CredentialSource;
use super::observation::Observer;
use super::rate_limiter::SharedLimiters;
use super::transport::Transport;
use crate::cassette::Origin;
use crate::virtual_time::VirtualTime;

#[derive(Clone)]
pub struct Environment {
    /// The network; `None` is HTTP as the settings say.
    pub transport: Option<Arc<dyn Transport>>,
    /// The time of day, for timestamps. Durations are measured by tokio's clock, which a simulation pauses.
    pub wall_clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// A random number in 0..1, for the jitter of retries.
    pub jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    pub limiters: SharedLimiters,
    /// Issues the credentials, if they are not those of the settings.
    pub credentials: Option<Arc<dyn CredentialSource>>,
    /// Receives a report of every attempt.
    pub observer: Option<Arc<dyn Observer>>,
    /// The origin of the client, if its requests are to be counted.
    pub origin: Option<Arc<Origin>>,
    /// The runtime of the client's tasks, if time is simulated.
    pub virtual_time: Option<Arc<VirtualTime>>,
}

impl Default for Environment {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clock and random numbers")]
    fn default() -> Self {
        Self {
            transport: None,
            wall_clock: Arc::new(SystemTime::now),
            jitter: Arc::new(fastrand::f64),
            limiters: SharedLimiters::default(),
            credentials: None,
            observer: None,
            origin: None,
            virtual_time: None,
        }
    }
}
