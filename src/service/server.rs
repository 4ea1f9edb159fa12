//! Lifecycle of the server: it listens on a port, runs in a thread of its own, and stops without waiting for clients.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::connection::{ConnectionHandle, Connections};
use super::fault::{Fault, MOST_SECONDS};
use super::faults::Faults;
use super::quirk::Quirk;
use super::quirks::Quirks;
use super::request_log::RequestEntry;
use super::routes::{ServiceState, lock, router};
use super::settings::{
    Delay, LoadError, Respond, ServiceError, Settings, check_delay, check_faults, check_quirks, check_rate, check_reorg,
};
use super::simulated::Simulated;
use super::store::Store;
use super::throttle::Throttle;
use crate::cassette::{self, Interaction, Outcome};
use crate::columns::Columns;
use crate::interface::Endpoint;
use crate::virtual_time::VirtualTime;

/// For a query that is running when the service stops.
const GRACE: Duration = Duration::from_secs(5);

/// Base URL of simulated services. On loopback, where requests are allowed in tests without network.
const NO_URL: &str = "http://127.0.0.1:0";

/// A running service; it stops when dropped.
#[derive(Debug)]
pub struct Service {
    url: String,
    state: Arc<ServiceState>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    /// The process that the thread runs in. A forked child has a copy of this struct, but not the thread.
    process: u32,
}

impl Service {
    /// Threads that a service on a port needs.
    pub const THREADS: usize = 3;

    /// Fills the database and listens; both are done when this returns.
    pub fn start(settings: Settings) -> Result<Self, ServiceError> {
        settings.check(false)?;
        let store = Store::open(&settings).map_err(|error| settings.failed(error))?;
        let (listener, url) = listen(settings.port).map_err(|source| {
            let port = settings.port;
            ServiceError::setting("port", format!("must be free; cannot listen on 127.0.0.1:{port}: {source}"))
        })?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(Self::THREADS - 1)
            // Lookups wait for one database connection, so more threads would only wait with them.
            .max_blocking_threads(4)
            .thread_name("local-service")
            .enable_io()
            .enable_time()
            .build()
            .map_err(ServiceError::Start)?;
        let state = Arc::new(ServiceState::new(settings, store, None));
        let (stop, stopped) = oneshot::channel();
        let served = state.clone();
        let thread = std::thread::Builder::new()
            .name("local-service".into())
            .spawn(move || serve(runtime, listener, served, stopped))
            .map_err(ServiceError::Start)?;
        Ok(Self { url, state, running: Mutex::new(Some(Running { stop, thread, process: std::process::id() })) })
    }

    /// A service without a socket, in virtual time.
    pub fn simulate(settings: Settings, time: Arc<VirtualTime>) -> Result<Self, ServiceError> {
        settings.check(true)?;
        let store = Store::open(&settings).map_err(|error| settings.failed(error))?;
        let state = Arc::new(ServiceState::new(settings, store, Some(time)));
        Ok(Self { url: NO_URL.into(), state, running: Mutex::new(None) })
    }

    /// The way to a simulated service; `None` for a server.
    pub fn simulated(&self) -> Option<(Simulated, Arc<VirtualTime>)> {
        let time = self.state.virtual_time.clone()?;
        Some((Simulated(self.state.clone()), time))
    }

    /// Base URL, such as `http://127.0.0.1:40123`. Nothing listens at that of a simulated service.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn settings(&self) -> &Settings {
        &self.state.settings
    }

    /// Number of requests received, including those that got an error.
    pub fn request_count(&self) -> u64 {
        self.state.request_log.received()
    }

    /// The latest requests, oldest first.
    pub fn request_log(&self) -> Vec<RequestEntry> {
        self.state.request_log.entries()
    }

    /// Forgets the requests that came in so far.
    pub fn reset_request_log(&self) {
        self.state.request_log.clear();
    }

    pub fn faults(&self) -> Vec<Fault> {
        lock(&self.state.faults).declared()
    }

    /// Replaces the faults; their counts start at 0.
    pub fn set_faults(&self, faults: Vec<Fault>) -> Result<(), ServiceError> {
        check_faults(&faults, &self.state.settings.deployment, self.state.virtual_time.is_some())?;
        *lock(&self.state.faults) = Faults::new(faults);
        Ok(())
    }

    /// Faults that have changed no response yet.
    pub fn unused_faults(&self) -> Vec<Fault> {
        lock(&self.state.faults).unused()
    }

    pub fn quirks(&self) -> Vec<Quirk> {
        lock(&self.state.quirks).declared()
    }

    pub fn set_quirks(&self, quirks: Vec<Quirk>) -> Result<(), ServiceError> {
        check_quirks(&quirks, self.rate_limit())?;
        *lock(&self.state.quirks) = Quirks::new(quirks);
        Ok(())
    }

    /// Quirks that have changed no response yet.
    pub fn unused_quirks(&self) -> Vec<Quirk> {
        lock(&self.state.quirks).unused()
    }

    /// Replaces the function that is asked for each response.
    pub fn set_respond(&self, respond: Option<Respond>) {
        *lock(&self.state.respond) = respond;
    }

    /// Problems of that function so far.
    pub fn respond_errors(&self) -> Vec<String> {
        lock(&self.state.respond_errors).clone()
    }

    pub fn growth(&self) -> u32 {
        self.state.growth.load(Ordering::Relaxed)
    }

    pub fn set_growth(&self, growth: u32) {
        self.state.growth.store(growth, Ordering::Relaxed);
    }

    pub fn reorg(&self) -> Option<(u64, u32)> {
        *lock(&self.state.reorg)
    }

    pub fn set_reorg(&self, reorg: Option<(u64, u32)>) -> Result<(), ServiceError> {
        check_reorg(reorg)?;
        *lock(&self.state.reorg) = reorg;
        Ok(())
    }

    pub fn late(&self) -> Option<Delay> {
        lock(&self.state.store).late
    }

    pub fn set_late(&self, late: Option<Delay>) -> Result<(), ServiceError> {
        check_delay("late", late)?;
        lock(&self.state.store).late = late;
        Ok(())
    }

    pub fn pending(&self) -> Option<Delay> {
        lock(&self.state.store).pending
    }

    pub fn set_pending(&self, pending: Option<Delay>) -> Result<(), ServiceError> {
        check_delay("pending", pending)?;
        lock(&self.state.store).pending = pending;
        Ok(())
    }

    pub fn rate_limit(&self) -> Option<f64> {
        lock(&self.state.throttle).as_ref().map(Throttle::rate)
    }

    pub fn set_rate_limit(&self, rate: Option<f64>) -> Result<(), ServiceError> {
        check_rate(rate)?;
        let _time = self.state.virtual_time.as_ref().map(|time| time.enter());
        *lock(&self.state.throttle) = rate.map(|rate| Throttle::new(rate, Instant::now()));
        Ok(())
    }

    /// Seconds that the service's clock is ahead.
    pub fn clock_skew(&self) -> f64 {
        self.state.clock_ms.load(Ordering::Relaxed) as f64 / 1e3
    }

    pub fn set_clock_skew(&self, seconds: f64) -> Result<(), ServiceError> {
        if !(-MOST_SECONDS..=MOST_SECONDS).contains(&seconds) {
            let problem = format!("must be from -{MOST_SECONDS} to {MOST_SECONDS} seconds; got {seconds}");
            return Err(ServiceError::setting("clock_skew", problem));
        }
        self.state.clock_ms.store((seconds * 1e3) as i64, Ordering::Relaxed);
        Ok(())
    }

    /// Serves these records for that endpoint, in place of any others.
    pub fn load(&self, endpoint: &'static Endpoint, records: &Columns) -> Result<(), ServiceError> {
        let settings = &self.state.settings;
        let path = settings.deployment.expand(endpoint.path);
        let loaded = lock(&self.state.store).load(endpoint, &path, records);
        loaded.map_err(|error| settings.failed(error.into()))
    }

    /// Serves the successful responses of a cassette to the exact requests they were recorded of.
    pub fn load_cassette(&self, path: &Path) -> Result<usize, LoadError> {
        let mut responses = Vec::new();
        for Interaction { request, outcome, .. } in cassette::read(path)? {
            let Outcome::Response(response) = outcome else { continue };
            if !self.state.serves(&request.path) {
                return Err(LoadError::Path { path: request.path });
            }
            if response.status == 200 {
                responses.push((request, response.body));
            }
        }
        let loaded = lock(&self.state.store).load_cassette(&responses);
        loaded.map_err(|error| self.state.settings.failed(error.into()))?;
        Ok(responses.len())
    }

    /// Closes every connection, used or idle. A second call does nothing.
    pub fn stop(&self) {
        if self.state.virtual_time.as_ref().is_some_and(|time| !time.is_ours()) {
            return;
        }
        let running = lock(&self.running).take();
        let Some(running) = running else {
            if self.state.virtual_time.is_some() && !self.state.is_stopped.swap(true, Ordering::Relaxed) {
                lock(&self.state.store).unlock();
            }
            return;
        };
        if running.process != std::process::id() {
            // Dropping the sender would wake the parent's runtime through the descriptors that a fork shares.
            std::mem::forget(running);
            return;
        }
        // Both fail only if the thread has ended already.
        let _ = running.stop.send(());
        let _ = running.thread.join();
        lock(&self.state.store).unlock();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A listener and its URL.
fn listen(port: u16) -> std::io::Result<(TcpListener, String)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    let url = format!("http://{}", listener.local_addr()?);
    Ok((listener, url))
}

fn serve(runtime: Runtime, listener: TcpListener, state: Arc<ServiceState>, stopped: oneshot::Receiver<()>) {
    runtime.block_on(async {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
        let header_timeout = state.settings.header_timeout;
        let request_log = state.request_log.clone();
        let service = router(state).into_make_service_with_connect_info::<ConnectionHandle>();
        tokio::select! {
            _ = axum::serve(Connections { listener, header_timeout, request_log }, service) => {}
            _ = stopped => {}
        }
    });
    // Drops the connections with their tasks; a graceful end would wait for clients that keep theirs open.
    runtime.shutdown_timeout(GRACE);
}
