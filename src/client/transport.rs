//! One exchange: a target goes out as it is, an answer comes back whole and bounded, or where it failed.

use std::error::Error as _;
use std::io::Read as _;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, DATE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Request};
use tokio::time::{Instant, timeout_at};
use url::{Position, Url};

use super::clock;
use super::error::{Error, Phase};
use super::settings::Settings;

/// What is set aside for a body by what its header says.
const ROOM: u64 = 8 << 20;

pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// Unpacked.
    pub body: Bytes,
}

impl Answer {
    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The service's clock minus ours, in milliseconds.
    pub fn skew(&self) -> Option<i64> {
        self.header(DATE).and_then(|date| clock::skew(date, SystemTime::now()))
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub struct Failure {
    pub phase: Phase,
    pub problem: String,
    pub timed_out: bool,
    pub retryable: bool,
}

/// The connections of one client in one process.
pub fn connections(settings: &Settings) -> Result<reqwest::Client, Error> {
    // Fails when a provider is there already, which then is this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("chainframe/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the key and a signature to a place that nobody named.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(settings.timeout)
        .pool_max_idle_per_host(settings.concurrency)
        .tcp_nodelay(true);
    if let Some(proxy) = &settings.proxy {
        let proxy = reqwest::Proxy::all(proxy).map_err(|_| Error::config("proxy", "is not the address of a proxy"))?;
        builder = builder.proxy(proxy);
    } else if settings.is_loopback {
        // A proxy of the environment is not on loopback: plain http would leave the machine.
        builder = builder.no_proxy();
    }
    if let Some(path) = &settings.ca_bundle {
        let refuse = |problem: String| Error::config("ca_bundle", format!("{}: {problem}", path.display()));
        let pem = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
        let certificates = reqwest::Certificate::from_pem_bundle(&pem)
            .ok()
            .filter(|certificates| !certificates.is_empty())
            .ok_or_else(|| refuse("holds no certificate in PEM form".into()))?;
        builder = builder.tls_certs_only(certificates);
    }
    builder.build().map_err(|error| Error::config("ca_bundle", format!("no TLS: {}", cause(&error))))
}

/// Sends a GET for `origin` + `target` and reads the answer, all within `timeout`. The body is of `max_body` bytes at
/// most, as it comes and unpacked.
pub async fn get(
    client: &reqwest::Client,
    origin: &Url,
    target: &str,
    mut headers: HeaderMap,
    timeout: Duration,
    max_body: usize,
) -> Result<Answer, Failure> {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let mut url = origin.clone();
    url.set_path(path);
    url.set_query(query);
    if url[Position::BeforePath..] != *target {
        return Err(Failure::hopeless("the target would not be sent as it was signed"));
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    // A little longer than the connection's own limit, so that a connect that takes too long is told as one.
    let end = Instant::now() + timeout + Duration::from_millis(20);
    let mut request = Request::new(Method::GET, url);
    *request.headers_mut() = headers;
    let mut response = timeout_at(end, client.execute(request))
        .await
        .map_err(|_| Failure::slow(Phase::Read, "no answer", timeout))?
        .map_err(|error| explain(&error, Phase::Read, timeout))?;
    let (status, headers) = (response.status().as_u16(), std::mem::take(response.headers_mut()));
    let expected = response.content_length().unwrap_or(0);
    if expected > max_body as u64 {
        return Err(Failure::too_long(max_body));
    }
    let body = timeout_at(end, async {
        let Some(first) = response.chunk().await? else { return Ok(Some(Bytes::new())) };
        if first.len() > max_body {
            return Ok(None);
        }
        if first.len() as u64 == expected {
            return Ok(Some(first));
        }
        let mut body = BytesMut::with_capacity(expected.min(ROOM) as usize);
        body.extend_from_slice(&first);
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > max_body {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Some(body.freeze()))
    })
    .await
    .map_err(|_| Failure::slow(Phase::Body, "the answer was not there whole", timeout))?
    .map_err(|error: reqwest::Error| explain(&error, Phase::Body, timeout))?
    .ok_or_else(|| Failure::too_long(max_body))?;
    let encoding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes).unwrap_or_default();
    Ok(Answer { status, body: unpack(body, encoding, max_body)?, headers })
}

/// The body without its compression. Done here, since a few kilobytes may unpack to more than there is memory.
fn unpack(body: Bytes, encoding: &[u8], max_body: usize) -> Result<Bytes, Failure> {
    match encoding.trim_ascii().to_ascii_lowercase().as_slice() {
        b"" | b"identity" => Ok(body),
        b"gzip" | b"x-gzip" => {
            let mut unpacked = Vec::with_capacity((body.len() * 4).min(max_body));
            let mut unpacker = MultiGzDecoder::new(&*body).take(max_body as u64 + 1);
            match unpacker.read_to_end(&mut unpacked) {
                Err(_) => Err(Failure::body("the answer's gzip is broken")),
                Ok(length) if length > max_body => Err(Failure::too_long(max_body)),
                Ok(_) => Ok(unpacked.into()),
            }
        }
        _ => Err(Failure::body("the answer is compressed in a way that was not asked for")),
    }
}

impl Failure {
    fn hopeless(problem: &str) -> Self {
        Self { phase: Phase::Connect, problem: problem.into(), timed_out: false, retryable: false }
    }

    fn slow(phase: Phase, what: &str, timeout: Duration) -> Self {
        let problem = format!("{what} within {} s", timeout.as_secs_f64());
        Self { phase, problem, timed_out: true, retryable: true }
    }

    /// An answer came that is none. The next one may be.
    fn body(problem: &str) -> Self {
        Self { phase: Phase::Body, problem: problem.into(), timed_out: false, retryable: true }
    }

    fn too_long(max_body: usize) -> Self {
        Self::body(&format!("the answer is longer than {max_body} bytes; if that is right, raise max_body"))
    }
}

fn explain(error: &reqwest::Error, phase: Phase, timeout: Duration) -> Failure {
    let phase = match () {
        () if is_tls(error) => Phase::Tls,
        () if error.is_connect() => Phase::Connect,
        () => phase,
    };
    if error.is_timeout() {
        return Failure::slow(phase, "no connection", timeout);
    }
    if phase == Phase::Tls {
        let problem = format!("{}; check base_url, or give the authority to trust as ca_bundle", cause(error));
        // A certificate does not mend itself within seconds.
        return Failure { phase, problem, timed_out: false, retryable: false };
    }
    let advice = if phase == Phase::Connect { "; check base_url" } else { "" };
    Failure { phase, problem: format!("{}{advice}", cause(error)), timed_out: false, retryable: true }
}

/// Whether it began with TLS. An I/O error passes over what it holds when it is asked for its source.
fn is_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let held = |error: &'_ (dyn std::error::Error + 'static)| -> Option<bool> {
        error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref).map(|held| is_tls(held))
    };
    error.is::<rustls::Error>() || held(error).or_else(|| error.source().map(is_tls)).unwrap_or(false)
}

/// The innermost cause: the outer ones repeat the URL and say less.
fn cause(error: &reqwest::Error) -> String {
    let innermost = std::iter::successors(error.source(), |error| (*error).source()).last();
    let text = innermost.map_or_else(|| "the request failed".into(), ToString::to_string);
    text.replace(['\n', '\r'], " ")
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
    fn a_body_is_bounded_when_it_is_unpacked() {
        assert_eq!(unpack(packed(1_000), b"gzip", 1_000).unwrap().len(), 1_000);
        assert_eq!(unpack(packed(1_000), b" X-GZIP", 1_000).unwrap().len(), 1_000);
        assert_eq!(unpack(packed(9), b"identity", 1_000).unwrap(), packed(9));
        for (body, encoding, problem) in [
            (packed(1_001), &b"gzip"[..], "longer than 1000 bytes"),
            (packed(100 << 20), b"gzip", "longer than 1000 bytes"),
            (packed(1_000).slice(..20), b"gzip", "broken"),
            (Bytes::from_static(b"<html>"), b"gzip", "broken"),
            (packed(9), b"br", "not asked for"),
        ] {
            let failure = unpack(body, encoding, 1_000).unwrap_err();
            assert!(failure.problem.contains(problem) && failure.retryable, "{failure:?}");
            assert_eq!(failure.phase, Phase::Body);
        }
    }
}
