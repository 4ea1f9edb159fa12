//! Connections: TCP, then the tunnel of a proxy, then TLS. Every connection of the package is made here, so that nothing
//! is sent before the TLS that an address promises.

use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, poll_fn};
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::{CaptureConnection, Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tower_service::Service;

use super::proxy::Proxy;

/// Bytes that a task reads before other tasks run. A server that sends faster than a task reads would keep it running
/// for seconds: the runtime has one worker, and what the protocol skips (interim responses, zeros in front of a length)
/// has no end.
const MAX_UNINTERRUPTED_BYTES: usize = 32 << 10;
/// Longest response of a proxy to `CONNECT`.
const MAX_PROXY_HEAD: usize = 8 << 10;
/// Interval after which an idle connection is probed, which keeps it in the tables of firewalls.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Probes without a response after which a connection is given up: one or two may be lost on a good network.
const MAX_PROBES: u32 = 3;

pub const USER_AGENT: &str = concat!("chainframe/", env!("CARGO_PKG_VERSION"));

pub type BoxError = Box<dyn StdError + Send + Sync>;

tokio::task_local! {
    /// Time for a connection that the request needs. Clients with different timeouts share their connections, so it is
    /// not a property of those.
    pub static CONNECT_TIMEOUT: Duration;
}

#[derive(Debug, thiserror::Error)]
#[error("no connection within the timeout")]
pub struct ConnectTimeout;

/// A proxy that sends no tunnel, and the status of its response if that has one.
#[derive(Debug, thiserror::Error)]
#[error("the proxy rejected the tunnel")]
pub struct TunnelRejected(pub Option<u16>);

/// Makes the connections of one client.
#[derive(Clone)]
pub struct Connector {
    tcp: HttpConnector,
    /// `None` if nothing needs TLS.
    tls: Option<Arc<ClientConfig>>,
    proxy: Option<Proxy>,
}

impl Connector {
    pub fn new(tls: Option<ClientConfig>, proxy: Option<Proxy>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEP_ALIVE));
        tcp.set_keepalive_interval(Some(KEEP_ALIVE));
        tcp.set_keepalive_retries(Some(MAX_PROBES));
        Self { tcp, tls: tls.map(Arc::new), proxy }
    }

    async fn connect(mut self, origin: Uri) -> Result<TokioIo<Box<dyn Stream>>, BoxError> {
        poll_fn(|context| self.tcp.poll_ready(context)).await?;
        let next_hop = match &self.proxy {
            Some(proxy) => proxy.uri()?,
            None => origin.clone(),
        };
        let socket = self.tcp.call(next_hop.clone()).await?.into_inner();
        let mut stream: Box<dyn Stream> = Box::new(Fair { socket, uninterrupted: 0 });
        if let Some(proxy) = &self.proxy {
            if next_hop.scheme() == Some(&Scheme::HTTPS) {
                stream = self.encrypt(stream, &next_hop).await?;
            }
            tunnel(&mut stream, &origin, proxy).await?;
        }
        if origin.scheme() == Some(&Scheme::HTTPS) {
            stream = self.encrypt(stream, &origin).await?;
        }
        Ok(TokioIo::new(stream))
    }

    async fn encrypt(&self, stream: Box<dyn Stream>, peer: &Uri) -> Result<Box<dyn Stream>, BoxError> {
        let host = peer.host().unwrap_or_default().trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned())?;
        let config = self.tls.clone().ok_or("TLS is not configured")?;
        Ok(Box::new(TlsConnector::from(config).connect(name, stream).await?))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, origin: Uri) -> Self::Future {
        let connecting = self.clone().connect(origin);
        let end = CONNECT_TIMEOUT.try_with(|timeout| Instant::now() + *timeout).ok();
        Box::pin(async move {
            match end {
                Some(end) => timeout_at(end, connecting).await.map_err(|_| ConnectTimeout)?,
                None => connecting.await,
            }
        })
    }
}

/// Asks a proxy for a tunnel to the origin.
async fn tunnel(stream: &mut Box<dyn Stream>, origin: &Uri, proxy: &Proxy) -> Result<(), BoxError> {
    let host = origin.host().unwrap_or_default();
    let port = origin.port_u16().unwrap_or(443);
    let authorization =
        proxy.authorization().map_or(String::new(), |value| format!("Proxy-Authorization: {value}\r\n"));
    let request = format!(
        "CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{authorization}User-Agent: {USER_AGENT}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut head = Vec::with_capacity(512);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MAX_PROXY_HEAD || stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    match status(&head) {
        Some(200..=299) => Ok(()),
        status => Err(TunnelRejected(status).into()),
    }
}

/// The status of a response head.
fn status(head: &[u8]) -> Option<u16> {
    let digits = head.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// True once a connection has had a response.
#[derive(Clone, Debug, Default)]
pub struct Used(Arc<AtomicBool>);

impl Used {
    /// Mark of the connection that a request was sent over, if it was sent.
    pub fn of(connection: &CaptureConnection) -> Option<Self> {
        let mut extensions = http::Extensions::new();
        connection.connection_metadata().as_ref()?.get_extras(&mut extensions);
        extensions.remove()
    }

    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection, plain or encrypted.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        Connected::new().extra(Used::default())
    }
}

/// A socket whose reader lets other tasks run from time to time, however much there is to read.
struct Fair {
    socket: TcpStream,
    /// Bytes read since other tasks could run.
    uninterrupted: usize,
}

impl AsyncRead for Fair {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.uninterrupted >= MAX_UNINTERRUPTED_BYTES {
            self.uninterrupted = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(context, buffer);
        match &polled {
            Poll::Ready(_) => self.uninterrupted += buffer.filled().len() - before,
            Poll::Pending => self.uninterrupted = 0,
        }
        polled
    }
}

impl AsyncWrite for Fair {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::ready;

    #[test]
    fn status_of_a_proxy_is_read_from_the_status_line_only() {
        for (head, expected) in [
            (&b"HTTP/1.1 200 Connected\r\n\r\n"[..], Some(200)),
            (b"HTTP/1.0 407 No\r\n\r\n", Some(407)),
            (b"HTTP/1.1 20", None),
            (b"HTTP/2 200\r\n\r\n", None),
            (b"SSH-2.0-x 200", None),
            (b"", None),
        ] {
            assert_eq!(status(head), expected, "{}", head.escape_ascii());
        }
    }

    #[tokio::test]
    async fn a_reader_with_endless_input_lets_other_tasks_run() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, server) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        let (mut server, _) = server.unwrap();
        let sent = vec![0; 4 * MAX_UNINTERRUPTED_BYTES];
        let sending = tokio::spawn(async move { server.write_all(&sent).await.map(|()| server) });
        let mut fair = Fair { socket: client.unwrap(), uninterrupted: 0 };
        let (mut received, mut longest, mut run) = (0, 0, 0);
        let mut buffer = vec![0; 8 << 10];
        while received < 4 * MAX_UNINTERRUPTED_BYTES {
            poll_fn(|context| {
                run = 0;
                loop {
                    let mut buffer = ReadBuf::new(&mut buffer);
                    ready!(Pin::new(&mut fair).poll_read(context, &mut buffer)).unwrap();
                    (received, run) = (received + buffer.filled().len(), run + buffer.filled().len());
                    longest = longest.max(run);
                    if received >= 4 * MAX_UNINTERRUPTED_BYTES {
                        return Poll::Ready(());
                    }
                }
            })
            .await;
        }
        assert!(longest < 2 * MAX_UNINTERRUPTED_BYTES, "{longest} bytes were read without a pause");
        sending.await.unwrap().unwrap();
    }
}
