//! The transport over HTTP: a target is sent as it was signed, and its response comes back whole and bounded.

use std::error::Error as StdError;
use std::io::{self, Write as _};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use flate2::write::MultiGzDecoder;
use futures_util::future::{BoxFuture, Either, select};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, USER_AGENT};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::connect::{self, CONNECT_TIMEOUT, ConnectTimeout, Connector, TunnelRejected, Used};
use super::error::{Error, Phase};
use super::settings::Settings;
use super::tls;
use super::transport::{Response, Transport, TransportError};
use super::{proxy::Proxy, route::Route};
use crate::message::{Hint, Message};

/// Most that is allocated for a body because of its `Content-Length`.
const MAX_PREALLOC: u64 = 8 << 20;
/// About the size of an unpacked body as a multiple of the compressed one.
const UNPACKED: usize = 4;
/// Compressed bytes that are unpacked before other tasks run. A page has fewer; and of input that unpacks to nothing,
/// which the size of the result does not bound, they take milliseconds.
const SLICE: usize = 16 << 10;
/// More headers than any gateway adds. Each response initializes as many.
const MAX_HEADERS: usize = 512;
/// Longest head, and the most that one read of a connection returns.
const MAX_BUFFER: usize = 32 << 10;
/// Interim responses (1xx) of one request. Gateways send one or two, or one every few seconds while a request takes long.
const MAX_INTERIM: usize = 100;
const PROXY_AUTHENTICATION_REQUIRED: u16 = 407;

/// The connections of one client in one process.
pub struct HttpTransport {
    client: Client<Connector, Empty<Bytes>>,
    origin: Url,
    max_response_bytes: usize,
    proxy: Option<Proxy>,
}

impl HttpTransport {
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let proxy = match Route::of(settings)? {
            Route::Proxy(proxy) => Some(proxy),
            Route::Direct { .. } => None,
        };
        let connector = Connector::new(tls::config(settings)?, proxy.clone());
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(settings.concurrency.max())
            .http1_max_headers(MAX_HEADERS)
            .http1_max_buf_size(MAX_BUFFER)
            .build(connector);
        Ok(Self { client, origin: settings.origin.clone(), max_response_bytes: settings.max_response_bytes, proxy })
    }

    async fn send(&self, target: &str, headers: HeaderMap, timeout: Duration) -> Result<Response, TransportError> {
        let mut request = self.request(target, headers)?;
        let interim = count_interim(&mut request);
        // A little longer than the connection's own limit, so that a slow connect is reported as one.
        let end = Instant::now() + timeout + Duration::from_millis(20);
        let connection = capture_connection(&mut request);
        let sent = CONNECT_TIMEOUT.scope(timeout, self.client.request(request));
        let sent = match select(pin!(timeout_at(end, sent)), pin!(interim.notified())).await {
            Either::Left((sent, _)) => sent,
            Either::Right(_) => {
                let problem = format!("{}: more than {MAX_INTERIM} interim responses", self.peer());
                return Err(TransportError::new(Phase::Read, problem, false));
            }
        };
        let response = match sent {
            Err(_) => return Err(TransportError::timed_out(Phase::Read, "no response", timeout)),
            Ok(Err(error)) if error.is_connect() => return Err(self.explain(&error, Phase::Connect, false, timeout)),
            Ok(Err(error)) => {
                let is_reused = Used::of(&connection).is_some_and(|used| used.is_set());
                return Err(self.explain(&error, Phase::Read, is_reused, timeout));
            }
            Ok(Ok(response)) => response,
        };
        Used::of(&connection).iter().for_each(Used::set);
        let (parts, body) = response.into_parts();
        let encoding = parts.headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes).unwrap_or_default();
        let receive = async {
            let received = read(body, self.max_response_bytes).await;
            let received = received.map_err(|error| self.explain(&error, Phase::Body, true, timeout))?;
            let body = received.ok_or_else(|| TransportError::too_large(self.max_response_bytes))?;
            match decompress(body, encoding, self.max_response_bytes).await {
                // The status says more than a body that cannot be read.
                Err(_) if !parts.status.is_success() => Ok(Bytes::new()),
                decompressed => decompressed,
            }
        };
        let body = match timeout_at(end, receive).await {
            Err(_) => return Err(TransportError::timed_out(Phase::Body, "response body not received", timeout)),
            Ok(body) => body?,
        };
        Ok(Response { status: parts.status.as_u16(), body, headers: parts.headers })
    }

    fn request(&self, target: &str, headers: HeaderMap) -> Result<Request<Empty<Bytes>>, TransportError> {
        let url = format!("{}{target}", self.origin.as_str().trim_end_matches('/'));
        let uri = url.parse::<Uri>().ok();
        let uri = uri.filter(|uri| uri.path_and_query().is_some_and(|sent| sent.as_str() == target));
        let uri = uri.ok_or_else(|| {
            TransportError::new(Phase::Connect, "the target would not be sent as it was signed", false)
        })?;
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        for (name, value) in [(ACCEPT, "*/*"), (ACCEPT_ENCODING, "gzip"), (USER_AGENT, connect::USER_AGENT)] {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        Ok(request)
    }

    /// The failure that an error of the connection stands for. `is_reused` says whether the connection had a response before.
    fn explain(
        &self,
        error: &(dyn StdError + 'static),
        phase: Phase,
        is_reused: bool,
        timeout: Duration,
    ) -> TransportError {
        let phase = if find::<rustls::Error>(error).is_some() { Phase::Tls } else { phase };
        if find::<ConnectTimeout>(error).is_some() {
            return TransportError::timed_out(phase, &format!("no connection to {}", self.peer()), timeout);
        }
        if let Some(TunnelRejected(status)) = find(error)
            && let Some(proxy) = &self.proxy
        {
            return rejected_by_proxy(proxy, *status);
        }
        let cause = cause(error);
        if is_out_of_files(error) {
            let problem = Message::new("too many open files (ulimit -n)").hint(Hint::lower(&["concurrency"]));
            return TransportError::new(phase, problem, true);
        }
        match phase {
            Phase::Tls => {
                let is_plain = matches!(find(error), Some(rustls::Error::InvalidMessage(_)));
                let cause = if is_plain { "the response is not TLS (is it plain http?)" } else { cause.as_str() };
                let problem = Message::new(format!("{}: {cause}", self.peer()));
                let problem = problem.hint(Hint::check(&["base_url", "ca_bundle"]));
                // A certificate stays what it is for more than seconds.
                TransportError::new(phase, problem, false)
            }
            Phase::Connect => {
                let setting = self.proxy.as_ref().map_or("base_url", |proxy| proxy.setting);
                let problem = Message::new(format!("cannot connect to {}: {cause}", self.peer()));
                TransportError::new(phase, problem.hint(Hint::check(&[setting])), true)
            }
            _ => {
                let problem = format!("{}: {cause}", self.peer());
                // A response head that is too large stays too large.
                let retryable = !cause.contains("message head is too large");
                let stale_connection = phase == Phase::Read && retryable && is_reused;
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

/// Counts the interim responses to a request; the result is notified of the first one too many.
fn count_interim(request: &mut Request<Empty<Bytes>>) -> Arc<Notify> {
    let count = AtomicUsize::new(0);
    let too_many = Arc::new(Notify::new());
    let notified = too_many.clone();
    hyper::ext::on_informational(request, move |_| {
        if count.fetch_add(1, Ordering::Relaxed) == MAX_INTERIM {
            too_many.notify_one();
        }
    });
    notified
}

/// Reads a body of at most `max` bytes, or `None` if it is longer.
async fn read(mut body: Incoming, max: usize) -> hyper::Result<Option<Bytes>> {
    let expected = body.size_hint().exact().unwrap_or(0);
    if expected > max as u64 {
        return Ok(None);
    }
    let mut received = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // Trailers are of no use.
        let Ok(chunk) = frame?.into_data() else { continue };
        if received.len() + chunk.len() > max {
            return Ok(None);
        }
        if expected > 0 && chunk.len() as u64 == expected {
            return Ok(Some(chunk));
        }
        if received.is_empty() {
            received.reserve(expected.min(MAX_PREALLOC) as usize);
        }
        received.extend_from_slice(&chunk);
    }
    Ok(Some(received.freeze()))
}

/// Registered encodings that responses do not have, since requests do not accept them.
const UNSUPPORTED: [&str; 4] = ["br", "zstd", "deflate", "compress"];

/// Removes the content encoding. Done here and not by a library of HTTP, since a few kilobytes may unpack to more than
/// the memory, and megabytes to nothing. Ends at a timeout: other tasks run after each slice.
async fn decompress(body: Bytes, encoding: &[u8], max: usize) -> Result<Bytes, TransportError> {
    if body.is_empty() {
        return Ok(body);
    }
    match encoding.trim_ascii().to_ascii_lowercase().as_slice() {
        b"" | b"identity" => Ok(body),
        b"gzip" | b"x-gzip" => {
            let bytes = Vec::with_capacity((body.len() * UNPACKED).min(max));
            let mut decoder = MultiGzDecoder::new(Bounded { bytes, max });
            let mut unpacked = Ok(());
            for slice in body.chunks(SLICE) {
                unpacked = unpacked.and_then(|()| decoder.write_all(slice));
                if unpacked.is_err() {
                    break;
                }
                if slice.len() == SLICE {
                    tokio::task::yield_now().await;
                }
            }
            match unpacked.and_then(|()| decoder.finish()) {
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(TransportError::too_large(max)),
                Err(_) => Err(TransportError::new(Phase::Body, "invalid gzip in response body", true)),
                Ok(unpacked) => Ok(unpacked.bytes.into()),
            }
        }
        other => {
            // The header may echo a secret, so that others are not shown.
            let name = UNSUPPORTED.into_iter().find(|name| name.as_bytes() == other).unwrap_or("unknown");
            Err(TransportError::new(Phase::Body, format!("unsupported Content-Encoding: {name}"), true))
        }
    }
}

/// Memory for at most `max` bytes.
struct Bounded {
    bytes: Vec<u8>,
    max: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.max - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A proxy that sends no tunnel. Another attempt helps only where the proxy itself is in trouble.
fn rejected_by_proxy(proxy: &Proxy, status: Option<u16>) -> TransportError {
    let address = proxy.address();
    let problem = match status {
        Some(PROXY_AUTHENTICATION_REQUIRED) if proxy.has_credentials() => {
            format!("the proxy {address} did not accept the user name and password (status 407)")
        }
        Some(PROXY_AUTHENTICATION_REQUIRED) => {
            format!("the proxy {address} requires a user name and password (status 407)")
        }
        Some(status) => format!("the proxy {address} rejected the connection (status {status})"),
        None => format!("the proxy {address} rejected the connection"),
    };
    let problem = Message::new(problem).hint(Hint::check(&[proxy.setting]));
    TransportError::new(Phase::Connect, problem, status.is_none_or(|status| status >= 500))
}

/// An error and its sources.
fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// The first error of that type in the chain. `source` of an I/O error skips the error that it wraps.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    chain(error).find_map(|error| match error.downcast_ref::<io::Error>() {
        Some(wrapping) => wrapping.get_ref().and_then(|wrapped| wrapped.downcast_ref()).or(error.downcast_ref()),
        None => error.downcast_ref(),
    })
}

/// True if the process or the system has no file descriptors left.
fn is_out_of_files(error: &(dyn StdError + 'static)) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 2] = [libc::EMFILE, libc::ENFILE];
    // WSAEMFILE.
    #[cfg(not(unix))]
    const CODES: [i32; 1] = [10_024];
    let mut codes = chain(error).filter_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error());
    codes.any(|code| CODES.contains(&code))
}

/// The innermost cause: the outer ones say less.
fn cause(error: &(dyn StdError + 'static)) -> String {
    let innermost = chain(error).last();
    let text = innermost.map_or_else(|| "the request failed".into(), ToString::to_string);
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(length: usize) -> Bytes {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&vec![b'x'; length]).unwrap();
        packer.finish().unwrap().into()
    }

    #[tokio::test]
    async fn decompressed_body_is_bounded() {
        assert_eq!(decompress(packed(1_000), b"gzip", 1_000).await.unwrap().len(), 1_000);
        assert_eq!(decompress(packed(1_000), b" X-GZIP", 1_000).await.unwrap().len(), 1_000);
        assert_eq!(decompress(packed(9), b"identity", 1_000).await.unwrap(), packed(9));
        assert_eq!(decompress(Bytes::new(), b"gzip", 1_000).await.unwrap(), Bytes::new());
        let members = [packed(600), packed(0), packed(400)].concat();
        assert_eq!(decompress(members.into(), b"gzip", 1_000).await.unwrap().len(), 1_000);
        for (body, encoding, problem, retryable) in [
            (packed(1_001), &b"gzip"[..], "exceeds max_response_bytes (1000 bytes)", false),
            (packed(100 << 20), b"gzip", "exceeds max_response_bytes (1000 bytes)", false),
            (packed(1_000).slice(..20), b"gzip", "invalid gzip", true),
            (Bytes::from_static(b"<html>"), b"gzip", "invalid gzip", true),
            (packed(9), b"br", "unsupported Content-Encoding: br", true),
        ] {
            let error = decompress(body, encoding, 1_000).await.unwrap_err();
            assert!(error.problem.to_string().contains(problem) && error.retryable == retryable, "{error:?}");
            assert_eq!(error.phase, Phase::Body);
        }
    }

    /// The runtime has one thread, so the timeout can only end what lets other tasks run.
    #[tokio::test]
    async fn a_timeout_ends_the_unpacking_of_what_unpacks_to_nothing() {
        let members = packed(0).repeat(3_000_000);
        // Blocks of the fixed code with nothing in them, ten bits each.
        let blocks: Vec<u8> = [&packed(0)[..10], &[0x02, 0x08, 0x20, 0x80, 0x00].repeat(12_000_000)].concat();
        for body in [members, blocks] {
            let unpacking = decompress(body.into(), b"gzip", 1_000);
            assert!(tokio::time::timeout(Duration::from_millis(1), unpacking).await.is_err());
        }
    }
}
