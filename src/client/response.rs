//! Classification of a response: the requested page, or a typed error.

use http::header::LOCATION;

use super::error::{ApiError, Error, Suspicion};
use super::get_request::{Expectation, counts_none};
use super::transport::Response;
use super::{Client, clock, retry};
use crate::decode::{self, Page, one_line};
use crate::interface::{ApiErrorKind, Endpoint};

const OK: u16 = 200;
/// A response that a transforming proxy has passed on: its body is decoded as strictly as any.
const NON_AUTHORITATIVE: u16 = 203;
/// Bytes of a text that are searched for secrets.
const MAX_ECHO: usize = 32 << 10;
/// Characters of a message or path that are shown.
const MAX_SHOWN: usize = 300;

/// A response, with what its classification depends on.
pub(super) struct Unclassified<'a, M> {
    pub client: &'a Client,
    pub endpoint: &'static Endpoint,
    pub response: &'a Response,
    pub attempts: u32,
    /// Overwrites the secrets of the request in a text.
    pub mask: M,
}

impl<M: Fn(&[u8]) -> Vec<u8>> Unclassified<'_, M> {
    pub fn classify(&self, expectation: Expectation) -> Result<Page, Error> {
        let Self { client, endpoint, response, attempts, .. } = *self;
        if !matches!(response.status, OK | NON_AUTHORITATIVE) {
            let (code, msg) = decode::code_and_msg(&response.body);
            return Err(self.service_error(code, &msg));
        }
        let Expectation { row_hint, projection, .. } = expectation;
        match client.decoder(endpoint).decode_columns(&response.body, row_hint, projection) {
            Ok(decode::Envelope::Page(mut page)) => {
                if let Some(contradiction) = expectation.contradiction(&page) {
                    let problem = format!("page {} is empty but {contradiction}", expectation.page);
                    let denies_list = counts_none(&page);
                    return Err(Error::Empty { endpoint: endpoint.name, problem, denies_list, attempts });
                }
                // A report shows them.
                page.members.unknown.iter_mut().for_each(|name| *name = self.shown(name));
                Ok(page)
            }
            Ok(decode::Envelope::Error { code, msg }) => Err(self.service_error(Some(code), &msg)),
            Err(error) => Err(Error::Format {
                endpoint: endpoint.name,
                path: self.shown(&error.path()),
                problem: self.shown(&error.problem),
                excerpt: error.excerpt(&response.body, &self.mask),
                attempts,
                retryable: error.broken,
            }),
        }
    }

    fn service_error(&self, code: Option<String>, msg: &str) -> Error {
        let response = self.response;
        let kind = ApiErrorKind::of(response.status, code.as_deref());
        let now = self.client.now();
        let skew = if kind == ApiErrorKind::ClockSkew { clock::of_response(response, now) } else { None };
        Error::Service(Box::new(ApiError {
            kind,
            endpoint: self.endpoint.name,
            status: response.status,
            suspicion: self.suspicion(kind, code.is_some()),
            code: code.map(|code| self.shown(&code)),
            msg: self.shown(msg),
            attempts: self.attempts,
            retry_after: retry::of_response(response, now),
            clock_ahead: skew.map(|skew| -skew),
        }))
    }

    fn suspicion(&self, kind: ApiErrorKind, has_code: bool) -> Option<Suspicion> {
        let response = self.response;
        if matches!(response.status, 301 | 302 | 303 | 307 | 308) {
            // A query of a URL may hold a token.
            let target = response.header(LOCATION).map(|target| target.split(['?', '#']).next().unwrap_or(""));
            return Some(Suspicion::Redirect(target.map(|target| self.shown(&without_user(target)))));
        }
        if !has_code && response.body.trim_ascii_start().starts_with(b"<") {
            return Some(Suspicion::Html);
        }
        if kind == ApiErrorKind::Authentication { self.client.settings().doubtful_secret() } else { None }
    }

    /// Text of the service as an error shows it: masked first, since cutting could leave half a secret.
    fn shown(&self, text: &str) -> String {
        shown(text, MAX_SHOWN, &self.mask)
    }
}

fn shown(text: &str, max_chars: usize, mask: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let echo = &text.as_bytes()[..text.len().min(MAX_ECHO)];
    one_line(&String::from_utf8_lossy(&mask(echo)), max_chars)
}

impl Client {
    /// Text of the service on one line without the secrets of the client, as a reason shows it.
    pub fn shown(&self, text: &str, max_chars: usize) -> String {
        shown(text, max_chars, |text| self.inner.shared.account.redact(text, ""))
    }
}

/// A URL without its user part.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("//") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{scheme}//{}{path}", host.rsplit('@').next().unwrap_or(host))
}
