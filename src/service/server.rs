//! The server's life: a port, a thread of its own with a small runtime, and an end that waits for nobody.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::connection::{Connections, Tear};
use super::faults::{Fault, Faults, MOST_SECONDS};
use super::journal::RequestEntry;
use super::routes::{State, lock, router};
use super::settings::{LoadError, ServiceError, Settings, check_rate};
use super::store::Store;
use super::throttle::Throttle;
use crate::cassette::{self, Interaction, Outcome};
use crate::columns::Columns;
use crate::interface::Endpoint;

/// For a query that is running when the service stops.
const GRACE: Duration = Duration::from_secs(5);

/// A running service; it stops when dropped.
#[derive(Debug)]
pub struct Service {
    url: String,
    state: Arc<State>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Service {
    /// Fills the database and listens; both are done when this returns.
    pub fn start(settings: Settings) -> Result<Self, ServiceError> {
        settings.check()?;
        let store = Store::open(&settings)?;
        let bind_error = |source| ServiceError::Bind { port: settings.port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, settings.port)).map_err(bind_error)?;
        listener.set_nonblocking(true).map_err(bind_error)?;
        let url = format!("http://{}", listener.local_addr().map_err(bind_error)?);
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("local-service")
            .enable_io()
            .enable_time()
            .build()
            .map_err(ServiceError::Start)?;
        let state = Arc::new(State::new(settings, store));
        let (stop, stopped) = oneshot::channel();
        let served = state.clone();
        let thread = std::thread::Builder::new()
            .name("local-service".into())
            .spawn(move || serve(runtime, listener, served, stopped))
            .map_err(ServiceError::Start)?;
        Ok(Self { url, state, running: Mutex::new(Some(Running { stop, thread })) })
    }

    /// Such as `http://127.0.0.1:40123`.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn settings(&self) -> &Settings {
        &self.state.settings
    }

    /// How many requests have come in, refused ones included.
    pub fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// The latest requests, oldest first.
    pub fn request_log(&self) -> Vec<RequestEntry> {
        lock(&self.state.journal).entries()
    }

    /// Forgets the requests that came in so far.
    pub fn clear_requests(&self) {
        lock(&self.state.journal).clear();
        self.state.requests.store(0, Ordering::Relaxed);
    }

    pub fn faults(&self) -> Vec<Fault> {
        lock(&self.state.faults).declared()
    }

    /// Replaces the faults and starts their counts anew.
    pub fn set_faults(&self, faults: Vec<Fault>) {
        *lock(&self.state.faults) = Faults::new(faults);
    }

    pub fn growth(&self) -> u32 {
        self.state.growth.load(Ordering::Relaxed)
    }

    pub fn set_growth(&self, growth: u32) {
        self.state.growth.store(growth, Ordering::Relaxed);
    }

    pub fn rate_limit(&self) -> Option<f64> {
        lock(&self.state.throttle).as_ref().map(Throttle::rate)
    }

    pub fn set_rate_limit(&self, rate: Option<f64>) -> Result<(), ServiceError> {
        check_rate(rate)?;
        *lock(&self.state.throttle) = rate.map(|rate| Throttle::new(rate, Instant::now()));
        Ok(())
    }

    /// Seconds that the service's clock is ahead.
    pub fn clock_ahead(&self) -> f64 {
        self.state.clock_ms.load(Ordering::Relaxed) as f64 / 1e3
    }

    pub fn set_clock_ahead(&self, seconds: f64) -> Result<(), ServiceError> {
        if !(-MOST_SECONDS..=MOST_SECONDS).contains(&seconds) {
            let problem = format!("must be a number from -{MOST_SECONDS} to {MOST_SECONDS}");
            return Err(ServiceError::Setting { setting: "clock_ahead", problem });
        }
        self.state.clock_ms.store((seconds * 1e3) as i64, Ordering::Relaxed);
        Ok(())
    }

    /// Serves these records for that endpoint, in the place of whatever it has had.
    pub fn load(&self, endpoint: &'static Endpoint, records: &Columns) -> Result<(), ServiceError> {
        Ok(lock(&self.state.store).load(endpoint, records)?)
    }

    /// Gives the successful answers of a cassette to the very requests they were given to.
    pub fn load_answers(&self, path: &Path) -> Result<usize, LoadError> {
        let mut answers = Vec::new();
        for Interaction { request, outcome } in cassette::read(path)? {
            let Outcome::Answer(answer) = outcome else { continue };
            if !self.state.serves(&request.path) {
                return Err(LoadError::Path { path: request.path });
            }
            if answer.status == 200 {
                answers.push((request, answer.body));
            }
        }
        lock(&self.state.store).load_answers(&answers).map_err(ServiceError::from)?;
        Ok(answers.len())
    }

    /// Closes every connection, used or idle. A second call does nothing.
    pub fn stop(&self) {
        let running = lock(&self.running).take();
        if let Some(Running { stop, thread }) = running {
            // Both fail only if the thread is gone already.
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(runtime: Runtime, listener: TcpListener, state: Arc<State>, stopped: oneshot::Receiver<()>) {
    runtime.block_on(async {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
        let service = router(state).into_make_service_with_connect_info::<Tear>();
        tokio::select! {
            _ = axum::serve(Connections(listener), service) => {}
            _ = stopped => {}
        }
    });
    // Drops the connections with their tasks; a graceful end would wait for clients that keep theirs open.
    runtime.shutdown_timeout(GRACE);
}
