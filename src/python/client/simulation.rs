//! The transport to a simulated service, and the surroundings of its clients.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::body::{Body, to_bytes};
use futures_util::future::BoxFuture;
use http::header::{CONTENT_LENGTH, HeaderMap};
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::{Environment, Observer, Phase, Response, SharedLimiters, Transport, TransportError};
use crate::message::{Hint, Message};
use crate::process;
use crate::service::{NoResponse, Simulated, Unreachable};
use crate::virtual_time::VirtualTime;

/// The time of day at which a simulation starts: a little after the newest synthetic record.
const START: Duration = Duration::from_millis(1_769_850_000_000);
/// Shortest and longest time from the client to the service or back, in milliseconds.
const LATENCY_MS: (u64, u64) = (2, 40);

/// The random numbers of one simulation.
pub type Random = Arc<Mutex<fastrand::Rng>>;

/// Virtual time and random numbers, both determined by the seed.
pub fn world(seed: u64) -> std::io::Result<(Arc<VirtualTime>, Random)> {
    let time = VirtualTime::new(SystemTime::UNIX_EPOCH + START)?;
    Ok((Arc::new(time), Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)))))
}

/// The surroundings of a client of a simulated service.
pub fn environment(
    service: Simulated,
    time: Arc<VirtualTime>,
    random: Random,
    max_response_bytes: usize,
    observer: Option<Arc<dyn Observer>>,
) -> Environment {
    let clock = time.clone();
    let jitter = random.clone();
    Environment {
        transport: Some(Arc::new(Network { service, random, max_response_bytes })),
        wall_clock: Arc::new(move || clock.now()),
        jitter: Arc::new(move || process::lock(&jitter).f64()),
        credentials: None,
        limiters: SharedLimiters::Own(Arc::default()),
        observer,
        origin: None,
        virtual_time: Some(time),
    }
}

struct Network {
    service: Simulated,
    random: Random,
    max_response_bytes: usize,
}

impl Network {
    fn latency(&self) -> Duration {
        let (min, max) = LATENCY_MS;
        Duration::from_millis(process::lock(&self.random).u64(min..=max))
    }

    async fn send(&self, target: &str, headers: HeaderMap, timeout: Duration) -> Result<Response, TransportError> {
        let there = self.latency();
        let back = self.latency();
        let end = Instant::now() + timeout;
        let uri = target.parse().map_err(|_| TransportError::new(Phase::Connect, "the target is no URI", false))?;
        let exchange = async {
            sleep(there).await;
            let response = self.service.get(uri, headers).await;
            sleep(back).await;
            response.map_err(|error| match error {
                NoResponse::Stopped => TransportError::new(Phase::Connect, "the simulated service is closed", true),
                NoResponse::Reset => TransportError::new(Phase::Read, "connection reset", true),
                NoResponse::Unreachable(reason) => unreachable(reason),
            })
        };
        let response = timeout_at(end, exchange).await;
        let response = response.map_err(|_| TransportError::timed_out(Phase::Read, "no response", timeout))??;
        let (head, body) = response.into_parts();
        let body = timeout_at(end, self.read(&head.headers, body)).await;
        let body =
            body.map_err(|_| TransportError::timed_out(Phase::Body, "response body not received", timeout))??;
        Ok(Response { status: head.status.as_u16(), headers: head.headers, body })
    }

    async fn read(&self, headers: &HeaderMap, body: Body) -> Result<bytes::Bytes, TransportError> {
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if length.is_some_and(|length| length > self.max_response_bytes) {
            return Err(TransportError::too_large(self.max_response_bytes));
        }
        let body = to_bytes(body, self.max_response_bytes).await;
        body.map_err(|_| TransportError::new(Phase::Body, "response body truncated", true))
    }
}

/// The failure of a connection, as the network would report it.
fn unreachable(reason: Unreachable) -> TransportError {
    let cause = match reason {
        Unreachable::Refused => "connection refused",
        Unreachable::UnknownHost => "the host name cannot be resolved",
        Unreachable::Tls => {
            let problem = Message::new("the simulated service: invalid peer certificate");
            // As for a real certificate, which stays what it is for more than seconds.
            return TransportError::new(Phase::Tls, problem.hint(Hint::check(&["base_url", "ca_bundle"])), false);
        }
    };
    let problem = Message::new(format!("cannot connect to the simulated service: {cause}"));
    TransportError::new(Phase::Connect, problem.hint(Hint::check(&["base_url"])), true)
}

impl Transport for Network {
    fn get<'a>(
        &'a self,
        target: &'a str,
        headers: HeaderMap,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        Box::pin(self.send(target, headers, timeout))
    }
}
