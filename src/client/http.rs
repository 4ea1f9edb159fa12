//! The transport over HTTP: a target is sent as it was signed, and its response comes back whole and bounded.

use std::error::Error as _;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use futures_util::future::BoxFuture;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue};
use reqwest::{Method, Request};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use url::{Position, Url};

use super::error::{Error, Phase};
use super::process;
use super::proxy::{self, Proxy};
use super::settings::Settings;
use super::tls;
use super::transport::{Response, Transport, TransportError};
use crate::message::{Hint, Message};

/// Most that is allocated for a body because of its `Content-Length`.
const MAX_PREALLOC: u64 = 8 << 20;
/// About the size of an unpacked body as a multiple of the compressed one.
const UNPACKED: usize = 4;
/// More headers than any gateway adds. Each response initializes as many.
const MAX_HEADERS: usize = 512;
const PROXY_AUTHENTICATION_REQUIRED: u16 = 407;

/// The connections of one client in one process.
pub struct HttpTransport {
    client: reqwest::Client,
    origin: Url,
    max_response_bytes: usize,
    proxy: Option<Proxy>,
    /// Number of connections that were begun.
    connects: Connects,
}

impl HttpTransport {
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        // Fails if a provider is installed already, which then is this one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let connects = Connects::default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("chainframe/", env!("CARGO_PKG_VERSION")))
            // A redirect would send the key and a signature to another host.
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(settings.concurrency)
            .http1_max_headers(MAX_HEADERS)
            .connector_layer(connects.clone())
            .tcp_nodelay(true);
        let proxy = match &settings.proxy {
            Some(proxy) => Some(proxy.clone()),
            // A proxy of the environment is not on loopback: plain http would leave the machine.
            None if settings.is_loopback => None,
            None => Proxy::of_environment()?.filter(|_| !proxy::is_exempt(&settings.origin)),
        };
        if let Some(proxy) = &proxy {
            builder = builder.proxy(proxy.for_reqwest()?);
        } else if settings.is_loopback || proxy::is_exempt(&settings.origin) {
            builder = builder.no_proxy();
        }
        let is_plain = settings.origin.scheme() == "http" && proxy.as_ref().is_none_or(Proxy::is_plain);
        if let Some(certificates) = tls::certificates(settings, is_plain)? {
            builder = builder.tls_certs_only(certificates);
        }
        let client = builder
            .build()
            .map_err(|error| Error::config("ca_bundle", format!("cannot be used for TLS: {}", cause(&error))))?;
        Ok(Self {
            client,
            origin: settings.origin.clone(),
            max_response_bytes: settings.max_response_bytes,
            proxy,
            connects,
        })
    }

    async fn send(&self, target: &str, mut headers: HeaderMap, timeout: Duration) -> Result<Response, TransportError> {
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let mut url = self.origin.clone();
        url.set_path(path);
        url.set_query(query);
        if url[Position::BeforePath..] != *target {
            return Err(TransportError::new(Phase::Connect, "the target would not be sent as it was signed", false));
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        // A little longer than the connection's own limit, so that a slow connect is reported as one.
        let end = Instant::now() + timeout + Duration::from_millis(20);
        let mut request = Request::new(Method::GET, url);
        *request.headers_mut() = headers;
        let connects = self.connects.count();
        let sent = CONNECT_TIMEOUT.scope(timeout, self.client.execute(request));
        let mut response = match timeout_at(end, sent).await {
            Err(_) => return Err(TransportError::timed_out(Phase::Read, "no response", timeout)),
            Ok(Err(error)) => return Err(self.explain(&error, Phase::Read, connects, timeout).await),
            Ok(Ok(response)) => response,
        };
        let (status, headers) = (response.status().as_u16(), std::mem::take(response.headers_mut()));
        if let Some(proxy) = self.proxy.as_ref().filter(|_| status == PROXY_AUTHENTICATION_REQUIRED) {
            return Err(rejected_by_proxy(proxy, Some(status)));
        }
        let expected = response.content_length().unwrap_or(0);
        let body = match timeout_at(end, read(&mut response, expected, self.max_response_bytes)).await {
            Err(_) => return Err(TransportError::timed_out(Phase::Body, "response body not received", timeout)),
            Ok(Err(error)) => return Err(self.explain(&error, Phase::Body, connects, timeout).await),
            Ok(Ok(None)) => return Err(TransportError::too_large(self.max_response_bytes)),
            Ok(Ok(Some(body))) => body,
        };
        let encoding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes).unwrap_or_default();
        let unpacked = if encoding.is_empty() { 0 } else { body.len() * UNPACKED };
        let body = process::long_if(unpacked, || decompress(body, encoding, self.max_response_bytes))?;
        Ok(Response { status, body, headers })
    }

    /// The failure that an error of reqwest stands for. `connects` is the count of connections before the request.
    async fn explain(&self, error: &reqwest::Error, phase: Phase, connects: u64, timeout: Duration) -> TransportError {
        let phase = match () {
            () if is_tls(error) => Phase::Tls,
            () if error.is_connect() => Phase::Connect,
            () => phase,
        };
        if any(error, |error| error.is::<ConnectTimeout>()) {
            return TransportError::timed_out(phase, &format!("no connection to {}", self.peer()), timeout);
        }
        let cause = cause(error);
        if is_out_of_files(error) {
            let problem = Message::new("too many open files (ulimit -n)").hint(Hint::lower(&["concurrency"]));
            return TransportError::new(phase, problem, true);
        }
        match phase {
            Phase::Tls => {
                let problem = Message::new(format!("{}: {cause}", self.peer()));
                let problem = problem.hint(Hint::check(&["base_url", "ca_bundle"]));
                // A certificate stays what it is for more than seconds.
                TransportError::new(phase, problem, false)
            }
            Phase::Connect => match &self.proxy {
                Some(proxy) if cause.starts_with("tunnel error") => {
                    rejected_by_proxy(proxy, self.connect_status(proxy, &cause, timeout).await)
                }
                Some(proxy) => {
                    let problem = Message::new(format!("cannot connect to {}: {cause}", self.peer()));
                    TransportError::new(phase, problem.hint(Hint::check(&[proxy.setting])), true)
                }
                None => {
                    let problem = Message::new(format!("cannot connect to {}: {cause}", self.peer()));
                    TransportError::new(phase, problem.hint(Hint::check(&["base_url"])), true)
                }
            },
            _ => {
                let problem = format!("{}: {cause}", self.peer());
                // A response head that is too large stays too large.
                let retryable = !cause.contains("message head is too large");
                let stale_connection = phase == Phase::Read && retryable && self.connects.count() == connects;
                TransportError { stale_connection, ..TransportError::new(phase, problem, retryable) }
            }
        }
    }

    /// The host and port that connections are made to.
    fn peer(&self) -> String {
        match &self.proxy {
            Some(proxy) => format!("the proxy {}", proxy.address()),
            None => {
                let port = self.origin.port_or_known_default().unwrap_or_default();
                format!("{}:{port}", self.origin.host_str().unwrap_or_default())
            }
        }
    }

    /// The status with which a proxy rejects a tunnel, which reqwest does not say: another attempt shows it.
    async fn connect_status(&self, proxy: &Proxy, cause: &str, timeout: Duration) -> Option<u16> {
        if cause.contains("authorization required") {
            return Some(PROXY_AUTHENTICATION_REQUIRED);
        }
        let host = self.origin.host_str()?;
        let target = format!("{host}:{}", self.origin.port_or_known_default()?);
        let authorization =
            proxy.authorization().map_or(String::new(), |value| format!("Proxy-Authorization: {value}\r\n"));
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n");
        let probe = async {
            let stream = TcpStream::connect(proxy.host_and_port()).await.ok()?;
            stream.writable().await.ok()?;
            let sent = stream.try_write(request.as_bytes()).ok()?;
            let mut head = [0; 12];
            stream.readable().await.ok()?;
            let read = stream.try_read(&mut head).ok()?;
            let status = head.get(..read)?.strip_prefix(b"HTTP/1.")?.get(2..5)?;
            std::str::from_utf8(status).ok()?.parse().ok().filter(|_| sent == request.len())
        };
        tokio::time::timeout(timeout.min(Duration::from_secs(5)), probe)
            .await
            .ok()
            .flatten()
            .filter(|_| proxy.is_plain())
    }
}

impl Transport for HttpTransport {
    fn get<'a>(
        &'a self,
        target: &'a str,
        headers: HeaderMap,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        Box::pin(self.send(target, headers, timeout))
    }
}

/// Reads a body of at most `max` bytes, or `None` if it is longer.
async fn read(response: &mut reqwest::Response, expected: u64, max: usize) -> reqwest::Result<Option<Bytes>> {
    if expected > max as u64 {
        return Ok(None);
    }
    let Some(first) = response.chunk().await? else { return Ok(Some(Bytes::new())) };
    if first.len() > max {
        return Ok(None);
    }
    if first.len() as u64 == expected {
        return Ok(Some(first));
    }
    let mut body = BytesMut::with_capacity(expected.min(MAX_PREALLOC) as usize);
    body.extend_from_slice(&first);
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body.freeze()))
}

/// Removes the content encoding. Done here and not in reqwest, since a few kilobytes may unpack to more than the memory.
fn decompress(body: Bytes, encoding: &[u8], max: usize) -> Result<Bytes, TransportError> {
    let broken = |problem: String| Err(TransportError::new(Phase::Body, problem, true));
    match encoding.trim_ascii().to_ascii_lowercase().as_slice() {
        b"" | b"identity" => Ok(body),
        b"gzip" | b"x-gzip" => {
            let mut unpacked = Vec::with_capacity((body.len() * UNPACKED).min(max));
            let mut decoder = MultiGzDecoder::new(&*body).take(max as u64 + 1);
            match decoder.read_to_end(&mut unpacked) {
                Err(_) => broken("invalid gzip in response body".into()),
                Ok(length) if length > max => Err(TransportError::too_large(max)),
                Ok(_) => Ok(unpacked.into()),
            }
        }
        other => broken(format!("unsupported Content-Encoding: {}", other.escape_ascii())),
    }
}

/// A proxy that sends no tunnel. Another attempt helps only where the proxy itself is in trouble.
fn rejected_by_proxy(proxy: &Proxy, status: Option<u16>) -> TransportError {
    let (address, setting) = (proxy.address(), proxy.setting);
    let problem = match status {
        Some(PROXY_AUTHENTICATION_REQUIRED) => {
            format!("the proxy {address} requires a user name and password (status 407)")
        }
        Some(status) => format!("the proxy {address} rejected the connection (status {status})"),
        None => format!("the proxy {address} rejected the connection"),
    };
    let problem = Message::new(problem).hint(Hint::check(&[setting]));
    TransportError::new(Phase::Connect, problem, status.is_none_or(|status| status >= 500))
}

/// An error and its sources. `source` of an I/O error skips the error that it wraps.
fn any(error: &(dyn std::error::Error + 'static), matches: fn(&(dyn std::error::Error + 'static)) -> bool) -> bool {
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    matches(error)
        || wrapped.is_some_and(|wrapped| any(wrapped, matches))
        || error.source().is_some_and(|source| any(source, matches))
}

fn is_tls(error: &reqwest::Error) -> bool {
    any(error, |error| error.is::<rustls::Error>())
}

/// True if the process or the system has no file descriptors left.
fn is_out_of_files(error: &reqwest::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 2] = [libc::EMFILE, libc::ENFILE];
    // WSAEMFILE.
    #[cfg(not(unix))]
    const CODES: [i32; 1] = [10_024];
    any(error, |error| {
        let code = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
        code.is_some_and(|code| CODES.contains(&code))
    })
}

/// The innermost cause: the outer ones repeat the URL and say less.
fn cause(error: &reqwest::Error) -> String {
    let innermost = std::iter::successors(error.source(), |error| (*error).source()).last();
    let text = innermost.map_or_else(|| "the request failed".into(), ToString::to_string);
    text.replace(['\n', '\r'], " ")
}

tokio::task_local! {
    /// Time for a connection that the request needs. Clients with different timeouts share their connections, so it is
    /// not a property of those.
    static CONNECT_TIMEOUT: Duration;
}

#[derive(Debug, thiserror::Error)]
#[error("no connection within the timeout")]
struct ConnectTimeout;

/// Counts the connections that are begun: a request during which none was begun went over a kept-alive one.
#[derive(Clone, Debug, Default)]
struct Connects(Arc<AtomicU64>);

impl Connects {
    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S> tower_layer::Layer<S> for Connects {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, connects: self.clone() }
    }
}

#[derive(Clone)]
struct Counted<S> {
    inner: S,
    connects: Connects,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl<R, S> tower_service::Service<R> for Counted<S>
where
    S: tower_service::Service<R, Error: Into<BoxError>, Future: Send + 'static>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        self.connects.0.fetch_add(1, Ordering::Relaxed);
        let connecting = self.inner.call(request);
        let end = CONNECT_TIMEOUT.try_with(|timeout| Instant::now() + *timeout).ok();
        Box::pin(async move {
            match end {
                Some(end) => timeout_at(end, connecting).await.map_err(|_| ConnectTimeout)?.map_err(Into::into),
                None => connecting.await.map_err(Into::into),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn packed(length: usize) -> Bytes {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&vec![b'x'; length]).unwrap();
        packer.finish().unwrap().into()
    }

    #[test]
    fn decompressed_body_is_bounded() {
        assert_eq!(decompress(packed(1_000), b"gzip", 1_000).unwrap().len(), 1_000);
        assert_eq!(decompress(packed(1_000), b" X-GZIP", 1_000).unwrap().len(), 1_000);
        assert_eq!(decompress(packed(9), b"identity", 1_000).unwrap(), packed(9));
        for (body, encoding, problem, retryable) in [
            (packed(1_001), &b"gzip"[..], "exceeds max_response_bytes (1000 bytes)", false),
            (packed(100 << 20), b"gzip", "exceeds max_response_bytes (1000 bytes)", false),
            (packed(1_000).slice(..20), b"gzip", "invalid gzip", true),
            (Bytes::from_static(b"<html>"), b"gzip", "invalid gzip", true),
            (packed(9), b"br", "unsupported Content-Encoding: br", true),
        ] {
            let error = decompress(body, encoding, 1_000).unwrap_err();
            assert!(error.problem.to_string().contains(problem) && error.retryable == retryable, "{error:?}");
            assert_eq!(error.phase, Phase::Body);
        }
    }
}
