//! The server's life: a port, a thread of its own with a small runtime, and an end that waits for nobody.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::connection::{Connections, Tear};
use super::faults::{Fault, Faults};
use super::journal::RequestEntry;
use super::routes::{State, router};
use super::settings::{ServiceError, Settings};
use super::store::Store;

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
        self.state.journal.lock().unwrap_or_else(PoisonError::into_inner).entries()
    }

    /// Replaces the faults and starts their counts anew.
    pub fn set_faults(&self, faults: Vec<Fault>) {
        *self.state.faults.lock().unwrap_or_else(PoisonError::into_inner) = Faults::new(faults);
    }

    /// Closes every connection, used or idle. A second call does nothing.
    pub fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
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
