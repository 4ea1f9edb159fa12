//! One exchange: a target goes out as it is, an answer comes back whole and bounded, or where it failed.

use std::error::Error as _;
use std::time::Duration;

use bytes::BytesMut;
use reqwest::header::{HeaderMap, HeaderName};
use tokio::time::{Instant, timeout_at};
use url::{Position, Url};

use super::error::{Error, Phase};
use super::settings::{MAX_BODY, Settings};

pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: bytes::Bytes,
}

impl Answer {
    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
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

/// Sends a GET for `origin` + `target` and reads the answer; each within `timeout`, together too.
pub async fn get(
    client: &reqwest::Client,
    origin: &str,
    target: &str,
    headers: HeaderMap,
    timeout: Duration,
) -> Result<Answer, Failure> {
    let fail = |phase, problem: &str| Failure { phase, problem: problem.into(), timed_out: false, retryable: false };
    let url = Url::parse(&format!("{origin}{target}")).map_err(|_| fail(Phase::Connect, "the URL is malformed"))?;
    if url[Position::BeforePath..] != *target {
        return Err(fail(Phase::Connect, "the target would not be sent as it was signed"));
    }
    // A little longer than the connection's own limit, so that a connect that takes too long is told as one.
    let end = Instant::now() + timeout + Duration::from_millis(20);
    let slow = |phase, problem: &str| Failure { phase, problem: problem.into(), timed_out: true, retryable: true };
    let mut response = timeout_at(end, client.get(url).headers(headers).send())
        .await
        .map_err(|_| slow(Phase::Read, &format!("no answer within {} s", timeout.as_secs_f64())))?
        .map_err(|error| explain(&error, Phase::Read))?;
    let (status, headers) = (response.status().as_u16(), std::mem::take(response.headers_mut()));
    let expected = response.content_length().unwrap_or(0);
    let too_long = || fail(Phase::Body, &format!("the answer is longer than {} MiB", MAX_BODY >> 20));
    if expected > MAX_BODY as u64 {
        return Err(too_long());
    }
    let body = timeout_at(end, async {
        let Some(first) = response.chunk().await? else { return Ok(Some(bytes::Bytes::new())) };
        if first.len() as u64 == expected {
            return Ok(Some(first));
        }
        let mut body = BytesMut::with_capacity(expected as usize);
        body.extend_from_slice(&first);
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > MAX_BODY {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Some(body.freeze()))
    })
    .await
    .map_err(|_| slow(Phase::Body, &format!("the answer was not there whole within {} s", timeout.as_secs_f64())))?
    .map_err(|error: reqwest::Error| explain(&error, Phase::Body))?
    .ok_or_else(too_long)?;
    Ok(Answer { status, headers, body })
}

fn explain(error: &reqwest::Error, phase: Phase) -> Failure {
    let mut sources = std::iter::successors(error.source(), |error| (*error).source());
    let is_tls = sources.any(|source| {
        let inner = source.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        source.is::<rustls::Error>() || inner.is_some_and(|inner| inner.is::<rustls::Error>())
    });
    let phase = match () {
        () if is_tls => Phase::Tls,
        () if error.is_connect() => Phase::Connect,
        () => phase,
    };
    // A certificate does not mend itself within seconds.
    Failure { phase, problem: cause(error), timed_out: error.is_timeout(), retryable: phase != Phase::Tls }
}

/// The innermost cause: the outer ones repeat the URL and say less.
fn cause(error: &reqwest::Error) -> String {
    let innermost = std::iter::successors(error.source(), |error| (*error).source()).last();
    let text = innermost.map_or_else(|| "the request failed".into(), ToString::to_string);
    text.replace(['\n', '\r'], " ")
}
