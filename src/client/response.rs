//! Classification of a response: the requested page, or a typed error.

use http::header::{LOCATION, RETRY_AFTER};

use super::error::{ApiError, Error, Suspicion};
use super::expectation::Expectation;
use super::transport::Response;
use super::{Client, clock, retry};
use crate::decode::{self, Page, one_line};
use crate::interface::{ApiErrorKind, Endpoint};

const OK: u16 = 200;
/// A response that a transforming proxy has passed on: its body is decoded as strictly as any.
const NON_AUTHORITATIVE: u16 = 203;
/// Bytes of a message that are searched for secrets.
const MAX_ECHO: usize = 32 << 10;
/// Characters of a message or path that are shown.
const MAX_SHOWN: usize = 300;

impl Client {
    pub(super) fn classify(
        &self,
        endpoint: &'static Endpoint,
        response: &Response,
        expectation: Expectation,
        attempts: u32,
        mask: &impl Fn(&[u8]) -> Vec<u8>,
    ) -> Result<Page, Error> {
        if !matches!(response.status, OK | NON_AUTHORITATIVE) {
            let (code, msg) = decode::code_and_msg(&response.body);
            return Err(self.service_error(endpoint, response, code, &msg, attempts, mask));
        }
        let Expectation { row_hint, projection, .. } = expectation;
        match self.decoder(endpoint).decode_columns(&response.body, row_hint, projection) {
            Ok(decode::Envelope::Page(page)) if expectation.contradicts(&page) => {
                let problem = format!("page {} is empty but the API reports more records", expectation.page);
                Err(Error::Empty { endpoint: endpoint.name, problem, attempts })
            }
            Ok(decode::Envelope::Page(page)) => Ok(page),
            Ok(decode::Envelope::Error { code, msg }) => {
                Err(self.service_error(endpoint, response, Some(code), &msg, attempts, mask))
            }
            Err(error) => Err(Error::Format {
                endpoint: endpoint.name,
                path: shown(&error.path(), mask),
                problem: shown(&error.problem, mask),
                excerpt: error.excerpt(&response.body, mask),
                attempts,
                retryable: error.broken,
            }),
        }
    }

    fn service_error(
        &self,
        endpoint: &'static Endpoint,
        response: &Response,
        code: Option<String>,
        msg: &str,
        attempts: u32,
        mask: &impl Fn(&[u8]) -> Vec<u8>,
    ) -> Error {
        let kind = ApiErrorKind::of(response.status, code.as_deref());
        let now = self.now();
        let skew = if kind == ApiErrorKind::ClockSkew { clock::of_response(response, now) } else { None };
        Error::Service(Box::new(ApiError {
            kind,
            endpoint: endpoint.name,
            status: response.status,
            suspicion: self.suspicion(response, kind, code.is_some(), mask),
            code: code.map(|code| shown(&code, mask)),
            msg: shown(msg, mask),
            attempts,
            retry_after: response.header(RETRY_AFTER).and_then(|value| retry::retry_after(value, now)),
            clock_ahead: skew.map(|skew| -skew),
        }))
    }

    fn suspicion(
        &self,
        response: &Response,
        kind: ApiErrorKind,
        has_code: bool,
        mask: &impl Fn(&[u8]) -> Vec<u8>,
    ) -> Option<Suspicion> {
        if matches!(response.status, 301 | 302 | 303 | 307 | 308) {
            // A query of a URL may hold a token.
            let target = response.header(LOCATION).map(|target| target.split(['?', '#']).next().unwrap_or(""));
            return Some(Suspicion::Redirect(target.map(|target| without_user(&shown(target, mask)))));
        }
        if !has_code && response.body.trim_ascii_start().starts_with(b"<") {
            return Some(Suspicion::Html);
        }
        if kind == ApiErrorKind::Authentication { self.settings().doubtful_secret() } else { None }
    }
}

/// Text of the service as an error shows it: masked first, since cutting could leave half a secret.
fn shown(text: &str, mask: &impl Fn(&[u8]) -> Vec<u8>) -> String {
    let echo = &text.as_bytes()[..text.len().min(MAX_ECHO)];
    one_line(&String::from_utf8_lossy(&mask(echo)), MAX_SHOWN)
}

/// A URL without its user part.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("//") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{scheme}//{}{path}", host.rsplit('@').next().unwrap_or(host))
}
