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
        let (code, msg) = if matches!(response.status, OK | NON_AUTHORITATIVE) {
            let Expectation { row_hint, projection, .. } = expectation;
            match self.decoder(endpoint).decode_columns(&response.body, row_hint, projection) {
                Ok(decode::Envelope::Page(page)) if expectation.contradicts(&page) => {
                    let problem = format!("page {} is empty but the API reports more records", expectation.page);
                    return Err(Error::Empty { endpoint: endpoint.name, problem, attempts });
                }
                Ok(decode::Envelope::Page(page)) => return Ok(page),
                Ok(decode::Envelope::Error { code, msg }) => (Some(code), msg),
                Err(error) => {
                    return Err(Error::Format {
                        endpoint: endpoint.name,
                        path: shown(&error.path(), mask),
                        problem: shown(&error.problem, mask),
                        excerpt: error.excerpt(&response.body, mask),
                        attempts,
                        retryable: error.broken,
                    });
                }
            }
        } else {
            decode::code_and_msg(&response.body)
        };
        let kind = ApiErrorKind::of(response.status, code.as_deref());
        let suspicion = match response.status {
            301 | 302 | 303 | 307 | 308 => {
                // A query of a URL may hold a token.
                let target = response.header(LOCATION).map(|target| target.split(['?', '#']).next().unwrap_or(""));
                Some(Suspicion::Redirect(target.map(|target| without_user(&shown(target, mask)))))
            }
            _ => {
                if code.is_none() && response.body.trim_ascii_start().starts_with(b"<") {
                    Some(Suspicion::Html)
                } else if kind == ApiErrorKind::Authentication {
                    self.settings().doubtful_secret()
                } else {
                    None
                }
            }
        };
        let now = self.now();
        let skew = if kind == ApiErrorKind::ClockSkew { clock::of_response(response, now) } else { None };
        Err(Error::Service(Box::new(ApiError {
            kind,
            endpoint: endpoint.name,
            status: response.status,
            code: code.map(|code| shown(&code, mask)),
            msg: shown(&msg, mask),
            attempts,
            retry_after: response.header(RETRY_AFTER).and_then(|value| retry::retry_after(value, now)),
            clock_ahead: skew.map(|skew| -skew),
            suspicion,
        })))
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
